//! Authentication and authorisation of requests. The function knows only the hashes of tokens.

use crate::Api;
use crate::fence::allowed::{self, Listed, Needs};
use crate::fence::audit;
use crate::fence::caller::Caller;
use crate::fence::client::Client;
use crate::fence::identity::Providers;
use crate::fence::names;
use crate::fence::problem::{Answer, Refused};
use crate::fence::repeated;
use crate::fence::signed;
use axum::extract::{FromRequestParts, MatchedPath, RawPathParams, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use keelway_domain::access::{End, Kind, Need, Spent, has_form, of_token, secret_of};
use keelway_domain::ids::sha256_hex;
use keelway_domain::names::TokenName;
use keelway_domain::time::Span;
use keelway_engine::access::Verdict;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// The task in the scope of deployers.
pub const DEPLOYMENT: &str = "deployment";
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
    /// Parses hashes in hexadecimal, separated by commas. Text that is not a hash matches no token.
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

/// The authorisation of a request, as an extension of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authority {
    /// Its token.
    Token,
    /// None yet: the handler checks the signature, or the token of an attempt.
    Itself,
}

/// Identifies the caller, checks the permission, calls the handler, and writes the audit.
pub(crate) async fn check(State((api, listed)): State<(Api, Arc<[Listed]>)>, request: Request, next: Next) -> Response {
    let now = api.access().now();
    let counted = request.extensions().get::<Client>().map(|client| client.as_str().to_owned()).unwrap_or_default();
    if let Some(after) = api.paces().1.too_many(&counted, now) {
        return hurried("address", api.settings().paces.address, after).into_response();
    }
    let address = request.extensions().get::<Client>().map(|client| client.address().to_owned()).unwrap_or_default();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned()).unwrap_or_default();
    let (needs, act) = allowed::of(&listed, request.method(), &route);
    let about = audit::About::of(&request, act);
    let (mut parts, body) = request.into_parts();
    let credential = credential(&parts.headers);
    let may_be_signed = matches!(needs, Needs::OrSigned(_));
    let itself = matches!(needs, Needs::Itself(_)) || may_be_signed && matches!(credential, Ok(None));
    let found = if itself { Ok(Caller::nobody()) } else { known(&api, credential).await };
    let caller = match found {
        Ok(caller) => caller.at(address),
        Err(refused) if may_be_signed && refused.problem.status == 401 => return signed::refusal().into_response(),
        Err(refused) => return refused.into_response(),
    };
    if let Some(after) = api.paces().0.too_many(&caller.id, now) {
        return hurried("token", api.settings().paces.token, after).into_response();
    }
    parts.extensions.insert(if itself { Authority::Itself } else { Authority::Token });
    parts.extensions.insert(caller.clone());
    if !itself && let Err(refused) = permitted(&caller, needs, &route, &mut parts).await {
        return refused.into_response();
    }
    let response = discreet(&caller, next.run(Request::from_parts(parts, body)).await);
    let response = audit::keep(&api, &caller, about, response).await;
    repeated::remember(&api, response).await
}

/// The answer, in which refusals for unknown projects do not name projects that the caller may not see.
fn discreet(caller: &Caller, mut response: Response) -> Response {
    if let Some(refused) = response.extensions_mut().get_mut::<Refused>().filter(|_| caller.seen().is_some()) {
        refused.be_discreet();
    }
    response
}

/// The refusal for too many requests.
pub fn hurried(of: &str, most: u32, after: Span) -> Refused {
    let detail = format!("the same {of} may send {most} requests a minute: try again after the time in the header Retry-After");
    Refused::too_many(detail, after)
}

/// Whether the caller has the permission of the route, as far as the path shows the project.
async fn permitted(caller: &Caller, needs: Needs, route: &str, parts: &mut Parts) -> Answer<()> {
    let kinds = match needs {
        Needs::Itself(_) | Needs::Token => return Ok(()),
        Needs::Handler(kinds) => {
            let any = kinds.iter().any(|kind| caller.has(*kind));
            return if any { Ok(()) } else { Err(caller.lacks_anywhere(named(kinds))) };
        }
        Needs::Scope(kinds) | Needs::OrSigned(kinds) => kinds,
    };
    let path = RawPathParams::from_request_parts(parts, &()).await.ok();
    let part = |name: &str| path.iter().flatten().find(|(part, _)| *part == name).map(|(_, value)| value.to_owned());
    let project = project(route, part);
    caller.told().project = project.clone().unwrap_or_default();
    let environment = part("environment").unwrap_or_default();
    let need = |kind: &Kind| match kind {
        Kind::Read => Need::Read,
        Kind::Trigger => Need::Trigger,
        // The only path with a known task is that for claims of versions.
        Kind::Execute => Need::Execute(DEPLOYMENT),
        Kind::Approve => Need::Approve(&environment),
        Kind::Administer => Need::Administer,
    };
    // Executors of any task of a project may read its files.
    let works = !route.starts_with("/v1/deployments/") && caller.has_in(Kind::Execute, project.as_deref());
    let enough = |kind: &Kind| caller.may(need(kind), project.as_deref()) || *kind == Kind::Execute && works;
    if kinds.iter().any(enough) {
        return Ok(());
    }
    Err(caller.lacks(kinds.iter().map(|kind| need(kind).to_string()).collect::<Vec<_>>().join(" or "), project.as_deref()))
}

fn named(kinds: &[Kind]) -> String {
    kinds.iter().map(allowed::name).collect::<Vec<_>>().join(" or ")
}

/// The project or namespace in a path.
fn project(route: &str, part: impl Fn(&str) -> Option<String>) -> Option<String> {
    if let Some(project) = part("project").or_else(|| part("namespace")) {
        return Some(project);
    }
    let of_config = ["/v1/deploymentConfigs/", "/v1/generateDeploymentConfigs/"].iter().any(|start| route.starts_with(start));
    if let Some(id) = part("id").filter(|_| of_config) {
        return names::config(&id).map(|of| of.namespace);
    }
    let name = part("name").filter(|_| route.starts_with("/v1/deployments/"))?;
    names::version(&name).map(|(of, _)| of.namespace)
}

/// The credential in a request, if there is one: an API token, or a token of an identity provider.
fn credential(headers: &HeaderMap) -> Answer<Option<&str>> {
    let twice = |name: &str| {
        Refused::new(StatusCode::UNAUTHORIZED, "unauthorized", format!("{name} is there more than once: send it once"))
    };
    let once = |name: &'static str| {
        let mut given = headers.get_all(name).iter();
        match (given.next(), given.next()) {
            (_, Some(_)) => Err(twice(name)),
            (given, None) => Ok(given.map(|value| value.to_str().unwrap_or("?"))),
        }
    };
    if let Some(token) = once(HEADER)? {
        return Ok(Some(token));
    }
    // Other schemes are not meant for this function: AWS checks its own signatures before.
    let bearer = once("authorization")?.and_then(|value| value.split_once(' '));
    Ok(bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim()))
}

/// The holder of this token.
async fn known(api: &Api, credential: Answer<Option<&str>>) -> Answer<Caller> {
    let refused = |detail: &str| Refused::new(StatusCode::UNAUTHORIZED, "unauthorized", detail);
    let text = credential?.ok_or_else(|| refused("the header x-token is missing: send the API token in it"))?;
    if api.settings().tokens.accept(text.as_bytes()) {
        return Ok(Caller::administrator(sha256_hex(text.as_bytes())));
    }
    match api.access().accept(text).await? {
        Verdict::Valid(token) => {
            let (name, known) = (token.name.as_str(), of_token(token.name.as_str()));
            let hash = sha256_hex(text.as_bytes());
            let ends = token.ends(&hash);
            let caller = Caller::new(name, known, format!("token {name}"), vec![token.grant]);
            return Ok(caller.until(ends).with(hash));
        }
        Verdict::Spent(name, spent) => return Err(no_longer(&name, &spent)),
        Verdict::Unknown => {}
    }
    if let Some(providers) = api.providers().filter(|_| Providers::looks_like(text)) {
        return providers.accept(text, api.access().now()).await;
    }
    if has_form(text) && secret_of(text).is_none() {
        let detail = "x-token: this is no token: one of `keelway token create` is keelway_<name>_ and 64 hexadecimal digits. It \
                      was cut off or mistyped: copy it again, whole";
        return Err(Refused::new(StatusCode::UNAUTHORIZED, "mistyped token", detail));
    }
    Err(Refused::new(
        StatusCode::UNAUTHORIZED,
        "unknown token",
        "x-token: this token is not known here: it is mistyped, or for another installation, or was revoked long ago. `make env` \
         prints the local one, the stack's parameters say which hash is expected, and an administrator makes others with \
         `keelway token create`",
    ))
}

/// The refusal of a token that was valid: only who has the secret is told so. Whoever guesses a name learns nothing.
fn no_longer(name: &TokenName, spent: &Spent) -> Refused {
    let at = spent.at.rfc3339();
    let (title, detail) = match spent.end {
        End::Expired => (
            "expired token",
            format!(
                "x-token: token {name} expired at {at}: ask an administrator for another one, which \
            `keelway token create NAME --expires 90d` makes"
            ),
        ),
        End::Rotated => (
            "rotated token",
            format!(
                "x-token: token {name} was given another secret, and this one ended at {at}: use the one \
            that `keelway token rotate {name}` printed then, or have it rotated again"
            ),
        ),
        End::Revoked => (
            "revoked token",
            format!(
                "x-token: token {name} was revoked at {at}, for good: ask an administrator for another \
            one, which `keelway token create` makes"
            ),
        ),
    };
    Refused::new(StatusCode::UNAUTHORIZED, title, detail)
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
