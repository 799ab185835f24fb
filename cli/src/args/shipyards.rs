//! Shipyards: `shipyard`, and their revisions.

use super::named::PROJECT;
use super::values::{name, revision};
use super::{Diff, Output, Rollback, examples};
use clap::{Args as Group, Subcommand, ValueEnum};
use keelway_domain::names::ProjectName;
use std::path::PathBuf;

/// `shipyard`
#[derive(Subcommand)]
pub enum Shipyard {
    /// Everything wrong with these files, at once; offline. Exit codes: 0 fine, 1 refused, 2 cannot be read
    ///
    /// The same as `keelway validate`, which checks every kind.
    #[command(after_help = examples::SHIPYARD_VALIDATE)]
    Validate(Validate),
    /// Print a shipyard of version 0.1 in the form of 0.2; offline
    #[command(after_help = examples::SHIPYARD_MIGRATE)]
    Migrate {
        /// A file, or - for standard input
        file: PathBuf,
    },
    /// Stages, sequences, tasks and what starts them, of a file or a project
    #[command(after_help = examples::SHIPYARD_SHOW)]
    Show(ShowShipyard),
}

/// `validate`, `shipyard validate`
#[derive(Group)]
pub struct Validate {
    /// Files, directories, or - for standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub output: Output,
}

/// `shipyard show`
#[derive(Group)]
pub struct ShowShipyard {
    /// A file, or - for standard input
    #[arg(required_unless_present = "project", conflicts_with = "project")]
    pub file: Option<PathBuf>,
    /// What is in force in this project
    #[arg(short, long, env = PROJECT, value_parser = name::<ProjectName>)]
    pub project: Option<ProjectName>,
    /// text or mermaid
    #[arg(id = "drawing", short = 'o', long = "output", value_enum, default_value = "text", value_name = "FORMAT")]
    pub format: Drawing,
}

/// How a shipyard is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Drawing {
    /// Lines, for people
    Text,
    /// A Mermaid flowchart, for documents
    Mermaid,
}

/// A revision as people name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Version {
    /// All of its 40 digits.
    Revision(String),
    /// How it begins, in at least 7 digits.
    Short(String),
    /// Its number in the history.
    Number(i64),
}

impl Version {
    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim_matches('"').to_ascii_lowercase();
        let hex = text.chars().all(|c| c.is_ascii_hexdigit());
        match text.len() {
            40 if hex => Some(Self::Revision(text)),
            7..40 if hex => Some(Self::Short(text)),
            0..7 => text.parse().ok().filter(|number| *number > 0).map(Self::Number),
            _ => None,
        }
        .ok_or_else(|| {
            "is no revision: give at least 7 of its 40 hexadecimal digits, or its number in the list of revisions".into()
        })
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Revision(text) | Self::Short(text) => f.write_str(text),
            Self::Number(number) => write!(f, "number {number}"),
        }
    }
}

/// `get shipyard`
#[derive(Group)]
pub struct GetShipyard {
    /// The project
    #[arg(value_parser = name::<ProjectName>)]
    pub project: ProjectName,
    /// This revision: at least 7 of its digits, or its number [default: the one in force]
    #[arg(long, value_parser = Version::parse)]
    pub revision: Option<Version>,
    /// List the revisions that were in force, newest first
    #[arg(long, conflicts_with = "revision")]
    pub revisions: bool,
    /// At most this many lines
    #[arg(long, default_value_t = 20, requires = "revisions", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    #[command(flatten)]
    pub output: Output,
}

/// `diff`
#[derive(Group)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct DiffAny {
    #[command(subcommand)]
    pub of: Option<DiffOf>,
    #[command(flatten)]
    pub versions: Diff,
}

/// What else can be compared.
#[derive(Subcommand)]
pub enum DiffOf {
    /// Two revisions of a project's shipyard
    #[command(after_help = examples::DIFF_SHIPYARD)]
    Shipyard(DiffShipyard),
}

/// `diff shipyard`
#[derive(Group)]
pub struct DiffShipyard {
    /// The project
    #[arg(value_parser = name::<ProjectName>)]
    pub project: ProjectName,
    /// The one revision: at least 7 of its digits, or its number
    #[arg(value_parser = Version::parse, value_name = "REVISION")]
    pub from: Version,
    /// The other one [default: the one in force]
    #[arg(value_parser = Version::parse, value_name = "REVISION")]
    pub to: Option<Version>,
    /// End with 1 if they differ
    #[arg(long)]
    pub exit_code: bool,
    #[command(flatten)]
    pub output: Output,
}

/// `rollback`
#[derive(Group)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct RollbackAny {
    #[command(subcommand)]
    pub of: Option<RollbackOf>,
    #[command(flatten)]
    pub configs: Rollback,
}

/// What else can go back.
#[derive(Subcommand)]
pub enum RollbackOf {
    /// A project's shipyard, to a revision that was in force before
    #[command(after_help = examples::ROLLBACK_SHIPYARD)]
    Shipyard(RollbackShipyard),
}

/// `rollback shipyard`
#[derive(Group)]
pub struct RollbackShipyard {
    /// The project
    #[arg(value_parser = name::<ProjectName>)]
    pub project: ProjectName,
    /// The revision to go back to: at least 7 of its digits, or its number
    #[arg(long, value_parser = Version::parse, value_name = "REVISION")]
    pub to: Version,
    /// Only if this revision is in force: its 40 digits, as `get shipyard PROJECT --revisions -o wide` lists them
    #[arg(long, value_parser = revision, value_name = "REVISION")]
    pub if_match: Option<String>,
    /// Say what would change, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Who asks
    #[arg(long, env = "USER", default_value = "", hide_env = true, hide_default_value = true)]
    pub by: String,
    #[command(flatten)]
    pub output: Output,
}
