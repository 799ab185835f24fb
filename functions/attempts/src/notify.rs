//! The strategy `notification`: an event on the bus, and a signed request if there is a URL.
//!
//! The request is signed as Standard Webhooks does it (<https://www.standardwebhooks.com>): `webhook-id` is the same for all attempts of a
//! promotion, so that a receiver can tell a repetition.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use keelway_domain::event::{CloudEvent, Object};
use keelway_domain::ids::{SubjectId, context_of, event_id};
use keelway_domain::names::Context;
use keelway_domain::promotions::definition::Notification;
use keelway_domain::promotions::{Condition, Made, Outcome, Retry, SOURCE};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::ports::{PortError, Ports};
use keelway_engine::promotions::attempts::Task;
use keelway_engine::secrets::{self, SecretText, Secrets};
use keelway_engine::table;
use reqwest::{StatusCode, header};
use serde_json::json;
use sha2::Sha256;

/// The type of the event that asks for a promotion.
pub const NEEDED: &str = "dev.keelway.promotion.needed";
/// What a secret of Standard Webhooks begins with; the rest is the key in Base64.
const PREFIX: &str = "whsec_";

/// Tells the bus, and then the URL.
///
/// # Errors
/// Of the ports.
pub async fn carry_out<P: Ports + Secrets>(
    (ports, client): (&P, &reqwest::Client),
    secrets: &impl Secrets,
    task: &Task,
    notification: &Notification,
) -> Result<Outcome, PortError> {
    let event = event(task);
    let key = match (&notification.url, &notification.secret) {
        (Some(_), Some(name)) => match secrets.secret(&secrets::name(&task.of.namespace, name)).await? {
            Some(key) => Some(key),
            None => return Ok(failed("SecretMissing", format!("there is no secret {name:?}: create it"), Retry::Backoff)),
        },
        _ => None,
    };
    table::publish(ports, std::slice::from_ref(&event)).await?;
    let done = Outcome::Done(Made::Notification { id: event.id.clone() });
    match (&notification.url, key) {
        (None, _) => Ok(done),
        (Some(url), key) => Ok(post(client, url, &event, key.as_ref(), ports.now()).await.unwrap_or(done)),
    }
}

/// The event is the same for all attempts.
fn event(task: &Task) -> CloudEvent {
    let promotion = SubjectId(task.identity());
    let attempt = &task.attempt;
    let pipeline = task.of.to_string();
    let data = json!({
        "project": task.of.namespace,
        "pipeline": task.of.name,
        "environment": attempt.environment,
        "revision": attempt.revision,
        "run": attempt.run,
        "message": format!("Promote {pipeline} in {} to {}", attempt.environment, attempt.revision),
        // As Weave's notifications have it.
        "metadata": {"environment": attempt.environment, "version": attempt.revision},
    });
    CloudEvent {
        id: event_id(promotion, "needed").to_string(),
        source: SOURCE.into(),
        ty: NEEDED.into(),
        time: task.since,
        context: Context::of(&context_of("pipeline", &pipeline).to_string()),
        triggered_id: None,
        git_commit_id: None,
        data: data.as_object().cloned().unwrap_or_else(Object::new),
    }
}

/// Sends the event to the URL. `None`: it was accepted.
async fn post(
    client: &reqwest::Client,
    url: &str,
    event: &CloudEvent,
    key: Option<&SecretText>,
    now: Timestamp,
) -> Option<Outcome> {
    let body = event.to_bytes();
    let at = (now.0 / 1000).to_string();
    let mut request = client
        .post(url)
        .header(header::CONTENT_TYPE, "application/cloudevents+json")
        .header("webhook-id", &event.id)
        .header("webhook-timestamp", &at);
    if let Some(key) = key {
        let Some(signature) = sign(key, &event.id, &at, &body) else {
            return Some(failed("SecretUnusable", "the secret is no key: after whsec_ it must be Base64".into(), Retry::Patience));
        };
        request = request.header("webhook-signature", signature);
    }
    let answer = match request.body(body).send().await {
        Ok(answer) => answer,
        Err(error) => {
            let message = format!("{} could not be reached: {}", told(url), error.without_url());
            return Some(failed("ReceiverUnreachable", message, Retry::Backoff));
        }
    };
    let status = answer.status();
    if status.is_success() {
        return None;
    }
    let after = answer.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse::<i64>().ok());
    let retry = match (status, after) {
        (StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE, Some(seconds)) => {
            Retry::At(now + Span::seconds(seconds.clamp(0, 86_400)))
        }
        _ => Retry::Backoff,
    };
    Some(failed("ReceiverRefused", format!("{} answered {status}", told(url)), retry))
}

/// A URL without what may be a secret: user, query and fragment.
fn told(url: &str) -> String {
    let Ok(mut url) = reqwest::Url::parse(url) else { return "the receiver".to_owned() };
    url.set_query(None);
    url.set_fragment(None);
    // Neither fails for a URL with a host.
    let _user = (url.set_username(""), url.set_password(None));
    url.to_string()
}

/// The header `webhook-signature`. `None`: the key is not Base64.
fn sign(key: &SecretText, id: &str, at: &str, body: &str) -> Option<String> {
    let key = match key.expose().trim().strip_prefix(PREFIX) {
        Some(encoded) => BASE64.decode(encoded).ok()?,
        None => key.expose().trim().as_bytes().to_vec(),
    };
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
    mac.update(format!("{id}.{at}.{body}").as_bytes());
    Some(format!("v1,{}", BASE64.encode(mac.finalize().into_bytes())))
}

fn failed(reason: &str, message: String, retry: Retry) -> Outcome {
    Outcome::Failed { why: Condition::new(reason, message), retry }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification.
    #[test]
    fn a_signature_as_receivers_check_it() {
        let key = SecretText::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let signature = sign(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", r#"{"test": 2432232314}"#);
        assert_eq!(signature.as_deref(), Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
        assert_eq!(sign(&SecretText::new("whsec_%"), "1", "1", ""), None);
    }

    #[test]
    fn what_may_be_secret_in_a_url_is_not_told() {
        assert_eq!(told("https://me:pass@hooks.example.com/a/b?token=t#f"), "https://hooks.example.com/a/b");
        assert_eq!(told("no url"), "the receiver");
    }
}
