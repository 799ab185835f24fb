//! Requests that are authorised by a signature instead of a token. Whatever is wrong with one, the answer is the same.

use crate::Api;
use crate::fence::client::Client;
use crate::fence::problem::{Answer, Refused};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use keelway_domain::ids::hash64;
use keelway_domain::time::Span;
use keelway_engine::ports::{PortError, Ports};
use keelway_engine::promotions::{Address, limit};
use keelway_engine::secrets::{self, SecretText, Secrets};
use keelway_wire::signature::{Keys, Request, SKEW, Signed};

/// A nonce is remembered until no request with it is in time any more; its time may lie ahead.
const KEEP: Span = Span::minutes(11);

/// The only answer to a request that is not authorised.
pub fn refusal() -> Refused {
    let detail = "the request has no known token in x-token, and no valid signature that was not used before: docs/promotions.md says how to \
                  sign it";
    Refused::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
}

/// Counts a request that has no token, before anything else is done for it.
///
/// # Errors
/// 429 if its client sends too many, or that they cannot be counted now.
pub async fn admit<P: Ports>(api: &Api<P>, client: Option<&Client>) -> Answer<()> {
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
pub async fn admit_webhook<P: Ports>(api: &Api<P>, host: &str, client: Option<&Client>) -> Answer<()> {
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

/// Lets a request pass to the check of its signature, unless too many about the same were refused from this address.
///
/// # Errors
/// 429, or that they cannot be counted now.
pub async fn admit_unless_refused<P: Ports>(api: &Api<P>, about: &str, client: Option<&Client>) -> Answer<()> {
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
/// That it cannot be counted now.
pub async fn count_refused<P: Ports>(api: &Api<P>, about: &str, client: Option<&Client>) -> Answer<()> {
    Ok(api.promotions().count_refused(about, client.map_or("", Client::as_str)).await?)
}

/// Who signed a request.
pub struct Signer {
    /// The id of the key.
    pub key: String,
    /// Identifies the request.
    pub id: u64,
}

/// Checks that a request about a promotion is signed with a key of that promotion's secret, and was not sent before.
///
/// # Errors
/// [`refusal`], or that the secret or the nonces cannot be read now.
pub async fn check<P: Ports + Secrets>(
    api: &Api<P>,
    (of, environment): (&Address, &str),
    parts: &Parts,
    body: &[u8],
) -> Answer<Signer> {
    let signed = presented(api, parts)?;
    let short = secret_of(api, of, environment).await?.ok_or_else(refusal)?;
    verify(api, signed, &secrets::name(&of.namespace, &short), (parts, body)).await
}

/// The signature of a request, if it has one that is in time. This reads nothing.
///
/// # Errors
/// [`refusal`]
pub fn presented<P: Ports>(api: &Api<P>, parts: &Parts) -> Answer<Signed> {
    let signed = Signed::read(|name| once(&parts.headers, name)).ok_or_else(refusal)?;
    signed.in_time(api.promotions().now()).ok_or_else(refusal)?;
    Ok(signed)
}

/// Checks that a request is signed with a key of a secret, and was not sent before.
///
/// # Errors
/// As [`check`].
pub async fn verify<P: Ports + Secrets>(
    api: &Api<P>,
    signed: Signed,
    name: &str,
    (parts, body): (&Parts, &[u8]),
) -> Answer<Signer> {
    let now = api.promotions().now();
    let secret = read(api, name).await?.ok_or_else(refusal)?;
    let keys = Keys::read(secret.expose()).ok_or_else(refusal)?;
    let request = Request {
        installation: &api.installation(),
        method: parts.method.as_str(),
        path: parts.uri.path(),
        query: parts.uri.query().unwrap_or_default(),
        body,
    };
    let scope = format!("{name}#{}", signed.key);
    if !signed.verify(&request, &keys, now) || !api.promotions().remember_nonce(&scope, &signed.nonce, KEEP).await? {
        return Err(refusal());
    }
    let id = hash64(&[b"signed", scope.as_bytes(), signed.nonce.as_bytes()]).max(1);
    Ok(Signer { key: signed.key, id })
}

/// A header that is there exactly once.
fn once<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    values.next().is_none().then(|| first.to_str().ok()).flatten()
}

/// The secret of the promotion into an environment. An environment's own promotion replaces the pipeline's with its secret.
async fn secret_of<P: Ports>(api: &Api<P>, of: &Address, environment: &str) -> Answer<Option<String>> {
    let Some(applied) = api.promotions().definition(of).await? else { return Ok(None) };
    let definition = &applied.spec;
    let settings = match definition.environment(environment) {
        Some((_, environment)) => definition.promotion(environment),
        None => definition.promotion.as_ref(),
    };
    Ok(settings.and_then(|settings| settings.approval.secret.clone()))
}

/// Reads a secret; one that must not be read is as good as none.
pub async fn read<P: Ports + Secrets>(api: &Api<P>, name: &str) -> Answer<Option<SecretText>> {
    match api.secrets().secret(name).await {
        Err(error @ PortError::Refused { .. }) => {
            tracing::error!(secret = name, %error, "a secret cannot be read");
            Ok(None)
        }
        found => Ok(found?),
    }
}

const _: () = assert!(KEEP.0 > 2 * SKEW.0);
