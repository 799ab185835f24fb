//! Writes, conditions and transactions.

use super::{Broken, bump, refusal, same};
use keelway_engine::item::{Attrs, Item, Key, Name};
use keelway_engine::ports::{Condition, Store, Transacted, Write, Written};

pub(super) async fn old_item<S: Store>(store: &S, key: Key) -> Result<(), Broken> {
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

pub(super) async fn versions<S: Store>(store: &S, key: Key) -> Result<(), Broken> {
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

pub(super) async fn update<S: Store>(store: &S, key: Key) -> Result<(), Broken> {
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

pub(super) async fn transaction<S: Store>(store: &S, pk: &str) -> Result<(), Broken> {
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

pub(super) async fn matching<S: Store>(store: &S, pk: &str) -> Result<(), Broken> {
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

pub(super) async fn adding<S: Store>(store: &S, pk: &str) -> Result<(), Broken> {
    let key = Key::new(pk, "a");
    let add = |by, version| Write::Add { key: key.clone(), condition: Condition::Version(version), name: "n".into(), by };
    same("to an item that is absent", store.write(&add(1, 1)).await?, Written::Conflict(None))?;
    let before = Item::new(key.clone()).with("v", 1i64).with("t", "a text");
    store.write(&Write::Put(before.clone(), Condition::Absent)).await?;
    same("to a number that is absent", store.write(&add(2, 1)).await?, Written::Done)?;
    same("to a number", store.write(&add(3, 1)).await?, Written::Done)?;
    let after = before.with("n", 5i64);
    same("the sum; the version is the same", store.get(&key).await?, Some(after.clone()))?;
    same("under another version", store.write(&add(1, 2)).await?, Written::Conflict(Some(after.clone())))?;
    let two = |sk: &str| [add(10, 1), Write::Put(Item::new(Key::new(pk, sk)), Condition::Absent)];
    same("in a transaction", store.transact(&two("b")).await?, Transacted::Done)?;
    same("in a transaction that fails", store.transact(&two("b")).await?, Transacted::Cancelled(vec![false, true]))?;
    same("only the first counted", store.get(&key).await?, Some(after.with("n", 15i64)))?;
    let text = Write::Add { key: key.clone(), condition: Condition::Version(1), name: "t".into(), by: 1 };
    refusal("to a text", store.write(&text).await)
}

pub(super) async fn named_twice<S: Store>(store: &S, key: Key) -> Result<(), Broken> {
    let before = Item::new(key.clone()).with("v", 1i64).with("t", "as it was");
    store.write(&Write::Put(before.clone(), Condition::Absent)).await?;
    let set = |name: &'static str| Attrs::from([(name.into(), "x".into())]);
    let write = |set, remove, raise| Write::Update { key: key.clone(), condition: Condition::Always, set, remove, raise };
    refusal("set and removed", store.write(&write(set("t"), vec!["t".into()], false)).await)?;
    refusal("set and raised", store.write(&write(set("v"), vec![], true)).await)?;
    refusal("removed and raised", store.write(&write(Attrs::new(), vec!["v".into()], true)).await)?;
    same("nothing of it happened", store.get(&key).await?, Some(before))
}
