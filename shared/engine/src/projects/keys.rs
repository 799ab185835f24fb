//! The table keys of projects: a project, its services, the revisions of its shipyard and their history are in one partition.

use crate::item::Key;
use crate::partition::{Kind, MAIN, Partition};
use keelway_domain::names::ProjectName;

/// The partition that lists the projects.
pub const PROJECTS: &str = "PROJECTS";
/// The prefix of the sort keys of services.
pub const SERVICE: &str = "V#";
/// The prefix of the sort keys of a project's history.
pub const HISTORY: &str = "R#";
const REVISION: &str = "S#";

static DEFINITIONS: Partition = Partition::new(
    "P#",
    "<project>",
    &[
        Kind::main("project"),
        Kind::of(REVISION, "<revision>", "shipyard revision"),
        Kind::of(SERVICE, "<service>", "service"),
        Kind::of(HISTORY, "<number>-<content>", "history of the project's shipyards"),
    ],
);
static LISTED: Partition = Partition::new(PROJECTS, "", &[Kind::of("", "<project>", "list of projects")]);
/// The kinds of items of projects.
pub static PARTITIONS: &[&Partition] = &[&DEFINITIONS, &LISTED];

/// The partition of a project's definitions.
pub fn project_partition(project: &ProjectName) -> String {
    DEFINITIONS.named(project)
}

/// A project.
pub fn project(project: &ProjectName) -> Key {
    Key::new(project_partition(project), MAIN)
}

/// A project's entry in the list.
pub fn listed(project: &str) -> Key {
    Key::new(PROJECTS, project)
}

/// An applied shipyard revision; immutable.
pub fn revision(project: &ProjectName, revision: &str) -> Key {
    Key::new(project_partition(project), format!("{REVISION}{revision}"))
}

/// An entry of the history of a project's shipyards, by its number and the hash of its content.
pub fn history(project: &ProjectName, place: &str) -> Key {
    Key::new(project_partition(project), format!("{HISTORY}{place}"))
}

/// A service.
pub fn service(project: &ProjectName, service: &str) -> Key {
    Key::new(project_partition(project), format!("{SERVICE}{service}"))
}
