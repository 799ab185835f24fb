//! What operators read: dead letters, input that could not be used, and whether the installation works.

use crate::http::page::page;
use serde::{Deserialize, Serialize};

/// A dead letter: `GET /v1/dead-letters/{id}`; without its body in lists.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct DeadLetter {
    /// Names it.
    pub id: String,
    /// The engine whose message it is: `sequences`, `promotions`, `attempts`, `observer`, `deployments`, `deployers` or
    /// `webhooks`.
    pub engine: String,
    /// The dead-letter queue it was in.
    pub queue: String,
    /// When the message was first sent, RFC 3339.
    pub sent_at: String,
    /// How often it was received before it became a dead letter.
    pub receives: i64,
    /// Why it became one, if the queue knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When Keelway sends it again, RFC 3339; absent: it waits for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_redrive: Option<String>,
    /// Only the beginning of the message was kept: it cannot be sent again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// The message's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

page! {
    /// A page of dead letters, newest first: `GET /v1/dead-letters`.
    DeadLetterPage of DeadLetter;
    /// The letters.
}

/// How the installation is set up, and whether its rules are enabled: `GET /v1/checks`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct Checks {
    /// The API's clock, RFC 3339.
    pub now: String,
    /// The rules of EventBridge that feed the queues and start functions.
    pub rules: Vec<RuleState>,
    /// The limits of the installation.
    pub limits: InstalledLimits,
}

/// A rule of the stack.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct RuleState {
    /// Its name without the stack's: `sequences`.
    pub name: String,
    /// `enabled`, `disabled` or `missing`.
    pub state: String,
}

/// What the deployment's parameters allow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct InstalledLimits {
    /// The largest event, in bytes.
    pub max_event_bytes: u64,
    /// The most executions of one context.
    pub max_executions: u64,
    /// How long an executor has to answer a trigger, unless a shipyard says otherwise: `10m`.
    pub start_deadline: String,
    /// How long a task may take, unless a shipyard says otherwise: `24h`; `0s`: for ever.
    pub task_timeout: String,
    /// How long history is kept, in days.
    pub retention_days: u64,
}

/// An event that was sent around: `POST /v1/checks`, `GET /v1/checks/{id}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct RoundTrip {
    /// Its id, a UUID.
    pub id: String,
    /// When it was sent, RFC 3339; only in the answer to the request that sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_at: Option<String>,
    /// When the function on the sequences engine's queue had it, RFC 3339; absent: not yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrived_at: Option<String>,
}

/// Input that could not be used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct InvalidInput {
    /// When it was accepted, RFC 3339.
    pub at: String,
    /// Why it could not be used.
    pub reason: String,
    /// Its text, at most 16 KiB of it.
    pub text: String,
    /// Whether the text goes on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

page! {
    /// A page of a day's invalid input, newest first: `GET /v1/invalid`.
    InvalidPage of InvalidInput, and Day;
    /// The input.
}

/// Of which day a page is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct Day {
    /// The day, UTC: `2026-11-22`.
    pub day: String,
}
