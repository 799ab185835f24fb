//! What the cases of promotions have that others' have not.

use crate::{Case, CaseError, Entrance, Format, folder, parsed, read};
use keelway_domain::time::Span;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The format of the cases of promotions.
#[derive(Debug, Clone, Default)]
pub struct Promotes;

impl Format for Promotes {
    type Given = Given;
    type Step = Own;

    const FOLDER: &'static str = "promotions";
    const ABOUT: &'static str = "app";

    fn inputs(own: &Own) -> usize {
        let texts =
            [&own.approve, &own.reject, &own.hold, &own.release, &own.abandon, &own.retry, &own.abort, &own.accept, &own.finish];
        let flags = [own.delete, own.suspend, own.resume, own.replay, own.backup, own.restore, own.webhook];
        let numbers = [own.merge, own.close, own.reopen, own.push, own.conflict, own.edit];
        let changes = [own.repository.is_some(), own.verdicts.is_some()];
        let others = [own.observe.is_some(), own.apply.is_some(), own.evaluate.is_some()];
        texts.iter().filter(|text| text.is_some()).count()
            + flags.iter().filter(|flag| flag.is_some()).count()
            + numbers.iter().filter(|number| number.is_some()).count()
            + changes.iter().chain(&others).filter(|is| **is).count()
    }
    fn parse(text: &str) -> Result<Vec<Case<Self>>, String> {
        parsed(text)
    }
}

/// What is there before the first step.
#[derive(Debug, Clone, Deserialize)]
pub struct Given {
    /// Applied as `app`.
    pub pipeline: Option<String>,
    /// Hosts by their type that do not tell what this needs, and what that is: the case is not run over HTTP on these.
    #[serde(default)]
    pub without: BTreeMap<String, String>,
    /// Applied under their names.
    #[serde(default)]
    pub pipelines: BTreeMap<String, String>,
    /// Merged over the `spec` of `pipeline`.
    #[serde(default)]
    pub spec: Map<String, Value>,
    /// Merged over its environments, by name.
    #[serde(default)]
    pub environments: BTreeMap<String, Map<String, Value>>,
    /// What targets run; the others run `v1` and are healthy.
    #[serde(default)]
    pub observed: BTreeMap<String, String>,
    /// What is in the repository.
    #[serde(default)]
    pub repository: Repository,
}

impl Given {
    /// The names of the pipelines.
    pub fn names(&self) -> Vec<&str> {
        self.pipeline.iter().map(|_| Promotes::ABOUT).chain(self.pipelines.keys().map(String::as_str)).collect()
    }
}

/// A pipeline as a step applies it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Apply {
    /// Another one than the case's.
    pub pipeline: Option<String>,
    /// As in the case.
    pub spec: Map<String, Value>,
    /// As in the case.
    pub environments: BTreeMap<String, Map<String, Value>>,
}

/// Inputs of promotions, what belongs to them, and what is expected of the host.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Own {
    /// What targets are seen to run: `<environment>[/<n>]` → `<revision>/<R|N>` or `? [<error>]`.
    pub observe: Option<BTreeMap<String, String>>,
    /// A pipeline.
    pub apply: Option<Apply>,
    /// The pipeline is deleted.
    pub delete: Option<bool>,
    /// `<environment> <revision>`
    pub approve: Option<String>,
    /// `<environment> <revision>`
    pub reject: Option<String>,
    /// No attempt begins until resumed.
    pub suspend: Option<bool>,
    /// It goes on.
    pub resume: Option<bool>,
    /// `<environment> <revision>`
    pub hold: Option<String>,
    /// An environment.
    pub release: Option<String>,
    /// A revision.
    pub abandon: Option<String>,
    /// An environment.
    pub retry: Option<String>,
    /// An environment.
    pub abort: Option<String>,
    /// `<environment> <revision>`
    pub accept: Option<String>,
    /// So many evaluations, for no reason.
    pub evaluate: Option<u32>,
    /// Everything that was ever delivered is delivered again.
    pub replay: Option<bool>,
    /// The state is copied.
    pub backup: Option<bool>,
    /// The copy is put back.
    pub restore: Option<bool>,
    /// A webhook of the host says that something has changed.
    pub webhook: Option<bool>,
    /// The repository is changed.
    pub repository: Option<Repository>,
    /// What evaluations come to from now on, by environment: `pass` (the default), `warning`, `fail`, `errored`, `unevaluated`, or
    /// `silent`: nobody answers.
    pub verdicts: Option<BTreeMap<String, String>>,
    /// A sequence ends: `<environment> <pass|warning|fail|timed-out|aborted>`.
    pub finish: Option<String>,
    /// A person merges a pull request.
    pub merge: Option<u64>,
    /// A person closes it.
    pub close: Option<u64>,
    /// A person reopens it.
    pub reopen: Option<u64>,
    /// A person pushes to its branch by force.
    pub push: Option<u64>,
    /// The base branch changes so that it conflicts.
    pub conflict: Option<u64>,
    /// A person changes its title and body.
    pub edit: Option<u64>,

    /// Who asks; by default `ann`. Of a fact: who set the revision, as the engine of deployments tells it; by default that is not
    /// known.
    pub by: Option<String>,
    /// Why.
    pub message: Option<String>,
    /// Identifies what is asked for: the same again is the same request.
    pub request: Option<String>,
    /// The version of the facts; by default they are the newest.
    pub version: Option<i64>,
    /// Nobody tells the engine that the sequence has ended.
    pub unheard: bool,
    /// Where facts come in.
    pub at: Entrance,
    /// What goes wrong with the next calls, by kind.
    pub fails: BTreeMap<Verb, Troubles>,

    /// All calls that change something at the host or tell somebody, in order.
    pub calls: Vec<Expected>,
    /// At most so many requests that only read.
    pub reads: Option<u64>,
    /// Pull requests by number.
    pub requests: BTreeMap<u64, Value>,
}

/// An expected call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Expected {
    /// `<verb> <what> [<trouble>]`
    Line(String),
    /// With details.
    Full(Details),
}

/// The long form of an expected call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Details {
    /// The short line.
    pub call: String,
    /// What else is true of it.
    #[serde(flatten)]
    pub details: Map<String, Value>,
}

impl Expected {
    /// The line and the details.
    pub fn parts(&self) -> (&str, Map<String, Value>) {
        match self {
            Self::Line(line) => (line, Map::new()),
            Self::Full(full) => (&full.call, full.details.clone()),
        }
    }
}

/// A shared manifest, read as a tree.
///
/// # Errors
/// When there is no such file, or it is no YAML.
pub fn pipeline(name: &str) -> Result<Value, CaseError> {
    // A case is told hundreds of times.
    static READ: Mutex<BTreeMap<String, Value>> = Mutex::new(BTreeMap::new());
    let mut known = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(document) = known.get(name) {
        return Ok(document.clone());
    }
    let path = folder(Promotes::FOLDER).join("pipelines").join(format!("{name}.yaml"));
    let document: Value = serde_saphyr::from_str(&read(&path)?).map_err(|e| CaseError::Format { path, reason: e.to_string() })?;
    known.insert(name.to_owned(), document.clone());
    Ok(document)
}

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
