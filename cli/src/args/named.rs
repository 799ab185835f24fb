//! What is named, where, and how it is printed: `get` and `delete` of the kinds of manifests.

pub use super::values::Place;

use super::values::name;
use clap::{Args as Group, ValueEnum};
use keelway_domain::names::ProjectName;

/// How to print.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people, in the width there is
    Table,
    /// For people, with everything
    Wide,
    /// For programs
    Json,
    /// For programs; of a single pipeline, cluster, git host, deployment config, artifact source or webhook: its manifest
    Yaml,
}

impl Format {
    /// Whether it is for programs.
    pub fn is_data(self) -> bool {
        matches!(self, Self::Json | Self::Yaml)
    }
}

/// `-o`
#[derive(Group)]
pub struct Output {
    /// table, wide, json or yaml
    #[arg(short = 'o', long = "output", value_enum, default_value = "table", value_name = "FORMAT")]
    pub format: Format,
}

/// `-n`
#[derive(Group, Clone)]
pub struct Namespace {
    /// The namespace [default: default; pipelines are listed of every one that the token shows]
    #[arg(short, long, env = "KEELWAY_NAMESPACE", value_parser = name::<ProjectName>)]
    pub namespace: Option<ProjectName>,
}

impl Namespace {
    /// The one that is meant where there must be one.
    pub fn name(&self) -> &str {
        self.namespace.as_ref().map_or("default", ProjectName::as_str)
    }
}

/// `get`, of what belongs to the installation
#[derive(Group)]
pub struct GetGlobal {
    /// Only this one
    pub name: Option<String>,
    #[command(flatten)]
    pub output: Output,
}

/// `get`, of what is in a namespace
#[derive(Group)]
pub struct GetNamed {
    /// Only this one: NAME, or NAMESPACE/NAME
    #[arg(value_parser = Place::parse, value_name = "NAME")]
    pub name: Option<Place>,
    #[command(flatten)]
    pub namespace: Namespace,
    #[command(flatten)]
    pub output: Output,
}

/// `get deploymentconfigs`
#[derive(Group)]
pub struct GetConfigs {
    /// Only this one: NAME, or NAMESPACE/NAME
    #[arg(value_parser = Place::parse, value_name = "NAME")]
    pub name: Option<Place>,
    #[command(flatten)]
    pub namespace: Namespace,
    /// Those of all namespaces
    #[arg(short = 'A', long, conflicts_with = "name")]
    pub all_namespaces: bool,
    #[command(flatten)]
    pub output: Output,
}

/// `get`, of what is in a project
#[derive(Group)]
pub struct GetInProject {
    /// Only this one
    pub name: Option<String>,
    /// The project
    #[arg(short, long, value_parser = name::<ProjectName>)]
    pub project: ProjectName,
    #[command(flatten)]
    pub output: Output,
}

/// What is deleted in a namespace.
#[derive(Group)]
pub struct DeleteNamed {
    /// Its name: NAME, or NAMESPACE/NAME
    #[arg(value_parser = Place::parse, value_name = "NAME")]
    pub name: Place,
    #[command(flatten)]
    pub namespace: Namespace,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
}

/// What is deleted in a project.
#[derive(Group)]
pub struct DeleteInProject {
    /// Its name
    pub name: String,
    /// Its project
    #[arg(short, long, value_parser = name::<ProjectName>)]
    pub project: ProjectName,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
}

/// What is deleted that belongs to the installation.
#[derive(Group)]
pub struct DeleteGlobal {
    /// Its name
    pub name: String,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
}
