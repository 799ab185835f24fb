//! Names in expressions of metric math.

use std::collections::BTreeSet;

/// What an expression consists of, quotes left as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part<'a> {
    /// A word that is no function, and may be the name of a query.
    Name(&'a str),
    /// A function.
    Function(&'a str),
    Other(&'a str),
}

fn parts(expression: &str) -> Vec<Part<'_>> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut parts = vec![];
    let mut rest = expression;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' | '\'' => rest[1..].find(first).map_or(rest.len(), |end| end + 2),
            c if word(c) => rest.find(|c| !word(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let (part, behind) = rest.split_at(length);
        parts.push(match first {
            c if c.is_ascii_alphabetic() && behind.trim_start().starts_with('(') => Part::Function(part),
            c if c.is_ascii_lowercase() => Part::Name(part),
            _ => Part::Other(part),
        });
        rest = behind;
    }
    parts
}

/// The names of queries in an expression.
pub fn names(expression: &str) -> BTreeSet<&str> {
    let name = |part: Part<'_>| if let Part::Name(name) = part { Some(name.len()) } else { None };
    let mut at = 0;
    let mut found = BTreeSet::new();
    for part in parts(expression) {
        let length = match part {
            Part::Name(text) | Part::Function(text) | Part::Other(text) => text.len(),
        };
        if name(part).is_some() {
            found.insert(&expression[at..at + length]);
        }
        at += length;
    }
    found
}

/// The expression with something before each of these names.
pub fn prefixed(expression: &str, known: &BTreeSet<&str>, prefix: &str) -> String {
    let mut text = String::new();
    for part in parts(expression) {
        match part {
            Part::Name(name) if known.contains(name) => {
                text.push_str(prefix);
                text.push_str(name);
            }
            Part::Name(other) | Part::Function(other) | Part::Other(other) => text.push_str(other),
        }
    }
    text
}

/// Whether an expression is about all metrics of its request, whoever asked for them.
pub fn takes_all(expression: &str) -> bool {
    parts(expression).contains(&Part::Function("METRICS"))
}

/// Whether it is a query of Metrics Insights.
pub fn is_insights(expression: &str) -> bool {
    let word = expression.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    word.eq_ignore_ascii_case("select")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_functions_texts_and_numbers() {
        let expression = "100*(errors/IF(requests > 0 AND m1!=1e3, requests, 1)) + SUM(SEARCH('{AWS/Lambda} errors', \"Sum\"))";
        assert_eq!(names(expression).into_iter().collect::<Vec<_>>(), ["errors", "m1", "requests"]);
        let known = BTreeSet::from(["errors", "m1"]);
        assert_eq!(
            prefixed(expression, &known, "q7_"),
            "100*(q7_errors/IF(requests > 0 AND q7_m1!=1e3, requests, 1)) + SUM(SEARCH('{AWS/Lambda} errors', \"Sum\"))"
        );
        assert!(takes_all("SUM(METRICS ())") && !takes_all("SUM(SEARCH('METRICS()'))"));
        assert!(is_insights(" select SUM(Errors) FROM x") && !is_insights("selected / m1"));
    }
}
