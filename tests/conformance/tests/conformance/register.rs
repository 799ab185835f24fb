//! The table in `docs/architecture.md` is what the register says.

use keelway_engine::register::partitions;
use std::path::Path;

/// A row for each kind of partition: what lies in it, how it is named, and its sort keys.
fn rows() -> String {
    let row = |partition: &keelway_engine::partition::Partition| {
        let all =
            |text: fn(&keelway_engine::partition::Kind) -> String| partition.items.iter().map(text).collect::<Vec<_>>().join("; ");
        let (items, sorts) = (all(|kind| kind.what.to_owned()), all(|kind| format!("`{}{}`", kind.begins, kind.parts)));
        format!("| {items} | `{}{}` | {sorts} |\n", partition.begins, partition.parts)
    };
    partitions().map(row).collect()
}

#[test]
fn the_architectures_table_is_the_register() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/architecture.md");
    let text = std::fs::read_to_string(path).unwrap();
    let table = format!("| Item | pk | sk |\n|---|---|---|\n{}\n", rows());
    assert!(text.contains(&table), "docs/architecture.md must have this table:\n{table}");
}
