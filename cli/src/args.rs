//! The command line.

use crate::pairs;
use clap::{Args as Group, Parser, Subcommand, ValueEnum};
use keelway_domain::names::{Context, NameError, ProjectName, SequenceName, ServiceName, StageName, TaskName};
use keelway_domain::time::Span;
use std::path::PathBuf;
use std::time::Duration;

const EXIT: &str = "Exit codes: 0 fine; 1 refused, failed or not found; 2 wrong usage, or a file that cannot be read.";

/// Continuous delivery by events: apply shipyards, trigger and watch sequences, answer tasks.
#[derive(Parser)]
#[command(name = "keelway", version, after_help = EXIT)]
pub struct Args {
    /// The API's address, with or without /v1
    #[arg(long, global = true, env = "KEELWAY_API", value_name = "URL")]
    pub api: Option<String>,
    /// The API's token
    #[arg(long, global = true, env = "KEELWAY_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// The verbs.
#[derive(Subcommand)]
pub enum Command {
    /// Put manifests in force: kinds Project and Shipyard
    Apply(Apply),
    /// Show projects, services, sequences, events or open approvals
    #[command(subcommand)]
    Get(Get),
    /// Start a sequence
    #[command(subcommand)]
    Trigger(Trigger),
    /// Follow what one or several contexts do, until everything in them is over
    Watch(Watch),
    /// Let a sequence go on that waits for approval
    Approve(Decide),
    /// End a sequence that waits for approval, with result fail
    Decline(Decide),
    /// Hold a context: what runs goes on, nothing new is triggered
    #[command(subcommand)]
    Pause(Controlled),
    /// Let a paused context go on
    #[command(subcommand)]
    Resume(Controlled),
    /// End everything open in a context
    #[command(subcommand)]
    Abort(Controlled),
    /// Send a CloudEvent
    #[command(subcommand)]
    Send(Send),
    /// Look at shipyards without applying them
    #[command(subcommand)]
    Shipyard(Shipyard),
    /// Answer a task's triggers with a command, for as long as this runs
    Executor(Executor),
    /// Say whether the API is reachable and the token right
    Doctor,
    /// Print the completion script of a shell
    Completion {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the version
    Version,
}

/// How to print.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Table,
    /// For programs
    Json,
}

/// `apply`
#[derive(Group)]
pub struct Apply {
    /// A file, a directory (its *.yaml, *.yml and *.json, not below it), or - for standard input; may be repeated
    #[arg(short, long = "file", required = true, value_name = "FILE|DIR|-", num_args = 1..)]
    pub files: Vec<PathBuf>,
    /// The project of the shipyards [default: their annotation, or metadata.name without shipyard-]
    #[arg(short, long, value_parser = name::<ProjectName>)]
    pub project: Option<ProjectName>,
    /// Apply the one shipyard of these files only if this revision is in force, as `apply` printed it
    #[arg(long, value_name = "REVISION", value_parser = revision)]
    pub if_match: Option<String>,
    /// Only read and check them here; nothing is sent
    #[arg(long)]
    pub dry_run: bool,
}

/// `get`
#[derive(Subcommand)]
pub enum Get {
    /// Every project
    Projects {
        #[command(flatten)]
        output: Output,
    },
    /// The services of a project
    Services {
        /// The project
        #[arg(short, long, value_parser = name::<ProjectName>)]
        project: ProjectName,
        #[command(flatten)]
        output: Output,
    },
    /// What ran and runs in a project, newest first
    Sequences(GetSequences),
    /// Events of a context, or of a project's newest contexts
    Events(GetEvents),
    /// What waits for a person
    Approvals {
        #[command(flatten)]
        scope: Scope,
        #[command(flatten)]
        output: Output,
    },
}

/// `-o`
#[derive(Group)]
pub struct Output {
    /// table or json
    #[arg(short = 'o', long = "output", value_enum, default_value = "table", value_name = "FORMAT")]
    pub format: Format,
}

/// A project, stage and service to narrow something to.
#[derive(Group, Clone, Default)]
pub struct Scope {
    /// Only this project
    #[arg(short, long, value_parser = name::<ProjectName>)]
    pub project: Option<ProjectName>,
    /// Only this stage
    #[arg(long, value_parser = name::<StageName>)]
    pub stage: Option<StageName>,
    /// Only this service
    #[arg(long, value_parser = name::<ServiceName>)]
    pub service: Option<ServiceName>,
}

/// `get sequences`
#[derive(Group)]
pub struct GetSequences {
    /// The project
    #[arg(short, long, value_parser = name::<ProjectName>)]
    pub project: ProjectName,
    /// Only these contexts
    #[arg(short, long, value_delimiter = ',', value_parser = name::<Context>)]
    pub context: Vec<Context>,
    /// Only in this state, for example started or waitingForApproval
    #[arg(long)]
    pub state: Option<String>,
    /// Only sequences of this name
    #[arg(long, value_parser = name::<SequenceName>)]
    pub name: Option<SequenceName>,
    /// At most this many contexts
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub limit: u32,
    #[command(flatten)]
    pub output: Output,
}

/// `get events`
#[derive(Group)]
pub struct GetEvents {
    /// The context
    #[arg(short, long, value_parser = name::<Context>, required_unless_present = "project")]
    pub context: Option<Context>,
    #[command(flatten)]
    pub scope: Scope,
    /// Only this type, in full
    #[arg(long = "type", value_name = "TYPE")]
    pub ty: Option<String>,
    /// At most this many events
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    #[command(flatten)]
    pub output: Output,
}

/// `trigger`
#[derive(Subcommand)]
pub enum Trigger {
    /// Any sequence
    Sequence(TriggerSequence),
    /// A sequence that takes an image, in the first stage unless told otherwise
    Delivery(TriggerDelivery),
}

/// What every trigger can have.
#[derive(Group)]
pub struct TriggerCommon {
    /// The project
    #[arg(short, long, value_parser = name::<ProjectName>)]
    pub project: ProjectName,
    /// The service
    #[arg(short, long, value_parser = name::<ServiceName>)]
    pub service: ServiceName,
    /// Labels, k=v,…
    #[arg(short, long, value_delimiter = ',', value_parser = pairs::parse, value_name = "K=V")]
    pub labels: Vec<(String, String)>,
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
    /// Data of the event, a.b=c,…
    #[arg(long, value_delimiter = ',', value_parser = pairs::parse, value_name = "A.B=C")]
    pub data: Vec<(String, String)>,
    #[command(flatten)]
    pub common: TriggerCommon,
}

/// `trigger delivery`
#[derive(Group)]
pub struct TriggerDelivery {
    /// The image, with its tag: configurationChange.values.image
    #[arg(short, long)]
    pub image: String,
    /// The sequence
    #[arg(long, default_value = "delivery", value_parser = name::<SequenceName>)]
    pub sequence: SequenceName,
    /// The stage [default: the first of the shipyard]
    #[arg(long, value_parser = name::<StageName>)]
    pub stage: Option<StageName>,
    /// Further configurationChange.values, a.b=c,…
    #[arg(long, value_delimiter = ',', value_parser = pairs::parse, value_name = "K=V")]
    pub values: Vec<(String, String)>,
    #[command(flatten)]
    pub common: TriggerCommon,
}

/// When watching ends, and with which exit code.
#[derive(Group, Clone, Copy)]
pub struct Watching {
    /// End with 1 unless everything ended with pass or warning
    #[arg(long)]
    pub exit_code: bool,
    /// End also when something waits for approval
    #[arg(long)]
    pub for_approval: bool,
    /// Give up after this long, with 1
    #[arg(id = "watch_timeout", long = "watch-timeout", value_parser = length, value_name = "TIME")]
    pub timeout: Option<Duration>,
}

/// `watch`
#[derive(Group)]
pub struct Watch {
    /// The contexts
    #[arg(required = true, value_parser = name::<Context>)]
    pub contexts: Vec<Context>,
    /// Their project [default: as their events say]
    #[arg(short, long, value_parser = name::<ProjectName>)]
    pub project: Option<ProjectName>,
    /// End when everything is over: the default
    #[arg(long, conflicts_with = "follow")]
    pub until_done: bool,
    /// Go on when everything is over: a later event may start more
    #[arg(long)]
    pub follow: bool,
    #[command(flatten)]
    pub watching: Watching,
}

/// `approve`, `decline`
#[derive(Group)]
pub struct Decide {
    /// The context
    #[arg(value_parser = name::<Context>, value_name = "CONTEXT")]
    pub named: Option<Context>,
    /// The context
    #[arg(short, long, value_parser = name::<Context>, conflicts_with = "named")]
    pub context: Option<Context>,
    #[command(flatten)]
    pub scope: Scope,
    /// The id of the approval's .triggered event
    #[arg(long)]
    pub id: Option<String>,
    /// Why, for the record
    #[arg(short, long, default_value = "")]
    pub message: String,
    /// Who decides
    #[arg(long, env = "USER", default_value = "", hide_env = true)]
    pub by: String,
    /// Wait this long for the approval to open
    #[arg(long, value_parser = length, value_name = "TIME")]
    pub wait: Option<Duration>,
}

/// `pause`, `resume`, `abort`
#[derive(Subcommand)]
pub enum Controlled {
    /// A context's sequences
    Sequence {
        /// The project
        #[arg(short, long, value_parser = name::<ProjectName>)]
        project: ProjectName,
        /// The context
        #[arg(short, long, value_parser = name::<Context>)]
        context: Context,
        /// Only in this stage
        #[arg(short, long, value_parser = name::<StageName>)]
        stage: Option<StageName>,
    },
}

/// `send`
#[derive(Subcommand)]
pub enum Send {
    /// An event from a file
    Event {
        /// A file with one CloudEvent in structured JSON, or - for standard input
        #[arg(short, long, value_name = "FILE|-")]
        file: PathBuf,
    },
}

/// `shipyard`
#[derive(Subcommand)]
pub enum Shipyard {
    /// Everything wrong with these files, at once; offline. Exit codes: 0 fine, 1 refused, 2 cannot be read
    Validate {
        /// Files, directories, or - for standard input
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        #[command(flatten)]
        output: Output,
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
    /// Copy the commands' standard error to this one's
    #[arg(long)]
    pub echo: bool,
    /// The command and its arguments; gets the event on standard input
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

fn name<N: TryFrom<String, Error = NameError>>(text: &str) -> Result<N, NameError> {
    N::try_from(text.to_owned())
}

fn length(text: &str) -> Result<Duration, String> {
    let span = Span::parse(text).map_err(|error| error.to_string())?;
    match u64::try_from(span.0) {
        Ok(millis) if millis > 0 => Ok(Duration::from_millis(millis)),
        _ => Err("must be longer than 0, for example 30s".into()),
    }
}

/// The API waits in whole seconds.
fn wait(text: &str) -> Result<Duration, String> {
    let span = Span::parse(text).map_err(|error| error.to_string())?;
    match u64::try_from(span.0) {
        Ok(millis) if millis <= 20_000 && millis % 1000 == 0 => Ok(Duration::from_millis(millis)),
        _ => Err("must be whole seconds from 0s to 20s".into()),
    }
}

/// The name becomes the `source` of what the executor sends.
fn executor_name(text: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.:/".contains(c);
    if text.is_empty() || text.len() > 100 || !text.chars().all(allowed) {
        return Err("use 1 to 100 letters, digits, `-`, `_`, `.`, `:` and `/`".into());
    }
    let engines = [keelway_domain::event::SOURCE, keelway_domain::event::APPROVAL_SOURCE];
    if engines.contains(&text) {
        return Err("is the engine's own: choose a name of your own".into());
    }
    keelway_wire::cloudevent::check_source(text).map_err(|error| error.message)?;
    Ok(text.to_owned())
}

fn revision(text: &str) -> Result<String, String> {
    let revision = text.trim_matches('"');
    match revision.len() == 40 && revision.chars().all(|c| c.is_ascii_hexdigit()) {
        true => Ok(revision.to_ascii_lowercase()),
        false => Err("is no revision: give the 40 hexadecimal digits that `keelway apply` printed".into()),
    }
}

fn answerable(text: &str) -> Result<TaskName, String> {
    if text == keelway_domain::shipyard::APPROVAL {
        return Err("is answered by the engine and by people: see `keelway approve`".into());
    }
    TaskName::new(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }
}
