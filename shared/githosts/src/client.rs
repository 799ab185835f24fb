//! What is asked of a host: the few requests that promotions take, in the words of none of the four interfaces. Each implementation follows
//! its host's public REST documentation; what the requests add up to is written once, in [`propose`](crate::propose) and
//! [`settle`](crate::settle).

use crate::error::HostError;
use crate::repository::Repository;
use keelway_outgoing::Body;
use std::future::Future;

/// Where a pull request is in its life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It waits.
    Open,
    /// It was merged.
    Merged {
        /// The commit on the base branch; the head if the host does not say it.
        commit: String,
    },
    /// It was closed without being merged.
    Closed,
}

/// A pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Its number at the host.
    pub number: u64,
    /// Where people find it.
    pub url: String,
    /// Its branch, in the repository itself: one from a fork is never ours.
    pub branch: String,
    /// The newest commit of its branch.
    pub head: String,
    /// Where it is in its life.
    pub state: State,
    /// Whether the host could merge it; `None`: the host does not say it here, or does not know it yet.
    pub mergeable: Option<bool>,
}

/// What a look at a repository's pull requests has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Those that have changed since the look that gave the mark, and perhaps others; `None`: nothing has changed.
    pub requests: Option<Vec<Request>>,
    /// Makes the next look cheaper, if the host has such marks.
    pub mark: Option<String>,
    /// Every open one is among them, and no other: the host has no list by the time of the last change.
    pub every: bool,
}

/// A file of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its content.
    pub content: Vec<u8>,
    /// The id of its blob, where the host tells it.
    pub blob: Option<String>,
}

impl File {
    /// Whether the ids of blobs are known, by the id of a commit: they are, if they are SHA-1.
    pub(crate) fn can_be_packed(commit: &str) -> bool {
        commit.len() == 40
    }

    /// A file as an archive has it. Its blob has this id if the archive has it as the repository does.
    pub(crate) fn packed(content: Vec<u8>) -> Self {
        let mut sha = sha1_smol::Sha1::new();
        sha.update(format!("blob {}\0", content.len()).as_bytes());
        sha.update(&content);
        Self { content, blob: Some(sha.digest().to_string()) }
    }
}

/// A file as a new commit shall have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFile {
    /// Its path in the repository.
    pub path: String,
    /// Its whole content.
    pub content: String,
    /// Whether it may be executed; that stays.
    pub executable: bool,
    /// The id of the blob that it replaces, where the host tells it.
    pub blob: Option<String>,
}

/// A commit that shall become a branch.
#[derive(Debug, Clone, Copy)]
pub struct NewBranch<'a> {
    /// The branch.
    pub name: &'a str,
    /// The branch that it begins at.
    pub base: &'a str,
    /// The commit that it begins at: the newest of the base.
    pub base_commit: &'a str,
    /// The commit's message.
    pub message: &'a str,
    /// The changed files, at least one.
    pub files: &'a [NewFile],
    /// An older branch of this name is replaced; otherwise it is left alone.
    pub replace: bool,
    /// The files are known from an archive only: they are not written if the repository's blobs are other ones
    /// ([`Client::compares`]).
    pub packed: bool,
    /// The branch is there, at the commit that it begins at: its own commit is missing. A form that makes both in one request
    /// ignores it.
    pub begun: bool,
}

/// Whether a branch was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Branched {
    /// It was; this is its newest commit.
    Done(String),
    /// There is one of this name already, and it was not to be replaced.
    Exists,
    /// The base has other files than those that are replaced. There may be a branch without its commit.
    Differs,
}

/// A pull request to open.
#[derive(Debug, Clone, Copy)]
pub struct NewRequest<'a> {
    /// Its branch.
    pub branch: &'a str,
    /// The branch that it is to be merged into.
    pub base: &'a str,
    /// Its title.
    pub title: &'a str,
    /// Its text.
    pub body: &'a str,
}

/// How merging went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merge {
    /// It is merged; this is the commit.
    Merged(String),
    /// Not yet: a check, a review, or a moment's change of the base is in the way.
    NotYet(String),
    /// The branch has another newest commit than the one to be merged.
    HeadMoved,
    /// It cannot be merged by waiting: a conflict, a merge method that is disabled, a closed pull request.
    Refused(String),
}

/// A repository's archive.
#[derive(Debug)]
pub struct Archive {
    /// A `.tar.gz`.
    pub bytes: Body,
    /// Everything is in one folder, which is no part of the paths.
    pub folder: bool,
}

/// The requests that promotions make to a host. All fail with [`HostError`]; reading ones have no effect.
pub trait Client: Send + Sync {
    /// The host's name, for messages.
    fn host(&self) -> &str;
    /// Reads with the credentials whether they may write, as far as the host tells that without a write.
    fn access(&self, of: &Repository) -> impl Future<Output = Result<(), HostError>> + Send;
    /// Pull requests of a branch in any state, or at least the open ones and one other. `base` makes it cheaper where it is known.
    fn find(
        &self,
        of: &Repository,
        branch: &str,
        base: Option<&str>,
    ) -> impl Future<Output = Result<Vec<Request>, HostError>> + Send;
    /// What has changed since the look that gave the mark, in any state. Without a mark, as much as it takes to see those with the
    /// wanted numbers.
    fn list(&self, of: &Repository, wanted: &[u64], mark: Option<&str>) -> impl Future<Output = Result<Look, HostError>> + Send;
    /// One pull request; `None`: there is none of this number, or it comes from a fork.
    fn get(&self, of: &Repository, number: u64) -> impl Future<Output = Result<Option<Request>, HostError>> + Send;
    /// The newest commit of a branch; `None`: there is no such branch.
    fn tip(&self, of: &Repository, branch: &str) -> impl Future<Output = Result<Option<String>, HostError>> + Send;
    /// The commits before a commit.
    fn parents(&self, of: &Repository, commit: &str) -> impl Future<Output = Result<Vec<String>, HostError>> + Send;
    /// All files of a commit.
    fn archive(&self, of: &Repository, commit: &str) -> impl Future<Output = Result<Archive, HostError>> + Send;
    /// One file of a commit; `None`: there is none.
    fn file(&self, of: &Repository, commit: &str, path: &str) -> impl Future<Output = Result<Option<File>, HostError>> + Send;
    /// Whether [`branch`](Self::branch) refuses these files if the base has other blobs in their places than they replace.
    fn compares(&self, _files: &[NewFile]) -> bool {
        false
    }
    /// Makes a branch of the base with one commit (on Bitbucket Server, one for each file).
    fn branch(&self, of: &Repository, new: NewBranch<'_>) -> impl Future<Output = Result<Branched, HostError>> + Send;
    /// Deletes a branch, if it is there.
    fn delete_branch(&self, of: &Repository, branch: &str) -> impl Future<Output = Result<(), HostError>> + Send;
    /// Opens a pull request. [`Kind::Refused`](crate::Kind) may mean that there is one.
    fn open(&self, of: &Repository, new: NewRequest<'_>) -> impl Future<Output = Result<Request, HostError>> + Send;
    /// Comments on a pull request, unless it has a comment with this text.
    fn comment_once(&self, of: &Repository, number: u64, text: &str) -> impl Future<Output = Result<(), HostError>> + Send;
    /// Closes a pull request without merging it.
    fn close(&self, of: &Repository, number: u64) -> impl Future<Output = Result<(), HostError>> + Send;
    /// Merges an open pull request whose newest commit is `request.head`.
    fn merge(&self, of: &Repository, request: &Request) -> impl Future<Output = Result<Merge, HostError>> + Send;
}
