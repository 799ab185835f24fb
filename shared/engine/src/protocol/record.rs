//! Transition records in the table. A record lies in its subject's partition under a key that ends in the hash of its content, so
//! competing writers never overwrite each other; the committed state names its record, and each record names the previous one.
//!
//! The hash is that of the text, packed or not: the same id always has the same bytes, whatever packs them.

use super::packed;
use super::subject::{RecordOf, Subject};
use crate::item::{Item, Key, MAX_ITEM_BYTES};
use crate::keys;
use crate::ports::{PortError, Query, Store};
use crate::table;
use keelway_domain::cause::Cause;
use keelway_domain::ids::RecordId;
use keelway_domain::stored::Recorded;
use keelway_domain::time::{Span, Timestamp};
use std::borrow::Cow;
use std::collections::HashMap;

/// The largest record, in bytes: its item has a key and other attributes besides.
pub const MAX_BYTES: usize = MAX_ITEM_BYTES - 10 * 1024;
/// An item of this size costs one write unit.
const WRITE_UNIT: usize = 1024;
/// Clocks of functions differ by less than this.
pub const SKEW: Span = Span::seconds(60);
/// How many records are read one by one, because there are rarely more; further ones are read in pages. A message that a person
/// sends again may be older than thousands of records.
const SINGLE: usize = 4;
const PAGE: u32 = 100;
/// The size of the first page, on which most searches end.
const FIRST_PAGE: u32 = 8;
/// Records read to find the one that followed another. Between the two are only records of writers that lost a race.
const FOLLOWERS: u32 = 10;

/// The key of a record of that subject.
pub fn key(x: &impl Subject, id: &RecordId) -> Key {
    Key::new(x.key().pk, keys::record_sort(id))
}

/// The item of a transition's record.
pub(super) fn item<S: Subject>(x: &S, record: Option<&RecordOf<S>>, expires: Timestamp) -> Option<Item> {
    let (id, record) = x.record().zip(record)?;
    let plain = Item::new(key(x, &id)).with("j", record.to_bytes()).with("ttl", expires.0 / 1000);
    Some(if S::PACKS_RECORDS && plain.size() > WRITE_UNIT { pack(plain) } else { plain })
}

/// The item with its text packed, if that makes it smaller.
fn pack(plain: Item) -> Item {
    let bytes = plain.text("j").and_then(|text| packed::pack(text).filter(|bytes| bytes.len() < text.len()));
    match bytes {
        Some(bytes) => plain.with("j", bytes),
        None => plain,
    }
}

/// The text of a record, packed or not.
pub fn text(item: &Item) -> Option<Cow<'_, str>> {
    item.text("j").map(Cow::Borrowed).or_else(|| packed::unpack(item.bytes("j")).map(Cow::Owned))
}

/// Reads a stored record.
pub fn decode<S: Subject>(item: Option<&Item>) -> Option<RecordOf<S>> {
    item.and_then(text).and_then(|text| S::Send::record_from_json(&text).ok())
}

/// A record of a subject by its id.
///
/// # Errors
/// A port fails.
pub async fn read<S: Subject>(store: &impl Store, x: &S, id: &RecordId) -> Result<Option<RecordOf<S>>, PortError> {
    let key = key(x, id);
    Ok(decode::<S>(table::read(store, std::slice::from_ref(&key)).await?.get(&key)))
}

/// The committed records that this message made, oldest first: usually one or none. Messages that share a cause, such as
/// evaluations for the same reason, count as one message, and each of them may have made a record. A record is younger than its
/// message, so the search goes back from the newest record and stops at the first one that is older than the message.
///
/// # Errors
/// A port fails.
pub async fn made_by<S: Subject>(store: &impl Store, x: &S, cause: Cause) -> Result<Vec<(RecordId, RecordOf<S>)>, PortError> {
    let mut made = vec![];
    let mut next = x.record();
    let (mut single, mut page, mut size) = (SINGLE, HashMap::new(), FIRST_PAGE);
    while let Some(id) = next {
        let record = if single > 0 {
            single -= 1;
            read(store, x, &id).await?
        } else {
            if !page.contains_key(&id) {
                page = up_to(store, x, &id, size).await?;
                size = PAGE.min(size * 4);
            }
            page.remove(&id)
        };
        let Some(record) = record else { break };
        next = record.previous(id.subject).filter(|_| record.at + SKEW >= cause.sent);
        if record.made_by == cause.id {
            made.push((id, record));
        }
    }
    made.reverse();
    Ok(made)
}

/// The records of a subject up to that one, as many as a page of this size has, with those of writers that lost a race.
async fn up_to<S: Subject>(
    store: &impl Store,
    x: &S,
    id: &RecordId,
    size: u32,
) -> Result<HashMap<RecordId, RecordOf<S>>, PortError> {
    let query = Query::table(x.key().pk, size).prefix(&keys::records_of(id.subject)).newest_first();
    let page = store.query(&Query { to: Some(keys::record_sort(id)), ..query }).await?;
    let record = |item: &Item| Some((keys::record_id(&item.key.sk)?, decode::<S>(Some(item))?));
    Ok(page.items.iter().filter_map(record).collect())
}

/// The committed record that follows `id` in a subject's chain. It is the record that the state or a later record names. One query
/// finds it, unless many writers lost a race there: their records prove nothing.
///
/// # Errors
/// A port fails.
pub async fn follower<S: Subject>(store: &impl Store, x: &S, id: RecordId) -> Result<Option<(RecordId, RecordOf<S>)>, PortError> {
    let page = store.query(&after(x, &id)).await?;
    let record = |item: &Item| Some((keys::record_id(&item.key.sk)?, decode::<S>(Some(item))?));
    let records: Vec<(RecordId, RecordOf<S>)> = page.items.iter().filter_map(record).collect();
    let named = |one: RecordId| x.record() == Some(one) || records.iter().any(|(_, later)| later.previous(id.subject) == Some(one));
    let follows = |(one, record): &&(RecordId, RecordOf<S>)| record.previous(id.subject) == Some(id) && named(*one);
    if let Some(found) = records.iter().find(follows) {
        return Ok(Some(found.clone()));
    }
    let mut at = x.record();
    while let Some(this) = at.filter(|this| *this != id) {
        let Some(record) = read(store, x, &this).await? else { return Ok(None) };
        at = record.previous(this.subject);
        if at == Some(id) {
            return Ok(Some((this, record)));
        }
    }
    Ok(None)
}

/// The records of a subject with a higher number than `id`.
fn after(x: &impl Subject, id: &RecordId) -> Query {
    let mut query = Query::table(x.key().pk, FOLLOWERS).prefix(&keys::records_of(id.subject));
    query.from = keys::records_from(id.subject, id.number + 1);
    query
}
