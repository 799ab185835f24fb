//! The table keys of the items that all engines share. Each engine has a `keys` of its own for its subjects.

use crate::item::Key;
use crate::partition::{Kind, Partition};
pub use crate::partition::{MAIN, RECORD};
use keelway_domain::ids::{RecordHash, RecordId, SubjectId, hash64};
use keelway_domain::time::Timestamp;
use uuid::Uuid;

/// The partition of dead letters.
pub const DEAD_LETTERS: &str = "L";
/// The partition that lists which dead letters are sent again, and when; sorted by time.
pub const DUE_LETTERS: &str = "LD";
/// Number of index partitions over which an engine's open work is spread.
pub const SHARDS: u32 = 8;

static INVALID: Partition = Partition::new("B#", "<day>", &[Kind::of("", "<accepted>#<content>", "invalid input")]);
static CHECKS: Partition = Partition::new("CHECK#", "<id>", &[Kind::main("event that was sent around to check the installation")]);
static SWEEP: Partition = Partition::new("SWEEP", "", &[Kind::of("", "<engine>", "the sweep's place")]);
static LETTERS: Partition = Partition::new(DEAD_LETTERS, "", &[Kind::of("", "<sent>#<message>", "dead letter")]);
static DUE: Partition = Partition::new(DUE_LETTERS, "", &[Kind::of("", "<due>#<letter>", "when a dead letter is sent again")]);
/// The partitions that all engines share.
pub(crate) static PARTITIONS: &[&Partition] = &[&INVALID, &CHECKS, &SWEEP, &LETTERS, &DUE];

/// A time as text that sorts like the time.
pub fn ms(t: Timestamp) -> String {
    format!("{:013}", t.0.max(0))
}

/// A 64-bit hash as 13 characters, sorted like the number.
pub fn hash(content: u64) -> String {
    SubjectId(content).to_string()
}

/// What the sort keys of a subject's transition records begin with.
pub fn records_of(subject: SubjectId) -> String {
    format!("{RECORD}{subject}#")
}

/// Where a subject's records with this number, and those with higher ones, begin.
pub fn records_from(subject: SubjectId, number: u16) -> String {
    format!("{}{number:04}#", records_of(subject))
}

/// The sort key of a transition record.
pub fn record_sort(id: &RecordId) -> String {
    format!("{}{}", records_from(id.subject, id.number), id.hash)
}

/// Parses the sort key of a transition record.
pub fn record_id(sort: &str) -> Option<RecordId> {
    let mut parts = sort.strip_prefix(RECORD)?.split('#');
    let subject = SubjectId::parse(parts.next()?)?;
    Some(RecordId { subject, number: parts.next()?.parse().ok()?, hash: RecordHash::parse(parts.next()?)? })
}

/// Input that belongs to no subject.
pub fn invalid(at: Timestamp, content: u64) -> Key {
    Key::new(INVALID.named(at.day()), format!("{}#{}", ms(at), hash(content)))
}

/// Says that an event that was sent around has arrived.
pub fn check(id: &Uuid) -> Key {
    Key::new(CHECKS.named(id), MAIN)
}

/// A dead letter.
pub fn dead_letter(sent: Timestamp, id: &str) -> Key {
    Key::new(DEAD_LETTERS, format!("{}#{id}", ms(sent)))
}

/// Says that a letter is to be sent again at a time.
pub fn due_letter(at: Timestamp, letter: &str) -> Key {
    Key::new(DUE_LETTERS, format!("{}#{letter}", ms(at)))
}

/// The sort key of the letter that is due.
pub fn letter_of(due: &str) -> &str {
    due.split_once('#').map_or("", |(_, letter)| letter)
}

/// Behind everything that is due at a time.
pub fn due_bound(at: Timestamp) -> String {
    format!("{}#\u{10ffff}", ms(at))
}

/// The position at which an engine's sweep continues.
pub fn sweep(engine: &str) -> Key {
    Key::new(SWEEP.begins, engine)
}

/// Index partition: a shard of an engine's open work.
pub fn open_work(engine: &str, shard: u32) -> String {
    format!("W#{engine}#{shard}")
}

/// The shard that holds everything of one scope (a project).
pub fn shard_of(scope: &str) -> u32 {
    u32::try_from(hash64(&[scope.as_bytes()]) % u64::from(SHARDS)).unwrap_or(0)
}
