//! What is named, where, and how it is printed: `get` and `delete` of the kinds of manifests.

pub use super::values::Place;

/// The variable that names the project.
pub const PROJECT: &str = "KEELWAY_PROJECT";

use super::values::name;
use clap::{ArgMatches, Args as Group, ValueEnum};
use keelway_domain::names::ProjectName;

/// How to print.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people, in the width there is
    Table,
    /// For people, with everything
    Wide,
    /// For the next command: what other verbs call it, one line each
    Name,
    /// For programs
    Json,
    /// For programs; of a single pipeline, cluster, git host, deployment config, artifact source or webhook: its manifest
    Yaml,
}

impl Format {
    /// Whether everything is shown in full.
    pub fn is_wide(self) -> bool {
        matches!(self, Self::Wide | Self::Name)
    }

    /// Whether it is for programs.
    pub fn is_data(self) -> bool {
        matches!(self, Self::Json | Self::Yaml)
    }
}

/// `-o`
#[derive(Group)]
pub struct Output {
    /// table, wide, name, json or yaml
    #[arg(short = 'o', long = "output", value_enum, default_value = "table", value_name = "FORMAT", hide_possible_values = true)]
    pub format: Format,
    /// Sort the rows of a table by this column, for example AGE; -AGE: from the end
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub sort_by: Option<String>,
}

/// What the command line says of the order of rows, whatever the verb is.
pub fn order(matches: &ArgMatches) -> Option<String> {
    match matches.subcommand() {
        Some((_, below)) => order(below),
        None => matches.try_get_one::<String>("sort_by").ok().flatten().cloned(),
    }
}

/// `-p`
#[derive(Group, Clone, Default)]
pub struct InProject {
    /// The project, which manifests call namespace [default: default]
    #[arg(short, long, env = PROJECT, value_parser = name::<ProjectName>)]
    pub project: Option<ProjectName>,
}

impl InProject {
    /// The one that is meant where there must be one.
    pub fn name(&self) -> &str {
        self.project.as_ref().map_or("default", ProjectName::as_str)
    }
}

/// `-p`, or `-A`
#[derive(Group, Clone, Default)]
pub struct Projects {
    /// Only this project
    #[arg(short, long, env = PROJECT, value_parser = name::<ProjectName>)]
    project: Option<ProjectName>,
    /// Those of all projects that the token shows, whatever KEELWAY_PROJECT says
    #[arg(short = 'A', long)]
    all_projects: bool,
}

impl Projects {
    /// The only one, if one is named.
    pub fn only(&self) -> Option<&ProjectName> {
        self.project.as_ref().filter(|_| !self.all_projects)
    }

    /// The only one, for who takes work of one project unless told otherwise: `default` if none is named.
    pub fn only_or_default(&self) -> Option<&str> {
        (!self.all_projects).then(|| self.project.as_ref().map_or("default", ProjectName::as_str))
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

/// `get`, of what is in a project
#[derive(Group)]
pub struct GetNamed {
    /// Only this one: NAME, or PROJECT/NAME; without --project, of project default
    #[arg(value_parser = Place::parse, value_name = "NAME")]
    pub name: Option<Place>,
    #[command(flatten)]
    pub projects: Projects,
    #[command(flatten)]
    pub output: Output,
}

/// `get`, of what only a project has
#[derive(Group)]
pub struct GetInProject {
    /// Only this one
    pub name: Option<String>,
    /// The project
    #[arg(short, long, env = PROJECT, value_parser = name::<ProjectName>)]
    pub project: ProjectName,
    #[command(flatten)]
    pub output: Output,
}

/// What is deleted in a project.
#[derive(Group)]
pub struct DeleteNamed {
    /// Its name: NAME, or PROJECT/NAME
    #[arg(value_parser = Place::parse, value_name = "NAME")]
    pub name: Place,
    #[command(flatten)]
    pub project: InProject,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
}

/// What is deleted that only a project has.
#[derive(Group)]
pub struct DeleteInProject {
    /// Its name
    pub name: String,
    /// Its project
    #[arg(short, long, env = PROJECT, value_parser = name::<ProjectName>)]
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
