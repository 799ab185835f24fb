//! Keys and sizes of items, and ids.

use keelway_domain::ids::{RecordHash, RecordId, SubjectId};
use keelway_domain::time::Timestamp;
use keelway_engine::item::{Attr, Item, Key};
use keelway_engine::keptn::integrations::Who;
use keelway_engine::keys::*;
use keelway_engine::projects::blob_id;

#[test]
fn a_records_sort_key_leads_back_to_it() {
    let id = RecordId { subject: SubjectId(42), number: 7, hash: RecordHash::of(b"x") };
    assert_eq!(record_id(&record_sort(&id)), Some(id));
    assert!(record_sort(&id) < record_sort(&RecordId { number: 999, ..id }));
    assert_eq!(record_id("X#2222222222222"), None);
}

#[test]
fn what_is_due_leads_to_its_letter() {
    let letter = dead_letter(Timestamp(5), "m-1");
    let due = due_letter(Timestamp(9), &letter.sk);
    assert_eq!(letter_of(&due.sk), letter.sk);
    assert!(due.sk < due_bound(Timestamp(9)) && due.sk > due_bound(Timestamp(8)));
}

#[test]
fn sizes_as_dynamodb_counts_them() {
    let item = Item::new(Key::new("ab", "c")).with("v", 12i64).with("t", "xyz").with("b", vec![1, 2]).with("f", true);
    // pk+2, sk+1, v: 1+2, t: 1+3, b: 1+2, f: 1+1
    assert_eq!(item.size(), 4 + 3 + 3 + 4 + 3 + 2);
    assert_eq!(Attr::N(1_795_222_266_686).size(), 8);
    assert_eq!(Attr::N(1000).size(), 2);
    assert_eq!(Attr::N(-5).size(), 3);
}

#[test]
fn ids_are_those_of_keptn() {
    let who = Who { name: "int".into(), namespace: "ns".into(), hostname: "n1".into() };
    // printf 'int-ns-n1' | sha1sum
    assert_eq!(who.id(), "ea4caa30233315068a5d2e3e7bb480851379c1e9");
}

#[test]
fn revisions_are_named_as_git_names_them() {
    // printf 'hello\n' | git hash-object --stdin
    assert_eq!(blob_id("hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a");
    assert_eq!(blob_id(""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
}
