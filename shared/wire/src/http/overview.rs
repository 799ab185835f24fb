//! One delivery with what it caused in the other engines: `GET /v1/project/{project}/delivery/{context}`.

use crate::http::SequenceState;
use crate::http::deployments::VersionState;
use crate::http::promotions::PromotionState;
use serde::{Deserialize, Serialize};

/// A delivery: its sequences, the promotions that they carry out, and the versions that carried out their tasks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(default)]
pub struct DeliveryOverview {
    /// The entry of its context in the list of sequences.
    pub delivery: SequenceState,
    /// The promotions whose sequence it is.
    pub promotions: Vec<DeliveryPromotion>,
    /// The versions of deployment configs that carried out its tasks, oldest first.
    pub deployments: Vec<VersionState>,
    /// There may be more versions or promotions: not all configs, or not all of their past, was looked through.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// The server's clock, RFC 3339.
    pub now: String,
}

/// A promotion of a pipeline that a delivery carries out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct DeliveryPromotion {
    /// The pipeline's project.
    pub namespace: String,
    /// The pipeline.
    pub pipeline: String,
    /// The environment that it promotes into.
    pub environment: String,
    /// How it stands, or how it ended.
    pub promotion: PromotionState,
    /// When it became history; absent: it is the current one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
}
