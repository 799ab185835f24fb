//! CloudEvents in structured JSON: from the bus, from a client of the API, and what of it a client may send.

use keelway_domain::event::{APPROVAL_SOURCE, CloudEvent, DEFAULT_SOURCE, EventType, Kind, Object, PREFIX, SOURCE};
use keelway_domain::ids::context_of;
use keelway_domain::names::{Context, SequenceName, StageName};
use keelway_domain::sequences::check_decision;
use keelway_domain::shipyard::APPROVAL;
use keelway_domain::time::Timestamp;
use serde_json::{Map, Value};

/// An event's type is at most this long: EventBridge's limit on a detail type.
pub const MAX_TYPE: usize = 128;
/// Its source and its ids are at most this long, in characters.
pub const MAX_NAME: usize = 256;

/// A client's time before this is none: Keptn's clients send the year 1 for an event without a time.
const YEAR_2000: Timestamp = Timestamp(946_684_800_000);

/// Where an event comes from: what may be absent differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The event bus: a complete CloudEvent.
    Bus,
    /// A client of the HTTP API: Keptn's clients leave out `specversion`.
    Client,
}

/// Why something is not a CloudEvent, or not one a client may send.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct CloudEventError {
    /// The attribute or member at fault: `type`, `data.stage`; `event` for the whole.
    pub field: String,
    /// What is wrong and the way out.
    pub message: String,
}

pub(crate) fn refused<T>(field: impl Into<String>, message: impl Into<String>) -> Result<T, CloudEventError> {
    Err(CloudEventError { field: field.into(), message: message.into() })
}

/// Reads an event from structured JSON. `now` stands for a `time` that is absent, unreadable or before 2000.
///
/// An absent `source` is Keptn's default, an absent `shkeptncontext` follows from `source` and `id`; any other text is a context
/// ([`Context::of`]). An `id` is required from both origins, because the context may follow from it: the API calls [`fill_id`]
/// first.
///
/// # Errors
/// The first attribute that breaks a rule, by name, and what to send instead.
pub fn parse(json: &Value, origin: Origin, now: Timestamp) -> Result<CloudEvent, CloudEventError> {
    let Value::Object(attributes) = json else {
        return refused("event", format!("is {}, not a JSON object: send a CloudEvent in structured JSON", what(json)));
    };
    spec_version(attributes, origin)?;
    let ty = event_type(attributes)?;
    let source = source(attributes)?;
    let Some(id) = name(attributes, "id")? else {
        return refused(
            "id",
            "is missing: give every event an id of its own, for example a UUID; the same again is the same event",
        );
    };
    let context = match string(attributes, "shkeptncontext")? {
        Some(text) => Context::of(text),
        None => Context::of(&context_of(&source, &id).to_string()),
    };
    let triggered_id = name(attributes, "triggeredid")?;
    let git_commit_id = name(attributes, "gitcommitid")?;
    let time = attributes.get("time").and_then(Value::as_str).and_then(Timestamp::parse);
    let time = time.filter(|time| *time >= YEAR_2000).unwrap_or(now);
    let data = data(attributes, &ty)?;
    envelope(attributes)?;
    // A client does not say who it is: the API does.
    let authors = if origin == Origin::Bus { CloudEvent::authors_of(json) } else { vec![] };
    Ok(CloudEvent { id, source, ty, time, context, authors, triggered_id, git_commit_id, data })
}

/// Puts an id into an event that has none, as a client may leave it out.
pub fn fill_id(json: &mut Value, fresh: impl FnOnce() -> String) {
    if let Value::Object(attributes) = json {
        let absent = match attributes.get("id") {
            None | Some(Value::Null) => true,
            Some(Value::String(id)) => id.is_empty(),
            Some(_) => false,
        };
        if absent {
            attributes.insert("id".into(), Value::String(fresh()));
        }
    }
}

/// Reads the event in an EventBridge envelope, `{"detail-type": …, "source": …, "detail": {…}}`, as a rule puts it on a queue.
///
/// # Errors
/// As [`parse`], and where the envelope says another type or source than the event: the bus's permissions are about the
/// envelope's, so nothing else may count.
pub fn from_bus_envelope(envelope: &Value, now: Timestamp) -> Result<CloudEvent, CloudEventError> {
    let Some(detail) = envelope.get("detail") else {
        return refused("detail", "is missing: put the whole CloudEvent into the entry's Detail");
    };
    let event = parse(detail, Origin::Bus, now)?;
    for (field, inside, told) in [("detail-type", "type", &event.ty), ("source", "source", &event.source)] {
        match envelope.get(field).and_then(Value::as_str) {
            Some(outside) if outside == told => (),
            Some(outside) => {
                let message = format!("is {outside:?}, but the event's `{inside}` is {told:?}: send the same in both places");
                return refused(field, message);
            }
            None => return refused(field, format!("is missing: set it to the event's `{inside}`, {told:?}")),
        }
    }
    Ok(event)
}

fn spec_version(attributes: &Map<String, Value>, origin: Origin) -> Result<(), CloudEventError> {
    match (attributes.get("specversion"), origin) {
        (Some(Value::String(version)), _) if version == "1.0" => Ok(()),
        (None | Some(Value::Null), Origin::Client) => Ok(()),
        (Some(Value::String(version)), Origin::Client) if version.is_empty() => Ok(()),
        (None | Some(Value::Null), Origin::Bus) => refused("specversion", "is missing: send `\"specversion\": \"1.0\"`"),
        (Some(other), _) => refused("specversion", format!("is {other}: only \"1.0\" is understood")),
    }
}

fn event_type(attributes: &Map<String, Value>) -> Result<String, CloudEventError> {
    let Some(ty) = name(attributes, "type")? else {
        return refused("type", "is missing: say what happened, for example \"sh.keptn.event.dev.delivery.triggered\"");
    };
    if let Some(odd) = ty.chars().find(|c| c.is_whitespace()) {
        return refused("type", format!("{ty:?} contains {odd:?}: a type is one name with dots"));
    }
    match ty.chars().count() {
        n if n > MAX_TYPE => refused("type", format!("has {n} characters: at most {MAX_TYPE} are allowed")),
        _ => Ok(ty),
    }
}

fn source(attributes: &Map<String, Value>) -> Result<String, CloudEventError> {
    let source = name(attributes, "source")?.unwrap_or_else(|| DEFAULT_SOURCE.into());
    check_source(&source)?;
    Ok(source)
}

/// Whether an event may have this source, if it is not one of the engine's own.
///
/// # Errors
/// Why it cannot be used.
pub fn check_source(source: &str) -> Result<(), CloudEventError> {
    if source.starts_with("aws.") {
        return refused("source", format!("{source:?} begins with `aws.`, which the bus keeps for AWS: choose another"));
    }
    // A source is compared by its bytes, in permissions, too: two that people read as the same must not be different ones.
    if let Some(odd) = source.chars().find(|c| !c.is_ascii()) {
        return refused("source", format!("{source:?} contains {odd:?}: send a URI reference, in ASCII; percent-encode the rest"));
    }
    if source.trim() != source {
        return refused("source", format!("{source:?} begins or ends with a blank: leave it out"));
    }
    match OWN_SOURCES.iter().find(|own| source != **own && letters(source) == letters(own)) {
        Some(own) => {
            refused("source", format!("{source:?} looks like {own:?}, which is the engine's own: send the name of your tool"))
        }
        None => Ok(()),
    }
}

/// The engines' own sources.
const OWN_SOURCES: [&str; 7] =
    [SOURCE, APPROVAL_SOURCE, "keelway-api", "keelway-deployments", "keelway-promotions", "keelway-sequences", "keelway-webhooks"];

fn letters(source: &str) -> String {
    source.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// A string attribute; absent, null and empty are the same.
fn string<'a>(attributes: &'a Map<String, Value>, field: &str) -> Result<Option<&'a str>, CloudEventError> {
    match attributes.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(other) => refused(field, format!("is {}, not a string", what(other))),
    }
}

/// A string attribute of limited length.
fn name(attributes: &Map<String, Value>, field: &str) -> Result<Option<String>, CloudEventError> {
    let Some(text) = string(attributes, field)? else { return Ok(None) };
    characters(text, || field.to_owned())?;
    match text.chars().count() {
        n if n > MAX_NAME => refused(field, format!("has {n} characters: at most {MAX_NAME} are allowed")),
        _ => Ok(Some(text.to_owned())),
    }
}

fn data(attributes: &Map<String, Value>, ty: &str) -> Result<Object, CloudEventError> {
    let data = match attributes.get("data") {
        Some(Value::Object(data)) => data.clone(),
        None | Some(Value::Null) if attributes.get("data_base64").is_some_and(|data| !data.is_null()) => {
            return refused("data_base64", "is not taken: send the data as a JSON object in `data`");
        }
        None | Some(Value::Null) if !ty.starts_with("sh.keptn.") => Object::new(),
        None | Some(Value::Null) => {
            return refused("data", "is missing: send an object, with `project`, `stage` and `service` for a sequence or task");
        }
        Some(other) => return refused("data", format!("is {}: send a JSON object", what(other))),
    };
    data.iter().try_for_each(|(key, value)| {
        characters(key, || "data".into())?;
        all_characters(value, &mut vec![key])
    })?;
    labels(&data)?;
    Ok(data)
}

fn labels(data: &Object) -> Result<(), CloudEventError> {
    let labels = match data.get("labels") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(labels)) => labels,
        Some(other) => return refused("data.labels", format!("is {}: send an object of strings", what(other))),
    };
    match labels.iter().find(|(_, value)| !value.is_string()) {
        Some((label, value)) => {
            refused(format!("data.labels.{label}"), format!("is {}, not a string: put it in quotes", what(value)))
        }
        None => Ok(()),
    }
}

/// Every string and key in a value; the path is for the message.
fn all_characters<'v>(value: &'v Value, path: &mut Vec<&'v str>) -> Result<(), CloudEventError> {
    match value {
        Value::String(text) => characters(text, || format!("data.{}", path.join("."))),
        Value::Array(items) => items.iter().try_for_each(|item| all_characters(item, path)),
        Value::Object(members) => members.iter().try_for_each(|(key, member)| {
            characters(key, || format!("data.{}", path.join(".")))?;
            path.push(key);
            all_characters(member, path)?;
            path.pop();
            Ok(())
        }),
        _ => Ok(()),
    }
}

/// The characters SQS takes: an event with another would be lost between queues.
fn characters(text: &str, field: impl Fn() -> String) -> Result<(), CloudEventError> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Ok(());
    }
    let allowed = |c: char| matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    match text.chars().find(|c| !allowed(*c)) {
        Some(odd) => {
            let message = format!("contains the character U+{:04X}, which a queue does not carry: leave it out", u32::from(odd));
            refused(field(), message)
        }
        None => Ok(()),
    }
}

/// The remaining attributes by the CloudEvents SDK: types of extensions, `subject`, `dataschema`.
fn envelope(attributes: &Map<String, Value>) -> Result<(), CloudEventError> {
    // Checked above, or members of Keptn's own model that are no CloudEvents attributes.
    const ELSEWHERE: [&str; 10] =
        ["data", "data_base64", "time", "extensions", "contenttype", "specversion", "shkeptncontext", "type", "source", "id"];
    // Any text is fine there, so the SDK, which reads the whole again, is not asked about most events.
    const TEXTS: [&str; 4] = ["datacontenttype", "gitcommitid", "shkeptnspecversion", "triggeredid"];
    let rest = attributes.iter().filter(|(key, _)| !ELSEWHERE.contains(&key.as_str()));
    for (key, value) in rest.clone() {
        characters(key, || "event".into())?;
        if matches!(value, Value::Array(_) | Value::Object(_)) {
            return refused(
                key,
                format!("is {}: an attribute is a string, a number or a truth value; put it into `data`", what(value)),
            );
        }
        value.as_str().map_or(Ok(()), |text| characters(text, || key.clone()))?;
    }
    let rest = rest.filter(|(key, value)| !(value.is_string() && TEXTS.contains(&key.as_str())));
    let mut rest: Map<String, Value> = rest.map(|(key, value)| (key.clone(), value.clone())).collect();
    if rest.is_empty() {
        return Ok(());
    }
    for (field, value) in [("specversion", "1.0"), ("type", "x"), ("source", "x"), ("id", "x")] {
        rest.insert(field.into(), value.into());
    }
    match serde_json::from_value::<cloudevents::Event>(Value::Object(rest)) {
        Ok(_) => Ok(()),
        Err(error) => refused("event", format!("is not a CloudEvent: {error}; mend that attribute or leave it out")),
    }
}

fn what(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Whether a client may send this event: starts of sequences, reactions to tasks, domain events; nothing the engine itself
/// tells. As Keptn's gateway, except that `.status.changed` is let in, and that a domain event only needs a listener, which the
/// caller looks up.
///
/// # Errors
/// The attribute that keeps it out, and what a client sends instead.
pub fn check_client_event(event: &CloudEvent) -> Result<(), CloudEventError> {
    // The bus's rule keeps the engine's own sources out of its queue: such an event would be answered and then lost.
    if OWN_SOURCES.contains(&event.source.as_str()) {
        return refused("source", format!("{:?} is the engine's own: send the name of your tool", event.source));
    }
    let ty = event.ty.as_str();
    if ty.ends_with(".invalidated") && !ty.starts_with("sh.keptn.") {
        return without_prefix(ty);
    }
    if ty.ends_with(".invalidated") || ty == "sh.keptn.log.error" || ty == "sh.keptn.events.problem" {
        return Ok(());
    }
    if ty == "sh.keptn.event.monitoring.configure" {
        return required(event, &["project", "type"]);
    }
    match EventType::parse(ty) {
        EventType::Sequence(stage, _, Kind::Triggered) => {
            required(event, &["project", "stage", "service"])?;
            match event.text("stage") {
                Some(told) if told == stage.as_str() => Ok(()),
                told => {
                    let message = format!(
                        "is {:?}, but the type names stage {:?}: make them the same",
                        told.unwrap_or_default(),
                        stage.as_str()
                    );
                    refused("data.stage", message)
                }
            }
        }
        EventType::Sequence(stage, sequence, kind) => {
            let message = format!(
                "only the engine tells that a sequence is {}: to start it, send `{PREFIX}{stage}.{sequence}.triggered`",
                kind.as_str()
            );
            refused("type", message)
        }
        EventType::Task(task, Kind::Triggered) => {
            let message = format!(
                "only the engine triggers a task: trigger a sequence that has task `{task}`, `{PREFIX}<stage>.<sequence>.triggered`"
            );
            refused("type", message)
        }
        EventType::Task(task, kind) => reaction(event, task.as_str(), kind),
        EventType::Other(name) => domain_event(event, &name),
    }
}

fn reaction(event: &CloudEvent, task: &str, kind: Kind) -> Result<(), CloudEventError> {
    required(event, &["project", "stage", "service"])?;
    if event.triggered_id.is_none() {
        return refused("triggeredid", "is missing: send the id of the `.triggered` event this answers");
    }
    match kind {
        Kind::Finished if task == APPROVAL => check_decision(event).or_else(|(field, message)| refused(field, message)),
        Kind::Finished => required(event, &["result", "status"]),
        _ => Ok(()),
    }
}

fn domain_event(event: &CloudEvent, name: &str) -> Result<(), CloudEventError> {
    let ty = &event.ty;
    if let Some(rest) = ty.strip_prefix("sh.keptn.events.") {
        return refused(
            "type",
            format!("{ty:?} is an unknown event type: the prefix is `{PREFIX}`, in the singular; send `{PREFIX}{rest}`"),
        );
    }
    let parts: Vec<&str> = name.split('.').collect();
    if ty.starts_with(PREFIX)
        && let [stage, sequence, "triggered"] = parts[..]
    {
        let rule = StageName::new(stage).err().or(SequenceName::new(sequence).err()).map(|error| error.to_string());
        return refused("type", format!("{ty:?} is an unknown event type: {}", rule.unwrap_or_default()));
    }
    if ["project", "service"].iter().any(|field| event.text(field).is_none()) {
        let message = format!(
            "unknown event type {ty:?}: send `{PREFIX}<stage>.<sequence>.triggered` to start a sequence, `{PREFIX}<task>.started` or `.finished` \
             to answer a task; an event that sequences are triggered on needs `data.project` and `data.service`"
        );
        return refused("type", message);
    }
    if ty.starts_with(PREFIX) { Ok(()) } else { without_prefix(ty) }
}

/// The bus's rule feeds the engine by the prefix: anything else would be answered and never arrive.
fn without_prefix(ty: &str) -> Result<(), CloudEventError> {
    refused("type", format!("{ty:?} is an unknown event type: types begin with `{PREFIX}`; send `{PREFIX}{ty}`"))
}

fn required(event: &CloudEvent, fields: &[&str]) -> Result<(), CloudEventError> {
    match fields.iter().find(|field| event.text(field).is_none()) {
        Some(field) => refused(format!("data.{field}"), "is missing: send it as a string that is not empty"),
        None => Ok(()),
    }
}
