//! The table keys of a project's resources.

use crate::item::Key;
use crate::partition::{Kind, MAIN, Partition};
use keelway_domain::names::ProjectName;

/// The prefix of the sort keys of the resources in force.
pub const IN_FORCE: &str = "H#";
const COMMIT: &str = "C#";
const VERSION: &str = "V#";

static RESOURCES: Partition = Partition::new(
    "F#",
    "<project>",
    &[
        Kind::main("the store of a project's resources"),
        Kind::of(COMMIT, "<commit>", "commit of resources"),
        Kind::of(IN_FORCE, "<stage>#<path>", "resource in force"),
        Kind::of(VERSION, "<stage>#<path>#<n>", "version of a resource"),
    ],
);
/// The kinds of items of resources.
pub static PARTITIONS: &[&Partition] = &[&RESOURCES];

/// The partition of a project's resources.
pub fn partition(project: &ProjectName) -> String {
    RESOURCES.named(project)
}

/// The state of a project's resources: the number of commits, and the last one.
pub fn store(project: &ProjectName) -> Key {
    Key::new(partition(project), MAIN)
}

/// A commit of a project's resources.
pub fn commit(project: &ProjectName, commit: &str) -> Key {
    Key::new(partition(project), format!("{COMMIT}{commit}"))
}

/// A resource and its version in force. The stage of a resource of the project is empty.
pub fn resource(project: &ProjectName, stage: &str, path: &str) -> Key {
    Key::new(partition(project), format!("{IN_FORCE}{stage}#{}", path_in_key(path)))
}

/// The largest version number of a resource.
pub const LAST_VERSION: i64 = 9_999_999_999_999;

/// A version of a resource: its content.
pub fn version(project: &ProjectName, stage: &str, path: &str, n: i64) -> Key {
    Key::new(partition(project), format!("{VERSION}{stage}#{}#{n:013}", path_in_key(path)))
}

/// A path without `#`, which separates the parts of keys.
fn path_in_key(path: &str) -> String {
    path.replace('%', "%25").replace('#', "%23")
}

/// Returns the path in a key.
pub fn path(in_key: &str) -> String {
    in_key.replace("%23", "#").replace("%25", "%")
}
