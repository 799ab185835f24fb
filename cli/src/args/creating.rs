//! `create`: what must not be there yet.

use super::examples;
use super::named::PROJECT;
use super::values::name;
use clap::{Args as Group, Subcommand};
use keelway_domain::names::{ProjectName, ServiceName};
use std::path::PathBuf;

/// `create`
#[derive(Subcommand)]
pub enum Create {
    /// A project, with its shipyard
    #[command(after_help = examples::CREATE_PROJECT)]
    Project(CreateProject),
    /// A service, which the first trigger of one would register as well
    #[command(after_help = examples::CREATE_SERVICE)]
    Service {
        /// Its name
        #[arg(value_parser = name::<ServiceName>)]
        name: ServiceName,
        /// Its project
        #[arg(short, long, env = PROJECT, value_parser = name::<ProjectName>)]
        project: ProjectName,
    },
}

/// `create project`
#[derive(Group)]
pub struct CreateProject {
    /// Its name
    #[arg(value_parser = name::<ProjectName>)]
    pub name: ProjectName,
    /// The file of its shipyard, or - for standard input
    #[arg(short, long, value_name = "FILE|-")]
    pub file: PathBuf,
}
