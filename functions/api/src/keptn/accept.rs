//! `POST /v1/event`: an event, or a batch of events. All of a batch are checked before any is passed on.

use crate::Api;
use crate::fence::allowed::{Allowed, scope};
use crate::fence::caller::{Caller, Told};
use crate::fence::input::Params;
use crate::fence::problem::{Answer, Refused};
use crate::fence::repeated::RequestId;
use crate::keptn::approvals;
use crate::keptn::binding::Sent;
use crate::keptn::overrides::{self, AtTrigger};
use crate::keptn::told::triggered;
use crate::ports::AnyPorts;
use axum::extract::Extension;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::future::join_all;
use keelway_domain::access::{Kind as Scope, Need};
use keelway_domain::evaluations::INVALIDATED;
use keelway_domain::event::{CloudEvent, EventType, Kind, TaskResult};
use keelway_domain::ids::RecordId;
use keelway_domain::sequences::{content, identity};
use keelway_domain::shipyard::APPROVAL;
use keelway_engine::evaluations::CONFIGURE;
use keelway_engine::keptn::preflight::Preflight;
use keelway_engine::ports::Clock;
use keelway_engine::protocol::Inbox;
use keelway_engine::sequences::{MAX_DECISION_BYTES, Sequences};
use keelway_engine::table::{self, Items};
use keelway_lambda::incoming::About;
use keelway_wire::cloudevent::{self, Origin};
use keelway_wire::http::deployments::FieldError;
use keelway_wire::http::{Accepted, AcceptedEvent, BatchAccepted};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

/// The most events in a batch.
const MOST: usize = 50;
/// How long a request handles answers itself.
const BUDGET: Duration = Duration::from_secs(5);
/// The most bytes about a batch in the audit.
pub const TOLD: usize = 1000;

/// Takes an event, or a batch of up to 50.
///
/// An event is passed on to the event bus; one that decides an approval is answered as a decision. An answer to a task is handled
/// before the response: the next task is open then. All events of a batch are checked first: if one is refused, none is passed on,
/// and `errors` names each that is.
#[utoipa::path(
    post,
    path = "/v1/event",
    tag = "events",
    params(AtTrigger, ("Idempotency-Key" = Option<String>, Header)),
    request_body(content(
        (crate::fence::bodies::CloudEvent = "application/cloudevents+json", example = json!({
            "specversion": "1.0", "type": "sh.keptn.event.dev.delivery.triggered", "source": "ci",
            "data": {"project": "shop", "stage": "dev", "service": "cart", "configurationChange": {"values": {"image": "cart:2"}}}
        })),
        (Vec<crate::fence::bodies::CloudEvent> = "application/cloudevents-batch+json", example = json!([{
            "specversion": "1.0", "type": "sh.keptn.event.dev.delivery.triggered", "source": "ci",
            "data": {"project": "shop", "stage": "dev", "service": "cart"}
        }])),
        (crate::fence::bodies::CloudEvent = "application/json")
    )),
    responses(
        (status = 200, body = crate::fence::bodies::EventAnswer), (status = 202, body = keelway_wire::http::Decided), (status = 404), (status = 409), (status = 422)
    )
)]
pub(crate) async fn accept(
    caller: Allowed<scope::Anywhere<(scope::Trigger, scope::Execute, scope::Approve)>>,
    api: Api,
    Extension(RequestId(request)): Extension<RequestId>,
    Params(said): Params<AtTrigger>,
    sent: Sent,
) -> Answer<Response> {
    match sent {
        Sent::One(event) => put(&api, &caller, read(&api, event, (request, 0))?, &said).await,
        Sent::Batch(_) if said.reason.is_some() => {
            Err(Refused::field("override", "goes with a single event: send that in a request of its own"))
        }
        Sent::Batch(events) => batch(&api, &caller, (request, events)).await,
    }
}

/// A client's event. An event without an id gets one by its index in the request, which is the same if the request is repeated with
/// the same `Idempotency-Key`.
fn read(api: &Api, mut event: Value, (request, place): (u64, usize)) -> Answer<CloudEvent> {
    cloudevent::fill_id(&mut event, || id_of((request, place)));
    let event = cloudevent::parse(&event, Origin::Client, api.engine().ports().now())?;
    cloudevent::check_client_event(&event)?;
    Ok(event)
}

/// The id of an event without one, by its index in the request.
pub fn id_of((request, place): (u64, usize)) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("event {request:016x} {place}").as_bytes()).to_string()
}

/// Accepts all events of a batch, or none.
async fn batch(api: &Api, caller: &Caller, (request, sent): (u64, Vec<Value>)) -> Answer<Response> {
    if sent.len() > MOST {
        return Err(Refused::too_large(format!("the batch has {} events: at most {MOST} are taken at once", sent.len())));
    }
    let (mut events, mut refused, mut told): (Vec<(usize, CloudEvent)>, _, _) = (vec![], vec![], vec![]);
    for (place, event) in sent.into_iter().enumerate() {
        let event = read(api, event, (request, place)).map(|event| authored(event, caller));
        let admitted = event.and_then(|event| match admit(api, caller, &event)? {
            true => Err(Refused::field("type", "an approval is decided in a request of its own: leave it out of the batch")),
            false => contradicts(&events, &event).map_or(Ok(event), Err),
        });
        let Told { project, what, .. } = std::mem::take(&mut *caller.told());
        match admitted {
            Ok(event) => {
                told.extend((!what.is_empty()).then_some((project, what)));
                events.push((place, event));
            }
            Err(why) => refused.push((place, why)),
        }
    }
    let looked = join_all(events.iter().map(|(_, event)| api.engine().preflight(event))).await;
    let (mut fresh, mut answers, mut notes) = (vec![], vec![], BTreeMap::new());
    for ((place, event), looked) in events.iter().zip(looked) {
        match looked.map_err(Refused::from) {
            Ok(Preflight::Publish { follow_up }) => match starts(caller, event, follow_up) {
                Ok(()) => fresh.push(event.clone()),
                Err(why) => refused.push((*place, why)),
            },
            Ok(Preflight::Answer { note, known, read }) => {
                notes.extend(note.map(|note| (*place, note)));
                answers.push((event.clone(), (read, known)));
            }
            Ok(Preflight::Known) => tracing::info!(event = event.id, "this event was taken before"),
            Ok(Preflight::Decision(..)) => return Err(Refused::internal()),
            Err(why) if why.problem.status >= 500 => return Err(why),
            Err(why) => refused.push((*place, why)),
        }
    }
    if !refused.is_empty() {
        return Err(all_refused(caller, refused));
    }
    table::publish(api.engine().ports(), &fresh).await?;
    // One after the other, because answers to the same task would only get in each other's way.
    let until = Instant::now() + BUDGET;
    let mut tasks = HashSet::new();
    for (event, (read, known)) in answers {
        // An earlier answer to the task has changed what was read.
        let read = Some(read).filter(|_| tasks.insert(event.triggered_id.clone()));
        take(api, &event, (read, known), until).await?;
    }
    tell(caller, &told, fresh.is_empty());
    let mut accepted = |(place, event): (usize, CloudEvent)| AcceptedEvent {
        message: notes.remove(&place),
        context: event.context.to_string(),
        id: event.id,
    };
    Ok(axum::Json(BatchAccepted { events: events.into_iter().map(&mut accepted).collect() }).into_response())
}

/// The refusal for an event with the identity of an earlier one in its batch and other content.
fn contradicts(earlier: &[(usize, CloudEvent)], event: &CloudEvent) -> Option<Refused> {
    let same = |one: &CloudEvent| {
        one.text("project") == event.text("project") && one.context == event.context && identity(one) == identity(event)
    };
    let (place, _) = earlier.iter().find(|(_, one)| same(one) && content(one) != content(event))?;
    let detail = format!(
        "id: [{place}] has source {:?} and id {:?}, too, and other content: give this one an id of its own",
        event.source, event.id
    );
    Some(Refused::new(StatusCode::CONFLICT, "conflict", detail))
}

/// Records in the audit what a batch triggers.
fn tell(caller: &Caller, told: &[(String, String)], nothing: bool) {
    let Some((first, _)) = told.first() else { return };
    let project = if told.iter().all(|(project, _)| project == first) { first } else { "" };
    let what = told.iter().map(|(_, what)| what.as_str()).collect::<Vec<_>>().join("; ");
    caller.acts("trigger");
    caller.tells(project, what.chars().take(TOLD).collect::<String>());
    if nothing {
        caller.does_nothing();
    }
}

/// The refusal of a batch, with the errors of its events. Its status is that of the errors, if they agree.
fn all_refused(caller: &Caller, mut refused: Vec<(usize, Refused)>) -> Refused {
    refused.sort_by_key(|(place, _)| *place);
    if caller.seen().is_some() {
        refused.iter_mut().for_each(|(_, why)| why.be_discreet());
    }
    let statuses: Vec<u16> = refused.iter().map(|(_, why)| why.problem.status).collect();
    let same = statuses.iter().all(|status| *status == statuses[0]);
    let status = StatusCode::from_u16(statuses[0]).ok().filter(|_| same).unwrap_or(StatusCode::BAD_REQUEST);
    let errors = refused.into_iter().map(|(place, why)| FieldError {
        field: format!("[{place}]"),
        code: code(why.problem.status).into(),
        message: why.problem.detail,
    });
    let errors: Vec<FieldError> = errors.collect();
    let each = errors.iter().map(|error| format!("{}: {}", error.field, error.message)).collect::<Vec<_>>().join("; ");
    let mut all = Refused::new(status, "batch refused", format!("none of the events was passed on: {each}"));
    all.problem.errors = errors;
    all
}

fn code(status: u16) -> &'static str {
    match status {
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        413 => "TooLarge",
        _ => "Invalid",
    }
}

/// Checks a client's well-formed event, and whether this client may send it, and passes it on.
pub(crate) async fn put(api: &Api, caller: &Caller, event: CloudEvent, said: &AtTrigger) -> Answer<Response> {
    said.fits(&event)?;
    let event = authored(event, caller);
    let decides = admit(api, caller, &event)?;
    if !decides && api.engine().take_unread(&event).await {
        return Ok(handled(&event, None));
    }
    match api.engine().preflight(&event).await? {
        Preflight::Answer { note, known, read } => {
            take(api, &event, (Some(read), known), Instant::now() + BUDGET).await?;
            return Ok(handled(&event, note));
        }
        Preflight::Publish { follow_up } => {
            starts(caller, &event, follow_up)?;
            overrides::at_trigger(api, caller, &event, said).await?;
            table::publish(api.engine().ports(), std::slice::from_ref(&event)).await?;
        }
        Preflight::Known => {
            caller.does_nothing();
            tracing::info!(event = event.id, "this event was taken before");
        }
        Preflight::Decision(..) if !decides => return Err(Refused::internal()),
        Preflight::Decision(to, trigger) => {
            let wanted = TaskResult::of(event.text("result"));
            if event.size() > MAX_DECISION_BYTES {
                let detail =
                    format!("the decision has {} bytes, {MAX_DECISION_BYTES} are allowed: send the reason only", event.size());
                return Err(Refused::too_large(detail));
            }
            caller.acts("decide");
            let event = signed(event, caller);
            return approvals::settle(api, caller, (&to, trigger), wanted, |x| api.engine().decision_of(x, &event)).await;
        }
    }
    Ok(axum::Json(Accepted { context: event.context.to_string(), message: None }).into_response())
}

/// The response to an answer that was handled here. The log line about its cost says what it was about.
fn handled(event: &CloudEvent, message: Option<String>) -> Response {
    let kind = match EventType::parse(&event.ty) {
        EventType::Task(_, Kind::Started) => "task.started",
        EventType::Task(_, Kind::Finished) => "task.finished",
        _ => "task.status.changed",
    };
    let context = Some(event.context.to_string());
    let subject = event.triggered_id.as_deref().and_then(RecordId::from_uuid).map(|trigger| trigger.subject.to_string());
    let about = About { kind, project: event.text("project").map(str::to_owned), context, subject };
    let accepted = Accepted { context: event.context.to_string(), message };
    (Extension(about), axum::Json(accepted)).into_response()
}

/// Handles an answer to a task here, if there is time for it; otherwise it goes into the queue.
async fn take(api: &Api, event: &CloudEvent, read: (Option<Items>, bool), until: Instant) -> Answer<()> {
    match timeout_at(until, api.engine().take(event, read)).await {
        Ok(taken) => drop(taken?),
        Err(_) => {
            tracing::warn!(event = event.id, "there is no time left for an answer: it goes into the queue");
            api.engine().hand_over(event).await?;
        }
    }
    Ok(())
}

/// Adds the caller to a trigger as its author. Answers to tasks start nothing, so they have no author.
fn authored(event: CloudEvent, caller: &Caller) -> CloudEvent {
    match EventType::parse(&event.ty) {
        EventType::Task(..) => event,
        _ => CloudEvent { authors: vec![caller.known.clone()], ..event },
    }
}

/// Checks size and permission of an event. `true`: it decides an approval.
fn admit(api: &Api, caller: &Caller, event: &CloudEvent) -> Answer<bool> {
    let decides = permitted(caller, event)?;
    tracing::Span::current().record("context", event.context.as_str());
    match api.engine().oversize(event) {
        Some(reason) => Err(Refused::too_large(reason)),
        None => Ok(decides),
    }
}

/// Checks that the caller may send this event. `true`: it decides an approval, whose permission depends on its stage.
fn permitted(caller: &Caller, event: &CloudEvent) -> Answer<bool> {
    let project = event.text("project");
    match EventType::parse(&event.ty) {
        EventType::Task(task, Kind::Finished) if task.as_str() == APPROVAL => {
            if !caller.has_in(Scope::Approve, project) {
                return Err(caller.lacks("approve:<stage>", project));
            }
            return Ok(true);
        }
        EventType::Task(task, _) => caller.check(Need::Execute(task.as_str()), project)?,
        // The choice of a project's source, and what later evaluations are compared with: as over their routes.
        EventType::Other(_) if event.ty == CONFIGURE => {
            caller.check(Need::Administer, project)?;
            caller.acts("control");
            caller.tells(project.unwrap_or_default(), format!("chose {} to evaluate by", event.text("type").unwrap_or_default()));
        }
        EventType::Other(_) if event.ty == INVALIDATED => {
            caller.check(Need::Trigger, project)?;
            caller.acts("control");
            let id = event.triggered_id.as_deref().unwrap_or_default();
            caller.tells(project.unwrap_or_default(), format!("invalidated evaluation {id}"));
        }
        EventType::Other(name) if Sequences::<AnyPorts>::is_history(&name) => {
            // Notes of tools about their work, without effects.
            if !caller.has_in(Scope::Execute, project) {
                caller.check(Need::Trigger, project)?;
            }
        }
        ty => {
            match &ty {
                EventType::Sequence(stage, ..) if caller.may(Need::TriggerIn(stage.as_str()), project) => {}
                _ => caller.check(Need::Trigger, project)?,
            }
            caller.acts("trigger");
            caller.tells(project.unwrap_or_default(), triggered(event));
        }
    }
    Ok(false)
}

/// Checks that the client may start the sequence of a trigger, by the shipyard.
fn starts(caller: &Caller, event: &CloudEvent, follow_up: bool) -> Answer<()> {
    match EventType::parse(&event.ty) {
        EventType::Sequence(stage, sequence, _) if follow_up => {
            caller.starts_follow_up((stage.as_str(), sequence.as_str()), event.text("project"))
        }
        _ => Ok(()),
    }
}

/// The decision with the verified identity of its sender. The name in the event becomes a note.
fn signed(mut event: CloudEvent, caller: &Caller) -> CloudEvent {
    let said = event.data.get(APPROVAL).and_then(|approval| approval.get("by")).and_then(Value::as_str).map(str::to_owned);
    let said = said.unwrap_or_else(|| event.source.clone());
    let by = caller.by(Some(said));
    let approval = event.data.entry(APPROVAL).or_insert_with(|| json!({}));
    if let Some(approval) = approval.as_object_mut() {
        approval.insert("by".into(), json!(by));
    }
    event
}
