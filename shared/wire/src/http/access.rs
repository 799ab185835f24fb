//! Tokens, who somebody is, and the audit.

use crate::http::page::page;
use serde::{Deserialize, Serialize};

/// What somebody may do, and where.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct GrantState {
    /// `read`, `trigger`, `trigger:<stage>`, `execute:<task>`, `approve:<stage>`, `administer`.
    pub scopes: Vec<String>,
    /// In these projects and namespaces only; empty: in all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub projects: Vec<String>,
}

/// A token to be made: `POST /v1/tokens`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NewTokenRequest {
    /// Its name: lower-case letters, digits and `-`, at most 50.
    pub name: String,
    /// What it may do.
    pub scopes: Vec<String>,
    /// In these projects and namespaces only; empty: in all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub projects: Vec<String>,
    /// A length from now on, such as `90d`, or a time in RFC 3339; absent: it does not expire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// What it is for; at most 200 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// `POST /v1/tokens/{token}/rotate`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RotateRequest {
    /// How long the secret before stays valid: `1h` unless told otherwise, `7d` at most, `0` for not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap: Option<String>,
}

/// A token, without its secret. Times are in RFC 3339.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct TokenState {
    /// Its name.
    pub name: String,
    /// What it may do.
    #[serde(flatten)]
    pub grant: GrantState,
    /// What it is for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// When it was made.
    pub created: String,
    /// Who made it.
    pub by: String,
    /// When it last got another secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotated: Option<String>,
    /// Until when the secret before is valid, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap_until: Option<String>,
    /// From when on it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// Whether that time has come.
    pub expired: bool,
    /// The hour in which it was last used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used: Option<String>,
}

/// A token with its secret: the only answer that has it.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct TokenAnswer {
    /// What clients send as `x-token`.
    pub secret: String,
    /// The token.
    pub token: TokenState,
}

impl std::fmt::Debug for TokenAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenAnswer").field("token", &self.token).finish_non_exhaustive()
    }
}

page! {
    /// A page of tokens, by name: `GET /v1/tokens`.
    TokenPage of TokenState;
    /// In the order of their names.
}

/// Who sends the request: `GET /v1/whoami`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct WhoAmI {
    /// The name of the token, or the identity provider.
    pub token: String,
    /// Who, as the provider calls them.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subject: String,
    /// Who, as approvers and the audit name them: `token:ci`, `<provider>/<subject>` or `administrator`.
    pub by: String,
    /// What they may do.
    pub grants: Vec<GrantState>,
    /// From when on the token is refused, in RFC 3339; absent: it does not end by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

page! {
    /// A page of the audit, newest first: `GET /v1/audit`. It may be short or empty although there are more.
    AuditPage of AuditEntry;
    /// What was done.
}

/// What somebody did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(default = Self::default))]
#[serde(rename_all = "camelCase", default)]
pub struct AuditEntry {
    /// When, in RFC 3339.
    pub at: String,
    /// Identifies it.
    pub id: String,
    /// `apply`, `trigger`, `control`, `decide`, `delete`, `token`, `override`, `push`, `claim` or `observe`.
    pub action: String,
    /// With which token, provider or key.
    pub token: String,
    /// Who, as the provider calls them.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subject: String,
    /// Who, told apart by who vouches for it: `token:ci`, `<provider>/<subject>`, `key:<id>/<name>` or `administrator`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// From which address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// In which project or namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub project: String,
    /// Method and path.
    pub request: String,
    /// What was done, as a sentence without its subject: `approved cart 1.5.0 for prod (<context>)`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub what: String,
    /// What the caller says about itself; nobody has checked it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The HTTP status of the answer.
    pub status: u16,
}
