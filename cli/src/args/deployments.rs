//! Deployments: `rollout`, `rollback`, `set`, `diff`, `deployer`.

use super::values::{Numbered, executor_name, length, name, percent, variable, version};
use super::{InProject, Output, Place, Projects, Said, SetSliProvider, examples};
use clap::builder::NonEmptyStringValueParser;
use clap::{Args as Group, Subcommand};
use keelway_domain::names::StageName;
use std::time::Duration;

/// A deployment config by its name.
#[derive(Group)]
pub struct ConfigName {
    /// The deployment config: NAME, or PROJECT/NAME
    #[arg(value_parser = Place::parse, value_name = "NAME")]
    pub name: Place,
    #[command(flatten)]
    pub project: InProject,
}

/// `rollout`
#[derive(Subcommand)]
pub enum Rollout {
    /// Deploy a new version, with the newest images
    #[command(after_help = examples::ROLLOUT_LATEST)]
    Latest(RolloutLatest),
    /// Follow the latest version to its end: 0 if it is complete, 1 if it failed
    #[command(after_help = examples::ROLLOUT_STATUS)]
    Status(RolloutStatus),
    /// The versions of a config, newest first
    #[command(after_help = examples::ROLLOUT_HISTORY)]
    History(RolloutHistory),
    /// Deploy the template, replicas and selector of an earlier version; `keelway rollback` also takes the rest back
    #[command(after_help = examples::ROLLOUT_UNDO)]
    Undo(RolloutUndo),
    /// Stop the deployment that is on its way
    #[command(after_help = examples::ROLLOUT_CANCEL)]
    Cancel(RolloutCancel),
    /// Carry the latest version out again, which failed
    #[command(after_help = examples::ROLLOUT_RETRY)]
    Retry(RolloutControl),
    /// Deploy nothing new until resumed; deployers are told to pause
    #[command(after_help = examples::ROLLOUT_PAUSE)]
    Pause(RolloutControl),
    /// Go on after a pause
    #[command(after_help = examples::ROLLOUT_RESUME)]
    Resume(RolloutControl),
    /// Let a canary that holds take its next step
    #[command(after_help = examples::ROLLOUT_PROCEED)]
    Proceed(RolloutControl),
}

/// `rollout latest`
#[derive(Group)]
pub struct RolloutLatest {
    #[command(flatten)]
    pub of: ConfigName,
    /// Keep the images of the latest version
    #[arg(long)]
    pub again: bool,
    /// The image of the first container, or of the one that the config's annotation names; a digest alone is one of its repository
    #[arg(short, long)]
    pub image: Option<String>,
    /// Cancel the deployment that is on its way
    #[arg(long)]
    pub supersede: bool,
    /// Resume the config if it is paused
    #[arg(long)]
    pub resume: bool,
    /// Let triggers fire again that a rollback or a person suspended
    #[arg(long)]
    pub resume_triggers: bool,
    /// Suspend the triggers, so that --image stays although its container follows a tag
    #[arg(long, conflicts_with = "resume_triggers")]
    pub suspend_triggers: bool,
    /// Follow it to its end
    #[arg(short, long)]
    pub watch: bool,
    /// Give up after this long, with 1
    #[arg(long, value_parser = length, value_name = "TIME", requires = "watch")]
    pub timeout: Option<Duration>,
    #[command(flatten)]
    pub said: Said,
}

/// `rollout status`
#[derive(Group)]
pub struct RolloutStatus {
    #[command(flatten)]
    pub of: ConfigName,
    /// This version [default: the latest]
    #[arg(long, value_parser = Numbered::parse, value_name = "VERSION")]
    pub revision: Option<Numbered>,
    /// Say how it is now, and end; exit code 0 unless it failed
    #[arg(long)]
    pub no_watch: bool,
    /// Give up after this long, with 1
    #[arg(long, value_parser = length, value_name = "TIME")]
    pub timeout: Option<Duration>,
    #[command(flatten)]
    pub output: Output,
}

/// `rollout history`
#[derive(Group)]
pub struct RolloutHistory {
    #[command(flatten)]
    pub of: ConfigName,
    /// Only this version, with everything
    #[arg(long, value_parser = Numbered::parse, value_name = "VERSION")]
    pub revision: Option<Numbered>,
    /// At most this many lines
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    #[command(flatten)]
    pub output: Output,
}

/// `rollout undo`
#[derive(Group)]
pub struct RolloutUndo {
    #[command(flatten)]
    pub of: ConfigName,
    /// The version to go back to [default: the newest complete one that deploys something else]
    #[arg(long, value_parser = Numbered::parse, value_name = "VERSION")]
    pub to: Option<Numbered>,
    /// Say what would change, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub said: Said,
}

/// `rollout cancel`
#[derive(Group)]
pub struct RolloutCancel {
    #[command(flatten)]
    pub control: RolloutControl,
    /// Cancel the version or the change that waits for its end, too
    #[arg(long)]
    pub and_what_waits: bool,
}

/// `rollout retry`, `pause`, `resume`, `proceed`
#[derive(Group)]
pub struct RolloutControl {
    #[command(flatten)]
    pub of: ConfigName,
    #[command(flatten)]
    pub said: Said,
}

/// `rollback`
#[derive(Group)]
pub struct Rollback {
    /// The deployment configs: NAME, or PROJECT/NAME; several are checked together, and rolled back each on its own. With --stage:
    /// the service
    #[arg(required = true, value_parser = Place::parse, value_name = "NAME")]
    pub names: Vec<Place>,
    #[command(flatten)]
    pub project: InProject,
    /// NAME is a service that sequences deliver, and goes back in this stage
    #[arg(
        long,
        value_parser = name::<StageName>,
        conflicts_with_all = ["to", "application_only", "config_only", "allow_failed", "by_steps"]
    )]
    pub stage: Option<StageName>,
    /// With --stage: the image to go back to, or its version [default: what ran there before]
    #[arg(short, long, requires = "stage", value_parser = NonEmptyStringValueParser::new())]
    pub image: Option<String>,
    /// The version to go back to, of a single config [default: the newest complete one that deploys something else]
    #[arg(long, value_parser = Numbered::parse, value_name = "VERSION")]
    pub to: Option<Numbered>,
    /// Only template, replicas and selector go back; labels, triggers and strategy stay
    #[arg(long, conflicts_with = "config_only")]
    pub application_only: bool,
    /// Only labels, triggers and strategy go back
    #[arg(long)]
    pub config_only: bool,
    /// Also to a version that failed
    #[arg(long)]
    pub allow_failed: bool,
    /// Take the steps of the strategy, and their time, instead of going back at once
    #[arg(long)]
    pub by_steps: bool,
    /// Also if it changes nothing
    #[arg(long)]
    pub again: bool,
    /// Say what would change, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub said: Said,
    #[command(flatten)]
    pub output: Output,
}

/// `set`
#[derive(Subcommand)]
pub enum Set {
    /// The triggers of a deployment config: which there are, and whether they fire. Without an option: how they are
    #[command(after_help = examples::SET_TRIGGERS)]
    Triggers(SetTriggers),
    /// The source of metrics that a project evaluates by
    #[command(after_help = examples::SET_SLI_PROVIDER)]
    SliProvider(SetSliProvider),
}

/// `set triggers`
#[derive(Group)]
pub struct SetTriggers {
    #[command(flatten)]
    pub of: ConfigName,
    /// Follow images: those of --from-image, else of all image triggers
    #[arg(long, conflicts_with = "manual")]
    pub auto: bool,
    /// Follow no images: those of --from-image, else of no image trigger
    #[arg(long)]
    pub manual: bool,
    /// Deploy when the template changes
    #[arg(long)]
    pub from_config: bool,
    /// Deploy the image of this tag: NAME:TAG, or PROJECT/NAME:TAG
    #[arg(long, value_name = "TAG")]
    pub from_image: Option<String>,
    /// The containers that run the image of --from-image [default: all]
    #[arg(short, long, value_delimiter = ',', requires = "from_image", value_name = "CONTAINER")]
    pub containers: Vec<String>,
    /// Take the triggers out that --from-config and --from-image name
    #[arg(long, conflicts_with_all = ["auto", "manual", "remove_all"])]
    pub remove: bool,
    /// Take all triggers out: versions are deployed by hand only
    #[arg(long, conflicts_with_all = ["auto", "manual", "from_config", "from_image"])]
    pub remove_all: bool,
    /// No trigger fires until they are resumed; each keeps its own setting
    #[arg(long, conflicts_with = "resume")]
    pub suspend: bool,
    /// Triggers fire again
    #[arg(long)]
    pub resume: bool,
    #[command(flatten)]
    pub said: Said,
}

/// `diff`
#[derive(Group)]
pub struct Diff {
    /// The one version: CONFIG-N, or PROJECT/CONFIG-N
    #[arg(required = true, value_parser = version, value_name = "VERSION")]
    pub one: Option<(Place, u64)>,
    /// The other version
    #[arg(required = true, value_parser = version, value_name = "VERSION")]
    pub other: Option<(Place, u64)>,
    #[command(flatten)]
    pub project: InProject,
    /// End with 1 if they differ
    #[arg(long)]
    pub exit_code: bool,
    #[command(flatten)]
    pub output: Output,
}

/// `deployer`
#[derive(Group)]
pub struct Deployer {
    /// The deployer's name, as the history shows it
    #[arg(long, default_value = "keelway-deployer", value_parser = executor_name)]
    pub name: String,
    /// Only versions of this deployment config: NAME, or PROJECT/NAME; may be repeated
    #[arg(long = "config", value_parser = Place::parse, value_name = "CONFIG")]
    pub configs: Vec<Place>,
    #[command(flatten)]
    pub projects: Projects,
    /// Deployments at the same time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub concurrency: u16,
    /// The pause between two requests for work
    #[arg(long, default_value = "2s", value_parser = length, value_name = "TIME")]
    pub poll: Duration,
    /// How long Keelway waits for a sign of life before it gives the deployment up
    #[arg(long, default_value = "60s", value_parser = length, value_name = "TIME")]
    pub lease: Duration,
    /// From SIGTERM to SIGKILL, when a deployment is cancelled
    #[arg(long, default_value = "30s", value_parser = length, value_name = "TIME")]
    pub grace: Duration,
    /// End when this many deployments are over
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub once: Option<u64>,
    /// Where the log of a deployment is, with {name} and {attempt} in it
    #[arg(long, value_name = "URL")]
    pub log_url: Option<String>,
    /// A variable of the manifest's customParams.environment that the command gets by its own name, besides PARAM_NAME; may be
    /// repeated
    #[arg(long = "env", value_name = "NAME", value_parser = variable)]
    pub variables: Vec<String>,
    /// Copy what the commands print to standard error
    #[arg(long)]
    pub echo: bool,
    /// The command and its arguments; gets the deployment on standard input, and DEPLOYMENT_* in its environment. The file
    /// KEELWAY_DESIRED_FILE says run, pause or cancel; lines `target status message` in KEELWAY_PROGRESS_FILE tell how far it is
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// `deploy`
#[derive(Group)]
pub struct Deploy {
    /// Until the new version gets this share of the requests, in percent; 100%: to the strategy's end
    #[arg(long, default_value = "100%", value_parser = percent, value_name = "PERCENT")]
    pub until: u8,
    /// Print nothing but errors
    #[arg(short, long)]
    pub quiet: bool,
}

/// `get deployments`
#[derive(Group)]
pub struct GetDeployments {
    /// Those that ended since this time, RFC 3339 [default: a day ago]
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// New, Complete or Failed
    #[arg(long)]
    pub status: Option<String>,
    /// At most this many lines
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    #[command(flatten)]
    pub output: Output,
}
