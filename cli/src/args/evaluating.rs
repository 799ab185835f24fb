//! `evaluate`, `evaluation`, and what is shown and set of evaluations.

use super::named::PROJECT;
use super::values::{length, name};
use super::{Output, examples};
use crate::pairs::parse_text;
use clap::{Args as Group, Subcommand};
use keelway_domain::names::{ProjectName, ServiceName, StageName};
use std::path::PathBuf;
use std::time::Duration;

/// `evaluate`
#[derive(Group)]
pub struct Evaluate {
    /// The service whose window is evaluated, by the installation; without a file
    #[arg(value_parser = name::<ServiceName>, required_unless_present = "file", conflicts_with = "file", requires_all = ["project", "stage"])]
    pub service: Option<ServiceName>,
    /// The slo.yaml to judge values by, or - for standard input; offline
    #[arg(short, long, alias = "slo", value_name = "FILE", requires = "values")]
    pub file: Option<PathBuf>,
    /// Measured values as JSON, by the name of their indicator, or as in Keptn's get-sli.finished
    #[arg(long, value_name = "FILE", requires = "file")]
    pub values: Option<PathBuf>,
    /// Earlier evaluations as JSON, newest first: what this command prints with -o json, or Keptn's evaluation.finished
    #[arg(long, value_name = "FILE", requires = "file")]
    pub history: Option<PathBuf>,
    /// The project
    #[arg(short, long, env = PROJECT, value_parser = name::<ProjectName>)]
    pub project: Option<ProjectName>,
    /// The stage
    #[arg(long, value_parser = name::<StageName>)]
    pub stage: Option<StageName>,
    #[command(flatten)]
    pub window: EvaluationWindow,
    /// Labels, which queries may name; may be repeated
    #[arg(short, long, value_delimiter = ',', value_parser = parse_text, value_name = "K=V")]
    pub labels: Vec<(String, String)>,
    /// Wait for the result, and print it
    #[arg(short, long, conflicts_with = "file")]
    pub watch: bool,
    /// Give up waiting after this long, with 1
    #[arg(long, value_parser = length, value_name = "TIME", requires = "watch")]
    pub timeout: Option<Duration>,
    #[command(flatten)]
    pub output: Output,
}

/// What is evaluated: of which time, and by the files of which commit.
#[derive(Group)]
pub struct EvaluationWindow {
    /// From when on: RFC 3339, or without a zone for UTC; with --end or --timeframe
    #[arg(long, value_name = "TIME")]
    pub start: Option<String>,
    /// Until when; with --start
    #[arg(long, value_name = "TIME")]
    pub end: Option<String>,
    /// For how long, at least 1m: from --start on, else until now
    #[arg(long, value_name = "DURATION")]
    pub timeframe: Option<String>,
    /// The commit of the project's resources with the objectives [default: the last one]
    #[arg(long, value_name = "ID")]
    pub git_commit_id: Option<String>,
}

/// `get evaluations`
#[derive(Group)]
pub struct GetEvaluations {
    #[command(flatten)]
    pub of: Evaluated,
    #[command(flatten)]
    pub output: Output,
}

/// Services that are evaluated.
#[derive(Group)]
pub struct Evaluated {
    /// The project
    #[arg(short, long, env = PROJECT, value_parser = name::<ProjectName>)]
    pub project: ProjectName,
    /// Only this stage
    #[arg(long, value_parser = name::<StageName>)]
    pub stage: Option<StageName>,
    /// Only this service
    #[arg(long, value_parser = name::<ServiceName>)]
    pub service: Option<ServiceName>,
}

/// `evaluation`
#[derive(Subcommand)]
pub enum EvaluationVerb {
    /// Show one evaluation: value, target, change and verdict of each objective, and what it was compared with
    #[command(after_help = examples::EVALUATION_SHOW)]
    Show(OneEvaluation),
    /// Leave an evaluation out when later ones are compared
    #[command(after_help = examples::EVALUATION_INVALIDATE)]
    Invalidate(OneEvaluation),
    /// Write an AnalysisTemplate of Argo Rollouts as slo.yaml and sli.yaml; offline
    #[command(after_help = examples::EVALUATION_MIGRATE)]
    Migrate(MigrateAnalysis),
}

/// `evaluation migrate`
#[derive(Group)]
pub struct MigrateAnalysis {
    /// A file, or - for standard input
    pub file: PathBuf,
    /// The directory that slo.yaml and sli.yaml are written into [default: they are printed]
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
}

/// One evaluation.
#[derive(Group)]
pub struct OneEvaluation {
    /// Its id; eight characters of it will do
    #[arg(value_name = "ID")]
    pub id: String,
    #[command(flatten)]
    pub of: Evaluated,
    #[command(flatten)]
    pub output: Output,
}

/// `set sli-provider`
#[derive(Group)]
pub struct SetSliProvider {
    /// A MetricsSource of the project, or a service on the bus that answers get-sli.triggered
    pub name: String,
    /// The project
    #[arg(short, long, env = PROJECT, value_parser = name::<ProjectName>)]
    pub project: ProjectName,
}
