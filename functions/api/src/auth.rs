//! Authentication by token. The function knows only the hashes of the tokens.

use crate::problem::Refused;
use crate::{Api, signed};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use keelway_engine::ports::Ports;
use sha2::{Digest, Sha256};

/// The header Keptn's clients send.
pub const HEADER: &str = "x-token";

/// SHA-256 of the tokens that are accepted.
#[derive(Clone)]
pub struct Tokens(Vec<[u8; 32]>);

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} tokens", self.0.len())
    }
}

impl Tokens {
    /// Reads hashes in hexadecimal, separated by commas. Anything that is not a hash accepts no token.
    pub fn from_hex(hashes: &str) -> Self {
        Self(hashes.split(',').filter_map(|hash| bytes(hash.trim())).collect())
    }

    /// Compares in constant time.
    fn accept(&self, token: &[u8]) -> bool {
        let hash: [u8; 32] = Sha256::digest(token).into();
        let differs = |known: &[u8; 32]| known.iter().zip(hash).fold(0u8, |all, (a, b)| all | (a ^ b)) != 0;
        self.0.iter().fold(false, |any, known| any | !differs(known))
    }
}

fn bytes(hex: &str) -> Option<[u8; 32]> {
    if hex.len() != 64 || !hex.is_ascii() {
        return None;
    }
    let mut out = [0u8; 32];
    for (byte, digits) in out.iter_mut().zip(hex.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(out)
}

/// Approvals may be signed instead.
pub const APPROVAL: &str = "/v1/pipelines/{namespace}/{name}/environments/{environment}/revisions/{revision}/approval";

/// Webhooks are signed by their hosts.
pub const WEBHOOK: &str = "/v1/webhooks/{githost}";

/// Reports of deployers bear the token of their attempt.
pub const HEARTBEAT: &str = "/v1/deployments/{name}/heartbeat";
/// As [`HEARTBEAT`].
pub const FINISH: &str = "/v1/deployments/{name}/finish";

/// What registries tell may be signed instead.
pub const ARTIFACT: &str = "/v1/artifacts/{namespace}/{name}";

/// What authorises a request; an extension of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authority {
    /// Its token.
    Token,
    /// Nothing yet: its handler checks the signature, or the token of an attempt.
    Itself,
}

/// Lets requests with a known token pass, and those whose handlers check a signature.
pub async fn check<P: Ports + 'static>(State(api): State<Api<P>>, mut request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let is_post = request.method() == Method::POST;
    let may_be_signed = is_post && [APPROVAL, ARTIFACT].contains(&route);
    let has_its_own = is_post && [WEBHOOK, HEARTBEAT, FINISH].contains(&route);
    let has_token = request.headers().contains_key(HEADER);
    match refusal(&api.settings().tokens, request.headers()) {
        None => {
            request.extensions_mut().insert(Authority::Token);
            next.run(request).await
        }
        Some(_) if has_its_own || may_be_signed && !has_token => {
            request.extensions_mut().insert(Authority::Itself);
            next.run(request).await
        }
        Some(_) if may_be_signed => signed::refusal().into_response(),
        Some(detail) => Refused::new(StatusCode::UNAUTHORIZED, "unauthorized", detail).into_response(),
    }
}

fn refusal(tokens: &Tokens, headers: &HeaderMap) -> Option<&'static str> {
    let mut given = headers.get_all(HEADER).iter();
    match (given.next(), given.next()) {
        (None, _) => Some("the header x-token is missing: send the API token in it"),
        (Some(token), None) if tokens.accept(token.as_bytes()) => None,
        (Some(_), None) => Some(
            "x-token: this token is not known: `make env` prints the local one, the stack's parameters say which hash is expected",
        ),
        (Some(_), Some(_)) => Some("x-token is there more than once: send it once"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_tokens_pass() {
        let hash = |text: &str| keelway_domain::ids::sha256_hex(text.as_bytes());
        let tokens = Tokens::from_hex(&format!("{}, {}", hash("one"), hash("two").to_uppercase()));
        assert!(tokens.accept(b"one") && tokens.accept(b"two"));
        assert!(!tokens.accept(b"") && !tokens.accept(b"One") && !tokens.accept(hash("one").as_bytes()));
        assert!(!Tokens::from_hex("").accept(b"") && !Tokens::from_hex("zz").accept(b""));
        assert_eq!(format!("{tokens:?}"), "2 tokens");
    }
}
