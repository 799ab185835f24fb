//! The events about evaluations: Keptn's, under the name that its lighthouse has. Their ids are derived from the trigger.

use super::answer::Asker;
use super::state::{Asked, Open, Service};
use crate::evaluation::{Finished, Period, Slo};
use crate::event::{EventType, Kind, Object};
use crate::ids::event_id;
use crate::record::{Answers, Draft};
use crate::shipyard::EVALUATION;
use crate::time::Timestamp;
use serde_json::{Value, json};

/// The `source` of these events, as Keptn's clients know it.
pub const SOURCE: &str = "lighthouse-service";
/// The type of the event that takes an evaluation out of later comparisons.
pub const INVALIDATED: &str = "sh.keptn.event.evaluation.invalidated";
/// The task that asks services on the bus for values.
pub const GET_SLI: &str = "get-sli";

/// What every event of an evaluation has.
pub(super) struct About<'a> {
    pub id: &'a str,
    pub context: &'a str,
    pub labels: &'a Object,
    pub revision: Option<&'a String>,
    pub asker: Option<&'a Asker>,
}

impl<'a> From<&'a Asked> for About<'a> {
    fn from(asked: &'a Asked) -> Self {
        let Asked { id, context, labels, revision, asker, .. } = asked;
        Self { id, context, labels, revision: revision.as_ref(), asker: asker.as_ref() }
    }
}

impl<'a> From<&'a Open> for About<'a> {
    fn from(open: &'a Open) -> Self {
        let Open { id, context, labels, revision, asker, .. } = open;
        Self { id, context, labels, revision: revision.as_ref(), asker: asker.as_ref() }
    }
}

/// `evaluation.started`.
pub(super) fn started(x: &Service, of: &About<'_>, now: Timestamp) -> Draft {
    let data = Object::from_iter([("status".into(), "succeeded".into())]);
    Draft {
        answers: Answers::Event(of.id.to_owned()),
        ..draft(x, of, "started", EventType::task(EVALUATION, Kind::Started), data, now)
    }
}

/// The id of the `evaluation.finished` of a trigger.
pub(super) fn finished_id(x: &Service, trigger: &str) -> String {
    id(x, trigger, "finished")
}

/// `evaluation.finished`, with the file of objectives in base64.
pub(super) fn finished(
    x: &Service,
    of: &About<'_>,
    period: Option<Period>,
    (said, file): (&Finished, &str),
    now: Timestamp,
) -> Draft {
    let Value::Object(mut data) = serde_json::to_value(said).unwrap_or_default() else { unreachable!("a struct is an object") };
    if let Some(Value::Object(evaluation)) = data.get_mut("evaluation") {
        let time = |of: fn(&Period) -> Timestamp| period.as_ref().map(of).map_or(String::new(), Timestamp::rfc3339);
        evaluation.insert("timeStart".into(), time(|period| period.start).into());
        evaluation.insert("timeEnd".into(), time(|period| period.end).into());
        evaluation.insert("sloFileContent".into(), file.into());
    }
    Draft {
        answers: Answers::Event(of.id.to_owned()),
        ..draft(x, of, "finished", EventType::task(EVALUATION, Kind::Finished), data, now)
    }
}

/// `get-sli.triggered`. It asks once for each objective, as Keptn's lighthouse does.
pub(super) fn ask(x: &Service, open: &Open, slo: &Slo, now: Timestamp) -> Draft {
    let filters: Vec<Value> = slo.filter.iter().map(|(key, value)| json!({"key": key, "value": value})).collect();
    let asked = json!({
        "sliProvider": open.provider,
        "start": open.period.start.rfc3339(),
        "end": open.period.end.rfc3339(),
        "indicators": slo.objectives.iter().map(|objective| &objective.sli).collect::<Vec<_>>(),
        "customFilters": filters,
    });
    let data = Object::from_iter([(GET_SLI.into(), asked), ("deployment".into(), open.deployment.as_str().into())]);
    draft(x, &open.into(), GET_SLI, EventType::task(GET_SLI, Kind::Triggered), data, now)
}

/// `evaluation.invalidated`, for an evaluation that was taken out over the API.
pub(super) fn invalidated(x: &Service, of: &About<'_>, now: Timestamp) -> Draft {
    Draft { answers: Answers::Event(of.id.to_owned()), ..draft(x, of, "invalidated", INVALIDATED.into(), Object::new(), now) }
}

fn id(x: &Service, trigger: &str, what: &str) -> String {
    event_id(x.id(), &format!("{trigger}/{what}")).to_string()
}

fn draft(x: &Service, of: &About<'_>, what: &str, ty: String, mut data: Object, now: Timestamp) -> Draft {
    for (name, value) in ["project", "stage", "service"].into_iter().zip(&x.place) {
        data.insert(name.into(), value.as_str().into());
    }
    if !of.labels.is_empty() {
        data.insert("labels".into(), Value::Object(of.labels.clone()));
    }
    Draft {
        id: Some(id(x, of.id, what)),
        ty,
        source: SOURCE.into(),
        time: now,
        context: Some(of.context.to_owned()),
        git_commit_id: of.revision.cloned(),
        data,
        ..Draft::default()
    }
}
