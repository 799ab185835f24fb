//! `trigger`: starts a sequence by its `.triggered` event.

use super::watch::{self, How};
use crate::api::{Api, Body};
use crate::args::{AtOnce, EvaluationWindow, Format, Trigger, TriggerCommon, TriggerDelivery, TriggerEvaluation, TriggerSequence};
use crate::error::CliError;
use crate::output::{say, say_data};
use crate::pairs;
use keelway_domain::event::{EventType, Kind, Object};
use keelway_domain::ids::context_of;
use keelway_domain::names::{Context, SequenceName, StageName};
use keelway_domain::sequences::Window;
use keelway_wire::http::{Accepted, ProjectState};
use keelway_wire::manifest::nearest;
use reqwest::Method;
use serde_json::{Value, json};

/// The `source` of what this command line sends of its own.
const SOURCE: &str = "keelway-cli";

/// What the API says of a service where there are none.
const NO_SERVICES: &str = "has no services yet";

/// Sends the trigger; then follows it, if asked to.
///
/// # Errors
/// Data that contradict each other, or the API's refusal.
pub async fn trigger(api: &Api, what: &Trigger) -> Result<(), CliError> {
    match what {
        Trigger::Sequence(TriggerSequence { name, stage, data, at_once, common }) => {
            send(api, (name, stage), nested(data, "--data")?, at_once, common).await
        }
        Trigger::Delivery(what) => delivery(api, what).await,
        Trigger::Evaluation(what) => evaluation(api, what).await,
    }
}

async fn delivery(api: &Api, what: &TriggerDelivery) -> Result<(), CliError> {
    let mut values = nested(&what.values, "--values")?;
    if values.insert("image".into(), json!(what.image)).is_some() {
        return Err(CliError::Usage("--values gives \"image\", too: leave it to --image".into()));
    }
    let stage = match &what.stage {
        Some(stage) => stage.clone(),
        None => first_stage(api, &what.common).await?,
    };
    let mut data = Object::new();
    data.insert("configurationChange".into(), json!({"values": values}));
    send(api, (&what.sequence, &stage), data, &what.at_once, &what.common).await
}

async fn evaluation(api: &Api, what: &TriggerEvaluation) -> Result<(), CliError> {
    let (common, stage) = (&what.common, &what.stage);
    let place = [common.project.as_str(), stage.as_str(), common.service.as_str()];
    let (accepted, id) = evaluate(api, place, &what.window, &common.labels).await?;
    told("evaluation", stage, common, (&accepted, &id))?;
    follow(api, common, accepted).await
}

/// Asks for an evaluation; the id of its trigger, besides. Window and id are made here, so that a request that has to be sent twice
/// asks for the same evaluation.
///
/// # Errors
/// A window that breaks a rule, or the API's refusal.
pub async fn evaluate(
    api: &Api,
    [project, stage, service]: [&str; 3],
    of: &EvaluationWindow,
    given: &[(String, String)],
) -> Result<(Accepted, String), CliError> {
    let times = (of.start.as_deref(), of.end.as_deref(), of.timeframe.as_deref());
    let window = Window::requested(times, crate::clock::now())
        .map_err(|(field, message)| CliError::Usage(format!("--{field}: {message}")))?;
    let id = uuid::Uuid::now_v7().to_string();
    let mut body = json!({"id": id, "start": window.start.rfc3339(), "end": window.end.rfc3339()});
    if !given.is_empty() {
        body["labels"] = Value::Object(labels(given));
    }
    if let Some(commit) = &of.git_commit_id {
        body["gitcommitid"] = json!(commit);
    }
    match api.post(&["project", project, "stage", stage, "service", service, "evaluation"], &body).await {
        // A gate is often the first thing that a project has.
        Err(error) if error.status() == Some(400) && error.to_string().contains(NO_SERVICES) => {
            Err(CliError::Failed(format!("{error}: keelway create service {service} -p {project}")))
        }
        accepted => Ok((accepted?, id)),
    }
}

fn labels(given: &[(String, String)]) -> Object {
    given.iter().map(|(key, value)| (key.clone(), json!(value))).collect()
}

async fn first_stage(api: &Api, common: &TriggerCommon) -> Result<StageName, CliError> {
    let project: ProjectState = api.get(&["project", common.project.as_str()], &[]).await?;
    slip(&project, common.service.as_str());
    let first = project.stages.first().map(|stage| stage.stage_name.clone());
    let first = first.ok_or_else(|| {
        let text =
            format!("project {0} has no stages yet: apply its shipyard, keelway apply -f FILE --project {0}", common.project);
        CliError::Failed(text)
    })?;
    StageName::new(first).map_err(|error| CliError::Failed(format!("the API's answer is odd: {error}; give --stage")))
}

/// Says that a service is new, if its name is probably a slip: its first trigger registers it.
fn slip(project: &ProjectState, service: &str) {
    let known = || project.stages.iter().flat_map(|stage| &stage.services).map(|known| known.service_name.as_str());
    if known().all(|known| known != service)
        && let Some(near) = nearest(service, known())
    {
        eprintln!("note: service {service} is new in project {}: did you mean {near:?}?", project.project_name);
    }
}

fn nested(pairs: &[(String, Value)], flag: &str) -> Result<Object, CliError> {
    let mut object = Object::new();
    for (key, value) in pairs {
        pairs::insert(&mut object, key, value.clone()).map_err(|error| CliError::Usage(format!("{flag}: {error}")))?;
    }
    Ok(object)
}

async fn send(
    api: &Api,
    (sequence, stage): (&SequenceName, &StageName),
    mut data: Object,
    at_once: &AtOnce,
    common: &TriggerCommon,
) -> Result<(), CliError> {
    let labels = labels(&common.labels);
    let scope = [("project", common.project.as_str()), ("stage", stage.as_str()), ("service", common.service.as_str())];
    let scope = scope.map(|(field, value)| (field.to_owned(), json!(value)));
    let labels = (!labels.is_empty()).then(|| ("labels".to_owned(), Value::Object(labels)));
    for (field, value) in scope.into_iter().chain(labels) {
        if data.insert(field.clone(), value).is_some() {
            return Err(CliError::Usage(format!("--data gives {field:?}, which has a flag of its own: use --{field}")));
        }
    }
    let id = id_of(at_once.id.as_deref(), &data, (sequence.as_str(), stage.as_str()), common);
    let said = at_once.message.as_deref().map(|message| [("override", message), ("by", at_once.by.as_str())]);
    let query = said.as_ref().map(<[_; 2]>::as_slice).unwrap_or_default();
    let accepted = hand_in(api, (sequence, stage), data, &id, query).await?;
    told(sequence.as_str(), stage, common, (&accepted, &id))?;
    follow(api, common, accepted).await
}

/// The id of the event. A request that has to be sent twice is the same event. With `--id`, so is the same delivery to the same
/// place, whenever it is asked for: a CI pipeline may deliver several services. Without it, ids sort by time.
fn id_of(given: Option<&str>, data: &Object, (sequence, stage): (&str, &str), common: &TriggerCommon) -> String {
    let Some(given) = given else { return uuid::Uuid::now_v7().to_string() };
    let of = json!([given, common.project, common.service, stage, sequence, data]);
    context_of(SOURCE, &of.to_string()).to_string()
}

/// Hands a trigger in.
///
/// # Errors
/// The API's refusal.
pub async fn hand_in(
    api: &Api,
    (sequence, stage): (&SequenceName, &StageName),
    data: Object,
    id: &str,
    query: &[(&str, &str)],
) -> Result<Accepted, CliError> {
    let event = json!({
        "specversion": "1.0",
        "datacontenttype": "application/json",
        "id": id,
        "source": SOURCE,
        "type": EventType::sequence(stage, sequence, Kind::Triggered),
        "time": crate::clock::now().rfc3339(),
        "data": data,
    });
    Ok(api.call(Method::POST, &["event"], query, Body::Json(&event, None)).await?)
}

/// Says what was triggered.
fn told(sequence: &str, stage: &StageName, common: &TriggerCommon, (accepted, id): (&Accepted, &str)) -> Result<(), CliError> {
    let (context, project, service) = (&accepted.context, &common.project, &common.service);
    match common.output.format {
        _ if common.quiet => say(context),
        format @ (Format::Json | Format::Yaml) => say_data(&json!({"keptnContext": context, "id": id}), format),
        Format::Table | Format::Wide | Format::Name => {
            say(&format!("{sequence} of {service} is triggered in {stage} of {project}: context {context}"))
        }
    }
}

/// Follows what was triggered, if asked to.
async fn follow(api: &Api, common: &TriggerCommon, accepted: Accepted) -> Result<(), CliError> {
    let (context, project) = (accepted.context, &common.project);
    if !common.watch {
        if !common.output.format.is_data() && !common.quiet {
            eprintln!("follow it: keelway watch {context} --project {project}");
        }
        return Ok(());
    }
    let context = Context::new(context).map_err(|error| CliError::Failed(format!("the API's answer is odd: {error}")))?;
    let how = How { follow: false, sure: true, watching: common.watching, format: Format::Table };
    watch::watch(api, Some(project), &[context], how).await
}
