//! The strategy `notification`: an event on the bus, and a signed request if there is a URL.
//!
//! The request has a signature of Standard Webhooks (<https://www.standardwebhooks.com>). `webhook-id` is the same for all attempts
//! of a promotion, so that receivers recognise repetitions.

use keelway_domain::condition::Condition;
use keelway_domain::event::CloudEvent;
use keelway_domain::promotions::definition::Notification;
use keelway_domain::promotions::{AttemptResult, Made, Retry, needed};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::ports::{PortError, Ports};
use keelway_engine::promotions::attempts::Task;
use keelway_engine::secrets::{self, SecretText, Secrets};
use keelway_engine::table;
use keelway_outgoing::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use keelway_outgoing::{Client, Failure, StatusCode, Url, sign};

/// Publishes the event, then sends the request.
///
/// # Errors
/// A port fails.
pub async fn carry_out<P: Ports + Secrets>(
    (ports, client): (&P, &Client),
    secrets: &impl Secrets,
    task: &Task,
    notification: &Notification,
) -> Result<AttemptResult, PortError> {
    let event = needed(&task.of, &task.attempt, task.since);
    let key = match (&notification.url, &notification.secret) {
        (Some(_), Some(name)) => match secrets.secret(&secrets::name(&task.of.namespace, name)).await? {
            Some(key) => Some(key),
            None => return Ok(failed("SecretMissing", format!("there is no secret {name:?}: create it"), Retry::Backoff)),
        },
        _ => None,
    };
    table::publish(ports, std::slice::from_ref(&event)).await?;
    let done = AttemptResult::Done(Made::Notification { id: event.id.clone() });
    match (&notification.url, key) {
        (None, _) => Ok(done),
        (Some(url), key) => Ok(post(client, url, &event, key.as_ref(), ports.now()).await.unwrap_or(done)),
    }
}

/// Sends the event to the URL. `None`: it was accepted.
async fn post(client: &Client, url: &str, event: &CloudEvent, key: Option<&SecretText>, now: Timestamp) -> Option<AttemptResult> {
    let body = event.to_bytes();
    let at = now.0 / 1000;
    let mut texts = vec![
        (CONTENT_TYPE, "application/cloudevents+json".to_owned()),
        (HeaderName::from_static("webhook-id"), event.id.clone()),
        (HeaderName::from_static("webhook-timestamp"), at.to_string()),
    ];
    if let Some(key) = key {
        let Some(signature) = sign(key.expose(), &event.id, at, &body) else {
            let message = "the secret is no key: write whsec_ and Base64";
            return Some(failed("SecretUnusable", message.into(), Retry::Patience));
        };
        texts.push((HeaderName::from_static("webhook-signature"), signature));
    }
    // All of these texts are valid values of headers.
    let headers = texts.into_iter().filter_map(|(name, text)| Some((name, HeaderValue::try_from(text).ok()?)));
    let answer = match client.post(url, headers.collect::<HeaderMap>(), body).await {
        Ok(answer) => answer,
        Err(failure @ (Failure::Address(_) | Failure::Url(_))) => {
            return Some(failed("UnusableUrl", format!("{}: {failure}", told(url)), Retry::Patience));
        }
        Err(failure) => return Some(failed("ReceiverUnreachable", format!("{}: {failure}", told(url)), Retry::Backoff)),
    };
    if (200..300).contains(&answer.status) {
        return None;
    }
    let status = StatusCode::from_u16(answer.status).map_or_else(|_| answer.status.to_string(), |status| status.to_string());
    let retry = match (answer.status, answer.retry_after) {
        (429 | 503, Some(seconds)) => Retry::At(now + Span::seconds(seconds.clamp(0, 86_400))),
        _ => Retry::Backoff,
    };
    Some(failed("ReceiverRefused", format!("{} answered {status}", told(url)), retry))
}

/// A URL without the parts that may contain secrets: user, query and fragment.
fn told(url: &str) -> String {
    let Ok(mut url) = Url::parse(url) else { return "the receiver".to_owned() };
    url.set_query(None);
    url.set_fragment(None);
    // Neither fails for a URL with a host.
    let _user = (url.set_username(""), url.set_password(None));
    url.to_string()
}

fn failed(reason: &str, message: String, retry: Retry) -> AttemptResult {
    AttemptResult::Failed { why: Condition::new(reason, message), retry }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_secret_in_a_url_is_not_told() {
        assert_eq!(told("https://me:pass@hooks.example.com/a/b?token=t#f"), "https://hooks.example.com/a/b");
        assert_eq!(told("no url"), "the receiver");
    }
}
