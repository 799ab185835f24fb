//! Conditions and updates as DynamoDB expressions. Every attribute is a placeholder, because names may be reserved words.

use crate::codec::{PK, SK, value};
use aws_sdk_dynamodb::types::AttributeValue;
use keelway_engine::item::{Attr, Attrs, Name};
use keelway_engine::ports::{Condition, Query};
use std::collections::HashMap;

/// The expressions of one write, with the names and values that they use.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Expressions {
    /// The `ConditionExpression`.
    pub condition: Option<String>,
    /// The `UpdateExpression`.
    pub update: Option<String>,
    names: HashMap<String, String>,
    values: HashMap<String, AttributeValue>,
}

impl Expressions {
    /// The expressions of a condition without an update.
    pub fn when(condition: &Condition) -> Self {
        let mut expressions = Self::default();
        expressions.condition = match condition {
            Condition::Always => None,
            Condition::Absent => Some(format!("attribute_not_exists({PK})")),
            Condition::Version(version) => {
                expressions.names.insert("#v".into(), "v".into());
                expressions.values.insert(":v".into(), value(&Attr::N(*version)));
                Some("#v = :v".into())
            }
            Condition::Match { equal, absent } => expressions.matching(equal, absent),
        };
        expressions
    }

    /// The condition on the values of attributes. `None` if there are none to compare.
    fn matching(&mut self, equal: &Attrs, absent: &[Name]) -> Option<String> {
        let mut terms = Vec::with_capacity(equal.len() + absent.len());
        for (i, (name, attr)) in equal.iter().enumerate() {
            terms.push(format!("#m{i} = :m{i}"));
            self.names.insert(format!("#m{i}"), name.to_string());
            self.values.insert(format!(":m{i}"), value(attr));
        }
        for (i, name) in absent.iter().enumerate() {
            terms.push(format!("attribute_not_exists(#a{i})"));
            self.names.insert(format!("#a{i}"), name.to_string());
        }
        (!terms.is_empty()).then(|| terms.join(" AND "))
    }

    /// The expressions of a condition and an update; `raise` increments the version. Without changes there is no update expression,
    /// and the item is only created if it does not exist.
    pub fn update(condition: &Condition, set: &Attrs, remove: &[Name], raise: bool) -> Self {
        let mut expressions = Self::when(condition);
        let mut clauses = Vec::new();
        let mut sets = Vec::with_capacity(set.len() + 1);
        if raise {
            sets.push("#v = #v + :one".to_owned());
            expressions.names.insert("#v".into(), "v".into());
            expressions.values.insert(":one".into(), value(&Attr::N(1)));
        }
        for (i, (name, attr)) in set.iter().enumerate() {
            sets.push(format!("#s{i} = :s{i}"));
            expressions.names.insert(format!("#s{i}"), name.to_string());
            expressions.values.insert(format!(":s{i}"), value(attr));
        }
        if !sets.is_empty() {
            clauses.push(format!("SET {}", sets.join(", ")));
        }
        let mut removes = Vec::with_capacity(remove.len());
        for (i, name) in remove.iter().enumerate() {
            removes.push(format!("#r{i}"));
            expressions.names.insert(format!("#r{i}"), name.to_string());
        }
        if !removes.is_empty() {
            clauses.push(format!("REMOVE {}", removes.join(", ")));
        }
        expressions.update = (!clauses.is_empty()).then(|| clauses.join(" "));
        expressions
    }

    /// The expressions of a condition and an addition to a number.
    pub fn add(condition: &Condition, name: &Name, by: i64) -> Self {
        let mut expressions = Self::when(condition);
        expressions.names.insert("#n".into(), name.to_string());
        expressions.values.insert(":n".into(), value(&Attr::N(by)));
        expressions.update = Some("ADD #n :n".into());
        expressions
    }

    /// The `ExpressionAttributeNames`. `None` instead of an empty map, which DynamoDB refuses.
    pub fn names(&self) -> Option<HashMap<String, String>> {
        (!self.names.is_empty()).then(|| self.names.clone())
    }

    /// The `ExpressionAttributeValues`. `None` instead of an empty map, which DynamoDB refuses.
    pub fn values(&self) -> Option<HashMap<String, AttributeValue>> {
        (!self.values.is_empty()).then(|| self.values.clone())
    }
}

/// The key condition of a query.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KeyCondition {
    /// The `KeyConditionExpression`.
    pub text: String,
    /// The `ExpressionAttributeNames`.
    pub names: HashMap<String, String>,
    /// The `ExpressionAttributeValues`.
    pub values: HashMap<String, AttributeValue>,
}

/// The key condition of a query. `None`: no sort key can match.
pub(crate) fn key_condition(query: &Query) -> Option<KeyCondition> {
    let (partition, sort) = query.index.map_or((PK, SK), |index| (index.names().1, index.names().2));
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let mut names = HashMap::from([("#p".to_owned(), partition.to_owned())]);
    let mut values = HashMap::from([(":p".to_owned(), text(&query.partition))]);
    // DynamoDB refuses an empty key value and bounds in the wrong order.
    let from = (!query.from.is_empty()).then_some(query.from.as_str());
    let to = query.to.as_deref();
    let bounds = match (from, to) {
        (None, None) => "",
        (Some(_), None) => " AND #s >= :from",
        (None, Some(_)) => " AND #s <= :to",
        (Some(from), Some(to)) if from <= to => " AND #s BETWEEN :from AND :to",
        (Some(_), Some(_)) => return None,
    };
    if to.is_some_and(str::is_empty) {
        return None;
    }
    if !bounds.is_empty() {
        names.insert("#s".into(), sort.into());
    }
    values.extend(from.map(|from| (":from".to_owned(), text(from))));
    values.extend(to.map(|to| (":to".to_owned(), text(to))));
    Some(KeyCondition { text: format!("#p = :p{bounds}"), names, values })
}

#[cfg(test)]
mod tests {
    use super::*;
    use keelway_engine::ports::Index;
    use std::borrow::Cow;

    #[test]
    fn conditions_verbatim() {
        assert_eq!(Expressions::when(&Condition::Always), Expressions::default());
        let absent = Expressions::when(&Condition::Absent);
        assert_eq!(absent.condition.as_deref(), Some("attribute_not_exists(pk)"));
        assert_eq!((absent.names(), absent.values()), (None, None));
        let version = Expressions::when(&Condition::Version(7));
        assert_eq!(version.condition.as_deref(), Some("#v = :v"));
        assert_eq!(version.names().unwrap()["#v"], "v");
        assert_eq!(version.values().unwrap()[":v"], AttributeValue::N("7".into()));
        let equal = Attrs::from([(Cow::Borrowed("k"), Attr::N(3)), (Cow::Borrowed("th"), Attr::B(vec![1]))]);
        let matching = Expressions::when(&Condition::Match { equal, absent: vec!["en".into()] });
        assert_eq!(matching.condition.as_deref(), Some("#m0 = :m0 AND #m1 = :m1 AND attribute_not_exists(#a0)"));
        let names = matching.names().unwrap();
        assert_eq!([&names["#m0"], &names["#m1"], &names["#a0"]], ["k", "th", "en"]);
        assert_eq!(matching.values().unwrap()[":m0"], AttributeValue::N("3".into()));
        assert_eq!(Expressions::when(&Condition::Match { equal: Attrs::new(), absent: vec![] }), Expressions::default());
    }

    #[test]
    fn an_update_names_what_it_sets_and_removes() {
        let set = Attrs::from([(Cow::Borrowed("v"), Attr::N(8)), (Cow::Borrowed("en"), Attr::S("pass".into()))]);
        let remove = [Cow::Borrowed("gp1"), Cow::Borrowed("gs1")];
        let update = Expressions::update(&Condition::Version(7), &set, &remove, false);
        assert_eq!(update.update.as_deref(), Some("SET #s0 = :s0, #s1 = :s1 REMOVE #r0, #r1"));
        let names = update.names().unwrap();
        assert_eq!([&names["#s0"], &names["#s1"], &names["#r0"], &names["#v"]], ["en", "v", "gp1", "v"]);
        assert_eq!(update.values().unwrap()[":s1"], AttributeValue::N("8".into()));
        let nothing = Expressions::update(&Condition::Absent, &Attrs::new(), &[], false);
        assert_eq!((nothing.update, nothing.names), (None, HashMap::new()));
        let raised = Expressions::update(&Condition::Version(7), &Attrs::new(), &remove, true);
        assert_eq!(raised.update.as_deref(), Some("SET #v = #v + :one REMOVE #r0, #r1"));
        let values = raised.values().unwrap();
        assert_eq!([&values[":v"], &values[":one"]], [&AttributeValue::N("7".into()), &AttributeValue::N("1".into())]);
        let only_remove = Expressions::update(&Condition::Always, &Attrs::new(), &remove, false);
        assert_eq!(only_remove.update.as_deref(), Some("REMOVE #r0, #r1"));
        assert_eq!(only_remove.values(), None);
        let added = Expressions::add(&Condition::Version(7), &"n".into(), 3);
        assert_eq!(added.update.as_deref(), Some("ADD #n :n"));
        assert_eq!((added.condition.as_deref(), &added.names["#n"]), (Some("#v = :v"), &"n".to_owned()));
        assert_eq!(added.values[":n"], AttributeValue::N("3".into()));
    }

    #[test]
    fn queries_by_range_and_index() {
        let text = |query: Query| key_condition(&query).map(|condition| condition.text);
        assert_eq!(text(Query::table("C#p#c", 5)).as_deref(), Some("#p = :p"));
        assert_eq!(text(Query::table("C#p#c", 5).prefix("X#")).as_deref(), Some("#p = :p AND #s BETWEEN :from AND :to"));
        assert_eq!(text(Query { from: "X#".into(), ..Query::table("C#p#c", 5) }).as_deref(), Some("#p = :p AND #s >= :from"));
        let up_to = |to: &str| Query { to: Some(to.into()), ..Query::table("C#p#c", 5) };
        assert_eq!(text(up_to("X")).as_deref(), Some("#p = :p AND #s <= :to"));
        assert_eq!(text(Query { from: "b".into(), ..up_to("a") }), None);
        assert_eq!(text(up_to("")), None);
        let KeyCondition { names, values, .. } =
            key_condition(&Query::index(Index::ByWork, "O#p#deploy", 5).prefix("dev#")).unwrap();
        assert_eq!([&names["#p"], &names["#s"]], ["gp1", "gs1"]);
        assert_eq!(values[":to"], AttributeValue::S("dev#\u{10ffff}".into()));
    }
}
