//! The form in one line: `expression | id=Namespace/Metric{Dimension=value, …}:stat:period; …`, or one metric by itself.

use super::parsed::{MetricQuery, object, period};
use super::text::{is_id, piped, places, split, unquoted};
use super::{math, parsed};
use keelway_domain::time::Span;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

const FORM: &str = "`id=Namespace/Metric{Dimension=value}:statistic:period`";

/// Reads such a query.
pub fn parse(text: &str) -> Result<MetricQuery, String> {
    let Some((expression, metrics)) = piped(text) else {
        return match split(text, ';')[..] {
            [one] => {
                let (id, entry) = metric(one)?;
                Ok(MetricQuery::new(vec![entry], id))
            }
            _ => Err("there are several metrics and no expression: write `expression | id=…; …`".into()),
        };
    };
    let mut entries = vec![];
    let mut ids = BTreeSet::new();
    for one in split(metrics, ';').into_iter().filter(|one| !one.is_empty()) {
        let (id, mut entry) = metric(one)?;
        entry.insert("ReturnData".into(), false.into());
        entries.push(entry);
        if !ids.insert(id.clone()) {
            return Err(format!("two metrics are called {id:?}: give each a name of its own"));
        }
    }
    if expression.is_empty() {
        return Err("there is no expression before `|`: write one, or only the metric".into());
    }
    if let Some(unknown) = math::names(expression).into_iter().find(|name| !ids.contains(*name)) {
        return Err(format!(
            "the expression names {unknown:?}, which is none of its metrics: write `{unknown}=Namespace/Metric…` behind `|`"
        ));
    }
    let result = (0..).map(|n| format!("result{n}")).find(|id| !ids.contains(id)).unwrap_or_default();
    entries.push(parsed::object(json!({"Id": result, "Expression": expression})));
    Ok(MetricQuery::new(entries, result))
}

/// One metric, and what it is called.
fn metric(text: &str) -> Result<(String, Map<String, Value>), String> {
    let wrong = |why: &str| format!("{text:?} is no metric, {why}: write {FORM}");
    let (id, rest) = match text.split_once('=') {
        Some((id, rest)) if is_id(id.trim()) => (id.trim(), rest.trim()),
        Some((id, _)) if !id.contains(['/', '{']) => {
            return Err(format!(
                "{:?} cannot name a metric: begin with a lower-case letter, then letters, digits and `_`",
                id.trim()
            ));
        }
        _ => ("m", text),
    };
    // Of names with a colon, only those before dimensions can be told from the statistic.
    let outside: Vec<usize> = places(rest).collect();
    let colon = outside.iter().copied().find(|at| rest[*at..].starts_with(':'));
    let brace = rest.find('{').filter(|brace| rest[..*brace].matches('"').count() % 2 == 0);
    let (name, dimensions, behind) = match (brace, colon) {
        (Some(brace), _) if rest[brace..].contains('}') => {
            let close = outside
                .iter()
                .copied()
                .find(|at| *at > brace)
                .map_or(rest.len(), |at| at - usize::from(!rest[..at].ends_with('}')));
            let close = rest[..close].rfind('}').ok_or_else(|| wrong("its `{` is never closed"))?;
            (&rest[..brace], &rest[brace + 1..close], &rest[close + 1..])
        }
        (Some(_), _) => return Err(wrong("its `{` is never closed")),
        (None, Some(colon)) => (&rest[..colon], "", &rest[colon..]),
        (None, None) => return Err(wrong("it has no statistic")),
    };
    let (namespace, name) = named(name.trim()).ok_or_else(|| wrong("it has no namespace and name"))?;
    let behind = behind.trim().strip_prefix(':').ok_or_else(|| wrong("it has no statistic"))?;
    let (stat, given) = match split(behind, ':')[..] {
        [stat] => (stat, None),
        [stat, given] => (stat, Some(given)),
        _ => return Err(wrong("there is more behind its period")),
    };
    if stat.is_empty() || !stat.chars().all(|c| c.is_ascii_alphanumeric() || "().:%".contains(c)) {
        return Err(wrong("it has no statistic"));
    }
    let mut all = vec![];
    for one in split(dimensions, ',').into_iter().filter(|one| !one.is_empty()) {
        let (name, value) = one.split_once('=').ok_or_else(|| wrong("a dimension has no `=`"))?;
        all.push(json!({"Name": name.trim(), "Value": unquoted(value.trim())}));
    }
    let mut of = object(json!({"Metric": {"Namespace": namespace, "MetricName": name, "Dimensions": all}, "Stat": stat}));
    if let Some(given) = given {
        let seconds = given.parse::<i64>().ok().or_else(|| Some(Span::parse(given).ok()?.0 / 1000));
        let seconds = seconds.ok_or_else(|| wrong("its period is no number of seconds"))?;
        of.insert("Period".into(), period(seconds)?.into());
    }
    Ok((id.to_owned(), object(json!({"Id": id, "MetricStat": of}))))
}

/// Namespace and name: what is behind the last `/`, or in quotes, is the name.
fn named(text: &str) -> Option<(&str, String)> {
    let at = text.find("/\"").or_else(|| text.rfind('/'))?;
    let (namespace, name) = (text[..at].trim(), unquoted(text[at + 1..].trim()));
    (!namespace.is_empty() && !name.is_empty()).then_some((namespace, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(query: &MetricQuery, at: usize) -> Value {
        query.entries[at]["MetricStat"].clone()
    }

    #[test]
    fn a_metric_by_itself() {
        for (text, id, metric, stat_, period) in [
            (
                "AWS/Lambda/Errors{FunctionName=shop}:Sum",
                "m",
                json!(["AWS/Lambda", "Errors", [["FunctionName", "shop"]]]),
                "Sum",
                None,
            ),
            (
                "e = AWS/Lambda/Duration{FunctionName=shop, Resource=\"shop:live\"}:p99.9:300",
                "e",
                json!(["AWS/Lambda", "Duration", [["FunctionName", "shop"], ["Resource", "shop:live"]]]),
                "p99.9",
                Some(300),
            ),
            ("Shop/Orders:Average:5m", "m", json!(["Shop", "Orders", []]), "Average", Some(300)),
            ("Shop/\"a/b\"{}:TM(2%:98%):60", "m", json!(["Shop", "a/b", []]), "TM(2%:98%)", Some(60)),
            ("Shop/x{A=b:c,D=\"e,f}\\\"\"}:Sum", "m", json!(["Shop", "x", [["A", "b:c"], ["D", "e,f}\""]]]), "Sum", None),
        ] {
            let query = parse(text).unwrap_or_else(|why| panic!("{text}: {why}"));
            let dimensions =
                |of: &Value| of.as_array().unwrap().iter().map(|one| json!([one["Name"], one["Value"]])).collect::<Vec<_>>();
            let of = &stat(&query, 0)["Metric"];
            assert_eq!(json!([of["Namespace"], of["MetricName"], dimensions(&of["Dimensions"])]), metric, "{text}");
            assert_eq!(
                (query.result.as_str(), stat(&query, 0)["Stat"].as_str(), query.period),
                (id, Some(stat_), period),
                "{text}"
            );
        }
    }

    #[test]
    fn an_expression_and_its_metrics() {
        let query = parse("100 * errors / IF(all > 0 || all == 0, all) | errors=A/E{F=x}:Sum; all=A/R{F=x}:Sum:60;").unwrap();
        assert_eq!(query.entries.len(), 3);
        let expected = json!({"Id": "result0", "Expression": "100 * errors / IF(all > 0 || all == 0, all)"});
        assert_eq!(Value::Object(query.entries[2].clone()), expected);
        assert_eq!(
            (query.entries[0]["ReturnData"].clone(), query.result.as_str(), query.period),
            (json!(false), "result0", Some(60))
        );
    }

    #[test]
    fn what_cannot_be_read_says_how_to_write_it() {
        for (text, why) in [
            ("rate(http_requests_total[5m])", "it has no statistic"),
            ("A/E{F=x}", "it has no statistic"),
            ("A/E{F=x:Sum", "is never closed"),
            ("Errors:Sum", "no namespace"),
            ("A/E{F}:Sum", "a dimension has no `=`"),
            ("A/E:Sum:61", "a period of 61 s"),
            ("A/E:Sum:soon", "no number of seconds"),
            ("A/E:Sum:60:60", "more behind its period"),
            ("A/E:Sum; A/R:Sum", "no expression"),
            ("| e=A/E:Sum", "no expression before `|`"),
            ("e / r | e=A/E:Sum", "\"r\", which is none of its metrics"),
            ("e / e | e=A/E:Sum; e=A/R:Sum", "two metrics are called \"e\""),
            ("E | E=A/E:Sum", "\"E\" cannot name a metric"),
        ] {
            let told = parse(text).unwrap_err();
            assert!(told.contains(why), "{text}: {told}");
        }
    }
}
