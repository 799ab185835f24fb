//! What every [`Store`] must do: the in-memory twin and the one on DynamoDB pass the same properties, so what the simulation proves on
//! the twin holds for the table.
//!
//! Each property works in partitions that begin with the given prefix, so many may run in one table at the same time.

use keelway_engine::item::{Attrs, Item, Key, MAX_ITEM_BYTES, Name};
use keelway_engine::ports::{Condition, Cursor, Index, PortError, Query, Store, Transacted, Write, Written};
use std::collections::BTreeSet;

/// A store that knows what its writes cost.
pub trait Meter {
    /// Write request units consumed so far.
    fn write_units(&self) -> f64;
}

impl Meter for crate::worker::Worker {
    fn write_units(&self) -> f64 {
        self.core().table.units.write
    }
}

/// Why a property does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// A request failed that should not.
    #[error("a request failed: {0}")]
    Request(#[from] PortError),
    /// The store answered otherwise.
    #[error("{what}: expected {expected}, got {got}")]
    Differs {
        /// What was looked at.
        what: &'static str,
        /// What should have come.
        expected: String,
        /// What came.
        got: String,
    },
}

fn same<T: PartialEq + std::fmt::Debug>(what: &'static str, got: T, expected: T) -> Result<(), Broken> {
    if got == expected {
        return Ok(());
    }
    Err(Broken::Differs { what, expected: format!("{expected:?}"), got: format!("{got:?}") })
}

/// The properties' names, in the order of [`check`]'s numbers.
pub const PROPERTIES: [&str; 10] = [
    "a failed condition returns the old item",
    "a version guards an item, and an item without one has none",
    "an update touches only what it names",
    "a transaction happens whole or not at all, and says why",
    "a partition is read in pages, both ways",
    "an index holds keys only and is read in pages",
    "batches write and read everything once leftovers are sent again",
    "an item that is too large is refused",
    "limits of batches and duplicate keys are refused",
    "a write may compare attributes and raise the version",
];

/// What DynamoDB keeps and the local cloud's emulator does not, and what that does instead: asked of the twin only.
pub const TWIN_ONLY: [(&str, &str); 1] =
    [("an update that names an attribute twice is refused", "the emulator carries out one clause after the other")];

/// Checks one property by its place in [`TWIN_ONLY`].
pub async fn check_twin(worker: &crate::worker::Worker, _property: usize, prefix: &str) -> Result<(), Broken> {
    named_twice(worker, Key::new(format!("{prefix}twin"), "a")).await
}

/// Checks one property by its place in [`PROPERTIES`].
pub async fn check<S: Store>(store: &S, property: usize, prefix: &str) -> Result<(), Broken> {
    let at = |sk: &str| Key::new(format!("{prefix}{property}"), sk);
    match property {
        0 => old_item(store, at("a")).await,
        1 => versions(store, at("a")).await,
        2 => update(store, at("a")).await,
        3 => transaction(store, &at("x").pk).await,
        4 => pages(store, &at("x").pk).await,
        5 => index(store, &at("x").pk).await,
        6 => batches(store, &at("x").pk).await,
        7 => sizes(store, at("a")).await,
        8 => limits(store, &at("x").pk).await,
        _ => matching(store, &at("x").pk).await,
    }
}

async fn old_item<S: Store>(store: &S, key: Key) -> Result<(), Broken> {
    let first = Item::new(key.clone()).with("v", 1i64).with("t", "old");
    let second = Item::new(key.clone()).with("v", 1i64).with("t", "new");
    same("update of an item that is absent", store.write(&bump(&key, 4)).await?, Written::Conflict(None))?;
    same("first put", store.write(&Write::Put(first.clone(), Condition::Absent)).await?, Written::Done)?;
    let conflict = Written::Conflict(Some(first.clone()));
    same("second put if absent", store.write(&Write::Put(second, Condition::Absent)).await?, conflict.clone())?;
    same("update of another version", store.write(&bump(&key, 7)).await?, conflict.clone())?;
    same("delete of another version", store.write(&Write::Delete(key.clone(), Condition::Version(2))).await?, conflict)?;
    same("the item afterwards", store.get(&key).await?, Some(first))?;
    same("delete of this version", store.write(&Write::Delete(key.clone(), Condition::Version(1))).await?, Written::Done)?;
    same("after the delete", store.get(&key).await?, None)?;
    same("a delete of nothing", store.write(&Write::Delete(key, Condition::Always)).await?, Written::Done)
}

fn bump(key: &Key, version: i64) -> Write {
    let set = Attrs::from([("v".into(), (version + 1).into())]);
    Write::Update { key: key.clone(), condition: Condition::Version(version), set, remove: vec![], raise: false }
}

async fn versions<S: Store>(store: &S, key: Key) -> Result<(), Broken> {
    let set = Attrs::from([("v".into(), 1i64.into())]);
    let create = Write::Update { key: key.clone(), condition: Condition::Absent, set, remove: vec![], raise: false };
    same("an update creates an absent item", store.write(&create).await?, Written::Done)?;
    for version in 1..=20 {
        same("an update of the present version", store.write(&bump(&key, version)).await?, Written::Done)?;
        let item = Item::new(key.clone()).with("v", version + 1);
        same("the same update again", store.write(&bump(&key, version)).await?, Written::Conflict(Some(item)))?;
    }
    let bare = Item::new(key.clone()).with("t", "no version");
    store.write(&Write::Put(bare.clone(), Condition::Always)).await?;
    same("version 0 of an item without one", store.write(&bump(&key, 0)).await?, Written::Conflict(Some(bare)))
}

async fn update<S: Store>(store: &S, key: Key) -> Result<(), Broken> {
    let before = (Item::new(key.clone()).with("v", 1i64))
        .with("keep", "as it was")
        .with("bytes", vec![0u8, 255, 7])
        .with("flag", true)
        .with("n", -1_795_222_266_686i64)
        .with("gone", "soon");
    store.write(&Write::Put(before.clone(), Condition::Absent)).await?;
    let set = Attrs::from([("v".into(), 2i64.into()), ("ttl".into(), 5i64.into()), ("size".into(), "a reserved word".into())]);
    let remove = vec!["gone".into(), "never".into()];
    let write = Write::Update { key: key.clone(), condition: Condition::Version(1), set, remove, raise: false };
    same("the update", store.write(&write).await?, Written::Done)?;
    let mut after = before.with("v", 2i64).with("ttl", 5i64).with("size", "a reserved word");
    after.attrs.remove("gone");
    same("what is left", store.get(&key).await?, Some(after))
}

async fn transaction<S: Store>(store: &S, pk: &str) -> Result<(), Broken> {
    let key = |sk: &str| Key::new(pk, sk);
    let item = |sk: &str| Item::new(key(sk)).with("v", 1i64);
    store.write(&Write::Put(item("old"), Condition::Absent)).await?;
    let writes = |version| {
        vec![
            Write::Put(item("new"), Condition::Absent),
            Write::Check(key("absent"), Condition::Absent),
            bump(&key("old"), version),
            Write::Put(item("always"), Condition::Always),
        ]
    };
    let cancelled = Transacted::Cancelled(vec![false, false, true, false]);
    same("with one condition wrong", store.transact(&writes(3)).await?, cancelled)?;
    same("nothing of it happened", store.get(&key("new")).await?, None)?;
    same("not even the unconditional one", store.get(&key("always")).await?, None)?;
    same("with all conditions right", store.transact(&writes(1)).await?, Transacted::Done)?;
    let old = Item::new(key("old")).with("v", 2i64);
    same("the update in it", store.get(&key("old")).await?, Some(old))?;
    same("the put in it", store.get(&key("new")).await?, Some(item("new")))?;
    same("the check wrote nothing", store.get(&key("absent")).await?, None)?;
    let both = Transacted::Cancelled(vec![true, false, true, false]);
    same("again: every reason is given", store.transact(&writes(1)).await?, both)?;
    let checks = [Write::Check(key("old"), Condition::Version(1)), Write::Delete(key("new"), Condition::Version(1))];
    same("a check that fails", store.transact(&checks).await?, Transacted::Cancelled(vec![true, false]))
}

async fn read<S: Store>(store: &S, query: Query) -> Result<(Vec<String>, u32), Broken> {
    let (mut found, mut pages, mut after) = (vec![], 0, None::<Cursor>);
    loop {
        let page = store.query(&query.clone().after(after)).await?;
        pages += 1;
        if page.items.len() > query.limit as usize {
            same("items of a page", page.items.len(), query.limit as usize)?;
        }
        found.extend(page.items.into_iter().map(|item| item.key.sk));
        match page.next {
            Some(next) if pages < 50 => after = Some(next),
            _ => return Ok((found, pages)),
        }
    }
}

async fn pages<S: Store>(store: &S, pk: &str) -> Result<(), Broken> {
    // `!` sorts first, and everything between is a legal character.
    let sks = ["!", "A#1", "A#2", "A#3", "A#\u{e4}", "B", "a"];
    for sk in sks {
        store.write(&Write::Put(Item::new(Key::new(pk, sk)).with("x", sk), Condition::Always)).await?;
    }
    store.write(&Write::Put(Item::new(Key::new(format!("{pk}0"), "A#9")), Condition::Always)).await?;
    let names = |names: &[&str]| names.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
    let down: Vec<&str> = sks.iter().rev().copied().collect();
    for limit in [1, 2, 3, 7, 100] {
        let all = Query::table(pk, limit);
        same("all, ascending", read(store, all.clone()).await?.0, names(&sks))?;
        same("all, descending", read(store, all.clone().newest_first()).await?.0, names(&down))?;
        same("a prefix", read(store, all.clone().prefix("A#")).await?.0, names(&sks[1..5]))?;
        let back = all.prefix("A#").newest_first();
        same("a prefix, descending", read(store, back).await?.0, names(&["A#\u{e4}", "A#3", "A#2", "A#1"]))?;
        let range = Query { from: "A#2".into(), to: Some("B".into()), ..Query::table(pk, limit) };
        same("a range, both ends included", read(store, range.clone()).await?.0, names(&sks[2..6]))?;
        let from = Query { to: None, ..range };
        same("from somewhere on", read(store, from).await?.0, names(&sks[2..]))?;
        let to = Query { to: Some("A#2".into()), ..Query::table(pk, limit) };
        same("up to somewhere", read(store, to).await?.0, names(&sks[..3]))?;
    }
    let head = store.query(&Query::table(pk, 2)).await?;
    same("the first two only", head.items.iter().map(|item| item.key.sk.as_str()).collect(), vec!["!", "A#1"])?;
    same("whole items", head.items[1].text("x"), Some("A#1"))?;
    same("an empty partition", store.query(&Query::table(format!("{pk}-none"), 5)).await?.items, vec![])
}

async fn index<S: Store>(store: &S, pk: &str) -> Result<(), Broken> {
    let (work, age) = (format!("{pk}W"), format!("{pk}A"));
    let item = |i: usize| {
        let item = Item::new(Key::new(pk, format!("i{i}"))).with("v", 1i64).with("big", "not in the index");
        let item = item.with("gp1", work.as_str()).with("gs1", format!("s{}", i / 2));
        if i.is_multiple_of(3) { item.with("gp2", age.as_str()).with("gs2", format!("t{i}")) } else { item }
    };
    for i in 0..7 {
        store.write(&Write::Put(item(i), Condition::Always)).await?;
    }
    let set = Attrs::from([("v".into(), 2i64.into())]);
    let key = Key::new(pk, "i2");
    let leave =
        Write::Update { key, condition: Condition::Version(1), set, remove: vec!["gp1".into(), "gs1".into()], raise: false };
    store.write(&leave).await?;
    for limit in [1, 2, 10] {
        let all = settled(store, Query::index(Index::ByWork, work.as_str(), limit), 6).await?;
        let set: BTreeSet<String> = all.iter().cloned().collect();
        same("entries of the index, each once", set.len(), 6)?;
        same("the one that left", set.contains("i2"), false)?;
        // Equal sort keys have no promised order among themselves.
        same("the first sort key's", all[..2].iter().cloned().collect(), BTreeSet::from(["i0".to_owned(), "i1".to_owned()]))?;
        let down = settled(store, Query::index(Index::ByAge, age.as_str(), limit).newest_first(), 3).await?;
        same("the other index, descending", down, vec!["i6".into(), "i3".into(), "i0".into()])?;
        let range = Query { from: "t1".into(), to: Some("t3".into()), ..Query::index(Index::ByAge, age.as_str(), limit) };
        same("a range of it", settled(store, range, 1).await?, vec!["i3".into()])?;
    }
    let page = store.query(&Query::index(Index::ByAge, age.as_str(), 1)).await?;
    let names: Vec<&str> = page.items[0].attrs.keys().map(AsRef::as_ref).collect();
    same("keys only", names, vec!["gp2", "gs2"])
}

/// Reads an index until it has caught up.
async fn settled<S: Store>(store: &S, query: Query, expected: usize) -> Result<Vec<String>, Broken> {
    let mut found = vec![];
    for _ in 0..100 {
        found = read(store, query.clone()).await?.0;
        if found.len() == expected {
            break;
        }
    }
    same("entries once the index has caught up", found.len(), expected)?;
    Ok(found)
}

async fn batches<S: Store>(store: &S, pk: &str) -> Result<(), Broken> {
    let item = |i: usize| Item::new(Key::new(pk, format!("{i:02}"))).with("n", i as i64);
    let mut todo = keelway_engine::ports::Leftover { puts: (0..20).map(item).collect(), deletes: vec![] };
    write_all(store, &mut todo).await?;
    todo.deletes = (0..5).map(|i| item(i).key).collect();
    todo.puts = (20..40).map(item).collect();
    write_all(store, &mut todo).await?;
    let mut keys: Vec<Key> = (0..40).map(|i| item(i).key).collect();
    let mut found = vec![];
    for _ in 0..30 {
        let (items, left) = store.get_batch(&keys).await?;
        found.extend(items);
        keys = left;
        if keys.is_empty() {
            break;
        }
    }
    found.sort_by(|a, b| a.key.cmp(&b.key));
    same("what exists, each once", found, (5..40).map(item).collect::<Vec<_>>())
}

async fn write_all<S: Store>(store: &S, todo: &mut keelway_engine::ports::Leftover) -> Result<(), Broken> {
    for _ in 0..30 {
        if todo.puts.is_empty() && todo.deletes.is_empty() {
            return Ok(());
        }
        *todo = store.put_batch(&todo.puts, &todo.deletes).await?;
    }
    same("leftovers after 30 rounds", todo.puts.len() + todo.deletes.len(), 0)
}

fn refusal<T: std::fmt::Debug>(what: &'static str, result: Result<T, PortError>) -> Result<(), Broken> {
    match result {
        Err(PortError::Refused { .. }) => Ok(()),
        other => Err(Broken::Differs { what, expected: "a refusal".into(), got: format!("{other:?}") }),
    }
}

async fn sizes<S: Store>(store: &S, key: Key) -> Result<(), Broken> {
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

async fn limits<S: Store>(store: &S, pk: &str) -> Result<(), Broken> {
    let item = |i: usize| Item::new(Key::new(pk, format!("{i:03}"))).with("v", 1i64);
    let items: Vec<Item> = (0..101).map(item).collect();
    let keys: Vec<Key> = items.iter().map(|item| item.key.clone()).collect();
    let puts: Vec<Write> = items.iter().map(|item| Write::Put(item.clone(), Condition::Always)).collect();
    refusal("26 writes in a batch", store.put_batch(&items[..26], &[]).await)?;
    refusal("101 reads in a batch", store.get_batch(&keys).await)?;
    refusal("101 writes in a transaction", store.transact(&puts).await)?;
    refusal("a key twice in a batch", store.put_batch(&items[..1], &keys[..1]).await)?;
    refusal("a key twice in a read", store.get_batch(&[keys[0].clone(), keys[0].clone()]).await)?;
    refusal("a key twice in a transaction", store.transact(&[puts[0].clone(), puts[0].clone()]).await)?;
    refusal("an empty partition key", store.write(&Write::Put(Item::new(Key::new("", "x")), Condition::Always)).await)?;
    refusal("an empty index key", store.write(&Write::Put(item(0).with("gp1", "").with("gs1", "x"), Condition::Always)).await)?;
    same("nothing of it happened", store.query(&Query::table(pk, 5)).await?.items, vec![])
}

async fn matching<S: Store>(store: &S, pk: &str) -> Result<(), Broken> {
    let key = Key::new(pk, "a");
    let write = |k: i64, hash: Vec<u8>, set: Attrs, remove: Vec<Name>| {
        let equal = Attrs::from([("k".into(), k.into()), ("th".into(), hash.into()), ("t".into(), "open".into())]);
        let condition = Condition::Match { equal, absent: vec!["en".into(), "size".into()] };
        Write::Update { key: key.clone(), condition, set, remove, raise: true }
    };
    let set = |name: &'static str| Attrs::from([(name.into(), "x".into())]);
    let step = |k| write(k, vec![7, 0], set("r"), vec!["w".into()]);
    let before = Item::new(key.clone()).with("k", 3i64).with("th", vec![7, 0]).with("t", "open").with("w", 5i64);
    same("of an item that is absent", store.write(&step(3)).await?, Written::Conflict(None))?;
    store.write(&Write::Put(before.clone(), Condition::Absent)).await?;
    refusal("raising a version that is not there", store.write(&step(3)).await)?;
    let before = before.with("v", 9i64);
    store.write(&Write::Put(before.clone(), Condition::Always)).await?;
    let conflict = Written::Conflict(Some(before.clone()));
    same("with another number", store.write(&step(4)).await?, conflict.clone())?;
    same("with other bytes", store.write(&write(3, vec![7], set("r"), vec![])).await?, conflict)?;
    let mut after = before.with("v", 10i64).with("r", "x");
    after.attrs.remove("w");
    same("when all are equal", store.write(&step(3)).await?, Written::Done)?;
    same("what it did", store.get(&key).await?, Some(after.clone()))?;
    same("only the version", store.write(&write(3, vec![7, 0], Attrs::new(), vec![])).await?, Written::Done)?;
    let both = [step(3), Write::Put(Item::new(Key::new(pk, "b")), Condition::Absent)];
    same("in a transaction", store.transact(&both).await?, Transacted::Done)?;
    same("three times raised", store.get(&key).await?.map(|item| item.version()), Some(12))?;
    same("in a transaction that fails", store.transact(&both).await?, Transacted::Cancelled(vec![false, true]))?;
    same("an end", store.write(&write(3, vec![7, 0], set("en"), vec![])).await?, Written::Done)?;
    let ended = after.with("v", 13i64).with("en", "x");
    same("once one that must be absent is there", store.write(&step(3)).await?, Written::Conflict(Some(ended.clone())))?;
    let delete = |k: i64| {
        let equal = Attrs::from([("k".into(), k.into())]);
        Write::Delete(key.clone(), Condition::Match { equal, absent: vec!["none".into()] })
    };
    same("a delete with another number", store.write(&delete(2)).await?, Written::Conflict(Some(ended.clone())))?;
    same("a delete when all are equal", store.write(&delete(3)).await?, Written::Done)
}

async fn named_twice<S: Store>(store: &S, key: Key) -> Result<(), Broken> {
    let before = Item::new(key.clone()).with("v", 1i64).with("t", "as it was");
    store.write(&Write::Put(before.clone(), Condition::Absent)).await?;
    let set = |name: &'static str| Attrs::from([(name.into(), "x".into())]);
    let write = |set, remove, raise| Write::Update { key: key.clone(), condition: Condition::Always, set, remove, raise };
    refusal("set and removed", store.write(&write(set("t"), vec!["t".into()], false)).await)?;
    refusal("set and raised", store.write(&write(set("v"), vec![], true)).await)?;
    refusal("removed and raised", store.write(&write(Attrs::new(), vec!["v".into()], true)).await)?;
    same("nothing of it happened", store.get(&key).await?, Some(before))
}

/// What single writes cost, index entries included.
pub async fn write_units<S: Store + Meter>(store: &S, prefix: &str) -> Result<(), Broken> {
    let key = Key::new(format!("{prefix}units"), "a");
    let item = |bytes: usize| Item::new(key.clone()).with("v", 1i64).with("b", vec![1u8; bytes]);
    let (partition, sort): (String, &str) = (format!("{prefix}W"), "1");
    let indexed = item(10).with("gp1", partition.as_str()).with("gs1", sort);
    let put = |item: Item| Write::Put(item, Condition::Always);
    let set = |name: &'static str, value: &str| {
        let set = Attrs::from([(name.into(), value.into())]);
        Write::Update { key: key.clone(), condition: Condition::Always, set, remove: vec![], raise: false }
    };
    let steps: [(&'static str, Write, f64); 8] = [
        ("an item of 1 KB", put(item(900)), 1.0),
        ("growing to 3 KB", put(item(2500)), 3.0),
        ("shrinking from 3 KB", put(item(10)), 3.0),
        ("with a new index entry", put(indexed.clone()), 2.0),
        ("the index entry stays", put(indexed.with("x", 1i64)), 1.0),
        ("the index entry moves", set("gs1", "2"), 3.0),
        ("an update elsewhere", set("x", "y"), 1.0),
        ("a delete, index entry included", Write::Delete(key.clone(), Condition::Always), 2.0),
    ];
    for (what, write, expected) in steps {
        let before = store.write_units();
        same("written", store.write(&write).await?, Written::Done)?;
        same(what, store.write_units() - before, expected)?;
    }
    let before = store.write_units();
    let other = Item::new(Key::new(key.pk.clone(), "b")).with("v", 1i64);
    store
        .transact(&[
            put(item(10)),
            Write::Put(other, Condition::Absent),
            Write::Check(Key::new(key.pk.clone(), "c"), Condition::Absent),
        ])
        .await?;
    same("a transaction of three small writes", store.write_units() - before, 6.0)?;
    let before = store.write_units();
    same("refused", store.write(&bump(&key, 5)).await?, Written::Conflict(Some(item(10))))?;
    same("a failed condition", store.write_units() - before, 1.0)
}
