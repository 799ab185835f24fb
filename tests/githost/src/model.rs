//! The state of the host beside the Git objects.

#![expect(missing_docs, reason = "names that say what they are need no documentation")]

use crate::git::Git;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// The host whose REST form is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// GitHub and GitHub Enterprise: `/` and `/api/v3`.
    #[value(name = "github")]
    GitHub,
    /// Gitea and Forgejo: `/api/v1`.
    Gitea,
    /// GitLab: `/api/v4`.
    #[value(name = "gitlab")]
    GitLab,
    /// Bitbucket Server: `/rest/api/1.0`.
    Bitbucket,
}

impl Form {
    /// The path of the form's base.
    pub fn base(self) -> &'static str {
        match self {
            Form::GitHub => "/api/v3",
            Form::Gitea => "/api/v1",
            Form::GitLab => "/api/v4",
            Form::Bitbucket => "/rest/api/1.0",
        }
    }
}

/// A permission of a token. Each form has its own names for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Read the owner of the token.
    User,
    /// Read repositories and pull requests.
    Read,
    /// Write branches and files.
    Contents,
    /// Write pull requests.
    Pulls,
    /// Write comments.
    Comments,
}

impl Scope {
    /// All permissions.
    pub const ALL: [Scope; 5] = [Scope::User, Scope::Read, Scope::Contents, Scope::Pulls, Scope::Comments];
}

/// A token and its user.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Token {
    /// The secret.
    pub token: String,
    /// The login of the user.
    pub user: String,
    pub scopes: Vec<Scope>,
    /// The private repositories (`owner/name`) that are visible to it. `None`: all.
    #[serde(default)]
    pub repositories: Option<Vec<String>>,
    /// Whether the user may only read, as a collaborator without write access.
    #[serde(default)]
    pub read_only: bool,
}

impl Token {
    /// A token with all permissions.
    pub fn new(token: impl Into<String>, user: impl Into<String>) -> Self {
        Self { token: token.into(), user: user.into(), scopes: Scope::ALL.to_vec(), repositories: None, read_only: false }
    }
}

/// The receiver of a repository's events.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    pub url: String,
    /// The secret that signs the payload. GitLab sends it unchanged.
    pub secret: String,
    /// The form of the payload. Default: that of the host.
    #[serde(default)]
    pub form: Option<Form>,
}

/// A comment on a pull request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Comment {
    /// Unique in the host.
    pub id: u64,
    pub author: String,
    pub body: String,
    /// Seconds since 1970.
    pub created: i64,
}

/// The state of a pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Open,
    /// Closed without a merge.
    Closed,
    Merged,
}

/// A method to merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// A merge commit with two parents.
    Merge,
    /// A single new commit.
    Squash,
}

/// A pull request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pull {
    /// The number in the repository.
    pub number: u64,
    pub title: String,
    /// The description.
    pub body: String,
    pub author: String,
    /// The branch to be merged.
    pub head: String,
    /// The commit of that branch, or its last one if it was deleted.
    pub head_sha: String,
    /// The branch to merge into.
    pub base: String,
    /// The commit of the base branch when the pull request was opened or, later, merged.
    pub base_sha: String,
    pub state: State,
    /// The commit that the merge has made.
    pub merge_commit: Option<String>,
    pub merged_by: Option<String>,
    /// Rises with every change.
    pub version: u64,
    /// Seconds since 1970.
    pub created: i64,
    /// Seconds since 1970.
    pub updated: i64,
    /// Seconds since 1970.
    pub closed: Option<i64>,
    /// The commit of the base branch when it was closed or merged, after which mergeability is not computed again.
    pub ended_at: Option<String>,
    pub comments: Vec<Comment>,
}

/// An event of a pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    Opened,
    Reopened,
    /// Closed without a merge.
    Closed,
    Merged,
}

/// A repository.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Repository {
    /// Unique in the host.
    pub id: u64,
    pub owner: String,
    pub name: String,
    /// Whether it is hidden from tokens that do not list it.
    pub private: bool,
    /// The branch that a clone checks out.
    pub default_branch: String,
    /// The permitted methods to merge.
    pub methods: Vec<Method>,
    /// The receiver of its events.
    pub webhook: Option<Webhook>,
    /// The pull requests by number.
    pub pulls: BTreeMap<u64, Pull>,
    /// The last number of a pull request.
    pub last: u64,
    /// The last number of a comment.
    pub last_comment: u64,
    /// Seconds since 1970.
    pub created: i64,
    #[serde(skip)]
    pub git: Git,
    /// Whether it has changed since it was last saved.
    #[serde(skip)]
    pub(crate) changed: bool,
    /// The events since webhooks were last sent.
    #[serde(skip)]
    pub(crate) happened: Vec<(Happened, u64, String)>,
    /// Whether two commits (base, head) merge without conflicts, where that was computed.
    #[serde(skip)]
    pub(crate) clean: BTreeMap<(String, String), bool>,
}

/// The present time in seconds since 1970.
pub(crate) fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}

/// A time in the format of GitHub, Gitea and GitLab.
pub(crate) fn written(at: i64) -> String {
    let at = chrono::DateTime::from_timestamp(at, 0).unwrap_or_default();
    at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}
