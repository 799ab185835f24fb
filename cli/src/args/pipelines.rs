//! Pipelines: `pipeline`, `delete`, `observe`.

use super::named::{InProject, PROJECT, Place, Projects};
use super::values::{length, name};
use super::{Output, examples};
use crate::kinds::DeleteKind;
use clap::{Args as Group, Subcommand};
use keelway_domain::names::{ProjectName, ServiceName};
use std::path::PathBuf;
use std::time::Duration;

/// A pipeline by its name.
#[derive(Group)]
pub struct PipelineName {
    /// The pipeline: NAME, or PROJECT/NAME
    #[arg(value_parser = Place::parse, value_name = "NAME")]
    pub name: Place,
    #[command(flatten)]
    pub project: InProject,
}

/// An environment of a pipeline.
#[derive(Group)]
pub struct EnvironmentName {
    #[command(flatten)]
    pub of: PipelineName,
    /// The environment
    pub environment: String,
}

/// Who asks for something, and why.
#[derive(Group)]
pub struct Said {
    /// Why, for the record
    #[arg(short, long, default_value = "", hide_default_value = true)]
    pub message: String,
    /// Who asks
    #[arg(long, env = "USER", default_value = "", hide_env = true, hide_default_value = true)]
    pub by: String,
}

/// `pipeline`
#[derive(Subcommand)]
pub enum Pipeline {
    /// Every pipeline, one line each
    #[command(after_help = examples::PIPELINE_LIST)]
    List(PipelineList),
    /// Where a pipeline stands: what each environment runs, what is on its way, what would help
    #[command(after_help = examples::PIPELINE_STATUS)]
    Status(PipelineStatus),
    /// Promotions that are over, and commands, newest first
    #[command(after_help = examples::PIPELINE_HISTORY)]
    History(PipelineHistory),
    /// What each environment waits for, what would have to happen, and when it goes on by itself
    #[command(after_help = examples::PIPELINE_EXPLAIN)]
    Explain(PipelineExplain),
    /// Let a revision into an environment that waits for approval
    #[command(after_help = examples::PIPELINE_APPROVE)]
    Approve(PipelineDecide),
    /// Keep a revision out of an environment that waits for approval
    #[command(after_help = examples::PIPELINE_DECLINE)]
    Decline(PipelineDecide),
    /// Take a failed promotion for a success: its environment runs the revision and is healthy
    #[command(after_help = examples::PIPELINE_ACCEPT)]
    Accept(PipelineDecide),
    /// Begin nothing new: what is on its way goes on
    #[command(after_help = examples::PIPELINE_SUSPEND)]
    Suspend(PipelineControl),
    /// End a suspension
    #[command(after_help = examples::PIPELINE_RESUME)]
    Resume(PipelineControl),
    /// Keep an environment on a revision
    #[command(after_help = examples::PIPELINE_HOLD)]
    Hold(PipelineHold),
    /// End a hold
    #[command(after_help = examples::PIPELINE_RELEASE)]
    Release(PipelineStep),
    /// Promote a revision no further, and close what is open for it
    #[command(after_help = examples::PIPELINE_ABANDON)]
    Abandon(PipelineAbandon),
    /// Attempt a promotion again that has failed or was given up
    #[command(after_help = examples::PIPELINE_RETRY)]
    Retry(PipelineStep),
    /// End a promotion that is on its way, and close its pull request
    #[command(after_help = examples::PIPELINE_ABORT)]
    Abort(PipelineStep),
    /// The open pull requests of a pipeline
    #[command(after_help = examples::PIPELINE_PULL_REQUESTS)]
    PullRequests(PipelineShow),
    /// The manifest as it was applied
    #[command(after_help = examples::PIPELINE_MANIFEST)]
    Manifest {
        #[command(flatten)]
        of: PipelineName,
    },
}

/// `pipeline list`
#[derive(Group)]
pub struct PipelineList {
    #[command(flatten)]
    pub projects: Projects,
    /// At most this many pipelines
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    #[command(flatten)]
    pub output: Output,
}

/// `pipeline status`
#[derive(Group)]
pub struct PipelineStatus {
    #[command(flatten)]
    pub of: PipelineName,
    /// Follow it until every environment runs the revision, or nothing goes on without a person
    #[arg(short, long)]
    pub watch: bool,
    #[command(flatten)]
    pub following: Following,
    #[command(flatten)]
    pub output: Output,
}

/// When following a pipeline ends, and with which exit code.
#[derive(Group, Clone, Copy)]
pub struct Following {
    /// Go on when everything is over: another revision may come
    #[arg(long, requires = "watch")]
    pub follow: bool,
    /// End also when something waits for approval
    #[arg(long, requires = "watch")]
    pub for_approval: bool,
    /// End with 1 unless every environment runs the revision, or with --for-approval something waits for it and nothing has failed
    #[arg(long)]
    pub exit_code: bool,
    /// Give up after this long, with 1
    #[arg(long, value_parser = length, value_name = "TIME", requires = "watch")]
    pub timeout: Option<Duration>,
}

/// `pipeline history`
#[derive(Group)]
pub struct PipelineHistory {
    #[command(flatten)]
    pub of: PipelineName,
    /// Only promotions into this environment, and commands about it
    #[arg(short, long)]
    pub environment: Option<String>,
    /// At most this many lines
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    #[command(flatten)]
    pub output: Output,
}

/// `pipeline explain`
#[derive(Group)]
pub struct PipelineExplain {
    #[command(flatten)]
    pub of: PipelineName,
    /// Only this environment
    #[arg(short, long)]
    pub environment: Option<String>,
    #[command(flatten)]
    pub output: Output,
}

/// `pipeline pull-requests`
#[derive(Group)]
pub struct PipelineShow {
    #[command(flatten)]
    pub of: PipelineName,
    #[command(flatten)]
    pub output: Output,
}

/// `pipeline approve`, `pipeline decline`, `pipeline accept`
#[derive(Group)]
pub struct PipelineDecide {
    #[command(flatten)]
    pub at: EnvironmentName,
    /// The revision [default: the one that waits; of accept: the one whose promotion failed]
    pub revision: Option<String>,
    #[command(flatten)]
    pub said: Said,
    /// Wait this long for the revision to wait for approval
    #[arg(long, value_parser = length, value_name = "TIME")]
    pub wait: Option<Duration>,
    /// Sign the request with the key in this file, and send no token; - for standard input
    #[arg(long, value_name = "FILE|-")]
    pub key_file: Option<PathBuf>,
    /// The key's id [default: the first one of the file, or hmac-key]
    #[arg(long, requires = "key_file", value_name = "ID")]
    pub key_id: Option<String>,
    /// The installation that the signature is for; `keelway doctor` shows it
    #[arg(long, env = "KEELWAY_INSTALLATION", value_name = "ACCOUNT/REGION/STACK")]
    pub installation: Option<String>,
}

/// `pipeline suspend`, `pipeline resume`
#[derive(Group)]
pub struct PipelineControl {
    #[command(flatten)]
    pub of: PipelineName,
    #[command(flatten)]
    pub said: Said,
}

/// `pipeline release`, `pipeline retry`, `pipeline abort`
#[derive(Group)]
pub struct PipelineStep {
    #[command(flatten)]
    pub at: EnvironmentName,
    #[command(flatten)]
    pub said: Said,
}

/// `pipeline hold`
#[derive(Group)]
pub struct PipelineHold {
    #[command(flatten)]
    pub at: EnvironmentName,
    /// The revision to stay on [default: the one that is healthy there]
    #[arg(short, long)]
    pub revision: Option<String>,
    #[command(flatten)]
    pub said: Said,
}

/// `pipeline abandon`
#[derive(Group)]
pub struct PipelineAbandon {
    #[command(flatten)]
    pub of: PipelineName,
    /// The revision
    #[arg(short, long)]
    pub revision: String,
    /// Only in this environment, and in this run
    #[arg(short, long)]
    pub environment: Option<String>,
    #[command(flatten)]
    pub said: Said,
}

/// `delete`
#[derive(Subcommand)]
pub enum Delete {
    /// A project with its services and resources; refused while sequences are open
    #[command(after_help = examples::DELETE_PROJECT)]
    Project {
        /// The project
        #[arg(value_parser = name::<ProjectName>)]
        name: ProjectName,
        #[command(flatten)]
        how: DeleteHow,
    },
    /// A service of a project; refused while its sequences are open
    #[command(after_help = examples::DELETE_SERVICE)]
    Service {
        /// The service
        #[arg(value_parser = name::<ServiceName>)]
        name: ServiceName,
        /// The project
        #[arg(short, long, env = PROJECT, value_parser = name::<ProjectName>)]
        project: ProjectName,
        #[command(flatten)]
        how: DeleteHow,
    },
    /// What is applied
    #[command(flatten)]
    Kind(DeleteKind),
}

/// How a project or service is deleted.
#[derive(Group)]
pub struct DeleteHow {
    /// Abort what is open first, and wait until it has ended
    #[arg(long)]
    pub abort: bool,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
}

/// `observe`
#[derive(Group)]
pub struct Observe {
    /// A file with objects or facts, YAML or JSON, or - for standard input; may be repeated
    #[arg(short, long = "file", required = true, value_name = "FILE|-", num_args = 1..)]
    pub files: Vec<PathBuf>,
    /// The cluster they are from, PROJECT/NAME [default: the one without a name]
    #[arg(long, value_name = "CLUSTER")]
    pub cluster: Option<String>,
    #[command(flatten)]
    pub output: Output,
}
