//! `evaluate`.

use super::Output;
use clap::Args as Group;
use std::path::PathBuf;

/// `evaluate`
#[derive(Group)]
pub struct Evaluate {
    /// The slo.yaml, or - for standard input
    #[arg(short, long, alias = "slo", value_name = "FILE")]
    pub file: PathBuf,
    /// Measured values as JSON, by the name of their indicator, or as in Keptn's get-sli.finished
    #[arg(long, value_name = "FILE")]
    pub values: PathBuf,
    /// Earlier evaluations as JSON, newest first: what this command prints with -o json, or Keptn's evaluation.finished
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
    #[command(flatten)]
    pub output: Output,
}
