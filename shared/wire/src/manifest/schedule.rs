//! `kind: Schedule`: a sequence that is triggered at times.

use super::finding::Report;
use super::levels::projects::{self, API_VERSION};
use super::levels::{self, schedules};
use super::objects;
use super::tree::Node;
use super::values::{flag, mapping, text, word};
use keelway_domain::event::Object;
use keelway_domain::names::{NameError, ProjectName, SequenceName, ServiceName, StageName};
use keelway_domain::schedules::{Concurrency, MAX_DATA_BYTES, MAX_SERVICES, Spec, When};
use keelway_domain::time::Timestamp;
use keelway_domain::windows::{Edge, instant, schedule, zone};
use serde_json::Value;

/// Members of a trigger's data that a schedule may not set.
const RESERVED: [&str; 4] = ["project", "stage", "service", "labels"];

/// A schedule as its manifest declares it.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "named as the fields of the manifest are")]
pub struct ScheduleManifest {
    pub project: ProjectName,
    pub name: String,
    pub spec: Spec,
    /// The text of the document.
    pub source: String,
}

pub fn read(root: &Node, source: &str, report: &mut Report) -> Option<ScheduleManifest> {
    levels::check(root, &schedules::SCHEDULE, "", report);
    objects::version(root, "Schedule", API_VERSION, report);
    let metadata = levels::mapping(root, "metadata", &projects::METADATA, "", report).map(|(metadata, _)| metadata);
    let name = objects::name(metadata.unwrap_or(root), "metadata", report);
    let (spec, _) = levels::mapping(root, "spec", &schedules::SPEC, "", report)?;
    let project = named(spec, "project", ProjectName::new, report);
    let stage = named(spec, "stage", StageName::new, report);
    let sequence = named(spec, "sequence", SequenceName::new, report);
    let services = services(spec, report);
    let time_zone = text(spec, "zone", "spec", report);
    let when = when(spec, time_zone.as_deref(), report);
    let start = time(spec, "start", (time_zone.as_deref(), Edge::From), report);
    let end = time(spec, "end", (time_zone.as_deref(), Edge::From), report);
    if let Some((start, end)) = start.zip(end)
        && end <= start
    {
        report.error(spec.get("end").unwrap_or(spec), "spec.end", "is not after `start`: nothing would ever be triggered".into());
    }
    let suspended = flag(spec, "suspended", "spec", report);
    let concurrency = match spec.get("concurrency").filter(|given| !given.is_null()) {
        Some(_) => word(spec, "concurrency", "spec", &["queue", "skip"], report),
        None => Some(1),
    };
    let data = data(spec, report);
    let concurrency = if concurrency? == 0 { Concurrency::Queue } else { Concurrency::Skip };
    let (stage, sequence, services, when) = (stage?, sequence?, services?, when?);
    let spec = Spec { stage, sequence, services, when, zone: time_zone, start, end, suspended, concurrency, data: data? };
    Some(ScheduleManifest { project: project?, name: name?, spec, source: source.to_owned() })
}

fn named<N>(spec: &Node, field: &str, new: impl Fn(String) -> Result<N, NameError>, report: &mut Report) -> Option<N> {
    let at = spec.get(field).unwrap_or(spec);
    let given = text(spec, field, "spec", report).filter(|text| !text.trim().is_empty())?;
    new(given).map_err(|error| report.error(at, format!("spec.{field}"), error.to_string())).ok()
}

/// `services: [carts, payments]`, each once.
fn services(spec: &Node, report: &mut Report) -> Option<Vec<ServiceName>> {
    let path = "spec.services";
    let list = spec.get("services").filter(|list| !list.is_null())?;
    let entries = levels::items(list, path, &schedules::SPEC, report)?;
    if entries.len() > MAX_SERVICES {
        report.error(list, path, format!("has {} services: write 1 to {MAX_SERVICES}", entries.len()));
        return None;
    }
    let mut found: Vec<ServiceName> = vec![];
    for (place, entry) in entries.iter().copied().enumerate() {
        let path = format!("{path}[{place}]");
        match ServiceName::new(entry.scalar().unwrap_or_default()) {
            Err(error) => report.error(entry, path, error.to_string()),
            Ok(name) if found.contains(&name) => report.error(entry, path, format!("{name} stands there twice: leave one out")),
            Ok(name) => found.push(name),
        }
    }
    (found.len() == entries.len()).then_some(found)
}

/// `cron`, in `zone`; or `at`.
fn when(spec: &Node, named: Option<&str>, report: &mut Report) -> Option<When> {
    let given = |field: &str| spec.get(field).is_some_and(|value| !value.is_null());
    if let Err(message) = zone(named) {
        report.error(spec.get("zone").unwrap_or(spec), "spec.zone", message);
    }
    match (given("cron"), given("at")) {
        (true, true) => {
            let message = "stands beside `cron`: write one of the two";
            report.error(spec.get("at").unwrap_or(spec), "spec.at", message.into());
            cron(spec, report);
            None
        }
        (false, false) => {
            let message = "is missing: write when, like \"30 2 * * MON-FRI\", or `at` for once";
            report.error(spec, "spec.cron", message.into());
            None
        }
        (true, false) => cron(spec, report).map(When::Cron),
        (false, true) => time(spec, "at", (named, Edge::From), report).map(When::At),
    }
}

fn cron(spec: &Node, report: &mut Report) -> Option<String> {
    let given = text(spec, "cron", "spec", report)?;
    let read = schedule(&given);
    let told = read.map_err(|message| report.error(spec.get("cron").unwrap_or(spec), "spec.cron", message));
    told.ok().map(|_| given)
}

/// A time in the schedule's zone. An unknown zone is refused elsewhere.
fn time(spec: &Node, field: &str, (named, edge): (Option<&str>, Edge), report: &mut Report) -> Option<Timestamp> {
    let given = text(spec, field, "spec", report)?;
    let read = instant(&given, zone(named).ok()?, edge);
    read.map_err(|message| report.error(spec.get(field).unwrap_or(spec), format!("spec.{field}"), message)).ok()
}

/// `data` of the trigger, with the labels.
fn data(spec: &Node, report: &mut Report) -> Option<Object> {
    let errors = report.errors();
    let mut data = mapping(spec, "data", "spec.data", report).map(Node::to_object).unwrap_or_default();
    for name in RESERVED.iter().filter(|name| data.contains_key(**name)) {
        let at = spec.get("data").and_then(|data| data.get(name)).unwrap_or(spec);
        report.error(at, format!("spec.data.{name}"), format!("is not data: write `{name}` under `spec`, where it belongs"));
    }
    if let Some(labels) = mapping(spec, "labels", "spec.labels", report) {
        let mut found = Object::new();
        for entry in labels.entries().unwrap_or_default() {
            match entry.value.scalar() {
                Some(text) => drop(found.insert(entry.key.clone(), Value::from(text))),
                None => {
                    let message = format!("is {}, not a text", entry.value.what());
                    report.error_at(entry.at, format!("spec.labels.{}", entry.key), message);
                }
            }
        }
        data.insert("labels".into(), Value::Object(found));
    }
    let bytes = Value::Object(data.clone()).to_string().len();
    if bytes > MAX_DATA_BYTES {
        let at = spec.get("data").unwrap_or(spec);
        report.error(
            at,
            "spec.data",
            format!("comes to {bytes} bytes: at most {MAX_DATA_BYTES} are allowed; write a reference instead"),
        );
    }
    (report.errors() == errors).then_some(data)
}
