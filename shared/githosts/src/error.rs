//! What can go wrong with a git host, as sentences that name the host and the way out.

use crate::repository::Repository;
use keelway_domain::time::Timestamp;

/// What kind of failure it is; it decides when another try makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The credentials are missing, incomplete, or the host does not accept them.
    Credentials,
    /// The credentials are accepted, but they do not allow this.
    Forbidden,
    /// The repository, or something in it, does not exist, or the credentials cannot see it.
    NotFound,
    /// The branch that pull requests are to be merged into does not exist.
    BaseMissing,
    /// No file of the base branch has the marker of this environment.
    NoMarker,
    /// A file has the marker, and cannot be edited as a whole.
    Unusable,
    /// The host wants no request before this time.
    RateLimited {
        /// As the host said, or one minute from now if it did not say.
        until: Timestamp,
    },
    /// A timeout, a lost connection or an error of the host itself.
    Transient,
    /// The host's answer is not what its interface promises.
    Nonsense,
    /// The repository is larger than what is read of one.
    TooLarge,
    /// Nothing is sent to this address.
    Address,
    /// The host, or this client, refuses for another reason, which the message gives.
    Refused,
}

impl Kind {
    /// The kind in one word, for a condition's reason.
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

/// A failure. The message is a sentence for people; it never contains credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HostError {
    /// What kind of failure.
    pub kind: Kind,
    /// Which host, what it refused or what was wrong, and the way out.
    pub message: String,
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
