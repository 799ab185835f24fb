//! What changes something: `trigger`, `approve`, `pause`, `send`, `shipyard`, `executor`.

use super::named::PROJECT;
use super::values::{Awaiting, answerable, executor_name, length, name, wait};
use super::{EvaluationWindow, Output, Scope, Watching, examples};
use crate::pairs;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args as Group, Subcommand};
use keelway_domain::names::{Context, ProjectName, SequenceName, ServiceName, StageName, TaskName};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// `trigger`
#[derive(Subcommand)]
pub enum Trigger {
    /// Any sequence
    #[command(after_help = examples::TRIGGER_SEQUENCE)]
    Sequence(TriggerSequence),
    /// A sequence that takes an image, in the first stage unless told otherwise
    #[command(after_help = examples::TRIGGER_DELIVERY)]
    Delivery(TriggerDelivery),
    /// The evaluation of a stage, for a span of time: the last 5 minutes unless told otherwise
    #[command(after_help = examples::TRIGGER_EVALUATION)]
    Evaluation(TriggerEvaluation),
}

/// What every trigger can have.
#[derive(Group)]
pub struct TriggerCommon {
    /// The project
    #[arg(short, long, env = PROJECT, value_parser = name::<ProjectName>)]
    pub project: ProjectName,
    /// The service
    #[arg(short, long, value_parser = name::<ServiceName>)]
    pub service: ServiceName,
    /// Labels, k=v,…
    #[arg(short, long, value_delimiter = ',', value_parser = pairs::parse_text, value_name = "K=V")]
    pub labels: Vec<(String, String)>,
    /// Print nothing but the context, for scripts
    #[arg(short, long, conflicts_with = "format")]
    pub quiet: bool,
    /// Follow it until it is over
    #[arg(short, long)]
    pub watch: bool,
    #[command(flatten)]
    pub watching: Watching,
    #[command(flatten)]
    pub output: Output,
}

/// `trigger sequence`
#[derive(Group)]
pub struct TriggerSequence {
    /// The sequence
    #[arg(value_parser = name::<SequenceName>)]
    pub name: SequenceName,
    /// The stage
    #[arg(long, value_parser = name::<StageName>)]
    pub stage: StageName,
    /// Data of the event: a.b=text, or a.b:=JSON for numbers, true, false, null and whole objects
    #[arg(long, value_delimiter = ',', value_parser = pairs::parse, value_name = "A.B=C")]
    pub data: Vec<(String, Value)>,
    #[command(flatten)]
    pub at_once: AtOnce,
    #[command(flatten)]
    pub common: TriggerCommon,
}

/// How often a trigger counts, and whether it waits for a window.
#[derive(Group)]
pub struct AtOnce {
    /// What makes it one and the same, for example the id of a CI pipeline: the same again starts nothing more
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub id: Option<String>,
    /// Begin although a window keeps the stage closed; takes the scope approve:<stage>, and a reason
    #[arg(long, requires = "message")]
    pub override_windows: bool,
    /// Why it cannot wait until the stage opens
    #[arg(short, long, value_name = "WHY", requires = "override_windows")]
    pub message: Option<String>,
    /// Who says so
    #[arg(long, env = "USER", default_value = "", hide_env = true)]
    pub by: String,
}

/// `trigger delivery`
#[derive(Group)]
pub struct TriggerDelivery {
    /// The image, with its tag: configurationChange.values.image
    #[arg(short, long, value_parser = NonEmptyStringValueParser::new())]
    pub image: String,
    /// The sequence
    #[arg(long, default_value = "delivery", value_parser = name::<SequenceName>)]
    pub sequence: SequenceName,
    /// The stage [default: the first of the shipyard]
    #[arg(long, value_parser = name::<StageName>)]
    pub stage: Option<StageName>,
    /// Further configurationChange.values: a.b=text, or a.b:=JSON
    #[arg(long, value_delimiter = ',', value_parser = pairs::parse, value_name = "K=V")]
    pub values: Vec<(String, Value)>,
    #[command(flatten)]
    pub at_once: AtOnce,
    #[command(flatten)]
    pub common: TriggerCommon,
}

/// `trigger evaluation`
#[derive(Group)]
pub struct TriggerEvaluation {
    /// The stage
    #[arg(long, value_parser = name::<StageName>)]
    pub stage: StageName,
    #[command(flatten)]
    pub window: EvaluationWindow,
    #[command(flatten)]
    pub common: TriggerCommon,
}

/// `retry`
#[derive(Group)]
pub struct Retry {
    /// The context; eight characters of it will do
    #[arg(value_parser = name::<Context>)]
    pub context: Context,
    /// The project [default: searched for]
    #[arg(short, long, env = PROJECT, value_parser = name::<ProjectName>)]
    pub project: Option<ProjectName>,
    /// The task to begin with [default: the one that failed]
    #[arg(long, value_parser = name::<TaskName>, value_name = "TASK")]
    pub from: Option<TaskName>,
    /// Only in this stage
    #[arg(long, value_parser = name::<StageName>)]
    pub stage: Option<StageName>,
    /// The execution, by its id, if several have failed
    #[arg(long, value_name = "ID")]
    pub execution: Option<String>,
    /// Follow it until it is over
    #[arg(short, long)]
    pub watch: bool,
    #[command(flatten)]
    pub watching: Watching,
}

/// `override`
#[derive(Group)]
pub struct Override {
    /// The context; eight characters of it will do
    #[arg(value_parser = name::<Context>)]
    pub context: Context,
    /// Why it cannot wait
    #[arg(short, long, value_name = "WHY")]
    pub message: String,
    /// The stage, if nothing waits there yet, or if several stages hold the context back
    #[arg(long, value_parser = name::<StageName>)]
    pub stage: Option<StageName>,
    /// The project [default: searched for]
    #[arg(short, long, env = PROJECT, value_parser = name::<ProjectName>)]
    pub project: Option<ProjectName>,
    /// Who says so
    #[arg(long, env = "USER", default_value = "", hide_env = true)]
    pub by: String,
}

/// `approve`, `decline`
#[derive(Group)]
pub struct Decide {
    /// The context, or PROJECT/PIPELINE/ENVIRONMENT[@REVISION] of a promotion [default: the only one that waits]
    #[arg(value_parser = Awaiting::parse, value_name = "CONTEXT")]
    pub named: Option<Awaiting>,
    #[command(flatten)]
    pub scope: Scope,
    /// The id of the approval's .triggered event
    #[arg(long)]
    pub id: Option<String>,
    /// Why, for the record
    #[arg(short, long, default_value = "")]
    pub message: String,
    /// Also if a newer delivery has gone there already
    #[arg(long)]
    pub older: bool,
    /// Who decides
    #[arg(long, env = "USER", default_value = "", hide_env = true)]
    pub by: String,
    /// Wait this long for the approval to open
    #[arg(long, value_parser = length, value_name = "TIME")]
    pub wait: Option<Duration>,
}

/// `pause`, `resume`, `abort`
#[derive(Group)]
pub struct Controlled {
    /// The context; eight characters of it will do
    #[arg(value_parser = name::<Context>)]
    pub context: Context,
    /// The project [default: searched for]
    #[arg(short, long, env = PROJECT, value_parser = name::<ProjectName>)]
    pub project: Option<ProjectName>,
    /// Only in this stage
    #[arg(long, value_parser = name::<StageName>)]
    pub stage: Option<StageName>,
}

/// `send`
#[derive(Subcommand)]
pub enum Send {
    /// An event from a file
    #[command(after_help = examples::SEND)]
    Event {
        /// A file with one CloudEvent in structured JSON, or - for standard input
        #[arg(short, long, value_name = "FILE|-")]
        file: PathBuf,
    },
}

/// `executor`
#[derive(Group)]
pub struct Executor {
    /// The executor's name; replicas of one name count once
    #[arg(long, value_parser = executor_name)]
    pub name: String,
    /// The tasks to answer
    #[arg(long = "on", required = true, value_delimiter = ',', value_parser = answerable, value_name = "TASK")]
    pub tasks: Vec<TaskName>,
    #[command(flatten)]
    pub scope: Scope,
    /// Commands at the same time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub concurrency: u16,
    /// A command that takes longer is ended: SIGTERM, 5 s later SIGKILL
    #[arg(long, default_value = "15m", value_parser = length, value_name = "TIME")]
    pub timeout: Duration,
    /// The pause between two requests for triggers
    #[arg(long, default_value = "500ms", value_parser = length, value_name = "TIME")]
    pub poll: Duration,
    /// How long a request for triggers waits for one, 20s at most; 0s: it does not wait
    #[arg(long, default_value = "20s", value_parser = wait, value_name = "TIME")]
    pub wait: Duration,
    /// After this time without news, ask every 5 s and do not wait: waiting costs Lambda seconds
    #[arg(long, default_value = "5m", value_parser = length, value_name = "TIME")]
    pub idle_after: Duration,
    /// How long a trigger that no place is free for is left to others of this name, before it is claimed
    #[arg(long, default_value = "5s", value_parser = length, value_name = "TIME")]
    pub claim_after: Duration,
    /// How often to say that a command still runs, or waits for a place; 0s: never, then nobody sees when this is gone
    #[arg(long, default_value = "2m", value_parser = length, value_name = "TIME")]
    pub heartbeat: Duration,
    /// Copy the commands' standard error to this one's
    #[arg(long)]
    pub echo: bool,
    /// The command and its arguments; gets the event on standard input
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}
