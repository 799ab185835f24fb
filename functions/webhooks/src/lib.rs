//! Makes the requests of webhooks: renders, signs, sends. [`Deliverer`] implements the engine's [`Sender`].
//!
//! A failure is recorded in the attempt. All secrets in recorded texts are masked.

mod forms;
mod mask;
mod render;

pub use forms::{slack, teams};
pub use render::{Escape, render};

use keelway_domain::webhooks::{Body, Exchange, Form, Subscription};
use keelway_engine::ports::{Clock, PortError};
use keelway_engine::remembered::Remembered;
use keelway_engine::secrets::{self, SecretText, Secrets};
use keelway_engine::webhooks::{Request, Sender};
use keelway_outgoing::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use keelway_outgoing::{Answer, Client, sign};
use mask::Mask;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Instant;

/// Makes the requests.
pub struct Deliverer<P> {
    secrets: Remembered<P>,
    client: Client,
}

impl<P: Secrets + Clock> Deliverer<P> {
    /// With the secrets of these ports, and this client.
    pub fn new(ports: P, client: Client) -> Self {
        Self { secrets: Remembered::new(ports), client }
    }

    /// A secret of the subscription's namespace, or why it cannot be read.
    async fn secret(&self, namespace: &str, name: &str) -> Result<Result<SecretText, String>, PortError> {
        let name = secrets::name(namespace, name);
        let found = self.secrets.secret(&name).await?;
        Ok(found.ok_or_else(|| format!("there is no secret {name:?}: create it")))
    }

    /// The secrets by their names in the templates, and the signing secret.
    async fn secrets(&self, request: &Request<'_>) -> Result<Result<Texts, String>, PortError> {
        let Subscription { secrets: named, signing, .. } = request.subscription;
        let mut texts = Texts::default();
        for (alias, name) in named {
            match self.secret(&request.of.namespace, name).await? {
                Ok(text) => drop(texts.named.insert(alias.clone(), text)),
                Err(why) => return Ok(Err(why)),
            }
        }
        if let Some(name) = signing {
            match self.secret(&request.of.namespace, name).await? {
                Ok(text) => texts.signing = Some(text),
                Err(why) => return Ok(Err(why)),
            }
        }
        Ok(Ok(texts))
    }
}

impl<P: Secrets + Clock> Sender for Deliverer<P> {
    async fn send(&self, request: &Request<'_>) -> Result<Exchange, PortError> {
        let texts = match self.secrets(request).await? {
            Ok(texts) => texts,
            Err(error) => return Ok(Exchange { at: request.now, error, ..Exchange::default() }),
        };
        let mask = Mask::of(texts.named.values().chain(&texts.signing));
        let began = Instant::now();
        let answered = match prepare(request, &texts) {
            Ok((url, headers, body)) => self.client.post(&url, headers, body).await.map_err(|failure| failure.to_string()),
            Err(why) => Err(why),
        };
        let took = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let attempt = Exchange { at: request.now, ms: took, ..Exchange::default() };
        Ok(match answered {
            Ok(answer) => attempt.answered(answer.status, &told(&answer, &mask), answer.retry_after),
            Err(error) => attempt.unanswered(&mask.hide(&error)),
        })
    }
}

/// The texts of secrets.
#[derive(Default)]
struct Texts {
    named: BTreeMap<String, SecretText>,
    signing: Option<SecretText>,
}

/// The beginning of the answer without secrets. They are masked first, because they may contain line breaks.
fn told(answer: &Answer, mask: &Mask) -> String {
    let text = String::from_utf8_lossy(&answer.body);
    if answer.cut { mask.hide_cut(&text) } else { mask.hide(&text) }
}

/// URL, headers and body of a request, or what is wrong with a template or a key.
fn prepare(request: &Request<'_>, texts: &Texts) -> Result<(String, HeaderMap, String), String> {
    let Request { subscription, delivery, now, .. } = request;
    let rendered = |what: &str, template: &str, escape| {
        render(template, &delivery.event, &texts.named, escape).map_err(|error| format!("{what}: {error}"))
    };
    let url = rendered("spec.url", &subscription.url, Escape::Url)?;
    let (content_type, body) = match &subscription.body {
        // The same bytes as on the bus.
        Body::Event => ("application/cloudevents+json", keelway_domain::json::canonical(&delivery.event)),
        Body::Form(form) => ("application/json", message(*form, &delivery.event).to_string()),
        Body::Template { text, content_type } => {
            let escape = Escape::of(content_type);
            let body = rendered("spec.body", text, escape)?;
            if escape == Escape::Json {
                serde_json::from_str::<Value>(&body).map_err(|error| format!("spec.body: what it becomes is not JSON: {error}"))?;
            }
            (content_type.as_str(), body)
        }
    };
    let id = delivery.message_id();
    let at = now.0 / 1000;
    let mut headers = HeaderMap::new();
    let mut set = |name: &str, value: &str| {
        let name = HeaderName::try_from(name).map_err(|_| format!("spec.headers.{name} is no name of a header"))?;
        let mut text =
            HeaderValue::try_from(value).map_err(|_| format!("spec.headers.{name}: what it becomes cannot stand in a header"))?;
        text.set_sensitive(true);
        headers.insert(name, text);
        Ok::<_, String>(())
    };
    set(CONTENT_TYPE.as_str(), content_type)?;
    for (name, template) in &subscription.headers {
        set(name, &rendered(&format!("spec.headers.{name}"), template, Escape::No)?)?;
    }
    set("webhook-id", &id)?;
    set("webhook-timestamp", &at.to_string())?;
    if let Some(key) = &texts.signing {
        let unusable = "the secret that signs is no key: write whsec_ and Base64, or several of them with blanks between";
        set("webhook-signature", &sign(key.expose(), &id, at, &body).ok_or(unusable)?)?;
    }
    Ok((url, headers, body))
}

fn message(form: Form, event: &Value) -> Value {
    match form {
        Form::Slack => slack(event),
        Form::Teams => teams(event),
    }
}

/// A JSON object.
type Object = Map<String, Value>;
