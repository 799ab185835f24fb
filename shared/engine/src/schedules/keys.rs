//! The table keys of schedules.

use crate::item::Key;
use crate::partition::{Kind, Partition};
use keelway_domain::names::ProjectName;

/// The prefix of the sort keys of schedules.
pub const SCHEDULE: &str = "S#";

static SCHEDULES: Partition =
    Partition::new("SC#", "<project>", &[Kind::of(SCHEDULE, "<name>", "schedule").state(), Kind::records()]);
/// The kinds of items of schedules.
pub static PARTITIONS: &[&Partition] = &[&SCHEDULES];

/// The partition of a project's schedules, and of their transition records.
pub fn schedules(project: &ProjectName) -> String {
    SCHEDULES.named(project)
}

/// A schedule.
pub fn schedule(project: &ProjectName, name: &str) -> Key {
    Key::new(schedules(project), format!("{SCHEDULE}{name}"))
}
