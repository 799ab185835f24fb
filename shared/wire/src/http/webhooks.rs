//! Webhook subscriptions and their deliveries. All times are RFC 3339; lists end with `nextPageKey` `"0"`.

use crate::http::page::page;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A subscription: `GET /v1/webhookSubscriptions/{namespace}/{name}`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct WebhookState {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What it says, with the names of secrets and without their texts.
    pub spec: Value,
    /// When its manifest was last changed.
    pub applied_at: String,
    /// How often that was.
    pub version: i64,
    /// Why it takes no events; absent: it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<WebhookDisabled>,
    /// Since when nothing has reached the receiver; absent: the last delivery succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<String>,
    /// Of a single subscription: how many deliveries to it wait for their next attempt, of the 500 oldest of its namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<u64>,
}

/// Why a subscription is disabled.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct WebhookDisabled {
    /// `gone`: the receiver answered 410. `failing`: nothing reached it for three days.
    pub reason: String,
    /// The same as a sentence.
    pub message: String,
    /// Since when.
    pub at: String,
    /// The delivery that found it.
    pub delivery: String,
}

page! {
    /// A page of subscriptions, by namespace and name: `GET /v1/webhookSubscriptions`.
    WebhookPage of WebhookState;
    /// The subscriptions.
}

/// A delivery: `GET /v1/deliveries/{namespace}/{id}`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct DeliveryState {
    /// Its id.
    pub id: String,
    /// The namespace of its subscription.
    pub namespace: String,
    /// The name of its subscription.
    pub webhook: String,
    /// `waiting`, `delivered`, `givenUp`, `gone`, `disabled`, `deleted`, `taskOver` or `tooLarge`.
    pub status: String,
    /// What became of it, in a sentence.
    pub message: String,
    /// The type of the event.
    pub event_type: String,
    /// The id of the event.
    pub event_id: String,
    /// The context of the event.
    pub keptn_context: String,
    /// When it began.
    pub began: String,
    /// When the next attempt is due; absent: it is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt: Option<String>,
    /// Whether a person asked for it after an earlier one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// The attempts, oldest first.
    pub attempts: Vec<DeliveryAttempt>,
    /// The event, of a single delivery only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<Value>,
}

/// An attempt of a delivery. Secrets are masked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct DeliveryAttempt {
    /// When it was made.
    pub at: String,
    /// The status of the answer; absent: there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How long it took, in milliseconds.
    pub ms: u64,
    /// The beginning of the answer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub answer: String,
    /// Why there was no answer, or what is wrong with it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
}

page! {
    /// A page of deliveries, newest first: `GET /v1/deliveries`. A page that is filtered may have few or none, and yet not be the
    /// last.
    DeliveryPage of DeliveryState;
    /// The deliveries.
}

/// The answer to `POST /v1/deliveries/{namespace}/{id}/redeliver`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct Redelivered {
    /// The delivery to look at: a new one if the old one had ended.
    pub id: String,
    /// Whether it is a new one.
    pub again: bool,
}
