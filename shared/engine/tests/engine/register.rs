//! The register of keys.

use keelway_engine::item::Key;
use keelway_engine::register::*;
use std::collections::BTreeSet;

#[test]
fn no_two_kinds_have_the_same_place() {
    let places: Vec<_> = partitions().map(|partition| (partition.begins, partition.separators())).collect();
    assert_eq!(places.iter().collect::<BTreeSet<_>>().len(), places.len(), "{places:?}");
    for partition in partitions() {
        let begins: BTreeSet<_> = partition.items.iter().map(|kind| kind.begins).collect();
        assert!(!begins.is_empty() && begins.len() == partition.items.len(), "{}", partition.begins);
        assert_eq!(partition.begins.ends_with('#'), !partition.parts.is_empty(), "{}", partition.begins);
    }
}

#[test]
fn a_project_is_no_pipeline() {
    assert_eq!(kind(&Key::new("P#shop", "!")).unwrap().what, "project");
    assert_eq!(kind(&Key::new("P#shop#podinfo", "!")).unwrap().what, "pipeline");
    assert!(kind(&Key::new("P#shop#podinfo", "V#carts")).is_none());
    assert!(kind(&Key::new("LX", "1")).is_none() && kind(&Key::new("Q#1", "!")).is_none());
}
