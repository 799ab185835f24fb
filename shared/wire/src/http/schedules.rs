//! Schedules as the API shows them.

use crate::http::page::{Clock, page};
use serde::{Deserialize, Serialize};

/// A schedule: `GET /v1/schedules/{project}/{name}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct ScheduleState {
    /// Its project.
    pub project: String,
    /// Its name.
    pub name: String,
    /// The stage of the sequence.
    pub stage: String,
    /// The sequence.
    pub sequence: String,
    /// Of these services.
    pub services: Vec<String>,
    /// At the times of this cron expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// Once, at this time, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The time zone of the cron expression; absent: UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Not before, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// Not at this time and later, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// Not at all, for now.
    pub suspended: bool,
    /// `skip` or `queue`: what happens while the run before is open.
    pub concurrency: String,
    /// Whether `next` is known: it is not for a moment after the schedule was applied.
    pub planned: bool,
    /// When it triggers next, RFC 3339; absent: not any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The last time that it was due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<ScheduleLast>,
    /// The last run of each service.
    pub runs: Vec<ScheduleRun>,
    /// When it was last applied, RFC 3339.
    pub applied_at: String,
}

/// The last time that a schedule was due.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct ScheduleLast {
    /// When it was due, RFC 3339.
    pub at: String,
    /// When it triggered, RFC 3339.
    pub fired_at: String,
    /// Services that were left out, because their run before was open.
    pub skipped: Vec<String>,
    /// It was so late that later times are left out.
    pub late: bool,
}

/// A run that a schedule has triggered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct ScheduleRun {
    /// The service.
    pub service: String,
    /// When it was due, RFC 3339.
    pub at: String,
    /// Its context.
    #[serde(rename = "shkeptncontext")]
    pub context: String,
}

page! {
    /// A page of schedules: `GET /v1/schedules/{project}`.
    SchedulePage of ScheduleState, and Clock;
    /// By name.
}
