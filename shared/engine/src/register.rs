//! The register of the table: every kind of item, its keys, and its meaning. Each engine registers its items in its `keys`, and
//! builds the keys from them. The table in `docs/architecture.md` is written from the register, the tests learn from it which items
//! are state, and an unregistered item fails the simulation.

use crate::item::Key;
use crate::partition::{Kind, Partition};
use crate::{access, deployments, evaluations, keptn, keys, projects, promotions, resources, schedules, sequences, webhooks};

/// All kinds of partitions.
pub fn partitions() -> impl Iterator<Item = &'static Partition> {
    let sequences = [sequences::keys::PARTITIONS, projects::keys::PARTITIONS, schedules::keys::PARTITIONS];
    let beside = [resources::keys::PARTITIONS, keptn::keys::PARTITIONS];
    let others = [promotions::keys::PARTITIONS, deployments::keys::PARTITIONS, webhooks::keys::PARTITIONS];
    let measured = [evaluations::keys::PARTITIONS, evaluations::sources::PARTITIONS];
    let shared = [access::PARTITIONS, keys::PARTITIONS];
    sequences.into_iter().chain(beside).chain(others).chain(measured).chain(shared).flatten().copied()
}

/// The kind of a partition. If several prefixes match (those of projects and pipelines are equal), the kind with more parts is
/// meant.
pub fn partition(pk: &str) -> Option<&'static Partition> {
    partitions().filter(|partition| partition.is(pk)).max_by_key(|partition| partition.separators())
}

/// The kind of the item with this key.
pub fn kind(key: &Key) -> Option<&'static Kind> {
    let items = partition(&key.pk)?.items.iter();
    items.filter(|kind| key.sk.starts_with(kind.begins)).max_by_key(|kind| kind.begins.len())
}

/// Whether the item with this key is state, in one of these partitions.
pub fn is_state(partitions: &[&Partition], key: &Key) -> bool {
    let here = || partition(&key.pk).is_some_and(|found| partitions.iter().any(|one| std::ptr::eq(*one, found)));
    kind(key).is_some_and(|kind| kind.state) && here()
}
