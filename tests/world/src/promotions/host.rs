//! The git host, the receiver of notifications and the sequences, as cases see them: what goes wrong there, what people do there,
//! and what Keelway did.

use keelway_domain::time::Span;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// What Keelway asks of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// To open a pull request.
    Open,
    /// To close one, with a comment.
    Close,
    /// To merge one.
    Merge,
    /// To show the pull requests of a repository.
    Look,
    /// To take a notification.
    Tell,
    /// To begin a sequence.
    Trigger,
    /// To abort a sequence.
    Abort,
}

impl Verb {
    /// As it begins a line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Close => "close",
            Self::Merge => "merge",
            Self::Look => "look",
            Self::Tell => "tell",
            Self::Trigger => "trigger",
            Self::Abort => "abort",
        }
    }
}

/// What goes wrong with a call.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Trouble {
    /// It did not happen, and the host answers with this status.
    Status(u16),
    /// It did not happen, and the host wants no further call for so long.
    Limited {
        /// `Retry-After`, as a span.
        after: String,
    },
    /// Anything else.
    Word(Word),
}

/// Troubles with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Word {
    /// It happened, and the answer was lost.
    Lost,
    /// It did not happen, and the answer means nothing.
    Nonsense,
    /// The host never does this.
    Refused,
    /// It happened, and then whoever made the call was stopped.
    Killed,
    /// Whoever made the call failed in a way that nobody expected. It did not happen.
    Unexpected,
}

impl Trouble {
    /// As it ends a line.
    pub fn word(&self) -> String {
        match self {
            Self::Status(status) => status.to_string(),
            Self::Limited { .. } => "429".to_owned(),
            Self::Word(word) => format!("{word:?}").to_lowercase(),
        }
    }
    /// Whether the call has its effect all the same.
    pub fn happens(&self) -> bool {
        matches!(self, Self::Word(Word::Lost | Word::Killed))
    }
    /// How long the host wants to be left alone.
    pub fn after(&self) -> Option<Span> {
        match self {
            Self::Limited { after } => Span::parse(after).ok(),
            _ => None,
        }
    }
}

/// What goes wrong with the next calls of a kind.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Troubles {
    /// One call each; then all is well.
    Next(Vec<Trouble>),
    /// Every call, until the case says otherwise.
    Always {
        /// What.
        always: Trouble,
    },
}

impl Troubles {
    /// What would go wrong with the next call.
    pub fn next(&self) -> Option<&Trouble> {
        match self {
            Self::Next(list) => list.first(),
            Self::Always { always } => Some(always),
        }
    }
    /// What goes wrong with the call at hand.
    pub fn take(&mut self) -> Option<Trouble> {
        match self {
            Self::Next(list) => (!list.is_empty()).then(|| list.remove(0)),
            Self::Always { always } => Some(always.clone()),
        }
    }
}

/// What is in a repository. In a step, only what is there is changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Repository {
    /// The environments that have a marker, if not all.
    pub markers: Option<Vec<String>>,
    /// The revisions that the base branch carries, by environment.
    pub carries: BTreeMap<String, String>,
    /// Whether the base branch is there.
    pub base: Option<bool>,
    /// Whether there are credentials.
    pub credentials: Option<bool>,
    /// So many pull requests of other people are open.
    pub crowd: u64,
}

/// What a person does with a pull request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// Merges it.
    Merge,
    /// Closes it.
    Close,
    /// Reopens it.
    Reopen,
    /// Pushes something else to its branch, by force.
    Push,
    /// Changes the base branch so that it conflicts.
    Conflict,
    /// Changes its title and body.
    Edit,
}

/// How a sequence ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// Its tasks have passed.
    Pass,
    /// They have passed, one of them with a warning.
    Warning,
    /// One of them has failed.
    Fail,
    /// It took too long.
    TimedOut,
    /// A person has aborted it.
    Aborted,
}

/// A call that changes something, or was meant to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    /// Which.
    pub verb: Verb,
    /// `<namespace>/<pipeline>`
    pub pipeline: String,
    /// Into which environment.
    pub environment: String,
    /// Of which revision.
    pub revision: String,
    /// In which run.
    pub run: u64,
    /// By what the receiver knows it again.
    pub id: String,
    /// The pull request, once it has a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// What went wrong.
    pub outcome: String,
    /// The comment, the branch and whatever else belongs to it.
    pub details: Value,
}

impl Call {
    /// In the short form: `open staging v2`, `close 1 503`.
    pub fn line(&self) -> String {
        let what = match (self.verb, self.number) {
            (Verb::Close | Verb::Merge, Some(number)) => number.to_string(),
            _ => format!("{} {}", self.environment, self.revision),
        };
        format!("{} {what} {}", self.verb.word(), self.outcome).trim_end().to_owned()
    }
}

/// A host that a case can prepare, work with and read.
pub trait GitHost {
    /// The URL of the repository.
    fn url(&self) -> String;
    /// What a pipeline calls this kind of host: its `strategy.pullRequest.type`.
    fn form(&self) -> &str {
        "gitea"
    }
    /// Changes what is in the repository.
    fn change(&mut self, repository: &Repository);
    /// Has the next calls of a kind go wrong.
    fn fail(&mut self, verb: Verb, troubles: &Troubles);
    /// A person does something with a pull request, by its number.
    ///
    /// # Errors
    /// There is none, or it cannot be done.
    fn person(&mut self, deed: Deed, number: u64) -> Result<(), String>;
    /// The sequence that carries out the promotion of a pipeline into an environment ends: the event that says so.
    ///
    /// # Errors
    /// There is none that goes on, or there are none here.
    fn finish(&mut self, _of: (&str, &str), _environment: &str, _end: End) -> Result<Value, String> {
        Err("there are no sequences here".into())
    }
    /// All calls so far that changed something or were meant to, in order.
    fn calls(&self) -> Vec<Call>;
    /// The calls since this was asked last, and how many requests have only read since then.
    fn fresh(&mut self) -> (Vec<Call>, u64);
    /// What is there and must not be, since this was asked last.
    fn broken(&mut self) -> Vec<String> {
        vec![]
    }
    /// A pull request: `state` (`open`, `merged`, `closed`), `environment`, `revision`, `branch`, `base`, `comments`, `title`.
    fn request(&self, number: u64) -> Option<Value>;
}
