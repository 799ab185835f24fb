//! Positions in pages, and pauses after lost writes.

use keelway_domain::cause::Cause;
use keelway_domain::ids::{SubjectId, hash64};
use keelway_domain::time::Timestamp;
use keelway_engine::protocol::page::{place, slot, split};
use keelway_engine::protocol::{COMMIT_TRIES, pause};
use keelway_engine::views::{Position, first_behind, position};
use std::collections::BTreeSet;

#[test]
fn a_slot_is_the_entrys_own() {
    let slots: BTreeSet<i64> = (0..20_000).map(|n| slot(&format!("entry-{n}"))).collect();
    assert_eq!((slots.first(), slots.last(), slots.len()), (Some(&1), Some(&999), 999));
    assert_eq!(slot("entry-1"), slot("entry-1"));
}

#[test]
fn a_place_names_the_entries_of_a_millisecond_behind_it() {
    let now = Timestamp(1_795_222_266_686);
    assert_eq!(place(now, 3), 1_795_222_266_686_003);
    assert_eq!(split(place(now, 3)), (now, 3));
    assert_eq!(split(place(now, 5000)), (now, 999));
}

#[test]
fn a_position_is_that_of_one_id_and_a_number_for_every_client() {
    for id in [0, 1, 4095, 4096, u64::MAX / 3, u64::MAX - 4096, u64::MAX] {
        let at = position(SubjectId(id));
        assert!((1..=1 << 52).contains(&at), "{id}");
        let behind = first_behind(at);
        assert!(position(behind) > at || behind.0 == u64::MAX, "{id}");
        assert!(behind.0 > id || id > u64::MAX - 4096, "{id}");
    }
    assert_eq!(first_behind(Position::MAX), SubjectId(u64::MAX));
}

#[test]
fn pauses_grow_differ_and_end_within_seconds() {
    let of = |message: usize, lost| pause(Cause { id: hash64(&[&message.to_be_bytes()]), ..Cause::default() }, lost).0;
    let longest = |lost| (0..1000).map(|message| of(message, lost)).max().unwrap_or_default();
    let longest: Vec<i64> = (1..COMMIT_TRIES).map(longest).collect();
    for (longest, most) in longest.iter().zip([50, 100, 200, 400, 800, 1000, 1000]) {
        assert!(*longest <= most && *longest > most - most / 10, "{longest} of {most}");
    }
    assert!((0..1000).all(|message| (1..COMMIT_TRIES).map(|lost| of(message, lost)).sum::<i64>() < 4000));
    let different: BTreeSet<i64> = (0..50).map(|message| of(message, 5)).collect();
    assert!(different.len() > 40, "{different:?}");
    assert_eq!(of(7, 3), of(7, 3), "the same for every delivery of a message");
}
