//! What deployers say, and what they are told.

use super::{TargetState, VersionState};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The body of `POST /v1/deployments/{id}-{n}/claim`. It may be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ClaimRequest {
    /// Who claims it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// Identifies the claim: the same one again gets the work again, with a new token. Also as the header `Idempotency-Key`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub claim: String,
    /// How long the work stays claimed without a heartbeat, `5s` to `1h`. Default: `60s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
}

/// The answer to a claim: what the deployer needs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimAnswer {
    /// The token of this attempt: the bearer of heartbeats and of the end. It is told only here.
    pub token: String,
    /// What is to be deployed, with its snapshot.
    pub deployment: VersionState,
    /// The newest complete version, with its snapshot; absent: there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<VersionState>,
    /// `run`, `pause` or `cancel`.
    pub desired: String,
    /// Until then the deployer must be heard of again.
    pub lease_until: String,
}

/// The body of `POST /v1/deployments/{id}-{n}/heartbeat`. It may be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HeartbeatRequest {
    /// Whether the deployer is at work, and not only about to be.
    pub running: bool,
    /// As in a claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
    /// A sentence for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// How far it is, by target.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub targets: BTreeMap<String, TargetState>,
    /// The end of the log; the last 2048 bytes are kept.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tail: String,
    /// What the deployer wants to be told if it, or another one, goes on with this attempt.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub checkpoint: String,
    /// Where the whole log is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub log: String,
}

/// The body of `POST /v1/deployments/{id}-{n}/strategy`. It may be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct StrategyRequest {
    /// Until the new version gets this share of the requests, in percent, 0 to 100. 100, the default: to the strategy's end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(maximum = 100))]
    pub until: Option<u8>,
}

/// How far Keelway is with a strategy that it carries out for a deployer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct StrategyAnswer {
    /// `running`: send the request again; `done`; or `failed`: everything is back where it was, and no more can be asked for.
    pub state: String,
    /// How far it goes at most, by this request or an earlier one.
    pub until: u8,
    /// A sentence for people.
    pub message: String,
    /// As in the answer to a heartbeat.
    pub desired: String,
}

/// The body of `POST /v1/deployments/{id}-{n}/finish`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct FinishRequest {
    /// 0: it succeeded. Absent: it never ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// A sentence for people: why it failed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// How far it is, by target.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub targets: BTreeMap<String, TargetState>,
    /// The end of the log; the last 2048 bytes are kept.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tail: String,
    /// What the deployer wants to be told if it, or another one, goes on with this attempt.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub checkpoint: String,
    /// Where the whole log is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub log: String,
}

/// The answer to a heartbeat, and to an end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct ReportAnswer {
    /// `run`: go on; `pause`: stop where you can go on later; `cancel`: stop, and end.
    pub desired: String,
    /// How often a person said that a canary that holds goes on.
    pub proceeds: u32,
    /// Until then the deployer must be heard of again.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub lease_until: String,
    /// Until then it must have ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
}
