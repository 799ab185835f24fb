//! Converts items to and from DynamoDB's attribute values.

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use keelway_engine::item::{Attr, Attrs, Item, Key, Name};
use std::collections::HashMap;

/// The partition key of the table.
pub(crate) const PK: &str = "pk";
/// The sort key of the table.
pub(crate) const SK: &str = "sk";

/// An item in DynamoDB's format.
pub(crate) type Raw = HashMap<String, AttributeValue>;

/// An attribute in DynamoDB's format.
pub(crate) fn value(attr: &Attr) -> AttributeValue {
    match attr {
        Attr::S(s) => AttributeValue::S(s.clone()),
        Attr::N(n) => AttributeValue::N(n.to_string()),
        Attr::B(b) => AttributeValue::B(Blob::new(b.clone())),
        Attr::Flag(flag) => AttributeValue::Bool(*flag),
    }
}

/// An item in DynamoDB's format.
pub(crate) fn raw(item: &Item) -> Raw {
    let mut raw = raw_key(&item.key);
    raw.extend(item.attrs.iter().map(|(name, attr)| (name.to_string(), value(attr))));
    raw
}

/// A key in DynamoDB's format.
pub(crate) fn raw_key(key: &Key) -> Raw {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    HashMap::from([(PK.to_owned(), text(&key.pk)), (SK.to_owned(), text(&key.sk))])
}

/// Parses an item of DynamoDB. `None`: it has no key in our format, which every item of the table has.
///
/// Attributes of other types are left out: a newer version may have written them, and a writer changes only the attributes it
/// knows.
pub(crate) fn item(raw: Raw) -> Option<Item> {
    let mut key = Key::new("", "");
    let mut attrs = Attrs::new();
    for (name, value) in raw {
        let attr = match value {
            AttributeValue::S(s) => Attr::S(s),
            AttributeValue::B(b) => Attr::B(b.into_inner()),
            AttributeValue::Bool(flag) => Attr::Flag(flag),
            AttributeValue::N(n) => match n.parse() {
                Ok(n) => Attr::N(n),
                Err(_) => continue,
            },
            _ => continue,
        };
        match (name.as_str(), attr) {
            (PK, Attr::S(pk)) => key.pk = pk,
            (SK, Attr::S(sk)) => key.sk = sk,
            (_, attr) => {
                attrs.insert(Name::Owned(name), attr);
            }
        }
    }
    (!key.pk.is_empty() && !key.sk.is_empty()).then_some(Item { key, attrs })
}

/// The key of an item, of an unprocessed item, or of the end of a page.
pub(crate) fn key(raw: &Raw) -> Option<Key> {
    let text = |name: &str| raw.get(name).and_then(|value| value.as_s().ok()).cloned();
    Some(Key::new(text(PK)?, text(SK)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_attr() -> impl Strategy<Value = Attr> {
        prop_oneof![
            any::<String>().prop_map(Attr::S),
            any::<i64>().prop_map(Attr::N),
            proptest::collection::vec(any::<u8>(), 0..40).prop_map(Attr::B),
            any::<bool>().prop_map(Attr::Flag),
        ]
    }

    proptest! {
        #[test]
        fn an_item_comes_back_as_it_went(
            pk in "[A-Z]#[a-z0-9-]{1,20}",
            sk in ".{1,30}",
            attrs in proptest::collection::btree_map("[a-oq-r][a-z0-9]{0,3}", any_attr(), 0..10),
        ) {
            let attrs = attrs.into_iter().map(|(name, attr)| (Name::Owned(name), attr)).collect();
            let before = Item { key: Key::new(pk, sk), attrs };
            let raw = raw(&before);
            prop_assert_eq!(key(&raw), Some(before.key.clone()));
            prop_assert_eq!(item(raw), Some(before));
        }
    }

    #[test]
    fn what_a_newer_version_wrote_is_left_out() {
        let mut raw = raw(&Item::new(Key::new("C#p#c", "!")).with("v", 3i64));
        raw.insert("list".into(), AttributeValue::L(vec![]));
        raw.insert("half".into(), AttributeValue::N("0.5".into()));
        let item = item(raw).unwrap();
        assert_eq!((item.version(), item.attrs.len()), (3, 1));
    }
}
