//! Pages, indexes and batches.

use super::{Broken, same};
use keelway_engine::item::{Attrs, Item, Key};
use keelway_engine::ports::{Condition, Consistency, Cursor, Index, Leftover, Query, Store, Write};
use std::collections::BTreeSet;

pub(super) async fn pages<S: Store>(store: &S, pk: &str) -> Result<(), Broken> {
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

pub(super) async fn index<S: Store>(store: &S, pk: &str) -> Result<(), Broken> {
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

pub(super) async fn batches<S: Store>(store: &S, pk: &str) -> Result<(), Broken> {
    let item = |i: usize| Item::new(Key::new(pk, format!("{i:02}"))).with("n", i as i64);
    let mut todo = Leftover { puts: (0..20).map(item).collect(), deletes: vec![] };
    write_all(store, &mut todo).await?;
    todo.deletes = (0..5).map(|i| item(i).key).collect();
    todo.puts = (20..40).map(item).collect();
    write_all(store, &mut todo).await?;
    let keys: Vec<Key> = (0..40).map(|i| item(i).key).collect();
    let all: Vec<Item> = (5..40).map(item).collect();
    same("what exists, each once", read_all(store, &keys, Consistency::Strong).await?, all.clone())?;
    // Soon they are as new.
    let mut eventual = vec![];
    for _ in 0..100 {
        eventual = read_all(store, &keys, Consistency::Eventual).await?;
        if eventual == all {
            break;
        }
    }
    same("what exists, after a while", eventual, all)
}

async fn read_all<S: Store>(store: &S, keys: &[Key], consistency: Consistency) -> Result<Vec<Item>, Broken> {
    let (mut keys, mut found) = (keys.to_vec(), vec![]);
    for _ in 0..30 {
        let (items, left) = store.get_batch(&keys, consistency).await?;
        found.extend(items);
        keys = left;
        if keys.is_empty() {
            break;
        }
    }
    found.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(found)
}

pub(super) async fn write_all<S: Store>(store: &S, todo: &mut Leftover) -> Result<(), Broken> {
    for _ in 0..30 {
        if todo.puts.is_empty() && todo.deletes.is_empty() {
            return Ok(());
        }
        *todo = store.put_batch(&todo.puts, &todo.deletes).await?;
    }
    same("leftovers after 30 rounds", todo.puts.len() + todo.deletes.len(), 0)
}

pub(super) async fn read<S: Store>(store: &S, query: Query) -> Result<(Vec<String>, u32), Broken> {
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

/// Reads an index until it has caught up.
pub(super) async fn settled<S: Store>(store: &S, query: Query, expected: usize) -> Result<Vec<String>, Broken> {
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
