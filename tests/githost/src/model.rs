//! What the host remembers beside the Git objects.

use crate::git::Git;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// A host whose REST form is spoken.
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
    /// The path under which the form is served.
    pub fn base(self) -> &'static str {
        match self {
            Form::GitHub => "/api/v3",
            Form::Gitea => "/api/v1",
            Form::GitLab => "/api/v4",
            Form::Bitbucket => "/rest/api/1.0",
        }
    }
}

/// What a token may do. Each form has its own names for these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Read who the token belongs to.
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
    /// Everything.
    pub const ALL: [Scope; 5] = [Scope::User, Scope::Read, Scope::Contents, Scope::Pulls, Scope::Comments];
}

/// A token and whose it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Token {
    /// The secret.
    pub token: String,
    /// The user's login.
    pub user: String,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// The repositories (`owner/name`) that it may see if they are private; `None`: all.
    #[serde(default)]
    pub repositories: Option<Vec<String>>,
    /// Whether the user may only read, as a collaborator without write access.
    #[serde(default)]
    pub read_only: bool,
}

impl Token {
    /// A token that may do everything.
    pub fn new(token: impl Into<String>, user: impl Into<String>) -> Self {
        Self { token: token.into(), user: user.into(), scopes: Scope::ALL.to_vec(), repositories: None, read_only: false }
    }
}

/// Where a repository's events are sent.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// The address.
    pub url: String,
    /// What signs the payload (GitLab sends it as it is).
    pub secret: String,
    /// Whose payload it is; the host's own form if left out.
    #[serde(default)]
    pub form: Option<Form>,
}

/// A comment on a pull request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Comment {
    /// Unique in the host.
    pub id: u64,
    /// Whose.
    pub author: String,
    /// The text.
    pub body: String,
    /// Seconds since 1970.
    pub created: i64,
}

/// The state of a pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It waits for somebody.
    Open,
    /// It was closed without a merge.
    Closed,
    /// It was merged.
    Merged,
}

/// A way to merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// A commit with two parents.
    Merge,
    /// One commit with everything.
    Squash,
}

/// A pull request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pull {
    /// Its number in the repository.
    pub number: u64,
    /// The title.
    pub title: String,
    /// The description.
    pub body: String,
    /// Who opened it.
    pub author: String,
    /// The branch that is to be merged.
    pub head: String,
    /// That branch's commit, or its last one.
    pub head_sha: String,
    /// Into which branch.
    pub base: String,
    /// That branch's commit when the pull request was opened or, later, merged.
    pub base_sha: String,
    /// Where it stands.
    pub state: State,
    /// The commit that the merge made.
    pub merge_commit: Option<String>,
    /// Who merged it.
    pub merged_by: Option<String>,
    /// Rises with every change.
    pub version: u64,
    /// Seconds since 1970.
    pub created: i64,
    /// Seconds since 1970.
    pub updated: i64,
    /// Seconds since 1970.
    pub closed: Option<i64>,
    /// The base branch when it was closed or merged: whether it merges is not looked at again after that.
    pub ended_at: Option<String>,
    /// What was said.
    pub comments: Vec<Comment>,
}

/// What happened to a pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    /// It was opened.
    Opened,
    /// It was opened again.
    Reopened,
    /// It was closed without a merge.
    Closed,
    /// It was merged.
    Merged,
}

/// A repository.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Repository {
    /// Unique in the host.
    pub id: u64,
    /// Whose.
    pub owner: String,
    /// Its name.
    pub name: String,
    /// Hidden from tokens that may not see it.
    pub private: bool,
    /// The branch that a clone checks out.
    pub default_branch: String,
    /// The ways to merge that it allows.
    pub methods: Vec<Method>,
    /// Where its events go.
    pub webhook: Option<Webhook>,
    /// By number.
    pub pulls: BTreeMap<u64, Pull>,
    /// The last number given to a pull request.
    pub last: u64,
    /// The last number given to a comment.
    pub last_comment: u64,
    /// Seconds since 1970.
    pub created: i64,
    /// Its objects.
    #[serde(skip)]
    pub git: Git,
    /// Changed since it was last saved.
    #[serde(skip)]
    pub(crate) changed: bool,
    /// What happened since webhooks were last sent.
    #[serde(skip)]
    pub(crate) happened: Vec<(Happened, u64, String)>,
    /// Whether two commits (base, head) merge without conflicts, as far as it was computed.
    #[serde(skip)]
    pub(crate) clean: BTreeMap<(String, String), bool>,
}

/// Seconds since 1970.
pub(crate) fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}

/// A time as GitHub, Gitea and GitLab write it.
pub(crate) fn written(at: i64) -> String {
    let at = chrono::DateTime::from_timestamp(at, 0).unwrap_or_default();
    at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}
