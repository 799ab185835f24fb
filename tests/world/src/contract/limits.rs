//! What is refused, and what is answered in parts because of its size.

use super::{Broken, bump, refusal, same};
use keelway_engine::item::{Attrs, Item, Key, MAX_ITEM_BYTES, MAX_PARTITION_BYTES, MAX_SORT_BYTES};
use keelway_engine::ports::{Condition, Consistency, Cursor, Index, Leftover, Query, Store, Transacted, Write, Written};

/// The most that one page of a query holds, in bytes.
const PAGE_BYTES: usize = 1 << 20;
/// The most that one batch answers, in bytes.
const BATCH_BYTES: usize = 16 << 20;

/// So many bytes that begin with `text`.
fn long(text: &str, bytes: usize) -> String {
    format!("{text:x<bytes$}")
}

fn put(item: Item) -> Write {
    Write::Put(item, Condition::Always)
}

pub(super) async fn sizes<S: Store>(store: &S, key: Key) -> Result<(), Broken> {
    let bare = Item::new(key.clone()).with("v", 1i64).with("b", vec![]);
    let room = MAX_ITEM_BYTES - bare.size();
    let full = bare.clone().with("b", vec![7u8; room]);
    same("the largest item", store.write(&Write::Put(full.clone(), Condition::Absent)).await?, Written::Done)?;
    same("and back", store.get(&key).await?.is_some_and(|item| item == full), true)?;
    let more = bare.with("b", vec![7u8; room + 1]);
    refusal("one byte more, put", store.write(&Write::Put(more.clone(), Condition::Always)).await)?;
    refusal("one byte more, batch", store.put_batch(&[more], &[]).await)?;
    let set = Attrs::from([("w".into(), "x".into())]);
    let write = Write::Update { key, condition: Condition::Version(1), set, remove: vec![], raise: false };
    refusal("grown by an update", store.write(&write).await)
}

pub(super) async fn counts<S: Store>(store: &S, pk: &str) -> Result<(), Broken> {
    let item = |i: usize| Item::new(Key::new(pk, format!("{i:03}"))).with("v", 1i64);
    let items: Vec<Item> = (0..101).map(item).collect();
    let keys: Vec<Key> = items.iter().map(|item| item.key.clone()).collect();
    let puts: Vec<Write> = items.iter().cloned().map(put).collect();
    refusal("26 writes in a batch", store.put_batch(&items[..26], &[]).await)?;
    refusal("101 reads in a batch", store.get_batch(&keys, Consistency::Strong).await)?;
    refusal("101 writes in a transaction", store.transact(&puts).await)?;
    refusal("a key twice in a batch", store.put_batch(&items[..1], &keys[..1]).await)?;
    refusal("a key twice in a read", store.get_batch(&[keys[0].clone(), keys[0].clone()], Consistency::Strong).await)?;
    refusal("a key twice in a transaction", store.transact(&[puts[0].clone(), puts[0].clone()]).await)?;
    refusal("an empty partition key", store.write(&Write::Put(Item::new(Key::new("", "x")), Condition::Always)).await)?;
    refusal("an empty index key", store.write(&Write::Put(item(0).with("gp1", "").with("gs1", "x"), Condition::Always)).await)?;
    let check = |condition| Write::Check(keys[0].clone(), condition);
    refusal("a check by itself", store.write(&check(Condition::Absent)).await)?;
    refusal("a check without a condition", store.transact(&[puts[1].clone(), check(Condition::Always)]).await)?;
    same("nothing of it happened", store.query(&Query::table(pk, 5)).await?.items, vec![])
}

pub(super) async fn keys<S: Store>(store: &S, pk: &str) -> Result<(), Broken> {
    let longest = Key::new(long(pk, MAX_PARTITION_BYTES), long("a", MAX_SORT_BYTES));
    same("the longest key", store.write(&put(Item::new(longest.clone()))).await?, Written::Done)?;
    same("read again", store.get(&longest).await?, Some(Item::new(longest.clone())))?;
    let query = Query { from: longest.sk.clone(), to: Some(longest.sk.clone()), ..Query::table(longest.pk.as_str(), 5) };
    same("found again", store.query(&query).await?.items, vec![Item::new(longest.clone())])?;
    let wrong = [
        Key::new(long(pk, MAX_PARTITION_BYTES + 1), "a"),
        Key::new(pk, long("a", MAX_SORT_BYTES + 1)),
        Key::new("", "a"),
        Key::new(pk, ""),
    ];
    for key in wrong {
        let item = Item::new(key.clone());
        refusal("a read", store.get(&key).await)?;
        refusal("a read in a batch", store.get_batch(&[longest.clone(), key.clone()], Consistency::Strong).await)?;
        refusal("a put", store.write(&put(item.clone())).await)?;
        refusal("an update", store.write(&bump(&key, 1)).await)?;
        refusal("a delete", store.write(&Write::Delete(key.clone(), Condition::Always)).await)?;
        refusal("a put in a batch", store.put_batch(std::slice::from_ref(&item), &[]).await)?;
        refusal("a delete in a batch", store.put_batch(&[], std::slice::from_ref(&key)).await)?;
        refusal("a put in a transaction", store.transact(&[put(item), bump(&longest, 1)]).await)?;
    }
    same("a delete of the longest", store.write(&Write::Delete(longest, Condition::Always)).await?, Written::Done)
}

pub(super) async fn bounds<S: Store>(store: &S, pk: &str) -> Result<(), Broken> {
    let of = Query::table(pk, 5);
    let longest = Query { from: long("a", MAX_SORT_BYTES), to: Some(long("b", MAX_SORT_BYTES)), ..of.clone() };
    same("the longest bounds", store.query(&longest).await?.items, vec![])?;
    refusal("from", store.query(&Query { from: long("a", MAX_SORT_BYTES + 1), ..of.clone() }).await)?;
    refusal("to", store.query(&Query { to: Some(long("a", MAX_SORT_BYTES + 1)), ..of.clone() }).await)?;
    refusal("a prefix", store.query(&of.prefix(&long("a", MAX_SORT_BYTES - 1))).await)?;
    refusal("a partition", store.query(&Query::table(long(pk, MAX_PARTITION_BYTES + 1), 5)).await)?;
    refusal("no partition", store.query(&Query::table("", 5)).await)?;
    refusal("of an index", store.query(&Query::index(Index::ByAge, pk, 5).prefix(&long("a", MAX_SORT_BYTES))).await)?;
    for key in [Key::new(pk, long("a", MAX_SORT_BYTES + 1)), Key::new(pk, "")] {
        let check = Write::Check(key.clone(), Condition::Absent);
        refusal("a check in a transaction", store.transact(&[check]).await)?;
        refusal("an update in a transaction", store.transact(&[bump(&key, 1)]).await)?;
    }
    Ok(())
}

pub(super) async fn index_keys<S: Store>(store: &S, pk: &str) -> Result<(), Broken> {
    let key = Key::new(pk, "a");
    let item = |partition: usize, sort: usize| {
        Item::new(key.clone()).with("v", 1i64).with("gp1", long(pk, partition)).with("gs1", long("s", sort))
    };
    let longest = item(MAX_PARTITION_BYTES, MAX_SORT_BYTES);
    same("the longest", store.write(&put(longest.clone())).await?, Written::Done)?;
    let (partition, sort) = (item(MAX_PARTITION_BYTES + 1, 1), item(1, MAX_SORT_BYTES + 1));
    refusal("a longer partition", store.write(&put(partition.clone())).await)?;
    refusal("a longer sort key", store.write(&put(sort.clone())).await)?;
    refusal("in a batch", store.put_batch(std::slice::from_ref(&sort), &[]).await)?;
    let update = Write::Update { key: key.clone(), condition: Condition::Always, set: sort.attrs, remove: vec![], raise: false };
    refusal("by an update", store.write(&update).await)?;
    refusal("in a transaction", store.transact(&[update]).await)?;
    same("nothing of it happened", store.get(&key).await?, Some(longest))
}

pub(super) async fn starts<S: Store>(store: &S, pk: &str) -> Result<(), Broken> {
    for sk in ["a1", "a2", "a3", "b"] {
        let item = Item::new(Key::new(pk, sk)).with("gp1", format!("{pk}W")).with("gs1", sk);
        store.write(&put(item)).await?;
    }
    let at = |pk: &str, sk: &str| Cursor { key: Key::new(pk, sk), index_sort: None };
    let after = |cursor: Cursor| Query::table(pk, 5).prefix("a").after(Some(cursor));
    let found = |page: keelway_engine::ports::Page| page.items.into_iter().map(|item| item.key.sk).collect::<Vec<_>>();
    // Where an item was until somebody deleted it.
    same("behind a place", found(store.query(&after(at(pk, "a15"))).await?), vec!["a2".into(), "a3".into()])?;
    let down = after(at(pk, "a3")).newest_first();
    same("behind a place, descending", found(store.query(&down).await?), vec!["a2".into(), "a1".into()])?;
    same("behind the last", found(store.query(&after(at(pk, "a3"))).await?), vec![])?;
    refusal("a place in another partition", store.query(&after(at(&format!("{pk}-other"), "a1"))).await)?;
    refusal("a place before the range", store.query(&after(at(pk, "Z"))).await)?;
    refusal("a place behind the range", store.query(&after(at(pk, "b"))).await)?;
    refusal("a place behind the range, descending", store.query(&after(at(pk, "b")).newest_first()).await)?;
    let index = |sort: Option<&str>| {
        let cursor = Cursor { key: Key::new(pk, "a1"), index_sort: sort.map(str::to_owned) };
        Query::index(Index::ByWork, format!("{pk}W"), 5).prefix("a").after(Some(cursor))
    };
    same("behind a place that is not in the index", found(store.query(&index(Some("a4"))).await?), vec![])?;
    refusal("a place without a key of the index", store.query(&index(None)).await)?;
    refusal("a place outside of the index's range", store.query(&index(Some("b"))).await)
}

pub(super) async fn page<S: Store>(store: &S, pk: &str) -> Result<(), Broken> {
    let item = |i: usize| Item::new(Key::new(pk, i.to_string())).with("b", "y".repeat(300_000));
    for i in 0..5 {
        store.write(&put(item(i))).await?;
    }
    let first = store.query(&Query::table(pk, 100)).await?;
    same("four of five", first.items, (0..4).map(item).collect::<Vec<_>>())?;
    let rest = store.query(&Query::table(pk, 100).after(first.next)).await?;
    same("the other one", rest.items, vec![item(4)])?;
    same("that was all", rest.next, None)?;
    let last = store.query(&Query::table(pk, 100).newest_first()).await?;
    same("four of five, descending", last.items, (1..5).rev().map(item).collect::<Vec<_>>())?;
    same("and more before", last.next.is_some(), true)
}

pub(super) async fn index_page<S: Store>(store: &S, pk: &str) -> Result<(), Broken> {
    // 300 entries of about 4 KB each.
    let item = |i: usize| {
        let key = Key::new(long(pk, MAX_PARTITION_BYTES), long(&format!("{i:03}"), MAX_SORT_BYTES));
        Item::new(key).with("gp2", format!("{pk}A")).with("gs2", long(&format!("{i:03}"), MAX_SORT_BYTES))
    };
    let items: Vec<Item> = (0..300).map(item).collect();
    for chunk in items.chunks(25) {
        super::reads::write_all(store, &mut Leftover { puts: chunk.to_vec(), deletes: vec![] }).await?;
    }
    let query = Query::index(Index::ByAge, format!("{pk}A"), 1000);
    super::reads::settled(store, query.clone(), 300).await?;
    let first = store.query(&query).await?;
    let bytes: usize = first.items.iter().map(Item::size).sum();
    let size = first.items[0].size();
    same("with the one that reaches 1 MB", first.items.len(), PAGE_BYTES.div_ceil(size))?;
    same("and no more", bytes >= PAGE_BYTES && bytes - size < PAGE_BYTES, true)?;
    let rest = store.query(&query.after(first.next)).await?;
    same("the others", rest.items.len(), 300 - first.items.len())
}

pub(super) async fn large_transaction<S: Store>(store: &S, pk: &str) -> Result<(), Broken> {
    let item = |i: usize| Item::new(Key::new(pk, format!("{i:02}"))).with("b", "y".repeat(400_000));
    let puts = |count: usize| (0..count).map(|i| put(item(i))).collect::<Vec<_>>();
    refusal("11 items of 400,000 bytes", store.transact(&puts(11)).await)?;
    same("nothing of it happened", store.get(&item(0).key).await?, None)?;
    same("10 items", store.transact(&puts(10)).await?, Transacted::Done)
}

pub(super) async fn size_and_condition<S: Store>(store: &S, key: Key) -> Result<(), Broken> {
    let present = Item::new(key.clone()).with("v", 1i64).with("b", "y".repeat(300_000));
    store.write(&put(present.clone())).await?;
    let large = present.clone().with("b", "y".repeat(MAX_ITEM_BYTES));
    refusal("an item that is too large, where one is", store.write(&Write::Put(large, Condition::Absent)).await)?;
    let grow = |version: i64, bytes: usize| {
        let set = Attrs::from([("c".into(), "y".repeat(bytes).into())]);
        Write::Update { key: key.clone(), condition: Condition::Version(version), set, remove: vec![], raise: false }
    };
    let conflict = Written::Conflict(Some(present.clone()));
    same("an update that would grow it, of another version", store.write(&grow(2, 200_000)).await?, conflict)?;
    refusal("an update that would grow it", store.write(&grow(1, 200_000)).await)?;
    refusal("an update that nothing has room for, of another version", store.write(&grow(2, MAX_ITEM_BYTES)).await)?;
    refusal("in a transaction", store.transact(&[grow(1, 200_000)]).await)?;
    same("nothing of it happened", store.get(&key).await?, Some(present))
}

pub(super) async fn large_batch<S: Store>(store: &S, pk: &str) -> Result<(), Broken> {
    let item = |i: usize| Item::new(Key::new(pk, format!("{i:02}"))).with("b", "y".repeat(400_000));
    for i in 0..50 {
        store.write(&put(item(i))).await?;
    }
    let mut wanted: Vec<Key> = (0..50).map(|i| item(i).key).collect();
    let mut found = vec![];
    while !wanted.is_empty() {
        let (items, left) = store.get_batch(&wanted, Consistency::Strong).await?;
        same("bytes in one answer", items.iter().map(Item::size).sum::<usize>() <= BATCH_BYTES, true)?;
        same("it gets on", left.len() < wanted.len(), true)?;
        found.extend(items.into_iter().map(|item| item.key));
        wanted = left;
    }
    found.sort();
    same("each once", found, (0..50).map(|i| item(i).key).collect::<Vec<_>>())
}
