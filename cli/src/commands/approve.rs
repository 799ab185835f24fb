//! `approve`, `decline`: a person's answer to an open approval.

use super::pages::all_events;
use crate::api::Api;
use crate::args::{Decide, Scope};
use crate::error::CliError;
use crate::output::say;
use crate::table::Table;
use keelway_domain::names::{ProjectName, ServiceName, StageName};
use keelway_domain::shipyard::APPROVAL;
use keelway_wire::http::{Decided, Decision, Verdict};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(500);
const MOST: usize = 1000;

/// An approval that waits for a person.
pub struct Approval {
    /// The whole trigger.
    pub event: Value,
}

impl Approval {
    fn text(&self, pointer: &str) -> &str {
        self.event.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }
    fn context(&self) -> &str {
        self.text("/shkeptncontext")
    }
    fn id(&self) -> &str {
        self.text("/id")
    }
}

/// What waits for approval in this scope, oldest first.
///
/// # Errors
/// As the API answers.
pub async fn open_approvals(api: &Api, scope: &Scope) -> Result<Vec<Approval>, CliError> {
    let query = [
        ("project", scope.project.as_ref().map_or("", ProjectName::as_str)),
        ("stage", scope.stage.as_ref().map_or("", StageName::as_str)),
        ("service", scope.service.as_ref().map_or("", ServiceName::as_str)),
        ("pageSize", "100"),
    ];
    let events = all_events(api, &["event", "triggered", APPROVAL], &query, MOST).await?;
    Ok(events.into_iter().map(|event| Approval { event }).collect())
}

/// Approvals as a table.
pub fn listed(approvals: &[Approval]) -> Table {
    let mut table = Table::new(&["PROJECT", "STAGE", "SERVICE", "RESULT", "IMAGE", "SINCE", "CONTEXT", "ID"]);
    for approval in approvals {
        let pointers = ["/data/project", "/data/stage", "/data/service", "/data/result"];
        let pointers = pointers.into_iter().chain(["/data/configurationChange/values/image", "/time", "/shkeptncontext", "/id"]);
        table.row(pointers.map(|pointer| approval.text(pointer).to_owned()).collect());
    }
    table
}

/// Finds the one open approval that is meant, waiting for it if asked to, and answers it.
///
/// # Errors
/// None or several, or the API's refusal.
pub async fn decide(api: &Api, what: &Decide, verdict: Verdict) -> Result<(), CliError> {
    let approval = find(api, what).await?;
    let (project, context) = (approval.text("/data/project"), approval.context());
    let (stage, service) = (approval.text("/data/stage"), approval.text("/data/service"));
    let decision = json!(Decision { decision: verdict, message: what.message.clone(), by: what.by.clone() });
    let path = ["project", project, "approval", context, approval.id()];
    let decided: Decided = api.post(&path, &decision).await?;
    let done = match verdict {
        Verdict::Approve => "approved",
        Verdict::Decline => "declined",
    };
    match decided.result {
        Some(_) => say(&format!("{done}: {service} in {stage} of {project}, context {context}")),
        None => say(&format!(
            "{done} {service} in {stage} of {project}, but it is not in the state yet; see: keelway watch {context} --project {project}"
        )),
    }
}

async fn find(api: &Api, what: &Decide) -> Result<Approval, CliError> {
    let began = Instant::now();
    loop {
        let mut open = open_approvals(api, &what.scope).await?;
        let context = what.context.as_ref().or(what.named.as_ref());
        open.retain(|approval| context.is_none_or(|context| approval.context() == context.as_str()));
        open.retain(|approval| what.id.as_ref().is_none_or(|id| approval.id() == id));
        match (open.pop(), open.is_empty()) {
            (Some(one), true) => return Ok(one),
            (Some(last), false) => {
                open.push(last);
                return Err(CliError::Failed(ambiguous(&open)));
            }
            (None, _) if what.wait.is_some_and(|wait| began.elapsed() < wait) => tokio::time::sleep(PAUSE).await,
            (None, _) => return Err(CliError::Failed(none(what))),
        }
    }
}

fn none(what: &Decide) -> String {
    let asked = match what.wait {
        Some(wait) => format!("nothing like that came to wait for approval within {}", humantime::format_duration(wait)),
        None => "nothing like that waits for approval; --wait 60s waits for it".into(),
    };
    format!("{asked}. What does: keelway get approvals. Where a sequence stands: keelway get sequences --project P")
}

fn ambiguous(open: &[Approval]) -> String {
    let differs = |pointer: &str| open.iter().any(|approval| approval.text(pointer) != open[0].text(pointer));
    let flags = [
        ("/data/project", "--project"),
        ("/data/stage", "--stage"),
        ("/data/service", "--service"),
        ("/shkeptncontext", "--context"),
        ("/id", "--id"),
    ];
    let flags: Vec<&str> = flags.into_iter().filter(|(pointer, _)| differs(pointer)).map(|(_, flag)| flag).collect();
    format!("{} wait for approval: say which by {}\n{}", open.len(), flags.join(", "), listed(open).render(false))
}
