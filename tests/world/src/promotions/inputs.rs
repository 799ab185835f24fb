//! What a case puts in: manifests, facts, commands, and what people do at the host.

use super::host::{Deed, End};
use super::{Apply, Own, pipeline};
use super::{Promotes, namespace};
use crate::case::{Expected, Step, Telling, merge};
use keelway_domain::access::of_token;
use keelway_domain::deployments;
use keelway_domain::event::SPEC_VERSION;
use keelway_domain::promotions::definition::{App, Target};
use keelway_domain::promotions::{At, Command};
use keelway_domain::time::Timestamp;
use keelway_engine::promotions::observations::OBSERVED;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The manifest of a pipeline as the case has it now, or as a step applies it.
pub(super) fn manifest(telling: &Telling<'_, Promotes>, alias: &str, apply: &Apply, host: (&str, &str)) -> Result<Value, String> {
    let given = &telling.case.given;
    let own = given.pipelines.get(alias).or(given.pipeline.as_ref());
    let name = apply.pipeline.as_ref().or(own).ok_or_else(|| format!("the case has no pipeline {alias:?}"))?;
    let mut document = pipeline(name).map_err(|e| e.to_string())?;
    let changed = if apply.pipeline.is_none() { vec![(&given.spec, &given.environments)] } else { vec![] };
    for (spec, environments) in changed.into_iter().chain([(&apply.spec, &apply.environments)]) {
        if let Some(all) = document["spec"].as_object_mut() {
            merge(all, spec);
        }
        for (name, over) in environments {
            let list = document["spec"]["environments"].as_array_mut();
            let found = list.and_then(|list| list.iter_mut().find(|one| one["name"] == **name)).and_then(Value::as_object_mut);
            merge(found.ok_or_else(|| format!("the pipeline has no environment {name:?}"))?, over);
        }
    }
    document["metadata"] = json!({"name": alias, "namespace": namespace(telling)});
    let text = document.to_string().replace("$namespace", &namespace(telling));
    let text = text.replace("$host", host.0).replace("$repository", host.1);
    serde_json::from_str(&text).map_err(|e| e.to_string())
}

/// The manifest that is in force before the present step.
fn in_force(telling: &Telling<'_, Promotes>, alias: &str) -> Result<Value, String> {
    let before = telling.case.steps.iter().take(telling.step.saturating_sub(1));
    let refused = |step: &&Step<Promotes>| matches!(step.answer, Some(Expected::Status(400..)));
    let mut applied = before.filter(|step| step.about() == alias && !refused(step)).filter_map(|step| step.own.apply.as_ref());
    manifest(telling, alias, applied.next_back().unwrap_or(&Apply::default()), ("gitea", "https://git.test/o/r"))
}

/// The targets of a pipeline, by environment, and what runs there.
pub(super) fn targets(telling: &Telling<'_, Promotes>, alias: &str) -> Result<(App, BTreeMap<String, Vec<Target>>), String> {
    let document = in_force(telling, alias)?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let app = &document["spec"]["appRef"];
    let app = App { api_version: text(&app["apiVersion"]), kind: text(&app["kind"]), name: text(&app["name"]) };
    let target = |target: &Value| {
        let cluster = target["clusterRef"]["name"]
            .as_str()
            .map(|name| format!("{}/{name}", target["clusterRef"]["namespace"].as_str().unwrap_or("default")));
        Target { cluster, namespace: text(&target["namespace"]) }
    };
    let environment = |one: &Value| (text(&one["name"]), one["targets"].as_array().into_iter().flatten().map(target).collect());
    let environments = document["spec"]["environments"].as_array().into_iter().flatten().map(environment).collect();
    Ok((app, environments))
}

/// `<revision>/<R|N>` (`-`: no revision), or `? [<error>]`, in the form of the API.
fn fact(app: &App, target: &Target, text: &str, version: i64) -> Result<Value, String> {
    let mut fact = json!({
        "apiVersion": app.api_version, "kind": app.kind, "name": app.name, "namespace": target.namespace, "version": version,
    });
    if let Some(cluster) = &target.cluster {
        fact["cluster"] = cluster.as_str().into();
    }
    if let Some(error) = text.strip_prefix('?') {
        let error = if error.trim().is_empty() { "the cluster cannot be reached" } else { error.trim() };
        fact["error"] = error.into();
        return Ok(fact);
    }
    let (revision, ready) = text.rsplit_once('/').ok_or_else(|| format!("{text:?} is not <revision>/<R|N>"))?;
    fact["ready"] = (ready == "R").into();
    if revision != "-" {
        fact["revision"] = revision.into();
    }
    Ok(fact)
}

/// Facts about targets, each as an event of its own: the bus promises no order.
pub(super) fn facts(
    telling: &Telling<'_, Promotes>,
    alias: &str,
    seen: &BTreeMap<String, String>,
    (version, now): (i64, Timestamp),
    by: Option<&String>,
) -> Result<Vec<Value>, String> {
    let (app, environments) = targets(telling, alias)?;
    // Only the engine of deployments is believed when it says who set a revision.
    let source = if by.is_some() { deployments::SOURCE } else { "cluster" };
    let mut events = vec![];
    for (place, text) in seen {
        let (name, n) = place.split_once('/').map_or((place.as_str(), None), |(name, n)| (name, n.parse::<usize>().ok()));
        let all = environments.get(name).ok_or_else(|| format!("there is no environment {name:?}"))?;
        for (i, target) in all.iter().enumerate().filter(|(i, _)| n.is_none_or(|n| n == i + 1)) {
            let mut data = json!({"facts": [fact(&app, target, text, version)?]});
            if let Some(by) = by {
                data["by"] = json!([of_token(by)]);
            }
            events.push(json!({
                "specversion": "1.0", "datacontenttype": "application/json", "shkeptnspecversion": SPEC_VERSION,
                "id": format!("{}-{name}-{i}", telling.fresh_id()), "time": now.rfc3339(), "source": source, "type": OBSERVED,
                "shkeptncontext": telling.context(alias), "data": data,
            }));
        }
    }
    Ok(events)
}

/// What a step asks of a pipeline, if it does.
pub(super) fn command(step: &Step<Promotes>) -> Result<Option<Command>, String> {
    let own: &Own = &step.own;
    let at = |text: &String| {
        let (environment, revision) = text.split_once(' ').ok_or_else(|| format!("{text:?} is not <environment> <revision>"))?;
        Ok::<_, String>(At { environment: environment.to_owned(), revision: revision.to_owned() })
    };
    Ok(match own {
        Own { approve: Some(text), .. } => Some(Command::Approve(at(text)?)),
        Own { reject: Some(text), .. } => Some(Command::Reject(at(text)?)),
        Own { hold: Some(text), .. } => Some(Command::Hold(at(text)?)),
        Own { suspend: Some(_), .. } => Some(Command::Suspend),
        Own { resume: Some(_), .. } => Some(Command::Resume),
        Own { release: Some(name), .. } => Some(Command::Release(name.clone())),
        Own { abandon: Some(revision), .. } => Some(Command::Abandon(revision.clone())),
        Own { retry: Some(name), .. } => Some(Command::Retry(name.clone())),
        Own { abort: Some(name), .. } => Some(Command::Abort(name.clone())),
        Own { accept: Some(text), .. } => Some(Command::Accept(at(text)?)),
        _ => None,
    })
}

/// What a person does at the host, if the step says so.
pub(super) fn deed(own: &Own) -> Option<(Deed, u64)> {
    let deeds = [
        (Deed::Merge, own.merge),
        (Deed::Close, own.close),
        (Deed::Reopen, own.reopen),
        (Deed::Push, own.push),
        (Deed::Conflict, own.conflict),
        (Deed::Edit, own.edit),
    ];
    deeds.into_iter().find_map(|(deed, number)| Some((deed, number?)))
}

/// Which sequence ends, and how.
pub(super) fn ending(text: &str) -> Result<(&str, End), String> {
    let (environment, how) = text.split_once(' ').ok_or_else(|| format!("{text:?} is not <environment> <end>"))?;
    let end = serde_json::from_value(how.into()).map_err(|error| format!("{how:?}: {error}"))?;
    Ok((environment, end))
}
