//! The table keys of everything about deployments. One partition per config (its state, snapshots, versions that have ended,
//! records and audit), one per artifact source (what its tags point to, and who watches them).

use super::message::Address;
use crate::item::Key;
use crate::keys::{MAIN, hash, ms};
use crate::partition::{Kind, Partition};
use keelway_domain::deployments::Obeyed;
use keelway_domain::deployments::definition::ImageTag;
use keelway_domain::deployments::registry::Repository;
use keelway_domain::ids::{hash64, sha256_hex};
use keelway_domain::time::Timestamp;

static CONFIGS: Partition = Partition::new(
    "D#",
    "<namespace>#<config>",
    &[
        Kind::main("deployment config").state(),
        Kind::records(),
        Kind::of(SNAPSHOTS, "<version>#<content>", "snapshot").state(),
        Kind::of(PAST, "<version>#<attempt>", "attempt that has ended").state(),
        Kind::of(AUDIT, "<time>#<id>", "entry of the config's audit"),
    ],
);
static DEFINITIONS: Partition =
    Partition::new("DD#", "<namespace>", &[Kind::of("", "<config>", "definition of a deployment config").state()]);
static LISTED: Partition =
    Partition::new(NAMESPACES, "", &[Kind::of("", "<namespace>", "namespace in which there was a deployment config")]);
static SOURCES: Partition = Partition::new("DS#", "<namespace>", &[Kind::of("", "<source>", "definition of an artifact source")]);
static IMAGES: Partition = Partition::new(
    "DH#",
    "<hash>",
    &[
        Kind::of(HEADS, "<tag>", "what a tag of an artifact source points to").state(),
        Kind::of(WATCHERS, "<tag>#<namespace>#<config>", "config that watches the tag").state(),
        Kind::of(IMAGE, "<digest>", "image of the source: whether it is still there").state(),
    ],
);
static FEEDS: Partition =
    Partition::new("DR#", "<hash>", &[Kind::of("", "<namespace>/<source>", "source that a repository feeds")]);
static ALARMS: Partition = Partition::new("DA#", "<hash>", &[Kind::of("", "<namespace>#<config>", "config that names an alarm")]);
static ASKED: Partition =
    Partition::new(ASKABLE, "", &[Kind::of("", "<namespace>/<source>", "source whose registry can be asked")]);
static TASKS: Partition = Partition::new("DT#", "<hash>", &[Kind::main("task that a config has decided about")]);
/// The partitions of deployments.
pub static PARTITIONS: &[&Partition] = &[&CONFIGS, &DEFINITIONS, &LISTED, &SOURCES, &IMAGES, &FEEDS, &ALARMS, &ASKED, &TASKS];

/// The partition of a config.
pub fn partition(to: &Address) -> String {
    CONFIGS.named(format_args!("{}#{}", to.namespace, to.name))
}

/// The state of a config.
pub fn config(to: &Address) -> Key {
    Key::new(partition(to), MAIN)
}

/// The partition that lists the configs of a namespace.
pub fn definitions(namespace: &str) -> String {
    DEFINITIONS.named(namespace)
}

/// The partition that lists the namespaces in which a config was ever applied.
pub const NAMESPACES: &str = "DN";

/// The definition of a config.
pub fn definition(to: &Address) -> Key {
    Key::new(definitions(&to.namespace), to.name.clone())
}

/// What the sort keys of snapshots begin with.
pub const SNAPSHOTS: &str = "D#";

/// The snapshot of a version. Its hash is a part of the key, so the loser of a race for the version leaves a snapshot to which
/// nothing refers.
pub fn snapshot(to: &Address, n: u64, content: u64) -> Key {
    Key::new(partition(to), format!("{SNAPSHOTS}{n:010}#{}", hash(content)))
}

/// What the sort keys of versions that have ended begin with.
pub const PAST: &str = "F#";

/// What the sort keys of a version's attempts begin with.
pub fn attempts(n: u64) -> String {
    format!("{PAST}{n:010}#")
}

/// An attempt that has ended.
pub fn past(to: &Address, n: u64, attempt: u32) -> Key {
    Key::new(partition(to), format!("{}{attempt:05}", attempts(n)))
}

/// The index partition of the attempts that ended on a day, in all configs.
pub fn day(at: Timestamp) -> String {
    format!("DF#{}", at.day())
}

/// The index sort key of an attempt that has ended.
pub fn ended(at: Timestamp, to: &Address, n: u64, attempt: u32) -> String {
    format!("{}#{}#{}#{n}#{attempt}", ms(at), to.namespace, to.name)
}

/// What the sort keys of a config's audit begin with.
pub const AUDIT: &str = "A#";

/// A command that was obeyed.
pub fn obeyed(to: &Address, obeyed: &Obeyed) -> Key {
    audit(to, obeyed.at, obeyed.note.id)
}

/// An entry of the audit.
pub fn audit(to: &Address, at: Timestamp, content: u64) -> Key {
    Key::new(partition(to), format!("{AUDIT}{}#{}", ms(at), hash(content)))
}

/// The index partition of the configs whose latest version nobody has claimed.
pub const UNCLAIMED: &str = "DW";

/// The index sort key of a config whose latest version nobody has claimed: the oldest come first.
pub fn unclaimed(to: &Address, since: Timestamp) -> String {
    format!("{}#{}#{}", ms(since), to.namespace, to.name)
}

/// The partition that lists the artifact sources of a namespace.
pub fn sources(namespace: &str) -> String {
    SOURCES.named(namespace)
}

/// An artifact source.
pub fn source(namespace: &str, name: &str) -> Key {
    Key::new(sources(namespace), name)
}

/// The partition of what an artifact source's tags point to.
pub fn source_partition(namespace: &str, name: &str) -> String {
    IMAGES.named(hash(hash64(&[b"artifact source", namespace.as_bytes(), name.as_bytes()])))
}

/// What the sort keys of tags begin with.
pub const HEADS: &str = "H#";

/// What a tag points to. Tags may have any length, so long ones are hashed.
pub fn head(tag: &ImageTag) -> Key {
    Key::new(source_partition(&tag.namespace, &tag.name), format!("{HEADS}{}", sort_of(&tag.tag)))
}

/// What the entries of all configs that watch a tag of a source begin with.
pub const WATCHERS: &str = "P#";

/// What the entries of the configs that watch a tag begin with.
pub fn watchers(tag: &str) -> String {
    format!("{WATCHERS}{}#", sort_of(tag))
}

/// What [`watchers`] of the tag is, in the sort key of such an entry.
pub fn watched(sort: &str) -> Option<&str> {
    let tag = sort.strip_prefix(WATCHERS)?.find('#')?;
    sort.get(..=tag + WATCHERS.len())
}

/// Says that a config watches a tag.
pub fn watches(tag: &ImageTag, to: &Address) -> Key {
    let sort = format!("{}{}#{}", watchers(&tag.tag), to.namespace, to.name);
    Key::new(source_partition(&tag.namespace, &tag.name), sort)
}

/// What the sort keys of images begin with.
const IMAGE: &str = "X#";

/// The reports about an image at its source, which show whether it still exists.
pub fn image(namespace: &str, name: &str, digest: &str) -> Key {
    Key::new(source_partition(namespace, name), format!("{IMAGE}{}", sha256_hex(digest.as_bytes())))
}

/// A tag as a part of a key: `#` separates parts.
fn sort_of(tag: &str) -> String {
    if tag.len() > 128 || tag.contains('#') { format!("={}", sha256_hex(tag.as_bytes())) } else { tag.to_owned() }
}

/// The partition of the sources that a repository feeds. `here`: account and region of the installation.
pub fn repository_partition(repository: &Repository, here: (&str, &str)) -> String {
    let account = repository.account.as_deref().unwrap_or(here.0);
    let region = repository.region.as_deref().unwrap_or(here.1);
    let parts = [account, region, &repository.name].map(str::as_bytes);
    FEEDS.named(hash(hash64(&[b"ecr", parts[0], parts[1], parts[2]])))
}

/// Says that a repository feeds a source.
pub fn fed(repository: &Repository, here: (&str, &str), of: (&str, &str)) -> Key {
    Key::new(repository_partition(repository, here), format!("{}/{}", of.0, of.1))
}

/// The partition that lists the sources whose registry can be asked.
pub const ASKABLE: &str = "DE";

/// Says that a source's registry can be asked.
pub fn askable(namespace: &str, name: &str) -> Key {
    Key::new(ASKABLE, format!("{namespace}/{name}"))
}

/// The decision about a task of a sequence, by the id of its trigger.
pub fn task(triggered: &str) -> Key {
    Key::new(TASKS.named(hash(hash64(&[b"task", triggered.as_bytes()]))), MAIN)
}

/// The partition of the configs that name an alarm.
pub fn alarm_partition(name: &str) -> String {
    ALARMS.named(hash(hash64(&[b"alarm", name.as_bytes()])))
}

/// Says that a config names an alarm.
pub fn alarmed(name: &str, to: &Address) -> Key {
    Key::new(alarm_partition(name), format!("{}#{}", to.namespace, to.name))
}
