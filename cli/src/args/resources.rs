//! `resource`: the files of a project.

use super::named::PROJECT;
use super::values::name;
use super::{Output, examples};
use clap::{Args as Group, Subcommand};
use keelway_domain::names::{ProjectName, ServiceName, StageName};
use std::path::PathBuf;

/// `resource`
#[derive(Subcommand)]
pub enum ResourceVerb {
    /// Write a file to a project, a stage, or a service in a stage; a slo.yaml or sli.yaml is checked first
    #[command(after_help = examples::RESOURCE_ADD)]
    Add(AddResource),
    /// The files that there are
    #[command(after_help = examples::RESOURCE_LIST)]
    List {
        #[command(flatten)]
        of: ResourcePlace,
        #[command(flatten)]
        output: Output,
    },
    /// Print a file
    #[command(after_help = examples::RESOURCE_SHOW)]
    Show {
        /// Its URI, for example slo.yaml
        uri: String,
        #[command(flatten)]
        of: ResourcePlace,
    },
    /// Delete a file; its versions are kept for the retention period
    #[command(after_help = examples::RESOURCE_DELETE)]
    Delete {
        /// Its URI, for example slo.yaml
        uri: String,
        #[command(flatten)]
        of: ResourcePlace,
    },
}

/// `resource add`
#[derive(Group)]
pub struct AddResource {
    /// The file, or - for standard input
    pub file: PathBuf,
    /// Its URI there [default: the name of the file]
    #[arg(long = "as", value_name = "URI")]
    pub uri: Option<String>,
    #[command(flatten)]
    pub of: ResourcePlace,
}

/// What a file belongs to.
#[derive(Group)]
pub struct ResourcePlace {
    /// The project
    #[arg(short, long, env = PROJECT, value_parser = name::<ProjectName>)]
    pub project: ProjectName,
    /// The stage [default: the file is the project's]
    #[arg(long, value_parser = name::<StageName>)]
    pub stage: Option<StageName>,
    /// The service in the stage [default: the file is the stage's]
    #[arg(long, value_parser = name::<ServiceName>, requires = "stage")]
    pub service: Option<ServiceName>,
}
