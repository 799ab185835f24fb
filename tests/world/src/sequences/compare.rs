//! What sequences' cases state besides events and answers, and what is true of every event of sequences.

use super::Lane;
use super::{Keptn, SequencesStand};
use crate::case::{Step, Telling, line, matches};
use keelway_domain::event::{EventType, Kind, PREFIX};
use serde_json::Value;

/// Compares contexts, lanes and open tasks after a step.
pub(super) fn after(story: &Telling<'_, Keptn>, step: &Step<Keptn>, stand: &mut impl SequencesStand) -> Result<(), String> {
    let project = story.project(step.own.project.as_deref().unwrap_or("p"));
    for (alias, expected) in &step.state {
        let Some(got) = stand.sequence(&project, &story.context(alias)) else { continue };
        compare_view(got.as_ref(), &story.resolve(expected)?).map_err(|e| format!("state of {alias}: {e}; it is {got:?}"))?;
    }
    for (place, lane) in &step.own.lanes {
        compare_lane(story, place, lane, stand)?;
    }
    for wanted in &step.own.listed {
        let of: Vec<String> = wanted.of.iter().map(|alias| story.context(alias)).collect();
        let Some(got) = stand.listed(&project, wanted, &of) else { continue };
        let got: Vec<String> = got.iter().map(|context| story.alias(context)).collect();
        if got != wanted.are {
            return Err(format!("the list of {wanted:?} shows {got:?}"));
        }
    }
    for (place, image) in &step.own.runs {
        let (stage, service) = place.split_once('/').ok_or_else(|| format!("{place:?} is not <stage>/<service>"))?;
        let Some(got) = stand.runs(&project, stage, service) else { continue };
        if got.as_deref().unwrap_or("nothing") != image {
            return Err(format!("in {place} runs {got:?}, expected {image}"));
        }
    }
    match &step.own.open {
        Some(open) => compare_open(story, step, open, stand),
        None => Ok(()),
    }
}

fn compare_view(got: Option<&Value>, expected: &Value) -> Result<(), String> {
    let Some(got) = got else {
        return if expected == "absent" { Ok(()) } else { Err("there is none".into()) };
    };
    if let Some(state) = expected.as_str() {
        return matches(&got["phase"], &state.into(), "phase");
    }
    for (name, value) in expected.as_object().into_iter().flatten() {
        if name != "stages" {
            matches(got.get(name).unwrap_or(&Value::Null), value, name)?;
            continue;
        }
        for (stage, value) in value.as_object().into_iter().flatten() {
            let mut stages = got["stages"].as_array().into_iter().flatten();
            let found = stages.find(|entry| entry["name"] == **stage);
            let path = format!("stages.{stage}");
            match (found, value.as_str()) {
                (None, Some("absent")) => {}
                (None, _) => return Err(format!("{path} is missing")),
                (Some(entry), Some(state)) => matches(&entry["phase"], &state.into(), &format!("{path}.phase"))?,
                (Some(entry), None) => matches(entry, value, &path)?,
            }
        }
    }
    Ok(())
}

fn compare_lane(story: &Telling<'_, Keptn>, place: &str, lane: &Lane, stand: &mut impl SequencesStand) -> Result<(), String> {
    let (project, rest) = place.split_once(':').unwrap_or(("p", place));
    let (stage, service) = rest.split_once('/').ok_or_else(|| format!("lane {place:?} is not <stage>/<service>"))?;
    let Some(got) = stand.lane(&story.project(project), stage, service) else { return Ok(()) };
    let holder = got.holder.map_or("none".to_owned(), |context| story.alias(&context));
    let queue: Vec<String> = got.queue.iter().map(|context| story.alias(context)).collect();
    if holder != lane.holder || lane.queue.as_ref().is_some_and(|expected| *expected != queue) {
        return Err(format!("lane {place} is held by {holder}, queue {queue:?}; expected {} and {:?}", lane.holder, lane.queue));
    }
    Ok(())
}

fn compare_open(
    story: &Telling<'_, Keptn>,
    step: &Step<Keptn>,
    open: &[String],
    stand: &mut impl SequencesStand,
) -> Result<(), String> {
    let mut types: Vec<String> = story.sent.iter().filter_map(|event| Some(event["type"].as_str()?.to_owned())).collect();
    types.retain(|ty| ty.ends_with(".triggered") && ty.split('.').count() == 5);
    types.sort();
    types.dedup();
    let mut projects: Vec<&str> = story.case.given.shipyards.keys().map(String::as_str).collect();
    projects.extend(story.case.given.shipyard.as_ref().map(|_| "p"));
    let mut got = vec![];
    for project in projects {
        let Some(events) = stand.open(&story.project(project), &types) else { return Ok(()) };
        for event in events {
            got.push(line(story, &event));
        }
    }
    let default = step.about();
    let full = |line: &String| if line.contains('@') { line.clone() } else { format!("{line} @{default}") };
    let mut expected: Vec<String> = open.iter().map(full).collect();
    got.sort();
    expected.sort();
    if got == expected { Ok(()) } else { Err(format!("open triggers are {got:?}, expected {expected:?}")) }
}

/// What is true of every event of sequences.
pub(super) fn sound(story: &Telling<'_, Keptn>, event: &Value) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("{}: {what}: {event}", line(story, event)));
    let ty = event["type"].as_str().unwrap_or_default();
    let Some(name) = ty.strip_prefix(PREFIX) else { return Ok(()) };
    for field in ["project", "stage", "service"] {
        if event["data"][field].as_str().unwrap_or_default().is_empty() {
            return wrong(&format!("data.{field} is missing"));
        }
    }
    let kinds = [".triggered", ".started", ".finished", ".status.changed"];
    let Some((stem, kind)) = kinds.iter().find_map(|kind| Some((name.strip_suffix(kind)?, *kind))) else {
        return wrong("its type is of no known kind");
    };
    if let Some((stage, _)) = stem.split_once('.')
        && event["data"]["stage"] != stage
        && !story.inputs.iter().any(|input| input["id"] == event["triggeredid"])
    {
        return wrong("the stage in its data is not the one in its type");
    }
    match (kind, event["triggeredid"].as_str()) {
        (".triggered", None) => Ok(()),
        (".triggered", Some(_)) => wrong("a `.triggered` event answers nothing"),
        (_, None) => wrong("triggeredid is missing"),
        (_, Some(id)) => answers(story, event, stem, id).or_else(|what| wrong(&what)),
    }
}

fn answers(story: &Telling<'_, Keptn>, event: &Value, stem: &str, id: &str) -> Result<(), String> {
    let before = story.sent.iter().chain(&story.inputs).find(|other| other["id"] == id);
    let trigger = before.ok_or_else(|| format!("triggeredid {id} is of no event that went before"))?;
    let ty = trigger["type"].as_str().unwrap_or_default();
    // A domain event starts sequences of any name; an unknown stage in a trigger's data is answered under that stage.
    let fits = match EventType::parse(ty) {
        EventType::Task(task, Kind::Triggered) => task.as_str() == stem,
        EventType::Sequence(_, sequence, Kind::Triggered) => {
            stem.split_once('.').is_some_and(|(_, name)| name == sequence.as_str())
        }
        EventType::Other(_) => stem.contains('.'),
        _ => false,
    };
    if !fits {
        return Err(format!("triggeredid is that of {ty}"));
    }
    let derived = trigger.get("shkeptncontext").is_none();
    if !derived && trigger["shkeptncontext"] != event["shkeptncontext"] {
        return Err("it answers an event of another context".into());
    }
    Ok(())
}
