//! What writes cost.

use super::{Broken, Meter, bump, same};
use keelway_engine::item::{Attrs, Item, Key};
use keelway_engine::ports::{Condition, Store, Transacted, Write, Written};

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
    failed_conditions(store, &key, item).await
}

async fn failed_conditions<S: Store + Meter>(store: &S, key: &Key, item: impl Fn(usize) -> Item) -> Result<(), Broken> {
    let set = |bytes: usize| {
        let set = Attrs::from([("c".into(), vec![1u8; bytes].into())]);
        Write::Update { key: key.clone(), condition: Condition::Version(5), set, remove: vec![], raise: false }
    };
    let delete = Write::Delete(key.clone(), Condition::Version(5));
    let steps: [(&'static str, usize, Write, f64); 5] = [
        ("a failed condition", 10, bump(key, 5), 1.0),
        ("of a larger item", 10, Write::Put(item(2500), Condition::Absent), 3.0),
        ("of an update that would make it larger", 900, set(1500), 3.0),
        ("of a delete of a larger item", 2500, delete, 3.0),
        ("of a smaller item", 2500, Write::Put(item(10), Condition::Absent), 3.0),
    ];
    for (what, present, write, expected) in steps {
        store.write(&Write::Put(item(present), Condition::Always)).await?;
        let before = store.write_units();
        same(what, store.write(&write).await?, Written::Conflict(Some(item(present))))?;
        same(what, store.write_units() - before, expected)?;
    }
    store.write(&Write::Put(item(10), Condition::Always)).await?;
    let before = store.write_units();
    let other = Key::new(key.pk.clone(), "d");
    let writes = [Write::Put(Item::new(key.clone()), Condition::Absent), bump(&other, 1)];
    same("a transaction", store.transact(&writes).await?, Transacted::Cancelled(vec![true, true]))?;
    same("a cancelled transaction of two small writes", store.write_units() - before, 4.0)
}
