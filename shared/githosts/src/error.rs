//! Errors of git hosts: sentences that name the host and the remedy.

use crate::repository::Repository;
use keelway_domain::condition::Condition;
use keelway_domain::promotions::{Failure, Retry};
use keelway_domain::time::Timestamp;

/// The kind of an error, which says when another try makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The credentials are missing, incomplete, or not accepted.
    Credentials,
    /// The credentials are accepted, but do not permit the operation.
    Forbidden,
    /// The repository, or something in it, does not exist, or is invisible with these credentials.
    NotFound,
    /// The branch to merge into does not exist.
    BaseMissing,
    /// No file of the base branch has the marker of this environment.
    NoMarker,
    /// A file with the marker cannot be edited.
    Unusable,
    /// The host accepts no requests before this time.
    RateLimited {
        /// The time that the host has named, or one minute from now.
        until: Timestamp,
    },
    /// A timeout, a lost connection, or an error of the host itself.
    Transient,
    /// The answer does not follow the host's API.
    Nonsense,
    /// The repository exceeds the limits for reading.
    TooLarge,
    /// No requests are sent to this address.
    Address,
    /// The host, or this client, refuses for another reason, which is in the message.
    Refused,
}

impl Kind {
    /// The kind in one word, for the reason of a condition.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Credentials => "CredentialsRefused",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "NotFound",
            Self::BaseMissing => "BaseBranchMissing",
            Self::NoMarker => "NoMarkerFound",
            Self::Unusable => "MarkedFileUnusable",
            Self::RateLimited { .. } => "RateLimited",
            Self::Transient => "HostUnavailable",
            Self::Nonsense => "HostAnswersNonsense",
            Self::TooLarge => "RepositoryTooLarge",
            Self::Address => "UnusableUrl",
            Self::Refused => "Refused",
        }
    }
}

/// An error. The message is a sentence for people, without credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HostError {
    #[expect(missing_docs, reason = "the name says it")]
    pub kind: Kind,
    /// The host, what was wrong, and the remedy.
    pub message: String,
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        let retry = match error.kind {
            Kind::RateLimited { until } => Retry::At(until),
            // Only a change of the repository or of the pipeline can mend these.
            Kind::NoMarker | Kind::Unusable | Kind::BaseMissing | Kind::TooLarge | Kind::Address => Retry::Patience,
            Kind::Credentials | Kind::Forbidden | Kind::NotFound | Kind::Transient | Kind::Nonsense | Kind::Refused => {
                Retry::Backoff
            }
        };
        Self { why: Condition::new(error.kind.reason(), error.message), retry }
    }
}

impl HostError {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
    pub(crate) fn archived(host: &str, of: &Repository) -> Self {
        Self::new(Kind::Refused, format!("{host}: {of} is archived: nothing can be changed in it"))
    }
    pub(crate) fn read_only(host: &str, of: &Repository, remedy: &str) -> Self {
        Self::new(Kind::Forbidden, format!("{host}: the token may read {of}, but not write: {remedy}"))
    }
}
