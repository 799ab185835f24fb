//! Events as they come out, and what a case expects of them.

use super::Dialect;
use super::expect::{at, matches};
use super::run::Telling;
use super::{EventDetails as Details, Outgoing};
use keelway_domain::event::APPROVAL_SOURCE;
use serde_json::Value;

/// An expected event with its line taken apart.
pub(super) struct Wanted {
    pub ty: String,
    pub result: Option<(String, String)>,
    pub context: String,
    pub details: Details,
}

pub(super) fn wanted<D: Dialect>(story: &Telling<'_, D>, out: &Outgoing, default: &str) -> Result<Wanted, String> {
    let mut details = out.details();
    let line = details.line.clone();
    let mut words = line.split_whitespace();
    let short = words.next().ok_or("an expected event has no type")?;
    let full = short.starts_with("sh.") || short.starts_with("dev.keelway.");
    let ty = if full { short.to_owned() } else { format!("{}{short}", D::PREFIX) };
    let (mut result, mut alias) = (None, default);
    for word in words {
        match (word.strip_prefix('@'), word.split_once('/')) {
            (Some(context), _) => alias = context,
            (None, _) if D::word(&mut details, word) => {}
            (None, Some((r, s))) => result = Some((r.to_owned(), s.to_owned())),
            (None, None) => return Err(format!("{:?} is not `<type> [<result>/<status>] [@<context>]`", details.line)),
        }
    }
    Ok(Wanted { ty, result, context: story.context(alias), details })
}

/// An event in the short form: type and context.
pub fn line<D: Dialect>(story: &Telling<'_, D>, event: &Value) -> String {
    let text = |field: &str| event[field].as_str().unwrap_or_default();
    let ty = text("type");
    format!("{} @{}", ty.strip_prefix(D::PREFIX).unwrap_or(ty), story.alias(text("shkeptncontext")))
}

fn fits(wanted: &Wanted, event: &Value) -> bool {
    let result = |field: &str, value: &str| event["data"][field].as_str().unwrap_or_default() == value;
    event["type"] == wanted.ty
        && event["shkeptncontext"] == wanted.context
        && wanted.result.as_ref().is_none_or(|(r, s)| result("result", r) && result("status", s))
}

/// Pairs what came with what was expected: one to one in order, or, where there is no one order, in order inside each context and
/// lane.
pub(super) fn pair<'w, 'e, D: Dialect>(
    story: &Telling<'_, D>,
    wanted: &'w [Wanted],
    events: &'e [Value],
    ordered: bool,
) -> Result<Vec<(&'w Wanted, &'e Value)>, String> {
    let say = |event: &Value| format!("    {} {}", line(story, event), D::describe(event));
    let differ = |why: &str| {
        let got: Vec<String> = events.iter().map(say).collect();
        let expected: Vec<String> = wanted.iter().map(|w| format!("    {} @{}", w.details.line, story.alias(&w.context))).collect();
        format!("{why}\n  sent:\n{}\n  expected:\n{}", got.join("\n"), expected.join("\n"))
    };
    if wanted.len() != events.len() {
        return Err(differ("other events were sent than expected"));
    }
    if ordered {
        let pairs: Vec<_> = wanted.iter().zip(events).collect();
        return if pairs.iter().all(|(w, e)| fits(w, e)) { Ok(pairs) } else { Err(differ("other events, or another order")) };
    }
    let mut free: Vec<&Value> = events.iter().collect();
    let mut pairs: Vec<(&Wanted, &Value)> = vec![];
    for w in wanted {
        let key = |event: &Value| D::stream(event);
        let next = |place: &usize| free[..*place].iter().all(|other| key(other) != key(free[*place]));
        let candidates: Vec<usize> = (0..free.len()).filter(|i| fits(w, free[*i])).filter(next).collect();
        let exact = candidates.iter().find(|i| compare(story, w, free[**i]).is_ok());
        let Some(place) = exact.or(candidates.first()) else {
            return Err(differ(&format!("{} was not sent, or not in this order", w.details.line)));
        };
        let event = free.remove(*place);
        pairs.push((w, event));
    }
    Ok(pairs)
}

/// What is true of every event, whatever engine sends it.
pub(super) fn sound<D: Dialect>(story: &Telling<'_, D>, event: &Value) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("{}: {what}: {event}", line(story, event)));
    let id = event["id"].as_str().unwrap_or_default();
    // A client's own decision is handed on under its own id.
    let handed_on = |other: &&Value| event["source"] == APPROVAL_SOURCE && other["type"] == event["type"];
    let mut others = story.sent.iter().chain(story.inputs.iter().filter(|other| !handed_on(other)));
    if id.is_empty() || others.any(|other| other["id"] == event["id"]) {
        return wrong("its id is not new");
    }
    let ty = event["type"].as_str().unwrap_or_default();
    if D::takes(event["source"].as_str().unwrap_or_default(), ty) {
        return wrong("the rule would hand it back to the engine, which would answer itself for ever");
    }
    for field in ["specversion", "source", "time", "shkeptncontext", "shkeptnspecversion"] {
        if event[field].as_str().unwrap_or_default().is_empty() {
            return wrong(&format!("{field} is missing"));
        }
    }
    D::sound(story, event)
}

/// Compares one event with its details.
pub(super) fn compare<D: Dialect>(story: &Telling<'_, D>, wanted: &Wanted, event: &Value) -> Result<(), String> {
    let details = &wanted.details;
    let wrong = |what: String| format!("{}: {what}\n  it is {event}", details.line);
    let resolve = |value: &Value| story.resolve(value);
    matches(&event["data"], &resolve(&Value::Object(details.data.clone()))?, "data").map_err(wrong)?;
    matches(event, &resolve(&Value::Object(details.attributes.clone()))?, "").map_err(wrong)?;
    if let Some(exactly) = &details.exactly {
        let exactly = resolve(exactly)?;
        if event["data"] != exactly {
            return Err(wrong(format!("data is not exactly {exactly}")));
        }
    }
    if let (Some(only), Some(data)) = (&details.only, event["data"].as_object())
        && let Some(other) = data.keys().find(|name| !only.contains(name))
    {
        return Err(wrong(format!("data has {other:?}")));
    }
    if let Some(path) = details.absent.iter().find(|path| at(event, path).is_some()) {
        return Err(wrong(format!("{path} is there")));
    }
    if let Some(alias) = &details.answers
        && event["triggeredid"] != story.event(alias)?["id"]
    {
        return Err(wrong(format!("it does not answer {alias:?}")));
    }
    Ok(())
}
