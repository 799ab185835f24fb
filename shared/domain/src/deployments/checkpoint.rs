//! The place in a deployment that Keelway carries out itself, stored with the deployment between two steps. It is written before
//! the step is done: a step that is repeated after a crash finds what it did before.

use super::deployment::Deployment;
use crate::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What failed is tried again after this time, then after twice as long, and so on.
const FIRST_PAUSE: Span = Span::seconds(1);
const LONGEST_PAUSE: Span = Span::seconds(60);

/// What is done next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Where the aliases are, and what the image means.
    #[default]
    Look,
    /// The image becomes a version of each function.
    Publish,
    /// The versions can be called.
    Ready,
    /// The hook before anything changes.
    Pre,
    /// The hook before the switch of `Recreate`.
    Mid,
    /// The aliases get the weight with this number.
    Shift(usize),
    /// The hook after everything has changed.
    Post,
    /// A test is over: the aliases go back to where they were.
    Restore,
    /// Everything is done.
    End,
    /// The aliases go back to where they were.
    Back,
}

impl Stage {
    /// Whether aliases are looked at when this is done.
    pub fn looks(self) -> bool {
        matches!(self, Self::Look | Self::Shift(_) | Self::Restore | Self::Back)
    }

    /// Whether aliases may have been changed when this is done next.
    pub fn has_begun(self) -> bool {
        matches!(self, Self::Shift(_) | Self::Post | Self::Restore | Self::End)
    }
}

/// The versions of an alias.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Where it pointed at the beginning; `None`: there was no alias.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Where it is to point; empty: not published yet.
    #[serde(rename = "t", default, skip_serializing_if = "String::is_empty")]
    pub to: String,
    /// Whether another version had a part of its requests, left there by whoever deployed before.
    #[serde(rename = "c", default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
}

impl Place {
    /// Whether the alias has to be changed.
    pub fn moves(&self) -> bool {
        self.shared || self.from.as_ref() != Some(&self.to)
    }
}

/// Where a deployment is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// What is done next.
    #[serde(rename = "s", default)]
    pub stage: Stage,
    /// Not before this time.
    #[serde(rename = "d", default)]
    pub due: Timestamp,
    /// The time of the job that goes on. Jobs for an earlier time have been done.
    #[serde(rename = "t", default)]
    pub at: Timestamp,
    /// It waits until it is resumed.
    #[serde(rename = "p", default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// It waits until it is told to proceed more often than this.
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<u32>,
    /// How often this stage was tried in vain.
    #[serde(rename = "r", default)]
    pub tries: u32,
    /// Since when it has been tried in vain.
    #[serde(rename = "e", default)]
    pub since: Timestamp,
    /// The aliases, by the names of their targets.
    #[serde(rename = "l", default)]
    pub aliases: BTreeMap<String, Place>,
    /// Why the aliases go back.
    #[serde(rename = "w", default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

impl Checkpoint {
    /// As it was kept; at the beginning if there is none.
    pub fn of(d: &Deployment) -> Self {
        let kept = d.part.as_ref().map_or(&d.progress.checkpoint, |part| &part.checkpoint);
        serde_json::from_str(kept).unwrap_or_default()
    }

    /// As it is kept.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether something was said since that does not wait for the next job.
    pub fn is_news(&self, d: &Deployment, paused: bool) -> bool {
        if self.stage == Stage::Back {
            return false;
        }
        let goes_back = d.part.as_ref().is_some_and(|part| part.back.is_some());
        d.cancel.is_some() || goes_back || paused != self.paused || self.hold.is_some_and(|told| d.proceeds > told)
    }

    /// Goes to another stage.
    pub fn enter(&mut self, stage: Stage, due: Timestamp) {
        (self.stage, self.due) = (stage, due);
        (self.tries, self.hold) = (0, None);
    }

    /// It was tried in vain. Returns for how long that has been so.
    pub fn in_vain(&mut self, now: Timestamp) -> Span {
        if self.tries == 0 {
            self.since = now;
        }
        self.tries = self.tries.saturating_add(1);
        let pause = Span(FIRST_PAUSE.0 << (self.tries - 1).min(10)).min(LONGEST_PAUSE);
        self.due = now + pause;
        now - self.since
    }
}
