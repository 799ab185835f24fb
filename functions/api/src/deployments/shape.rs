//! Deployment configs and their versions in the shapes of the API.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use keelway_domain::deployments::analysis::{Limit, Objective, Report};
use keelway_domain::deployments::checkpoint::{Checkpoint, Ended};
use keelway_domain::deployments::definition::{Definition, Trigger};
use keelway_domain::deployments::{
    Command, Config, Delivery, Deployment, Obeyed, Progress, Served, Snapshot, Status, TargetProgress, Watch, Why, message,
    template,
};
use keelway_domain::note::Note;
use keelway_domain::time::Timestamp;
use keelway_engine::deployments::Address;
use keelway_engine::deployments::views::{Entry, View};
use keelway_wire::http::EvaluatedTarget;
use keelway_wire::http::deployments::{
    AlarmState, AnalysisObjective, AnalysisState, AskedBy, AuditEntry, Cause, ConfigState, Details, DriftState, ProgressState,
    ServedState, TargetState, TriggerState, VersionState,
};
use keelway_wire::http::promotions::Actor;
use keelway_wire::manifest::render;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The condition of a config that has not been evaluated yet.
const NOT_YET: (&str, &str) = ("NotEvaluated", "it was applied just now, and is evaluated in a moment");

/// A config as a `DeploymentConfig`. `generated`: the version that it would become, with the causes.
pub fn object(of: &Address, view: &View, definition: &Definition, generated: Option<(u64, &[Why])>) -> Response {
    let state = &view.state;
    let known = state.last.as_ref().map(|last| last.causes.as_slice()).unwrap_or_default();
    let (latest, causes) = match generated {
        Some((latest, causes)) if latest > state.latest => (latest, causes),
        _ => (state.latest, known),
    };
    let mut object = render(&of.namespace, &of.name, definition);
    object["metadata"]["resourceVersion"] = json!(view.applied.version.to_string());
    object["metadata"]["generation"] = json!(view.applied.version);
    let images = match generated {
        Some(_) => template::images(&definition.template),
        None => state.last.as_ref().map(|last| last.content.images.clone()).unwrap_or_default(),
    };
    for (shown, trigger) in object["spec"]["triggers"].as_array_mut().into_iter().flatten().zip(&definition.triggers) {
        if let Trigger::ImageChange(change) = trigger
            && let Some(image) = change.containers.iter().find_map(|name| images.get(name)).filter(|image| !image.is_empty())
        {
            shown["imageChangeParams"]["lastTriggeredImage"] = json!(image);
        }
    }
    let shown = config(of, view);
    object["status"] = json!({
        "latestVersion": latest,
        "observedGeneration": state.observed,
        "details": details(causes),
        "activeVersion": shown.active_version,
        "paused": shown.paused,
        "triggersSuspended": shown.triggers_suspended,
        "triggers": shown.triggers,
        "reason": shown.reason,
        "message": shown.message,
    });
    if let Some(status) = object["status"].as_object_mut() {
        status.retain(|_, value| !value.is_null());
    }
    let tag = format!("\"{}\"", view.applied.version);
    ([(header::ETAG, tag)], axum::Json(object)).into_response()
}

/// The status of a config.
pub fn config(of: &Address, view: &View) -> ConfigState {
    let View { state, applied, heads, .. } = view;
    let shown = config_of(of, state, applied.version, &applied.definition);
    let triggers = shown.triggers.into_iter().zip(&applied.definition.triggers).map(|(shown, trigger)| match trigger {
        Trigger::ImageChange(change) => {
            let head = heads.get(&change.from);
            let (image, pushed_at) = (head.map(|head| head.image.clone()), head.map(|head| head.at.rfc3339()));
            TriggerState { image, pushed_at, ..shown }
        }
        _ => shown,
    });
    ConfigState { triggers: triggers.collect(), now: view.now.rfc3339(), ..shown }
}

/// The status without the images of its tags.
pub fn config_of(of: &Address, state: &Config, version: i64, definition: &Definition) -> ConfigState {
    let (reason, message) = match state.observed {
        0 => (NOT_YET.0.to_owned(), NOT_YET.1.to_owned()),
        _ => (state.condition.reason.clone(), state.condition.message.clone()),
    };
    ConfigState {
        namespace: of.namespace.clone(),
        name: of.name.clone(),
        latest_version: state.latest,
        latest: state.last.as_ref().map(|last| self::version(of, last, Some(state))),
        active_version: state.active.as_ref().map(|active| active.n),
        active_since: state.active.as_ref().map(|active| active.at.rfc3339()),
        active_images: active_images(state),
        drift: drift(&state.watch),
        alarms: alarms(state, definition),
        pending_version: state.pending.as_ref().map(|pending| pending.n),
        paused: state.paused.as_ref().map(actor),
        triggers_suspended: state.suspended.as_ref().map(|suspended| actor(&suspended.note)),
        triggers: definition.triggers.iter().map(|one| trigger(one, state)).collect(),
        reason,
        message,
        resource_version: version.to_string(),
        vouched: definition.vouched,
        now: String::new(),
    }
}

/// The deployed images. For a version of an older Keelway, which did not store them, only while it is the latest.
fn active_images(state: &Config) -> template::Images {
    let Some(active) = &state.active else { return template::Images::default() };
    let latest = state.last.as_ref().filter(|last| last.n == active.n && active.images.is_empty());
    latest.map_or(&active.images, |latest| &latest.content.images).clone()
}

/// Drift and adopted versions of targets.
fn drift(watch: &Watch) -> Option<DriftState> {
    let message = match watch.says() {
        Some(says) => format!("Drifted: {says}"),
        None if watch.adopted.is_empty() => return None,
        None => {
            let adopted = watch.adopted.iter().map(|(name, version)| format!("{name} serves Lambda version {version}"));
            format!("Adopted: {}", adopted.collect::<Vec<_>>().join(", "))
        }
    };
    let targets = watch.drifted.iter().map(|(name, served)| {
        let Served { expected, serves } = served.clone();
        (name.clone(), ServedState { expected, serves })
    });
    Some(DriftState { since: watch.since.rfc3339(), message, targets: targets.collect(), adopted: watch.adopted.clone() })
}

fn actor(note: &Note) -> Actor {
    Actor { by: note.by.clone(), at: note.at.rfc3339(), message: note.message.clone() }
}

fn trigger(trigger: &Trigger, state: &Config) -> TriggerState {
    let (ty, automatic, change) = match trigger {
        Trigger::ConfigChange => ("ConfigChange", true, None),
        Trigger::ImageChange(change) => ("ImageChange", change.automatic, Some(change)),
        Trigger::Manual => ("Manual", false, None),
    };
    let because = |what: &str, note: &Note| {
        let by = if note.by.is_empty() { String::new() } else { format!(" by {}", note.by) };
        let message = if note.message.is_empty() { String::new() } else { format!(": {}", note.message) };
        format!("{what}{by}{message}")
    };
    let stopped = match (&state.suspended, &state.paused) {
        (Some(suspended), _) => Some(because("triggers are suspended", &suspended.note)),
        (None, Some(paused)) => Some(because("the config is paused", paused)),
        (None, None) => None,
    };
    TriggerState {
        ty: ty.into(),
        automatic,
        effective_automatic: automatic && stopped.is_none(),
        why: stopped.filter(|_| automatic).unwrap_or_default(),
        from: change.map(|change| change.from.to_string()),
        containers: change.map(|change| change.containers.clone()).unwrap_or_default(),
        ..TriggerState::default()
    }
}

/// A version. `state`: that of its config, if the deployment may still be running.
pub fn version(of: &Address, d: &Deployment, state: Option<&Config>) -> VersionState {
    let claim = d.claim.as_ref();
    let at_work = claim.filter(|_| !d.status.is_final());
    let point = Checkpoint::of(d);
    let desired = (!d.status.is_final()).then(|| match (&d.cancel, state.is_some_and(|state| state.paused.is_some())) {
        (Some(_), _) => "cancel",
        (None, true) => "pause",
        (None, false) => "run",
    });
    let (reason, text) = match d.cancel.as_ref().filter(|_| !d.status.is_final()) {
        Some(cancel) => (cancel.reason.clone(), cancel.message.clone()),
        None => (d.reason.clone(), d.message.clone()),
    };
    VersionState {
        namespace: of.namespace.clone(),
        name: format!("{}-{}", of.name, d.n),
        config: of.name.clone(),
        version: d.n,
        attempt: d.attempt,
        status: d.status.to_string(),
        reason,
        message: text,
        details: details(&d.causes),
        images: d.content.images.clone(),
        since: d.since.rfc3339(),
        deployer: claim.map(|claim| claim.by.clone()).unwrap_or_default(),
        starts: d.content.starts,
        claimed_at: claim.map(|claim| claim.at.rfc3339()),
        heard: at_work.map(|claim| claim.heard().rfc3339()),
        expected: at_work.map(|claim| claim.lease.rfc3339()),
        running_at: claim.and_then(|claim| claim.running).map(Timestamp::rfc3339),
        ended_at: d.ended.map(Timestamp::rfc3339),
        deadline: d.due.map(Timestamp::rfc3339),
        desired: desired.map(str::to_owned),
        holds: holds(d),
        progress: progress(&d.progress),
        share: point.share,
        hooks: hooks(d, &point),
        exit_code: d.report.as_ref().and_then(|report| report.exit),
        rollback_of: d.rollback.as_ref().map(|rollback| rollback.release),
        group_id: d.rollback.as_ref().map(|rollback| rollback.group.clone()).unwrap_or_default(),
        context: d.task.as_ref().map(|task| task.context.clone()),
        snapshot: Value::Null,
        now: String::new(),
    }
}

/// Whether it holds until somebody says `proceed`.
pub fn holds(d: &Deployment) -> bool {
    let goes_on = d.status == Status::Running && d.cancel.is_none();
    goes_on && Checkpoint::of(d).hold.is_some_and(|told| d.proceeds <= told)
}

/// The hooks that have ended, and the one that runs.
fn hooks(d: &Deployment, point: &Checkpoint) -> BTreeMap<String, String> {
    let word = |ended: &Ended| match ended {
        Ended::Done => "done",
        Ended::Ignored => "ignored",
        Ended::Failed => "failed",
    };
    let mut hooks: BTreeMap<String, String> =
        point.hooks.iter().map(|(which, ended)| (which.clone(), word(ended).to_owned())).collect();
    // The part of another deployer's strategy that Keelway carries out has no hooks.
    let own = d.status == Status::Running && d.part.is_none();
    if let Some(which) = point.stage.hook().filter(|_| own) {
        hooks.entry(which.to_owned()).or_insert_with(|| "runs".to_owned());
    }
    hooks
}

/// The alarms of a config, as they were last told.
fn alarms(state: &Config, definition: &Definition) -> Vec<AlarmState> {
    let watched = definition.auto_rollback.iter().flat_map(|auto| &auto.alarms);
    watched
        .map(|name| {
            let told = state.alarms.get(name);
            AlarmState { name: name.clone(), on: told.map(|(on, _)| *on), since: told.map(|(_, at)| at.rfc3339()) }
        })
        .collect()
}

/// The content of a version as a `DeploymentConfig`.
pub fn snapshot(of: &Address, snapshot: &Snapshot) -> Value {
    render(&of.namespace, &of.name, &snapshot.definition)
}

/// Why a version was cut.
pub fn details(causes: &[Why]) -> Details {
    let message = if causes.is_empty() { String::new() } else { message(causes) };
    Details { message, causes: causes.iter().map(cause).collect() }
}

fn cause(why: &Why) -> Cause {
    match why {
        Why::ConfigChange { by } => Cause { ty: "ConfigChange".into(), by: by.clone(), ..Cause::default() },
        Why::Manual { by, delivery } => {
            let notes = delivery.as_ref().map(ToString::to_string).unwrap_or_default();
            Cause { ty: "Manual".into(), by: by.clone(), notes, delivery: asked(delivery.as_deref()), ..Cause::default() }
        }
        Why::ImageChange { from, image, at, by } => Cause {
            ty: "ImageChange".into(),
            from: Some(from.to_string()),
            image: Some(image.clone()),
            at: Some(at.rfc3339()),
            by: by.clone(),
            ..Cause::default()
        },
        Why::Rollback { release, by, notes, delivery } => Cause {
            ty: "Rollback".into(),
            by: by.clone(),
            release: Some(*release),
            notes: notes.clone(),
            delivery: asked(delivery.as_deref()),
            ..Cause::default()
        },
        Why::Drift { of, found } => Cause { ty: "Drift".into(), of: Some(*of), notes: found.clone(), ..Cause::default() },
        Why::AutoRollback { of, release, reason } => {
            Cause { ty: "AutoRollback".into(), of: Some(*of), release: Some(*release), notes: reason.clone(), ..Cause::default() }
        }
    }
}

/// The delivery whose task asked for a version.
fn asked(delivery: Option<&Delivery>) -> Option<AskedBy> {
    delivery.cloned().map(|Delivery { task, project, stage, service, context }| AskedBy { task, project, stage, service, context })
}

fn progress(progress: &Progress) -> ProgressState {
    let target = |at: &TargetProgress| TargetState { status: at.status.to_string(), message: at.message.clone() };
    ProgressState {
        message: progress.message.clone(),
        targets: progress.targets.iter().map(|(name, at)| (name.clone(), target(at))).collect(),
        tail: progress.tail.clone(),
        checkpoint: progress.checkpoint.clone(),
        log: progress.log.clone(),
        analysis: progress.analysis.as_deref().map(analysis),
    }
}

fn analysis(report: &Report) -> AnalysisState {
    let target = |limit: &Limit| EvaluatedTarget {
        criteria: limit.criteria.clone(),
        target_value: limit.target_value,
        violated: limit.violated,
    };
    let objective = |of: &Objective| AnalysisObjective {
        target: of.target.clone(),
        sli: of.sli.clone(),
        result: of.result.clone(),
        value: of.value,
        baseline: of.baseline,
        targets: of.targets.iter().map(target).collect(),
        message: of.message.clone(),
    };
    AnalysisState {
        from: report.window.start.rfc3339(),
        to: report.window.end.rfc3339(),
        result: report.result.clone(),
        message: report.message.clone(),
        failures: report.failures,
        samples: report.samples,
        score: report.score,
        objectives: report.objectives.iter().map(objective).collect(),
    }
}

/// The status that a word means.
pub fn status(word: &str) -> Option<Status> {
    [Status::New, Status::Pending, Status::Running, Status::Complete, Status::Failed]
        .into_iter()
        .find(|one| one.to_string() == word)
}

/// An entry of the audit.
pub fn audit(entry: &Entry) -> AuditEntry {
    match entry {
        Entry::Stray { at, said } => {
            AuditEntry { at: at.rfc3339(), what: "stray".into(), message: said.clone(), ..AuditEntry::default() }
        }
        Entry::Drift { at, said } => {
            AuditEntry { at: at.rfc3339(), what: "drifted".into(), message: said.clone(), ..AuditEntry::default() }
        }
        Entry::Command(obeyed) => {
            let Obeyed { command, note, at, version } = &**obeyed;
            AuditEntry {
                at: at.rfc3339(),
                what: word(command).into(),
                by: note.by.clone(),
                message: note.message.clone(),
                version: *version,
            }
        }
    }
}

fn word(command: &Command) -> &'static str {
    match command {
        Command::Latest(_) => "latest",
        Command::Cancel | Command::CancelAll => "cancel",
        Command::Retry => "retry",
        Command::Pause => "pause",
        Command::Resume => "resume",
        Command::Rollback(_) => "rollback",
        Command::SuspendTriggers => "suspendTriggers",
        Command::ResumeTriggers => "resumeTriggers",
        Command::Proceed => "proceed",
    }
}
