//! The operations of a git host that promotions need, independent of the four APIs. Each implementation follows the public REST
//! documentation of its host. What the operations add up to is written once, in [`propose`](crate::propose) and
//! [`settle`](crate::settle).

use crate::error::HostError;
use crate::repository::Repository;
use keelway_outgoing::Body;
use std::future::Future;

pub use keelway_domain::promotions::pull_request::{Look, Request, State};

/// A file in a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    pub content: Vec<u8>,
    /// The id of its blob, if the host reports it.
    pub blob: Option<String>,
}

impl File {
    /// Whether the ids of blobs can be computed, by the id of a commit: only if they are SHA-1.
    pub(crate) fn can_be_packed(commit: &str) -> bool {
        commit.len() == 40
    }

    /// A file from an archive. The computed id is that of its blob if the archive did not change the content.
    pub(crate) fn packed(content: Vec<u8>) -> Self {
        let mut sha = sha1_smol::Sha1::new();
        sha.update(format!("blob {}\0", content.len()).as_bytes());
        sha.update(&content);
        Self { content, blob: Some(sha.digest().to_string()) }
    }
}

/// A file in a commit to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFile {
    /// The path in the repository.
    pub path: String,
    /// The whole content.
    pub content: String,
    /// Whether it is executable, which the commit does not change.
    pub executable: bool,
    /// The id of the blob that it replaces, if the host reports it.
    pub blob: Option<String>,
}

/// A branch to be made, with one commit.
#[derive(Debug, Clone, Copy)]
pub struct NewBranch<'a> {
    pub name: &'a str,
    /// The branch from which it starts.
    pub base: &'a str,
    /// The commit from which it starts: the newest of the base.
    pub base_commit: &'a str,
    /// The message of the commit.
    pub message: &'a str,
    /// The changed files, at least one.
    pub files: &'a [NewFile],
    /// Whether an existing branch of this name is replaced. Otherwise it is left alone.
    pub replace: bool,
    /// Whether the files come from an archive only. They must then not be written if the blobs of the repository are others
    /// ([`Client::compares`]).
    pub packed: bool,
    /// Whether the branch exists without its commit, at the commit from which it starts. Ignored by hosts that make both in one
    /// request.
    pub begun: bool,
}

/// The result of making a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Branched {
    /// It was made; this is its newest commit.
    Done(String),
    /// A branch of this name exists, and must not be replaced.
    Exists,
    /// The base has other files than those to be replaced. The branch may exist without its commit.
    Differs,
}

/// A pull request to be opened.
#[derive(Debug, Clone, Copy)]
pub struct NewRequest<'a> {
    pub branch: &'a str,
    /// The branch to merge into.
    pub base: &'a str,
    pub title: &'a str,
    /// The description.
    pub body: &'a str,
}

/// The result of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merge {
    /// It is merged, by this commit.
    Merged(String),
    /// It is not merged yet, because of a check, a review, or a concurrent change of the base.
    NotYet(String),
    /// The newest commit of the branch is not the one to be merged.
    HeadMoved,
    /// It cannot be merged by waiting, because of a conflict, a disabled merge method, or a closed pull request.
    Refused(String),
}

/// The archive of a commit.
#[derive(Debug)]
pub struct Archive {
    /// A `.tar.gz`.
    pub bytes: Body,
    /// Whether everything is in one folder, which is not a part of the paths.
    pub folder: bool,
}

/// The requests that promotions make to a host. All fail with [`HostError`]. Those that read have no effect.
pub trait Client: Send + Sync {
    /// The name of the host, for messages.
    fn host(&self) -> &str;
    /// Checks by reading whether the credentials may write, as far as the host reports that.
    fn access(&self, of: &Repository) -> impl Future<Output = Result<(), HostError>> + Send;
    /// The pull requests of a branch in any state, or at least the open ones and one other. A known `base` makes this cheaper.
    fn find(
        &self,
        of: &Repository,
        branch: &str,
        base: Option<&str>,
    ) -> impl Future<Output = Result<Vec<Request>, HostError>> + Send;
    /// The pull requests in any state that have changed since the look that returned the mark. Without a mark: as many as it takes
    /// to see those with the wanted numbers.
    fn list(&self, of: &Repository, wanted: &[u64], mark: Option<&str>) -> impl Future<Output = Result<Look, HostError>> + Send;
    /// One pull request. `None`: the number does not exist, or it comes from a fork.
    fn get(&self, of: &Repository, number: u64) -> impl Future<Output = Result<Option<Request>, HostError>> + Send;
    /// The newest commit of a branch. `None`: the branch does not exist.
    fn tip(&self, of: &Repository, branch: &str) -> impl Future<Output = Result<Option<String>, HostError>> + Send;
    /// The parents of a commit.
    fn parents(&self, of: &Repository, commit: &str) -> impl Future<Output = Result<Vec<String>, HostError>> + Send;
    /// The archive of a commit.
    fn archive(&self, of: &Repository, commit: &str) -> impl Future<Output = Result<Archive, HostError>> + Send;
    /// A file in a commit. `None`: it does not exist.
    fn file(&self, of: &Repository, commit: &str, path: &str) -> impl Future<Output = Result<Option<File>, HostError>> + Send;
    /// Whether [`branch`](Self::branch) refuses these files if the base has other blobs than those to be replaced.
    fn compares(&self, _files: &[NewFile]) -> bool {
        false
    }
    /// Makes a branch with one commit (on Bitbucket Server, one for each file).
    fn branch(&self, of: &Repository, new: NewBranch<'_>) -> impl Future<Output = Result<Branched, HostError>> + Send;
    /// Deletes a branch, if it exists.
    fn delete_branch(&self, of: &Repository, branch: &str) -> impl Future<Output = Result<(), HostError>> + Send;
    /// Opens a pull request. [`Kind::Refused`](crate::Kind) may mean that it exists.
    fn open(&self, of: &Repository, new: NewRequest<'_>) -> impl Future<Output = Result<Request, HostError>> + Send;
    /// Comments on a pull request, unless it has a comment with this text.
    fn comment_once(&self, of: &Repository, number: u64, text: &str) -> impl Future<Output = Result<(), HostError>> + Send;
    /// Closes a pull request without a merge.
    fn close(&self, of: &Repository, number: u64) -> impl Future<Output = Result<(), HostError>> + Send;
    /// Merges an open pull request whose newest commit is `request.head`.
    fn merge(&self, of: &Repository, request: &Request) -> impl Future<Output = Result<Merge, HostError>> + Send;
}
