//! What shows something: `get`, `watch`.

use super::named::PROJECT;
use super::values::{length, name};
use super::{GetDeployments, GetEvaluations, GetInvalid, GetShipyard, Output, Projects, Scope, examples};
use crate::kinds::GetKind;
use clap::{Args as Group, Subcommand};
use keelway_domain::names::{Context, ProjectName, SequenceName};
use std::time::Duration;

/// `get`
#[derive(Group)]
pub struct GetAny {
    #[command(subcommand)]
    pub what: Get,
    /// Show it again whenever it changes; in a pipe, print the rows that have changed
    #[arg(short, long, global = true)]
    pub watch: bool,
    /// Stop watching after this time
    #[arg(long, global = true, requires = "watch", value_parser = length, value_name = "TIME")]
    pub timeout: Option<Duration>,
}

/// What `get` shows.
#[derive(Subcommand)]
pub enum Get {
    /// Every project
    #[command(visible_alias = "project", after_help = examples::GET_PROJECTS)]
    Projects {
        #[command(flatten)]
        output: Output,
    },
    /// The services of a project
    #[command(visible_alias = "service", after_help = examples::GET_SERVICES)]
    Services {
        /// The project
        #[arg(short, long, env = PROJECT, value_parser = name::<ProjectName>)]
        project: ProjectName,
        #[command(flatten)]
        output: Output,
    },
    /// A project's shipyard, an earlier revision of it, or the list of them
    #[command(after_help = examples::GET_SHIPYARD)]
    Shipyard(GetShipyard),
    /// Deliveries and whatever else ran and runs in a project, newest first
    #[command(visible_aliases = ["deliveries", "sequence", "delivery"], after_help = examples::GET_SEQUENCES)]
    Sequences(GetSequences),
    /// Executions of sequences one by one: those of a context, or of a project's newest contexts
    #[command(visible_alias = "execution", after_help = examples::GET_EXECUTIONS)]
    Executions(GetExecutions),
    /// Events of a context, or of a project's newest contexts
    #[command(visible_alias = "event", after_help = examples::GET_EVENTS)]
    Events(GetEvents),
    /// Which version runs where, since when, and what is on its way
    #[command(visible_aliases = ["environment", "env"], after_help = examples::GET_ENVIRONMENTS)]
    Environments {
        #[command(flatten)]
        scope: Scope,
        /// The versions that came there lately, newest first, with when and by what
        #[arg(long)]
        history: bool,
        #[command(flatten)]
        output: Output,
    },
    /// What waits for its turn, in which order, and behind what
    #[command(after_help = examples::GET_QUEUE)]
    Queue {
        #[command(flatten)]
        scope: Scope,
        #[command(flatten)]
        output: Output,
    },
    /// What waits for a person
    #[command(visible_alias = "approval", after_help = examples::GET_APPROVALS)]
    Approvals {
        #[command(flatten)]
        scope: Scope,
        #[command(flatten)]
        output: Output,
    },
    /// Deployments of the whole installation that are over, newest first
    #[command(visible_alias = "deployment", after_help = examples::GET_DEPLOYMENTS)]
    Deployments(GetDeployments),
    /// What evaluations came to, newest first: those under way, and the last twenty of each service in a stage
    #[command(visible_alias = "evaluation", after_help = examples::GET_EVALUATIONS)]
    Evaluations(GetEvaluations),
    /// Input of a day that could not be used, newest first
    #[command(after_help = examples::GET_INVALID)]
    Invalid(GetInvalid),
    /// What is applied
    #[command(flatten)]
    Kind(GetKind),
}

/// `get sequences`
#[derive(Group)]
pub struct GetSequences {
    /// Only these contexts
    #[arg(value_delimiter = ',', value_parser = name::<Context>, value_name = "CONTEXT")]
    pub context: Vec<Context>,
    /// The project
    #[arg(short, long, env = PROJECT, value_parser = name::<ProjectName>)]
    pub project: ProjectName,
    /// Only in this state, for example started or waitingForApproval
    #[arg(long)]
    pub state: Option<String>,
    /// Only those whose trigger had these labels, k=v,… or k,…
    #[arg(short, long, value_delimiter = ',', value_name = "K=V")]
    pub labels: Vec<String>,
    /// Only sequences of this name
    #[arg(long, value_parser = name::<SequenceName>)]
    pub name: Option<SequenceName>,
    /// At most this many contexts
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub limit: u32,
    #[command(flatten)]
    pub output: Output,
}

/// `get executions`
#[derive(Group)]
pub struct GetExecutions {
    /// The context; eight characters of it will do
    #[arg(value_parser = name::<Context>, required_unless_present = "project")]
    pub context: Option<Context>,
    #[command(flatten)]
    pub scope: Scope,
    /// Only in this state, for example started or waitingForApproval
    #[arg(long)]
    pub state: Option<String>,
    /// Only of sequences of this name
    #[arg(long, value_parser = name::<SequenceName>)]
    pub name: Option<SequenceName>,
    /// At most this many executions
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    #[command(flatten)]
    pub output: Output,
}

/// `get events`
#[derive(Group)]
pub struct GetEvents {
    /// The context; eight characters of it will do
    #[arg(value_parser = name::<Context>, required_unless_present = "project")]
    pub context: Option<Context>,
    #[command(flatten)]
    pub scope: Scope,
    /// Only this type, in full or as the list shows it
    #[arg(long = "type", value_name = "TYPE")]
    pub ty: Option<String>,
    /// At most this many events, the newest ones; of a project, those of its newest contexts
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    #[command(flatten)]
    pub output: Output,
}

/// `status`
#[derive(Group)]
pub struct Status {
    #[command(flatten)]
    pub projects: Projects,
    /// Show it until nothing waits any more
    #[arg(short, long)]
    pub watch: bool,
    /// Go on when nothing waits: something may come
    #[arg(long, requires = "watch")]
    pub follow: bool,
    /// Give up after this long, with 1
    #[arg(long, value_parser = length, value_name = "TIME", requires = "watch")]
    pub timeout: Option<Duration>,
    /// End with 1 if something waits
    #[arg(long)]
    pub exit_code: bool,
    #[command(flatten)]
    pub output: Output,
}

/// When watching ends, and with which exit code.
#[derive(Group, Clone, Copy)]
pub struct Watching {
    /// End with 1 unless everything ended with pass or warning, and every stage was reached
    #[arg(long)]
    pub exit_code: bool,
    /// End also when something waits for approval
    #[arg(long)]
    pub for_approval: bool,
    /// Show every event as it happens, too
    #[arg(long)]
    pub log: bool,
    /// Give up after this long, with 1
    #[arg(long, value_parser = length, value_name = "TIME")]
    pub timeout: Option<Duration>,
}

/// `watch`
#[derive(Group)]
pub struct Watch {
    /// The contexts; eight characters of each will do [default: all that go on in the project]
    #[arg(required_unless_present = "project", value_parser = name::<Context>)]
    pub contexts: Vec<Context>,
    /// Their project [default: searched for]
    #[arg(short, long, env = PROJECT, value_parser = name::<ProjectName>)]
    pub project: Option<ProjectName>,
    /// End when everything is over: the default
    #[arg(long, conflicts_with = "follow")]
    pub until_done: bool,
    /// Go on when everything is over: a later event may start more
    #[arg(long)]
    pub follow: bool,
    #[command(flatten)]
    pub watching: Watching,
    #[command(flatten)]
    pub output: Output,
}
