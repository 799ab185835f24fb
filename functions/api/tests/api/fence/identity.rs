//! Tokens of identity providers: keys made here, and a provider on this machine.

use crate::stand::{Answer, Stand};
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use axum::body::Body;
use axum::http::Request;
use axum::routing::get;
use axum::{Json, Router};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use keelway_domain::access::Identities;
use keelway_domain::time::{Span, Timestamp};
use keelway_outgoing::{Guard, Hosts};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

const RULES: &str = "repository=acme/shop,ref=refs/heads/main=>read,trigger@shop;groups=platform=>administer";

/// What a provider publishes, and how often it was asked.
#[derive(Default)]
struct Published {
    keys: Vec<Value>,
    reads: usize,
    down: bool,
}

/// A provider on this machine.
pub struct Provider {
    pub url: String,
    published: Arc<Mutex<Published>>,
}

impl Provider {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let published: Arc<Mutex<Published>> = Arc::default();
        let (issuer, served) = (url.clone(), published.clone());
        let discovery = json!({"issuer": issuer, "jwks_uri": format!("{issuer}/keys")});
        let keys = move || {
            let mut published = served.lock().unwrap();
            published.reads += 1;
            let status = if published.down { 500 } else { 200 };
            let keys = published.keys.clone();
            async move { (axum::http::StatusCode::from_u16(status).unwrap(), Json(json!({"keys": keys}))) }
        };
        let app = Router::new()
            .route("/.well-known/openid-configuration", get(move || async move { Json(discovery) }))
            .route("/keys", get(keys));
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { url, published }
    }

    pub fn publish(&self, keys: &[&Signer]) {
        self.published.lock().unwrap().keys = keys.iter().map(|key| key.public()).collect();
    }
    fn reads(&self) -> usize {
        self.published.lock().unwrap().reads
    }
    fn is_down(&self, down: bool) {
        self.published.lock().unwrap().down = down;
    }

    /// What the provider says of a job of this repository, merged with `more`; a member that is null is taken out.
    pub fn claims(&self, more: Value) -> Value {
        let now = now();
        let mut claims = json!({
            "iss": self.url, "aud": "keelway", "sub": "repo:acme/shop:ref:refs/heads/main", "iat": now, "nbf": now, "exp": now + 300,
            "repository": "acme/shop", "ref": "refs/heads/main"
        });
        for (name, value) in more.as_object().unwrap() {
            match value {
                Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
                value => claims[name] = value.clone(),
            }
        }
        claims
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()
}

/// A key that was made for this test.
pub struct Signer {
    kid: &'static str,
    algorithm: Algorithm,
    key: EncodingKey,
}

impl Signer {
    pub fn ec(kid: &'static str) -> Self {
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
        Self { kid, algorithm: Algorithm::ES256, key: EncodingKey::from_ec_der(key.as_ref()) }
    }
    fn rsa(kid: &'static str) -> Self {
        let key = KeyPair::generate(KeySize::Rsa2048).unwrap();
        let der: Pkcs8V1Der<'_> = key.as_der().unwrap();
        // The key itself stands behind 26 bytes that say of which kind it is.
        Self { kid, algorithm: Algorithm::RS256, key: EncodingKey::from_rsa_der(&der.as_ref()[26..]) }
    }
    fn public(&self) -> Value {
        let mut key = serde_json::to_value(Jwk::from_encoding_key(&self.key, self.algorithm).unwrap()).unwrap();
        key["kid"] = json!(self.kid);
        key["use"] = json!("sig");
        key
    }
    pub fn sign(&self, claims: &Value) -> String {
        self.sign_as(Some(self.kid), claims)
    }
    fn sign_as(&self, kid: Option<&str>, claims: &Value) -> String {
        let header = Header { kid: kid.map(str::to_owned), ..Header::new(self.algorithm) };
        encode(&header, claims, &self.key).unwrap()
    }
}

fn stand(provider: &Provider) -> Stand {
    Stand::with_identities(Identities::parse(&provider.url, "keelway", RULES).unwrap())
}

async fn with(stand: &Stand, path: &str, token: &str) -> Answer {
    let request = Request::get(path).header("authorization", format!("Bearer {token}"));
    stand.request(request.body(Body::empty()).unwrap()).await
}

async fn whoami(stand: &Stand, token: &str) -> Answer {
    with(stand, "/v1/whoami", token).await
}

#[tokio::test]
async fn claims_become_scopes() {
    let provider = Provider::start().await;
    let (ec, rsa) = (Signer::ec("ec"), Signer::rsa("rsa"));
    provider.publish(&[&ec, &rsa]);
    let stand = stand(&provider);
    stand.apply("shop", "    - name: dev\n      sequences: [{name: delivery, tasks: [{name: test}]}]\n").await;
    stand.apply("other", "    - name: dev\n      sequences: [{name: delivery, tasks: [{name: test}]}]\n").await;
    for signer in [&ec, &rsa] {
        let claims = provider.claims(json!({}));
        let job = signer.sign(&claims);
        let me = whoami(&stand, &job).await;
        assert_eq!(me.status, 200, "{me:?}");
        let host = provider.url.strip_prefix("http://").unwrap();
        let grants = json!([{"scopes": ["read", "trigger"], "projects": ["shop"]}]);
        let subject = "repo:acme/shop:ref:refs/heads/main";
        let by = format!("{host}/{subject}");
        let expires = Timestamp(claims["exp"].as_i64().unwrap() * 1000).rfc3339();
        let expected = json!({"token": host, "subject": subject, "by": by, "grants": grants, "expires": expires});
        assert_eq!(me.json(), expected);
        for (path, status) in [("/v1/project/shop", 200), ("/v1/project/other", 403), ("/v1/tokens", 403)] {
            assert_eq!(with(&stand, path, &job).await.status, status, "{path}");
        }
        let x_token = Request::get("/v1/project/shop").header("x-token", &job).body(Body::empty()).unwrap();
        assert_eq!(stand.request(x_token).await.status, 200);
    }
    let platform = ec.sign(&provider.claims(json!({"groups": ["people", "platform"], "repository": null, "sub": "ann"})));
    assert_eq!(with(&stand, "/v1/tokens", &platform).await.status, 200);
    let elsewhere = ec.sign(&provider.claims(json!({"ref": "refs/heads/feature"})));
    assert_eq!(whoami(&stand, &elsewhere).await.json()["grants"], json!([]));
    let refused = with(&stand, "/v1/project/shop", &elsewhere).await;
    assert_eq!((refused.status, refused.problem().contains("grants nothing")), (403, true));
    assert_eq!(provider.reads(), 1, "the keys are remembered");

    // What they do is theirs.
    let apply =
        Request::post("/v1/apply").header("authorization", format!("Bearer {platform}")).header("content-type", "application/yaml");
    let manifest = "apiVersion: keelway.dev/v1\nkind: Project\nmetadata:\n  name: third\n";
    assert_eq!(stand.request(apply.body(Body::from(manifest)).unwrap()).await.status, 200);
    let audit = stand.get("/v1/audit?token=ann").await.json();
    assert_eq!((&audit["items"][0]["subject"], &audit["items"][0]["action"]), (&json!("ann"), &json!("apply")), "{audit}");
}

#[tokio::test]
async fn what_is_not_right_is_refused() {
    let provider = Provider::start().await;
    let (key, stranger) = (Signer::ec("ec"), Signer::ec("ec"));
    provider.publish(&[&key]);
    let stand = stand(&provider);
    let now = now();
    let claims = |more: Value| provider.claims(more);
    let cases = [
        ("another issuer", key.sign(&claims(json!({"iss": "https://elsewhere.test"}))), "issuer"),
        ("no issuer", key.sign(&claims(json!({"iss": null}))), "issuer"),
        ("another audience", key.sign(&claims(json!({"aud": "sts.amazonaws.com"}))), "audience"),
        ("no audience", key.sign(&claims(json!({"aud": null}))), "aud"),
        ("expired", key.sign(&claims(json!({"exp": now - 120}))), "has expired: get a new one; if it is new, compare the clocks"),
        ("without an end", key.sign(&claims(json!({"exp": null}))), "exp"),
        ("an end that is no time", key.sign(&claims(json!({"exp": "never"}))), "identity provider's token"),
        ("not yet", key.sign(&claims(json!({"nbf": now + 120}))), "not valid yet"),
        ("a beginning that is no time", key.sign(&claims(json!({"nbf": "now"}))), "identity provider's token"),
        ("nobody", key.sign(&claims(json!({"sub": null}))), "sub"),
        ("somebody else's key", stranger.sign(&claims(json!({}))), "no valid signature"),
        ("changed claims", changed(&key.sign(&claims(json!({}))), &claims(json!({"groups": ["platform"]}))), "no valid signature"),
        ("no algorithm", unsigned(&claims(json!({}))), "identity provider's token"),
        ("a shared secret: the public key", shared(&key, &claims(json!({}))), "does not count"),
    ];
    for (case, token, words) in cases {
        let answer = whoami(&stand, &token).await;
        assert_eq!(answer.status, 401, "{case}: {answer:?}");
        assert!(answer.problem().contains(words), "{case}: {}", answer.problem());
    }
    for (case, more) in [
        ("one of several audiences", json!({"aud": ["other", "keelway"]})),
        ("clocks that differ a little", json!({"exp": now - 20, "nbf": now + 20})),
        ("no beginning", json!({"nbf": null})),
    ] {
        let answer = whoami(&stand, &key.sign(&claims(more))).await;
        assert_eq!(answer.status, 200, "{case}: {answer:?}");
    }
}

/// The signature of one token behind the claims of another one.
fn changed(token: &str, claims: &Value) -> String {
    let parts: Vec<&str> = token.split('.').collect();
    format!("{}.{}.{}", parts[0], part(claims), parts[2])
}

fn unsigned(claims: &Value) -> String {
    format!("{}.{}.", part(&json!({"alg": "none", "typ": "JWT", "kid": "ec"})), part(claims))
}

/// Whoever takes the public key for a shared secret lets everybody sign.
fn shared(key: &Signer, claims: &Value) -> String {
    let public = key.public();
    let secret = EncodingKey::from_base64_secret(&public["x"].as_str().unwrap().replace('-', "+").replace('_', "/"))
        .unwrap_or_else(|_| EncodingKey::from_secret(public.to_string().as_bytes()));
    let header = Header { kid: Some(key.kid.into()), ..Header::new(Algorithm::HS256) };
    encode(&header, claims, &secret).unwrap()
}

/// In base64url without padding, as JWTs have it.
fn part(value: &Value) -> String {
    // The middle of a token that was signed with anything is exactly that.
    let token = encode(&Header::new(Algorithm::HS256), value, &EncodingKey::from_secret(b"x")).unwrap();
    token.split('.').nth(1).unwrap().to_owned()
}

#[tokio::test]
async fn an_unknown_key_is_looked_for_once_a_minute() {
    let provider = Provider::start().await;
    let (first, second, unknown) = (Signer::ec("first"), Signer::ec("second"), Signer::ec("unknown"));
    provider.publish(&[&first]);
    let stand = stand(&provider);
    let token = |signer: &Signer| signer.sign(&provider.claims(json!({})));
    assert_eq!((whoami(&stand, &token(&first)).await.status, provider.reads()), (200, 1));
    for _ in 0..50 {
        let answer = whoami(&stand, &token(&unknown)).await;
        assert_eq!(
            (answer.status, answer.problem().contains("does not publish; if it has just changed its keys, try again")),
            (401, true)
        );
    }
    assert_eq!(provider.reads(), 1, "the keys were read a moment ago");
    stand.world.pass(Span::minutes(1));
    for _ in 0..50 {
        assert_eq!(whoami(&stand, &token(&unknown)).await.status, 401);
    }
    assert_eq!(provider.reads(), 2);

    // The provider changes its keys: the new one is found, and the old one ends when the keys are read again.
    provider.publish(&[&second]);
    assert_eq!(whoami(&stand, &token(&first)).await.status, 200);
    stand.world.pass(Span::minutes(1));
    assert_eq!((whoami(&stand, &token(&second)).await.status, provider.reads()), (200, 3));
    assert_eq!(whoami(&stand, &token(&first)).await.status, 401);

    // A token that does not name its key is taken only where there is no choice.
    let nameless = second.sign_as(None, &provider.claims(json!({})));
    assert_eq!(whoami(&stand, &nameless).await.status, 200);
    provider.publish(&[&second, &first]);
    stand.world.pass(Span::minutes(60));
    assert_eq!(whoami(&stand, &nameless).await.status, 401);
}

#[tokio::test]
async fn a_provider_that_is_away_is_not_missed_for_a_day() {
    let provider = Provider::start().await;
    let key = Signer::ec("ec");
    provider.is_down(true);
    let stand = stand(&provider);
    let token = key.sign(&provider.claims(json!({})));
    let answer = whoami(&stand, &token).await;
    assert_eq!((answer.status, answer.headers.contains_key("retry-after")), (503, true), "{answer:?}");
    assert_eq!((whoami(&stand, &token).await.status, provider.reads()), (503, 1), "it is not asked with every request");
    provider.is_down(false);
    provider.publish(&[&key]);
    stand.world.pass(Span::minutes(1));
    assert_eq!(whoami(&stand, &token).await.status, 200);
    provider.is_down(true);
    stand.world.pass(Span::minutes(23 * 60));
    assert_eq!(whoami(&stand, &token).await.status, 200);
    stand.world.pass(Span::minutes(60));
    assert_eq!(whoami(&stand, &token).await.status, 503);
}

#[tokio::test]
async fn a_provider_at_an_address_that_is_not_public_is_not_asked() {
    let (key, provider) = (Signer::ec("ec"), Provider::start().await);
    provider.publish(&[&key]);
    let identities = || Identities::parse(&provider.url, "keelway", RULES).unwrap();
    for allowed in ["", "127.0.0.1"] {
        let stand = Stand::with_identities_behind(Guard::new(Hosts::parse(allowed)), identities());
        assert_eq!((whoami(&stand, &key.sign(&provider.claims(json!({})))).await.status, provider.reads()), (503, 0));
    }
}

#[tokio::test]
async fn without_providers_no_such_token_is_looked_at() {
    let provider = Provider::start().await;
    let key = Signer::ec("ec");
    provider.publish(&[&key]);
    let stand = Stand::new();
    assert_eq!(whoami(&stand, &key.sign(&provider.claims(json!({})))).await.status, 401);
    assert_eq!(provider.reads(), 0);
}
