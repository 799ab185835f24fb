//! Reasons of refusals, independent of the forms: each form has its own text for them.

use crate::git::GitError;
use crate::model::{Scope, State};

/// The reason of a refusal.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The form does not have this path.
    #[error("the form has no such path")]
    Path,
    /// The path does not have this method.
    #[error("the path has no such method")]
    Method,
    /// `User-Agent` is missing.
    #[error("no User-Agent header")]
    Agent,
    /// The body has a type that the form does not accept.
    #[error("the body's type is {0:?}, not application/json")]
    ContentType(String),
    /// A header that the form requires is missing.
    #[error("{0}")]
    Header(String),
    /// A field of the body is unknown, missing or of the wrong type.
    #[error("the body: {0}")]
    Field(String),
    /// A parameter of the query is unknown, missing or of the wrong type.
    #[error("the query: {0}")]
    Query(String),
    /// The request needs credentials and has none.
    #[error("no token")]
    Anonymous,
    /// The token is unknown.
    #[error("a token that nobody has")]
    Token,
    /// The token lacks this scope.
    #[error("the token lacks the scope {0:?}")]
    Scope(Scope),
    /// The user may only read.
    #[error("the user may only read")]
    Permission,

    /// The repository does not exist, or is hidden from this token.
    #[error("no such repository")]
    Repository,
    /// No repositories belong to this name.
    #[error("no owner {0:?}")]
    Owner(String),
    /// The branch does not exist.
    #[error("no branch {0:?}")]
    Branch(String),
    /// The branch exists already.
    #[error("the branch {0:?} exists")]
    BranchExists(String),
    /// The object does not exist, or the revision names none.
    #[error("no object {0:?}")]
    Object(String),
    /// The file or directory does not exist.
    #[error("no file {0:?}")]
    File(String),
    /// The file exists already.
    #[error("the file {0:?} exists")]
    FileExists(String),
    /// The file has changed since it was read.
    #[error("the file {path:?} is {found}, not {given}")]
    FileMoved {
        /// The path of the file.
        path: String,
        /// The id in the request.
        given: String,
        /// The present id.
        found: String,
    },
    /// The reference would lose commits.
    #[error("not a fast forward")]
    FastForward,
    /// The commit would change nothing.
    #[error("the commit changes nothing")]
    NothingChanged,

    /// The pull request does not exist.
    #[error("no such pull request")]
    Pull,
    /// A pull request for the same branches is open.
    #[error("the pull request {number} for {head} exists")]
    PullExists {
        /// The number of the open one.
        number: u64,
        /// The branch to be merged.
        head: String,
        /// The branch to merge into.
        base: String,
    },
    /// The head has no commits that the base lacks.
    #[error("no commits between {base} and {head}")]
    NoCommits {
        /// The branch to merge into.
        base: String,
        /// The branch to be merged.
        head: String,
    },
    /// The base branch of a new pull request does not exist.
    #[error("no base branch {0:?}")]
    BaseMissing(String),
    /// The head branch of a new pull request does not exist.
    #[error("no head branch {0:?}")]
    HeadMissing(String),
    /// The merge has conflicts in these files.
    #[error("conflicts in {0:?}")]
    Conflict(Vec<String>),
    /// The head is not the commit in the request.
    #[error("the head is {found}, not {given}")]
    HeadMoved {
        /// The commit in the request.
        given: String,
        /// The present head.
        found: String,
    },
    /// The version of the pull request is not the one in the request.
    #[error("the version is {found}, not {given}")]
    Version {
        /// The version in the request.
        given: u64,
        /// The present version.
        found: u64,
    },
    /// The state of the pull request does not permit this.
    #[error("the pull request is {0:?}")]
    State(State),
    /// The repository does not permit this method to merge.
    #[error("the repository does not allow to merge by {0:?}")]
    MergeMethod(String),

    /// Git or the disk has failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The state could not be read or written.
    #[error("{0}")]
    Disk(String),
}

impl Refused {
    /// Whether no correct client causes this. Such requests are listed, and tests assert that there are none.
    pub fn is_violation(&self) -> bool {
        use Refused::*;
        matches!(self, Path | Method | Agent | ContentType(_) | Header(_) | Field(_) | Query(_) | Anonymous | Token | Scope(_))
    }
}
