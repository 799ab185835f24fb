//! The git host, the receiver of notifications and the sequences, as cases see them: what goes wrong there, what people do there,
//! and what Keelway did.

pub use keelway_cases::promotions::{End, Repository, Trouble, Troubles, Verb, Word};

use serde::Serialize;
use serde_json::Value;

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
