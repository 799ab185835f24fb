//! The place in a deployment that Keelway carries out itself, stored with the deployment between two steps. It is written before
//! the step is done: a step that is repeated after a crash finds what it did before.

use super::analysis::Judging;
use super::deployment::Deployment;
use crate::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The pause after the first failure. It doubles with each further one.
const FIRST_PAUSE: Span = Span::seconds(1);
const LONGEST_PAUSE: Span = Span::seconds(60);

/// The next stage of a deployment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Record the routes of the aliases, and the meaning of the image.
    #[default]
    Look,
    /// Publish the image as a version of each function.
    Publish,
    /// Wait until the versions can be invoked.
    Ready,
    /// Run the hook before all changes.
    Pre,
    /// Run the hook before the switch of `Recreate`.
    Mid,
    /// Shift the aliases to the weight with this index.
    Shift(usize),
    /// Judge the new version at the weight with this index, window by window.
    Judge(usize),
    /// Run the hook after all changes.
    Post,
    /// Revert the aliases after a test.
    Restore,
    /// End the deployment.
    End,
    /// Revert the aliases after a failure.
    Back,
}

impl Stage {
    /// The hook that runs in this stage.
    pub fn hook(self) -> Option<&'static str> {
        match self {
            Self::Pre => Some("pre"),
            Self::Mid => Some("mid"),
            Self::Post => Some("post"),
            _ => None,
        }
    }

    /// Whether this stage reads aliases.
    pub fn looks(self) -> bool {
        matches!(self, Self::Look | Self::Shift(_) | Self::Restore | Self::Back)
    }

    /// Whether aliases may have been changed before this stage.
    pub fn has_begun(self) -> bool {
        matches!(self, Self::Shift(_) | Self::Judge(_) | Self::Post | Self::Restore | Self::End)
    }
}

/// The versions of an alias.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The version at the beginning. `None`: there was no alias.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The version to be deployed. Empty: it is not published yet.
    #[serde(rename = "t", default, skip_serializing_if = "String::is_empty")]
    pub to: String,
    /// Whether another version had a share of the requests at the beginning.
    #[serde(rename = "c", default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
}

impl Place {
    /// Whether the alias has to be changed.
    pub fn moves(&self) -> bool {
        self.shared || self.from.as_ref() != Some(&self.to)
    }
}

/// How a hook has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ended {
    /// It has succeeded.
    #[serde(rename = "d")]
    Done,
    /// It has failed, and the deployment went on.
    #[serde(rename = "i")]
    Ignored,
    /// It has failed, and so has the deployment.
    #[serde(rename = "f")]
    Failed,
}

/// The checkpoint of a deployment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The next stage of a deployment.
    #[serde(rename = "s", default)]
    pub stage: Stage,
    /// Not before this time.
    #[serde(rename = "d", default)]
    pub due: Timestamp,
    /// The time of the next job. Jobs for earlier times are complete.
    #[serde(rename = "t", default)]
    pub at: Timestamp,
    /// Whether it waits to be resumed.
    #[serde(rename = "p", default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// If set, it waits until it was told to proceed more often than this.
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<u32>,
    /// The number of failed tries of this stage.
    #[serde(rename = "r", default)]
    pub tries: u32,
    /// The time of the first failed try.
    #[serde(rename = "e", default)]
    pub since: Timestamp,
    /// The aliases, by the names of their targets.
    #[serde(rename = "l", default)]
    pub aliases: BTreeMap<String, Place>,
    /// Why the aliases are reverted.
    #[serde(rename = "w", default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The share of the requests that the new version has, in percent. `None`: none was set yet.
    #[serde(rename = "q", default, skip_serializing_if = "Option::is_none")]
    pub share: Option<u8>,
    /// How the hooks have ended that were run, by `pre`, `mid` and `post`.
    #[serde(rename = "k", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hooks: BTreeMap<String, Ended>,
    /// Where the analysis is. `None`: none has begun.
    #[serde(rename = "j", default, skip_serializing_if = "Option::is_none")]
    pub judging: Option<Judging>,
}

impl Checkpoint {
    /// The stored checkpoint, or that of the beginning.
    pub fn of(d: &Deployment) -> Self {
        let kept = d.part.as_ref().map_or(&d.progress.checkpoint, |part| &part.checkpoint);
        serde_json::from_str(kept).unwrap_or_default()
    }

    /// The text of the checkpoint.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether there is an order that must not wait for the next job.
    pub fn is_news(&self, d: &Deployment, paused: bool) -> bool {
        if self.stage == Stage::Back {
            return false;
        }
        let goes_back = d.part.as_ref().is_some_and(|part| part.back.is_some());
        d.cancel.is_some() || goes_back || paused != self.paused || self.hold.is_some_and(|told| d.proceeds > told)
    }

    /// Enters another stage.
    pub fn enter(&mut self, stage: Stage, due: Timestamp) {
        (self.stage, self.due) = (stage, due);
        (self.tries, self.hold) = (0, None);
    }

    /// Counts a failed try, and returns how long the tries have failed.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_runs_one_hook_or_none_and_knows_what_was_done_before() {
        // The hook, whether it reads aliases, whether aliases may have been changed before.
        for (stage, hook, looks, begun) in [
            (Stage::Look, None, true, false),
            (Stage::Publish, None, false, false),
            (Stage::Ready, None, false, false),
            (Stage::Pre, Some("pre"), false, false),
            (Stage::Mid, Some("mid"), false, false),
            (Stage::Shift(0), None, true, true),
            (Stage::Judge(0), None, false, true),
            (Stage::Post, Some("post"), false, true),
            (Stage::Restore, None, true, true),
            (Stage::End, None, false, true),
            (Stage::Back, None, true, false),
        ] {
            assert_eq!((stage.hook(), stage.looks(), stage.has_begun()), (hook, looks, begun), "{stage:?}");
        }
    }

    #[test]
    fn an_alias_that_serves_the_version_alone_is_not_moved() {
        let place = |from: Option<&str>, shared| Place { from: from.map(str::to_owned), to: "2".into(), shared };
        let moves = [place(Some("2"), false), place(Some("2"), true), place(Some("1"), false), place(None, false)];
        assert_eq!(moves.map(|place| place.moves()), [false, true, true, true]);
    }

    #[test]
    fn a_stage_that_fails_is_tried_again_less_and_less_often() {
        let mut checkpoint = Checkpoint { hold: Some(1), ..Checkpoint::default() };
        checkpoint.enter(Stage::Publish, Timestamp(5_000));
        assert_eq!((checkpoint.stage, checkpoint.due, checkpoint.hold), (Stage::Publish, Timestamp(5_000), None));
        let mut now = Timestamp(10_000);
        for (failed, pause) in [(0, 1), (1, 2), (3, 4), (7, 8), (15, 16), (31, 32), (63, 60), (123, 60)] {
            assert_eq!(checkpoint.in_vain(now), Span::seconds(failed));
            assert_eq!(checkpoint.due - now, Span::seconds(pause));
            now = checkpoint.due;
        }
        checkpoint.enter(Stage::Ready, now);
        assert_eq!((checkpoint.tries, checkpoint.in_vain(now)), (0, Span(0)));
    }
}
