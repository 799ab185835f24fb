//! Loops over single requests: unprocessed items of batches, pages of queries, chunks of what is sent. All are bounded.

use crate::item::{Item, Key};
use crate::ports::{Bus, BusEntry, Consistency, Leftover, PortError, Query, Queue, Store};
use crate::protocol::Letter;
use keelway_domain::event::CloudEvent;
use std::collections::HashMap;

/// Items by their keys.
pub type Items = HashMap<Key, Item>;

/// A batch with unprocessed items is repeated this often before the message goes back to its queue.
const BATCH_TRIES: usize = 5;
/// `PutEvents`: entries in one request, and bytes together.
const BUS_ENTRIES: usize = 10;
const BUS_BYTES: usize = 256 * 1024;
/// `SendMessageBatch`: bodies in one request, and bytes together.
const QUEUE_BODIES: usize = 10;
const QUEUE_BYTES: usize = 1024 * 1024;
const WRITES: usize = 25;
const READS: usize = 100;

/// Reads items by key, strongly consistent; missing ones are absent from the map.
pub async fn read(store: &impl Store, keys: &[Key]) -> Result<Items, PortError> {
    if let [key] = keys {
        return Ok(store.get(key).await?.map(|item| (item.key.clone(), item)).into_iter().collect());
    }
    batch(store, keys, Consistency::Strong).await
}

/// The same for half of the read units: each item may be as it was before its last writes. Use it only where what follows from an
/// old state is refused by a condition, and read again before anything else is said about it.
pub async fn glance(store: &impl Store, keys: &[Key]) -> Result<Items, PortError> {
    batch(store, keys, Consistency::Eventual).await
}

async fn batch(store: &impl Store, keys: &[Key], consistency: Consistency) -> Result<Items, PortError> {
    let mut found = HashMap::new();
    for chunk in keys.chunks(READS) {
        let mut wanted = chunk.to_vec();
        wanted.sort();
        wanted.dedup();
        for _ in 0..BATCH_TRIES {
            let (items, left) = store.get_batch(&wanted, consistency).await?;
            found.extend(items.into_iter().map(|item| (item.key.clone(), item)));
            wanted = left;
            if wanted.is_empty() {
                break;
            }
        }
        if !wanted.is_empty() {
            return Err(busy("BatchGetItem", wanted.len()));
        }
    }
    Ok(found)
}

/// Puts and deletes items without conditions; only for records whose key ends in the hash of their content, and similar items.
pub async fn record(store: &impl Store, puts: Vec<Item>, deletes: Vec<Key>) -> Result<(), PortError> {
    let mut puts = puts;
    let mut deletes = deletes;
    while !puts.is_empty() || !deletes.is_empty() {
        let later = puts.split_off(puts.len().min(WRITES));
        let room = WRITES - puts.len();
        let later_deletes = deletes.split_off(deletes.len().min(room));
        let mut left = Leftover { puts, deletes };
        for _ in 0..BATCH_TRIES {
            left = store.put_batch(&left.puts, &left.deletes).await?;
            if left.puts.is_empty() && left.deletes.is_empty() {
                break;
            }
        }
        if !left.puts.is_empty() || !left.deletes.is_empty() {
            return Err(busy("BatchWriteItem", left.puts.len() + left.deletes.len()));
        }
        puts = later;
        deletes = later_deletes;
    }
    Ok(())
}

fn busy(request: &'static str, left: usize) -> PortError {
    PortError::Retry { request, reason: format!("{left} items were left undone after {BATCH_TRIES} tries") }
}

/// All items of a query, page after page, at most `most`; `true` when there may be more.
pub async fn all(store: &impl Store, query: Query, most: usize) -> Result<(Vec<Item>, bool), PortError> {
    let mut items = Vec::new();
    let mut query = query;
    loop {
        let page = store.query(&query).await?;
        items.extend(page.items);
        match page.next {
            Some(_) if items.len() >= most => return Ok((items, true)),
            Some(next) => query.after = Some(next),
            None => return Ok((items, false)),
        }
    }
}

/// Publishes events in order, in as few requests as their number and size allow.
pub async fn publish(bus: &impl Bus, events: &[CloudEvent]) -> Result<(), PortError> {
    let entry =
        |event: &CloudEvent| BusEntry { source: event.source.clone(), detail_type: event.ty.clone(), detail: event.to_bytes() };
    publish_entries(bus, events.iter().map(entry)).await
}

/// The same with entries as they are.
pub async fn publish_entries(bus: &impl Bus, entries: impl IntoIterator<Item = BusEntry>) -> Result<(), PortError> {
    let mut pending: Vec<BusEntry> = Vec::new();
    for next in entries {
        let bytes: usize = pending.iter().map(BusEntry::size).sum();
        if pending.len() == BUS_ENTRIES || (!pending.is_empty() && bytes + next.size() > BUS_BYTES) {
            publish_chunk(bus, std::mem::take(&mut pending)).await?;
        }
        pending.push(next);
    }
    if pending.is_empty() { Ok(()) } else { publish_chunk(bus, pending).await }
}

async fn publish_chunk(bus: &impl Bus, chunk: Vec<BusEntry>) -> Result<(), PortError> {
    let mut entries = chunk;
    let mut reason = String::new();
    for _ in 0..BATCH_TRIES {
        let failures = bus.publish(&entries).await?;
        let first = failures.iter().position(Option::is_some);
        let Some(first) = first else { return Ok(()) };
        reason = failures[first].clone().unwrap_or_default();
        // Everything from the first failure on is repeated, so that our calls keep the order of the events.
        entries.drain(..first);
    }
    Err(PortError::Retry { request: "PutEvents", reason })
}

/// Sends messages, in order, each to its engine's queue.
pub async fn send_all(queue: &impl Queue, letters: &[Letter]) -> Result<(), PortError> {
    for same in letters.chunk_by(|one, next| one.to == next.to) {
        let bodies: Vec<String> = same.iter().map(|letter| letter.body.clone()).collect();
        send(queue, same[0].to, &bodies).await?;
    }
    Ok(())
}

/// Sends bodies to an engine's queue, in as few requests as their number and size allow.
pub async fn send(queue: &impl Queue, engine: &str, bodies: &[String]) -> Result<(), PortError> {
    let mut rest = bodies;
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |body: &&String| {
            bytes += body.len();
            bytes <= QUEUE_BYTES
        };
        let count = rest.iter().take(QUEUE_BODIES).take_while(fits).count().max(1);
        let (chunk, later) = rest.split_at(count);
        send_chunk(queue, engine, chunk).await?;
        rest = later;
    }
    Ok(())
}

async fn send_chunk(queue: &impl Queue, engine: &str, chunk: &[String]) -> Result<(), PortError> {
    let mut pending = chunk.to_vec();
    let mut reason = String::new();
    for _ in 0..BATCH_TRIES {
        let failures = queue.send(engine, &pending).await?;
        reason = failures.iter().flatten().next().cloned().unwrap_or_default();
        pending = pending.into_iter().zip(failures).filter(|(_, failure)| failure.is_some()).map(|(body, _)| body).collect();
        if pending.is_empty() {
            return Ok(());
        }
    }
    Err(PortError::Retry { request: "SendMessageBatch", reason })
}
