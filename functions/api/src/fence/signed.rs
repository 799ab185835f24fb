//! Requests with a signature instead of a token. Every refusal has the same answer, whatever is wrong.

use crate::Api;
use crate::fence::client::Client;
use crate::fence::problem::{Answer, Refused};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use keelway_domain::ids::hash64;
use keelway_domain::time::Span;
use keelway_engine::ports::PortError;
use keelway_engine::promotions::{Address, limit};
use keelway_engine::secrets::{self, SecretText, Secrets};
use keelway_wire::signature::{Keys, Request, SKEW, Signed};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

/// How long a nonce is stored: until no request with it can be in time any more. The time of a request may lie ahead.
const KEEP: Span = Span::minutes(11);

/// The answer to every request without a valid signature.
pub fn refusal() -> Refused {
    let detail = "the request has no known token in x-token, and no valid signature that was not used before: docs/promotions.md says how to \
                  sign it";
    Refused::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
}

/// Counts a request without a token, before anything else is done.
///
/// # Errors
/// 429 if the client sends too many requests; 503 if they cannot be counted now.
pub(crate) async fn admit(api: &Api, client: Option<&Client>) -> Answer<()> {
    let client = client.map_or("", Client::as_str);
    match api.promotions().too_many_requests(client).await? {
        None => Ok(()),
        Some(after) => {
            let (most, window) = (limit::REQUESTS, limit::WINDOW.0 / 1000);
            let detail = format!(
                "a client may send {most} requests without a token in {window} seconds: try again after the time in the header Retry-After"
            );
            Err(Refused::too_many(detail, after))
        }
    }
}

/// Counts a webhook of a git host, before its secret is read.
///
/// # Errors
/// As [`admit`].
pub(crate) async fn admit_webhook(api: &Api, host: &str, client: Option<&Client>) -> Answer<()> {
    match api.promotions().too_many_webhooks(host, client.map_or("", Client::as_str)).await? {
        None => Ok(()),
        Some(after) => {
            let (most, window) = (limit::WEBHOOKS, limit::WINDOW.0 / 1000);
            let detail = format!(
                "{most} webhooks of git host {host} were taken from this address in {window} seconds: try again after the time in the header \
                 Retry-After"
            );
            Err(Refused::too_many(detail, after))
        }
    }
}

/// Refuses a request before its signature is checked, if too many about the same object from this address were refused.
///
/// # Errors
/// 429; or 503 if they cannot be counted now.
pub(crate) async fn admit_unless_refused(api: &Api, about: &str, client: Option<&Client>) -> Answer<()> {
    match api.promotions().too_many_refused(about, client.map_or("", Client::as_str)).await? {
        None => Ok(()),
        Some(after) => {
            let (most, window) = (limit::REQUESTS, limit::WINDOW.0 / 1000);
            let detail = format!(
                "{most} requests to this path with a wrong signature came from this address in {window} seconds: try again after the time in the \
                 header Retry-After"
            );
            Err(Refused::too_many(detail, after))
        }
    }
}

/// Counts a request whose signature is refused.
///
/// # Errors
/// It cannot be counted now.
pub(crate) async fn count_refused(api: &Api, about: &str, client: Option<&Client>) -> Answer<()> {
    Ok(api.promotions().count_refused(about, client.map_or("", Client::as_str)).await?)
}

/// Who signed a request.
pub struct Signer {
    /// The id of the key.
    pub key: String,
    /// Identifies the request.
    pub id: u64,
}

/// Checks that a request about a promotion is signed with a key of the promotion's secret, and is not a replay.
///
/// # Errors
/// [`refusal`]; or the secret or the nonces cannot be read now.
pub(crate) async fn check(api: &Api, (of, environment): (&Address, &str), parts: &Parts, body: &[u8]) -> Answer<Signer> {
    let signed = presented(api, parts)?;
    let short = secret_of(api, of, environment).await?.ok_or_else(refusal)?;
    verify(api, signed, &secrets::name(&of.namespace, &short), (parts, body)).await
}

/// The signature of a request, if its time is valid. This makes no reads.
///
/// # Errors
/// [`refusal`]
pub fn presented(api: &Api, parts: &Parts) -> Answer<Signed> {
    let signed = Signed::read(|name| once(&parts.headers, name)).ok_or_else(refusal)?;
    signed.in_time(api.promotions().now()).ok_or_else(refusal)?;
    Ok(signed)
}

/// Checks that a request is signed with a key of a secret, and is not a replay.
///
/// # Errors
/// As [`check`].
pub(crate) async fn verify(api: &Api, signed: Signed, name: &str, (parts, body): (&Parts, &[u8])) -> Answer<Signer> {
    let now = api.promotions().now();
    let secret = read(api, name).await?.ok_or_else(refusal)?;
    let keys = Keys::read(secret.expose()).ok_or_else(refusal)?;
    let path = parts.uri.path();
    let paths: Vec<String> = std::iter::once(path.to_owned()).chain(encoded(path)).collect();
    let installation = api.installation();
    let verifies = |path: &String| {
        let (method, query) = (parts.method.as_str(), parts.uri.query().unwrap_or_default());
        signed.verify(&Request { installation: &installation, method, path, query, body }, &keys, now)
    };
    let scope = format!("{name}#{}", signed.key);
    if !paths.iter().any(verifies) || !api.promotions().remember_nonce(&scope, &signed.nonce, KEEP).await? {
        return Err(refusal());
    }
    let id = hash64(&[b"signed", scope.as_bytes(), signed.nonce.as_bytes()]).max(1);
    Ok(Signer { key: signed.key, id })
}

/// What was signed, if whoever stands before the function has decoded the path: every character of its parts encoded that RFC 3986
/// does not call unreserved. `None`: nobody has decoded it. A slash that was decoded is encoded again by now.
fn encoded(path: &str) -> Option<String> {
    const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    let part = |part: &str| {
        let decoded: Vec<u8> = percent_decode_str(part).collect();
        percent_encode(&decoded, RESERVED).to_string()
    };
    let decoded = !path.replace("%2F", "").contains('%');
    decoded.then(|| path.split('/').map(part).collect::<Vec<_>>().join("/"))
}

/// The value of a header that occurs exactly once.
fn once<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    values.next().is_none().then(|| first.to_str().ok()).flatten()
}

/// The secret of the promotion into an environment. The settings of an environment replace those of the pipeline, including the
/// secret.
async fn secret_of(api: &Api, of: &Address, environment: &str) -> Answer<Option<String>> {
    let Some(applied) = api.promotions().definition(of).await? else { return Ok(None) };
    let definition = &applied.spec;
    let settings = match definition.environment(environment) {
        Some((_, environment)) => definition.promotion(environment),
        None => definition.promotion.as_ref(),
    };
    Ok(settings.and_then(|settings| settings.approval.secret.clone()))
}

/// Reads a secret. One that must not be read counts as missing.
pub(crate) async fn read(api: &Api, name: &str) -> Answer<Option<SecretText>> {
    match api.secrets().secret(name).await {
        Err(error @ PortError::Refused { .. }) => {
            tracing::error!(secret = name, %error, "a secret cannot be read");
            Ok(None)
        }
        found => Ok(found?),
    }
}

const _: () = assert!(KEEP.0 > 2 * SKEW.0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_was_decoded_is_encoded_again_and_no_other() {
        let whole = "/v1/pipelines/shop/carts/environments/prod/revisions/feature%2Fx%40sha1%3Aabc/approval";
        assert_eq!(encoded(&whole.replace("%40", "@").replace("%3A", ":")).as_deref(), Some(whole));
        for came in [whole, &whole.replace("prod", "pro%64"), &whole.replace("%2F", "%2f")] {
            assert_eq!(encoded(came), None, "{came}");
        }
    }
}
