//! The open pull requests of one repository: what a look at them reads, and what it reports.
//!
//! One list has the changes since the last look, however many pull requests are open. What a list does not contain is read one by
//! one, in turn: whether a pull request can be merged, and whether it still exists.

#![expect(missing_docs, reason = "names that say what they are need no documentation")]

use super::facts::Seen;
use super::state::Made;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The most pull requests to be merged by Keelway that one look reads. If there are more, they take turns.
const MERGED: usize = 5;

/// The state of a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    Open,
    Merged {
        /// The commit on the base branch, or the head if the host does not report that commit.
        commit: String,
    },
    /// It is closed without a merge.
    Closed,
}

/// A pull request, as its host reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The number at the host.
    pub number: u64,
    /// The address for people.
    pub url: String,
    /// The branch in the repository itself. Pull requests from forks are never returned.
    pub branch: String,
    /// The newest commit of the branch.
    pub head: String,
    pub state: State,
    /// Whether the host could merge it. `None`: the answer does not contain it, or the host does not know yet.
    pub mergeable: Option<bool>,
}

/// A repository's pull requests, as the host lists them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// The pull requests that have changed since the look that returned the mark, and possibly others. `None`: none has changed.
    pub requests: Option<Vec<Request>>,
    /// Makes the next look cheaper, for hosts with such marks.
    pub mark: Option<String>,
    /// Whether the result has exactly the open pull requests, because the host cannot list by the time of the last change.
    pub every: bool,
}

/// The state that a look leaves for the next one.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// The host's mark of its answer. Empty: there is none.
    #[serde(rename = "m")]
    host: String,
    /// The pull requests that were open then. Others are read even if the host reports no change.
    #[serde(rename = "o")]
    open: BTreeSet<u64>,
    /// The pull request whose turn is next. `None`: the list contained everything.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
}

/// A pull request that a pipeline awaits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Awaited<'a> {
    /// The effect of its attempt, if known.
    pub made: Option<&'a Made>,
    /// Its branch, by which it is found if the effect is not known.
    pub branch: String,
    /// Whether Keelway merges it.
    pub merges: bool,
}

/// What a look does for one pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step<'a> {
    /// Reads it, unless the list contains all of it, and merges it if it is to be merged and can be.
    Read(Option<&'a Request>),
    /// Reports what the list contains.
    Report(&'a Request),
    /// Nothing has changed, and nothing is left to report.
    Nothing,
}

impl Mark {
    /// The host's mark of its last answer.
    pub fn host(&self) -> Option<&str> {
        Some(self.host.as_str()).filter(|mark| !mark.is_empty())
    }

    /// The steps of the look that returned this list, in the order of the pull requests, and where the next look continues.
    pub fn steps<'a>(&self, awaited: &[Awaited<'_>], look: &'a Look) -> (Vec<Step<'a>>, Option<usize>) {
        let listed: Vec<Option<&Request>> =
            awaited.iter().map(|one| look.requests.iter().flatten().find(|request| one.is(request))).collect();
        let (turn, next) = self.turn(awaited, &listed, look);
        let step = |(n, (one, listed)): (usize, (&Awaited<'_>, Option<&'a Request>))| match listed {
            // A list may lack fields that a single pull request has.
            Some(request) if request.state == State::Open && turn.contains(&n) => {
                Step::Read(Some(request).filter(|request| request.mergeable == Some(true)))
            }
            Some(request) => Step::Report(request),
            None if self.has(one) && !look.every && !turn.contains(&n) => Step::Nothing,
            None => Step::Read(None),
        };
        (awaited.iter().zip(listed).enumerate().map(step).collect(), next)
    }

    /// The mark for the look after this one, which has seen this.
    #[must_use]
    pub fn after(awaited: &[Awaited<'_>], seen: &[Option<Seen>], look: Look, next: Option<usize>) -> Self {
        let ended = |seen: &Option<Seen>| matches!(seen, Some(Seen::Succeeded(_) | Seen::Closed(_) | Seen::Failed(_)));
        let open = awaited.iter().zip(seen).filter(|(_, seen)| !ended(seen)).filter_map(|(one, _)| one.number());
        Self { host: look.mark.unwrap_or_default(), open: open.collect(), next }
    }

    fn has(&self, one: &Awaited<'_>) -> bool {
        one.number().is_some_and(|number| self.open.contains(&number))
    }

    /// The pull requests that a look reads one by one, and where the next look continues: one for which the list lacks whether it
    /// can be merged, and a few of those that Keelway merges itself.
    fn turn(&self, awaited: &[Awaited<'_>], listed: &[Option<&Request>], look: &Look) -> (BTreeSet<usize>, Option<usize>) {
        let unsaid = |n: usize| match listed[n] {
            Some(request) => request.mergeable.is_none(),
            None => look.requests.is_some() || self.next.is_some(),
        };
        let (mut turn, mut others) = (BTreeSet::new(), 0);
        let (from, all) = (self.next.unwrap_or_default(), awaited.len());
        for n in (0..all).map(|n| (from + n) % all) {
            if awaited[n].merges {
                if turn.len() - others == MERGED {
                    return (turn, Some(n));
                }
                turn.insert(n);
            } else if unsaid(n) {
                if others == 1 {
                    return (turn, Some(n));
                }
                turn.insert(n);
                others = 1;
            }
        }
        let next = (!turn.is_empty()).then(|| from % all);
        (turn, next)
    }
}

impl Awaited<'_> {
    /// The number at the host, if known.
    pub fn number(&self) -> Option<u64> {
        match self.made {
            Some(Made::PullRequest { number, .. }) => Some(*number),
            _ => None,
        }
    }

    fn is(&self, request: &Request) -> bool {
        self.number().map_or_else(|| request.branch == self.branch, |number| request.number == number)
    }

    /// The news about it. `None` for the request: it does not exist any more.
    pub fn news(&self, request: Option<&Request>) -> Option<Seen> {
        let Some(request) = request else { return Some(Seen::Closed("the pull request does not exist any more".into())) };
        match &request.state {
            State::Merged { commit } => Some(Seen::Succeeded(merged(commit))),
            State::Closed => Some(Seen::Closed("the pull request was closed without being merged".into())),
            State::Open => {
                let Some(Made::PullRequest { number, url, branch, head, mergeable }) = self.made else { return None };
                let changed = request.mergeable.is_some() && request.mergeable != *mergeable;
                let made = |mergeable| Made::PullRequest {
                    number: *number,
                    url: url.clone(),
                    branch: branch.clone(),
                    head: head.clone(),
                    mergeable,
                };
                changed.then(|| Seen::Open(made(request.mergeable)))
            }
        }
    }
}

impl From<Request> for Made {
    fn from(request: Request) -> Self {
        let Request { number, url, branch, head, mergeable, state: _ } = request;
        Self::PullRequest { number, url, branch, head, mergeable }
    }
}

/// That a pull request was merged, in words.
pub fn merged(commit: &str) -> String {
    format!("it was merged as {commit}")
}
