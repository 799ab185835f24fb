//! What the cases of deployments have that others' have not.

use crate::{Case, Entrance, Format, parsed};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The format of the cases of deployments.
#[derive(Debug, Clone, Default)]
pub struct Deploys;

impl Format for Deploys {
    type Given = Given;
    type Step = Own;

    const FOLDER: &'static str = "deployments";
    const ABOUT: &'static str = "app";

    fn inputs(own: &Own) -> usize {
        let flags = [
            own.delete,
            own.cancel,
            own.retry,
            own.pause,
            own.resume,
            own.suspend,
            own.unsuspend,
            own.proceed,
            own.never,
            own.replay,
        ];
        let others = [
            own.apply.is_some(),
            own.push.is_some(),
            own.registry.is_some(),
            own.gone.is_some(),
            own.latest.is_some(),
            own.rollback.is_some(),
            own.claim.is_some(),
            own.beat.is_some(),
            own.carry.is_some(),
            own.end.is_some(),
            own.alarm.is_some(),
            own.task.is_some(),
            own.evaluate.is_some(),
        ];
        flags.iter().filter(|flag| flag.is_some()).count() + others.iter().filter(|is| **is).count()
    }
    fn parse(text: &str) -> Result<Vec<Case<Self>>, String> {
        parsed(text)
    }
}

/// What is there before the first step.
#[derive(Debug, Clone, Deserialize)]
pub struct Given {
    /// Applied as `app`, over the config that all cases begin with.
    pub config: Option<Map<String, Value>>,
    /// Applied under their names.
    #[serde(default)]
    pub configs: BTreeMap<String, Map<String, Value>>,
    /// What tags point to, pushed before.
    #[serde(default)]
    pub pushed: BTreeMap<String, String>,
    /// Tags that follow a pattern, by name.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// No artifact source is applied.
    #[serde(default)]
    pub unbound: bool,
}

/// Inputs of deployments, what belongs to them, and what is expected besides events and answers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Own {
    /// The config, changed by this over what was applied last.
    pub apply: Option<Map<String, Value>>,
    /// With it, the version of this number is asked for.
    pub asks: Option<u64>,
    /// The config is deleted.
    pub delete: Option<bool>,
    /// Images are pushed: digests by tag.
    pub push: Option<BTreeMap<String, String>>,
    /// The registry is asked, and has these images by tag: `<digest> [<how long ago it was pushed>]`. It told nobody about them.
    pub registry: Option<BTreeMap<String, String>>,
    /// An image is deleted at its source, by digest.
    pub gone: Option<String>,
    /// A new version is asked for.
    pub latest: Option<Map<String, Value>>,
    /// What is on its way is stopped.
    pub cancel: Option<bool>,
    /// With it, what would be deployed next is not.
    pub all: bool,
    /// The latest version is tried again.
    pub retry: Option<bool>,
    /// Nothing new is deployed until resumed.
    pub pause: Option<bool>,
    /// It goes on.
    pub resume: Option<bool>,
    /// A version that goes back.
    pub rollback: Option<Map<String, Value>>,
    /// No trigger fires until resumed.
    pub suspend: Option<bool>,
    /// Triggers fire again.
    pub unsuspend: Option<bool>,
    /// A canary that holds goes on.
    pub proceed: Option<bool>,
    /// A deployer takes the work: its name.
    pub claim: Option<String>,
    /// A deployer is at work: its name.
    pub beat: Option<String>,
    /// A deployer has Keelway carry out its strategy, until the new version gets this share of the requests.
    pub carry: Option<u8>,
    /// A deployer has ended, with this code.
    pub end: Option<i64>,
    /// A deployer has ended without ever running.
    pub never: Option<bool>,
    /// An alarm goes on or off.
    pub alarm: Option<BTreeMap<String, bool>>,
    /// A task of a sequence: `deployment` or `rollback`.
    pub task: Option<String>,
    /// So many evaluations, for no reason.
    pub evaluate: Option<u32>,
    /// Everything that was ever delivered is delivered again.
    pub replay: Option<bool>,

    /// Who asks or deploys; by default `ann`, and the deployer `ci`.
    pub by: Option<String>,
    /// Why.
    pub message: Option<String>,
    /// Identifies what is asked for: the same again is the same request.
    pub request: Option<String>,
    /// The version that a deployer speaks of; by default the latest.
    pub version: Option<u64>,
    /// How long a deployer may be silent.
    pub lease: Option<String>,
    /// A heartbeat says that it is not at work yet.
    pub idle: bool,
    /// How far a deployer is at its targets: `<target>: <status>`.
    pub targets: BTreeMap<String, String>,
    /// How long ago an image was pushed.
    pub age: Option<String>,
    /// Where pushes come in.
    pub at: Entrance,
    /// The image of a task.
    pub image: String,

    /// What a deployer is to do.
    pub desired: Option<String>,
    /// The deployers that were started so far.
    pub starts: Option<Vec<String>>,
}
