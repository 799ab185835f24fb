//! Tokens of identity providers (OpenID Connect), with which people and CI jobs need no token of Keelway. The keys of a provider
//! are read by its discovery document, and cached. A token with an unknown key causes another read, at most once a minute.

use crate::fence::caller::Caller;
use crate::fence::problem::{Answer, Refused};
use axum::http::StatusCode;
use jsonwebtoken::jwk::{Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation, decode, decode_header};
use keelway_domain::access::Identities;
use keelway_domain::time::{Span, Timestamp};
use keelway_outgoing::{Guard, Method, Roots, Terms, Wire};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long keys are used before they are read again.
const FRESH: Span = Span::minutes(60);
/// How long cached keys are used if they cannot be read again.
const STALE: Span = Span::minutes(24 * 60);
/// The shortest interval between reads, for unknown keys and after failures.
const AGAIN: Span = Span::minutes(1);
const CONNECT: Duration = Duration::from_secs(2);
const WHOLE: Duration = Duration::from_secs(4);
/// The most that a provider may answer, in bytes.
const ANSWER: usize = 1 << 20;
/// The longest token, in bytes.
const LONGEST: usize = 16 * 1024;
/// The largest difference of clocks, in seconds.
const LEEWAY: u64 = 60;

/// The accepted signature algorithms: those with public keys. With a shared secret, whoever can verify a token could also make one.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// The accepted identity providers.
#[derive(Debug)]
pub struct Providers {
    known: Identities,
    wire: Wire,
    keys: Mutex<HashMap<String, Keys>>,
}

/// The cached keys of a provider.
#[derive(Debug, Clone, Default)]
struct Keys {
    keys: Vec<Jwk>,
    /// When they were read; `None`: never.
    read: Option<Timestamp>,
    /// When they were last asked for.
    asked: Option<Timestamp>,
}

impl Keys {
    fn age(&self, now: Timestamp) -> Option<Span> {
        self.read.map(|read| now - read)
    }
    fn may_ask(&self, now: Timestamp) -> bool {
        self.asked.is_none_or(|asked| now - asked >= AGAIN)
    }
    fn find(&self, header: &Header) -> Option<&Jwk> {
        let for_signatures = |key: &&Jwk| key.common.public_key_use.as_ref().is_none_or(|usage| *usage == PublicKeyUse::Signature);
        let mut fitting = self.keys.iter().filter(for_signatures);
        match &header.kid {
            Some(kid) => fitting.find(|key| key.common.key_id.as_ref() == Some(kid)),
            // A token without a key id is only accepted if there is a single key.
            None => fitting.next().filter(|_| self.keys.len() == 1),
        }
    }
}

impl Providers {
    /// These providers, if the guard permits requests to them.
    pub fn new(known: Identities, guard: &Guard) -> Self {
        let terms = Terms { connect: CONNECT, total: WHOLE, idle: None, roots: Roots::Known, redirects: 0, plain: false };
        Self { known, wire: Wire::new(guard, terms), keys: Mutex::default() }
    }

    /// Whether a text has the form of a JSON Web Token.
    pub fn looks_like(text: &str) -> bool {
        text.len() <= LONGEST && text.starts_with("ey") && text.split('.').count() == 3
    }

    /// The person or job of a token.
    ///
    /// # Errors
    /// 401, with what is wrong with the token; 503 if the provider's keys cannot be read now.
    pub(crate) async fn accept(&self, token: &str, now: Timestamp) -> Answer<Caller> {
        let header = decode_header(token).map_err(|_| refused("cannot be read"))?;
        if !ALGORITHMS.contains(&header.alg) {
            return Err(refused("is signed in a way that does not count: the provider has to sign with a key that it publishes"));
        }
        // Not verified yet: it only selects the keys.
        let told: Value = jsonwebtoken::dangerous::insecure_decode_claims(token).map_err(|_| refused("cannot be read"))?;
        let issuer = told["iss"].as_str().and_then(|issuer| self.known.issuers.iter().find(|known| *known == issuer));
        let issuer = issuer.ok_or_else(|| refused("is from an issuer that is not known here"))?;
        let key = self.key(issuer, &header, now).await?;
        if key.common.key_algorithm.as_ref().is_some_and(|named| *named != KeyAlgorithm::from(header.alg)) {
            return Err(refused("is signed in another way than its key is for"));
        }
        let key = DecodingKey::from_jwk(&key).map_err(|_| refused("is signed with a key that cannot be used"))?;
        let claims =
            decode::<Value>(token, &key, &self.rules(header.alg, issuer)).map_err(|error| refused(&wrong(error.kind())))?.claims;
        let person = self.known.person(issuer, &claims).map_err(|why| refused(&why))?;
        let provider = issuer.split_once("://").map_or(issuer.as_str(), |(_, host)| host);
        let ends = claims["exp"].as_f64().map(|seconds| Timestamp(seconds as i64 * 1000));
        Ok(Caller::new(provider, person.known, person.id, self.known.grants(&claims)).called(person.subject).until(ends))
    }

    fn rules(&self, algorithm: Algorithm, issuer: &str) -> Validation {
        let mut rules = Validation::new(algorithm);
        rules.set_issuer(&[issuer]);
        rules.set_audience(&[&self.known.audience]);
        rules.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        rules.validate_nbf = true;
        rules.leeway = LEEWAY;
        rules
    }

    /// The key that a token is signed with.
    async fn key(&self, issuer: &str, header: &Header, now: Timestamp) -> Answer<Jwk> {
        let known = self.remembered(issuer);
        let found = known.find(header).cloned();
        let is_fresh = known.age(now).is_some_and(|age| age < FRESH);
        if let Some(key) = found.clone().filter(|_| is_fresh) {
            return Ok(key);
        }
        if !known.may_ask(now) {
            // The cached keys count until the next read is due.
            let usable = found.filter(|_| known.age(now).is_some_and(|age| age < STALE));
            return usable.ok_or_else(|| if known.read.is_some() { unknown_key() } else { unreadable() });
        }
        let read = self.read(issuer).await;
        let asked = Some(now);
        let fresh = match read {
            Ok(keys) => Keys { keys, read: Some(now), asked },
            Err(why) => {
                tracing::warn!(issuer, why, "the keys of an identity provider cannot be read");
                Keys { asked, ..known }
            }
        };
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).insert(issuer.to_owned(), fresh.clone());
        match fresh.find(header).filter(|_| fresh.age(now).is_some_and(|age| age < STALE)) {
            Some(key) => Ok(key.clone()),
            None if fresh.read == Some(now) => Err(unknown_key()),
            None => Err(unreadable()),
        }
    }

    fn remembered(&self, issuer: &str) -> Keys {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).get(issuer).cloned().unwrap_or_default()
    }

    /// The keys that a provider publishes now, without those of unknown kinds.
    async fn read(&self, issuer: &str) -> Result<Vec<Jwk>, String> {
        let discovery = self.get(&format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'))).await?;
        if discovery["issuer"] != issuer {
            return Err(format!("its discovery document is that of {}", discovery["issuer"]));
        }
        let url = discovery["jwks_uri"].as_str().unwrap_or_default();
        if !url.starts_with("https://") && !issuer.starts_with("http://") {
            return Err("its jwks_uri is not an https URL".into());
        }
        let keys = self.get(url).await?;
        let keys = keys["keys"].as_array().ok_or("there are no keys at its jwks_uri")?;
        Ok(keys.iter().filter_map(|key| serde_json::from_value(key.clone()).ok()).collect())
    }

    async fn get(&self, url: &str) -> Result<Value, String> {
        let answer = self.wire.call(Method::GET, url).send(ANSWER).await.map_err(|failure| failure.to_string())?;
        if !answer.status.is_success() {
            return Err(format!("it answered {}", answer.status));
        }
        if answer.cut {
            return Err(format!("its answer is larger than {ANSWER} bytes"));
        }
        serde_json::from_slice(&answer.body).map_err(|_| "its answer is not JSON".into())
    }
}

fn refused(why: &str) -> Refused {
    Refused::new(StatusCode::UNAUTHORIZED, "unauthorized", format!("the identity provider's token {why}"))
}

fn unknown_key() -> Refused {
    refused("is signed with a key that the provider does not publish; if it has just changed its keys, try again in a minute")
}

fn unreadable() -> Refused {
    let detail = "the keys of the identity provider cannot be read now: send the same again in a minute";
    Refused::new(StatusCode::SERVICE_UNAVAILABLE, "try again", detail)
}

fn wrong(kind: &jsonwebtoken::errors::ErrorKind) -> String {
    use jsonwebtoken::errors::ErrorKind;
    match kind {
        ErrorKind::ExpiredSignature => "has expired: get a new one; if it is new, compare the clocks".into(),
        ErrorKind::ImmatureSignature => "is not valid yet: compare the clocks".into(),
        ErrorKind::InvalidAudience => "is for another audience than this installation".into(),
        ErrorKind::MissingRequiredClaim(name) => format!("has no claim {name}"),
        _ => "has no valid signature".into(),
    }
}
