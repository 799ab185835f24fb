//! A long history and a long queue, as copies of what real sequences left in the table. They are written through the store port.

use crate::bed::{Bed, PROJECT, STAGE};
use keelway_cloud_tests::Problem;
use keelway_cloud_tests::events::{Scope, fresh};
use keelway_domain::ids::{ExecutionId, SubjectId, hash64};
use keelway_engine::item::{Attr, Item};
use keelway_engine::table;

/// Copies everything of an ended sequence this many times.
pub fn finished(bed: &Bed, copies: usize) -> Result<(), Problem> {
    let scope = Scope::new(PROJECT, STAGE, "past");
    let context = bed.trigger(&scope, 2)?;
    bed.play(&scope, &context, 2)?;
    bed.quiet(&context)?;
    let items = bed.stack.items(&format!("C#{PROJECT}#{context}"), "")?;
    let execution = execution(&items)?;
    let mut all = items;
    all.extend(bed.stack.items(&format!("Z#{PROJECT}#{execution}"), "")?);
    write(bed, &all, &context, &execution, copies)
}

/// Copies a sequence that waits on its lane, with its queue entry, this many times.
pub fn waiting(bed: &Bed, scope: &Scope, context: &str, copies: usize) -> Result<(), Problem> {
    if copies == 0 {
        return Ok(());
    }
    let items = bed.stack.items(&format!("C#{PROJECT}#{context}"), "")?;
    let execution = execution(&items)?;
    let mut all = items;
    let queue = bed.stack.items(&format!("K#{PROJECT}#{STAGE}#{}", scope.service), "Q#")?;
    all.extend(queue.into_iter().filter(|entry| entry.key.sk.contains(&execution)));
    write(bed, &all, context, &execution, copies)
}

fn execution(items: &[Item]) -> Result<String, Problem> {
    let found = items.iter().find_map(|item| item.key.sk.strip_prefix("X#"));
    found.map(str::to_owned).ok_or_else(|| "the sequence to copy left no execution".into())
}

fn write(bed: &Bed, items: &[Item], context: &str, execution: &str, copies: usize) -> Result<(), Problem> {
    let copied = (0..copies).flat_map(|n| {
        let (to_context, to_execution) = (fresh(), sorted_after(execution, n));
        items.iter().map(move |item| copy(item, (context, &to_context), (execution, &to_execution))).collect::<Vec<_>>()
    });
    let copied: Vec<Item> = copied.collect();
    for chunk in copied.chunks(25 * 40) {
        bed.stack.wait(table::record(bed.stack.ports(), chunk.to_vec(), vec![])).map_err(|error| Problem(error.to_string()))?;
    }
    Ok(())
}

/// An id of an execution that sorts after the given one: copies wait behind their original.
fn sorted_after(execution: &str, n: usize) -> String {
    let first = ExecutionId::parse(execution).map_or(0, |id| id.0);
    let room = u64::MAX - first;
    let id = SubjectId(first.saturating_add(1 + hash64(&[&n.to_be_bytes(), execution.as_bytes()]) % room.max(1)));
    id.to_string()
}

fn copy(item: &Item, context: (&str, &str), execution: (&str, &str)) -> Item {
    let renamed = |text: &str| text.replace(context.0, context.1).replace(execution.0, execution.1);
    let mut copied = item.clone();
    copied.key.pk = renamed(&item.key.pk);
    copied.key.sk = renamed(&item.key.sk);
    for value in copied.attrs.values_mut() {
        if let Attr::S(text) = value {
            *text = renamed(text);
        }
    }
    copied
}
