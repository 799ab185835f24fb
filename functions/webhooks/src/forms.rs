//! Messages for people: what happened, in the forms of Slack and Teams.

use crate::Object;
use keelway_domain::event::{EventType, Kind};
use serde_json::{Value, json};

/// The longest text and the longest value in a message, in characters. Teams accepts 28 KB in total, Slack 3,000 and 2,000
/// characters.
const TEXT: usize = 2500;
const VALUE: usize = 300;

/// The content of a message.
struct Notice {
    title: String,
    text: String,
    /// Names and values.
    facts: Vec<(&'static str, String)>,
    color: Color,
}

/// How a chat shows it.
#[derive(Clone, Copy)]
enum Color {
    Good,
    Warning,
    Bad,
    Plain,
}

/// The body for one of Slack's incoming webhooks. `text` is what notifications show.
pub fn slack(event: &Value) -> Value {
    let Notice { title, text, facts, color } = notice(event);
    let icon = match color {
        Color::Good => ":white_check_mark: ",
        Color::Warning => ":hourglass_flowing_sand: ",
        Color::Bad => ":x: ",
        Color::Plain => "",
    };
    let mut blocks =
        vec![json!({"type": "section", "text": {"type": "mrkdwn", "text": format!("{icon}*{}*", mrkdwn(&title, TEXT))}})];
    if !text.is_empty() {
        blocks.push(json!({"type": "section", "text": {"type": "mrkdwn", "text": mrkdwn(&text, TEXT)}}));
    }
    // Slack takes at most ten fields.
    let fields: Vec<Value> = facts
        .iter()
        .take(10)
        .map(|(name, value)| json!({"type": "mrkdwn", "text": format!("*{name}*\n{}", mrkdwn(value, VALUE))}))
        .collect();
    if !fields.is_empty() {
        blocks.push(json!({"type": "section", "fields": fields}));
    }
    json!({"text": mrkdwn(&title, TEXT), "blocks": blocks})
}

/// The body for a workflow of Teams: a message with an adaptive card.
pub fn teams(event: &Value) -> Value {
    let Notice { title, text, facts, color } = notice(event);
    let color = match color {
        Color::Good => "Good",
        Color::Warning => "Warning",
        Color::Bad => "Attention",
        Color::Plain => "Default",
    };
    let mut body =
        vec![json!({"type": "TextBlock", "text": title, "weight": "Bolder", "size": "Medium", "color": color, "wrap": true})];
    if !text.is_empty() {
        body.push(json!({"type": "TextBlock", "text": text, "wrap": true}));
    }
    if !facts.is_empty() {
        let facts: Vec<Value> = facts.iter().map(|(name, value)| json!({"title": name, "value": value})).collect();
        body.push(json!({"type": "FactSet", "facts": facts}));
    }
    let card = json!({
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4", "body": body,
    });
    let attachment = json!({"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": null, "content": card});
    json!({"type": "message", "attachments": [attachment]})
}

/// A text for Slack, in which `&`, `<` and `>` are escaped so that it contains neither mentions nor links. `most`: the longest
/// result, in characters.
fn mrkdwn(text: &str, most: usize) -> String {
    let (mut shown, mut left) = (String::new(), most);
    for c in text.chars() {
        let escaped = match c {
            '&' => "&amp;",
            '<' => "&lt;",
            '>' => "&gt;",
            _ => "",
        };
        let length = escaped.len().max(1);
        if length > left {
            break;
        }
        left -= length;
        if escaped.is_empty() { shown.push(c) } else { shown.push_str(escaped) }
    }
    shown
}

fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most { text.to_owned() } else { text.chars().take(most - 1).chain(['…']).collect() }
}

fn notice(event: &Value) -> Notice {
    let ty = event["type"].as_str().unwrap_or_default();
    let none = Object::new();
    let data = event["data"].as_object().unwrap_or(&none);
    let text = |name: &str| data.get(name).and_then(Value::as_str).unwrap_or_default();
    let place = place(text("service"), text("stage"));
    let (title, color) = match EventType::parse(ty) {
        EventType::Task(task, Kind::Triggered) if task.as_str() == "approval" => {
            (format!("An approval waits: {place}"), Color::Warning)
        }
        EventType::Sequence(_, sequence, Kind::Finished) => finished(sequence.as_str(), text("result"), &place),
        EventType::Task(task, Kind::Finished) => finished(task.as_str(), text("result"), &place),
        EventType::Sequence(_, name, kind) => (format!("{} {}: {place}", capital(name.as_str()), kind.as_str()), Color::Plain),
        EventType::Task(name, kind) => (format!("{} {}: {place}", capital(name.as_str()), kind.as_str()), Color::Plain),
        EventType::Other(_) => of_keelway(ty, data),
    };
    let mut message = text("message").to_owned();
    let failed = matches!((EventType::parse(ty), text("result")), (EventType::Sequence(_, _, Kind::Finished), "fail"));
    if failed {
        let stages = "Stages that follow on its success are not reached.";
        message = if message.is_empty() { stages.to_owned() } else { format!("{message}\n{stages}") };
    }
    let facts = facts(event, data).into_iter().map(|(name, value)| (name, cut(&value, VALUE))).collect();
    Notice { title: cut(&title, VALUE), text: cut(&message, TEXT), facts, color }
}

/// The end of a sequence or a task.
fn finished(name: &str, result: &str, place: &str) -> (String, Color) {
    let name = capital(name);
    match result {
        "pass" => (format!("{name} passed: {place}"), Color::Good),
        "warning" => (format!("{name} passed with a warning: {place}"), Color::Warning),
        _ => (format!("{name} failed: {place}"), Color::Bad),
    }
}

/// Events of pipelines, deployment configs and webhooks.
fn of_keelway(ty: &str, data: &Object) -> (String, Color) {
    let text = |name: &str| data.get(name).and_then(Value::as_str).unwrap_or_default();
    let short = ty.strip_prefix("dev.keelway.").unwrap_or(ty);
    let (pipeline, revision, environment) = (text("pipeline"), text("revision"), text("environment"));
    let into = format!("{pipeline} {revision} into {environment}");
    match short {
        "promotion.awaited" | "promotion.reminded" => (format!("An approval waits: {into}"), Color::Warning),
        "promotion.blocked" => (format!("{environment} is not reached yet: {pipeline} {revision}"), Color::Warning),
        "promotion.suspended" => (format!("Pipeline {pipeline} is suspended: {}", text("message")), Color::Bad),
        "promotion.failed" | "promotion.abandoned" | "promotion.rejected" => {
            let what = short.trim_start_matches("promotion.");
            (format!("{environment} is not reached: {pipeline} {revision} was {what}").replace("was failed", "failed"), Color::Bad)
        }
        "promotion.completed" => (format!("{environment} runs {pipeline} {revision}"), Color::Good),
        "deployment.failed" => (format!("Deployment failed: {}", text("name")), Color::Bad),
        "deployment.complete" => (format!("Deployed: {}", text("name")), Color::Good),
        "webhook.disabled" => (format!("Webhook {} is disabled", text("webhook")), Color::Bad),
        other => (other.to_owned(), Color::Plain),
    }
}

fn place(service: &str, stage: &str) -> String {
    match (service, stage) {
        ("", "") => "Keelway".to_owned(),
        (service, "") => service.to_owned(),
        ("", stage) => stage.to_owned(),
        (service, stage) => format!("{service} in {stage}"),
    }
}

fn capital(name: &str) -> String {
    let mut rest = name.chars();
    rest.next().map(|first| first.to_uppercase().collect::<String>() + rest.as_str()).unwrap_or_default()
}

/// The place of an event, and links.
fn facts(event: &Value, data: &Object) -> Vec<(&'static str, String)> {
    let names = [
        ("Project", "project"),
        ("Stage", "stage"),
        ("Service", "service"),
        ("Pipeline", "pipeline"),
        ("Environment", "environment"),
        ("Revision", "revision"),
        ("Config", "config"),
        ("Result", "result"),
        ("Reason", "reason"),
    ];
    let member = |(title, name): (&'static str, &str)| {
        let text = data.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())?;
        Some((title, text.to_owned()))
    };
    let image = data.get("configurationChange").and_then(|change| change.pointer("/values/image")).and_then(Value::as_str);
    let context = event["shkeptncontext"].as_str().filter(|context| !context.is_empty());
    let mut facts: Vec<_> = names.into_iter().filter_map(member).collect();
    facts.extend(image.map(|image| ("Image", image.to_owned())));
    facts.extend(context.map(|context| ("Context", context.to_owned())));
    facts
}
