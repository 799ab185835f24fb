//! Why a request is refused, in the words of no host: each form says it in its own.

use crate::git::GitError;
use crate::model::{Scope, State};

/// Why a request is refused.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The form has no such path.
    #[error("the form has no such path")]
    Path,
    /// The path has no such method.
    #[error("the path has no such method")]
    Method,
    /// No `User-Agent`.
    #[error("no User-Agent header")]
    Agent,
    /// A body of another type than the form takes.
    #[error("the body's type is {0:?}, not application/json")]
    ContentType(String),
    /// A header without which the form does not take the request.
    #[error("{0}")]
    Header(String),
    /// A field of the body is unknown, missing or of the wrong type.
    #[error("the body: {0}")]
    Field(String),
    /// A parameter of the query is unknown, missing or of the wrong type.
    #[error("the query: {0}")]
    Query(String),
    /// No credentials where they are needed.
    #[error("no token")]
    Anonymous,
    /// Credentials that nobody has.
    #[error("a token that nobody has")]
    Token,
    /// The token may not do this.
    #[error("the token lacks the scope {0:?}")]
    Scope(Scope),
    /// The user may only read.
    #[error("the user may only read")]
    Permission,

    /// No such repository, or it is hidden from this token.
    #[error("no such repository")]
    Repository,
    /// Nobody of this name has repositories.
    #[error("no owner {0:?}")]
    Owner(String),
    /// No such branch.
    #[error("no branch {0:?}")]
    Branch(String),
    /// The branch exists.
    #[error("the branch {0:?} exists")]
    BranchExists(String),
    /// No such object, or a revision that names none.
    #[error("no object {0:?}")]
    Object(String),
    /// No such file or directory.
    #[error("no file {0:?}")]
    File(String),
    /// The file exists.
    #[error("the file {0:?} exists")]
    FileExists(String),
    /// The file changed since it was read: its path, the id that was given and the id it has.
    #[error("the file {path:?} is {found}, not {given}")]
    FileMoved {
        /// Its path.
        path: String,
        /// The id that the request gives.
        given: String,
        /// The id that it has.
        found: String,
    },
    /// A reference would lose commits.
    #[error("not a fast forward")]
    FastForward,
    /// A commit that would change nothing.
    #[error("the commit changes nothing")]
    NothingChanged,

    /// No such pull request.
    #[error("no such pull request")]
    Pull,
    /// A pull request for the same branches is open: its number.
    #[error("the pull request {number} for {head} exists")]
    PullExists {
        /// The number of the one that exists.
        number: u64,
        /// The branch that it wants merged.
        head: String,
        /// Into which branch.
        base: String,
    },
    /// The head has no commits that the base lacks.
    #[error("no commits between {base} and {head}")]
    NoCommits {
        /// The base branch.
        base: String,
        /// The head branch.
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
    /// The head is not the commit that the request names.
    #[error("the head is {found}, not {given}")]
    HeadMoved {
        /// What the request names.
        given: String,
        /// What it is.
        found: String,
    },
    /// The pull request's version is not the one that the request names.
    #[error("the version is {found}, not {given}")]
    Version {
        /// What the request names.
        given: u64,
        /// What it is.
        found: u64,
    },
    /// The pull request is not in a state in which this is possible.
    #[error("the pull request is {0:?}")]
    State(State),
    /// The repository does not allow this way to merge.
    #[error("the repository does not allow to merge by {0:?}")]
    MergeMethod(String),

    /// Git itself failed, or the disk.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The state could not be read or written.
    #[error("{0}")]
    Disk(String),
}

impl Refused {
    /// Whether a well-made client never causes this: such requests are listed, and tests assert that there are none.
    pub fn is_violation(&self) -> bool {
        use Refused::*;
        matches!(self, Path | Method | Agent | ContentType(_) | Header(_) | Field(_) | Query(_) | Anonymous | Token | Scope(_))
    }
}
