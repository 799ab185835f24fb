//! `approve`, `decline`: a person's answer to an open approval.

use super::environments;
use super::find;
use super::pipelines::{self, decide};
use crate::address::Address;
use crate::api::Api;
use crate::args::{Awaiting, Decide, Format, Scope};
use crate::board;
use crate::delivery::{self, Hint};
use crate::error::CliError;
use crate::output::say;
use crate::pages;
use crate::table::Table;
use crate::terminal::look;
use crate::words::{SHORT, age, length, short_ids, version};
use keelway_domain::names::{Context, ProjectName, ServiceName, StageName};
use keelway_domain::shipyard::APPROVAL;
use keelway_domain::time::Timestamp;
use keelway_wire::http::promotions::ApprovalDecision;
use keelway_wire::http::{Decided, Decision, EnvironmentState, ExecutionState, SequencePage, SequenceState, Verdict};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(500);
const MOST: usize = 1000;

/// An approval that waits for a person.
pub struct Approval {
    /// The whole trigger.
    pub event: Value,
    /// How long it has been waiting.
    age: String,
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
    fn version(&self) -> String {
        version(self.text("/data/configurationChange/values/image"))
    }
    /// Whether only their ids tell two approvals apart.
    fn is_twin(&self, other: &Self) -> bool {
        let same = |pointer| self.text(pointer) == other.text(pointer);
        self.id() != other.id() && ["/shkeptncontext", "/data/project", "/data/stage", "/data/service"].into_iter().all(same)
    }
    /// What runs there now, if that is known.
    fn runs(&self) -> String {
        let from = self.text("/from");
        if from.is_empty() { String::new() } else { version(from) }
    }
    /// `carts 1.4.0 to production`; `in`, if it runs there already.
    fn subject(&self) -> String {
        let subject = [self.text("/data/service"), &self.version()].join(" ");
        let image = self.text("/data/configurationChange/values/image");
        let word = if !image.is_empty() && self.text("/from") == image { "in" } else { "to" };
        format!("{} {word} {}", subject.trim(), self.text("/data/stage"))
    }
}

/// What waits for approval in this scope, by project, stage and service.
///
/// # Errors
/// As the API answers.
pub async fn open_approvals(api: &Api, scope: &Scope) -> Result<Vec<Approval>, CliError> {
    let query = [
        ("project", scope.project.as_ref().map_or("", ProjectName::as_str)),
        ("stage", scope.stage.as_ref().map_or("", StageName::as_str)),
        ("service", scope.service.as_ref().map_or("", ServiceName::as_str)),
    ];
    let list = pages::read::<Value>(api, &["event", "triggered", APPROVAL], &query, MOST).await?;
    let now = Timestamp::parse(&list.extra.now);
    let approval = |event: Value| Approval { age: age(event["time"].as_str().unwrap_or_default(), now), event };
    Ok(list.items.into_iter().map(approval).collect())
}

/// Approvals as a table.
pub fn listed(approvals: &[Approval], format: Format) -> Table {
    let data = |approval: &Approval, names: &[&str]| -> Vec<String> {
        names.iter().map(|name| approval.text(&format!("/data/{name}")).to_owned()).collect()
    };
    if format.is_wide() {
        let mut table = Table::new(&["PROJECT", "STAGE", "SERVICE", "RESULT", "IMAGE", "SINCE", "CONTEXT", "ID"]);
        for approval in approvals {
            let mut row = data(approval, &["project", "stage", "service", "result", "configurationChange/values/image"]);
            row.extend([approval.text("/time"), approval.context(), approval.id()].map(str::to_owned));
            table.row(row);
        }
        return table;
    }
    let contexts: Vec<&str> = approvals.iter().map(Approval::context).collect();
    let ids = has_twins(approvals);
    let known = approvals.iter().any(|approval| !approval.runs().is_empty());
    let head = ["CONTEXT", "SERVICE", "VERSION", "RUNS", "STAGE", "WAITS", "RESULT", "PROJECT", "ID"];
    let shown = |title: &&&str| (known || **title != "RUNS") && (ids || **title != "ID");
    let mut table = Table::new(&head.iter().filter(shown).copied().collect::<Vec<_>>());
    for (approval, id) in approvals.iter().zip(short_ids(&contexts)) {
        let [service, stage, result, project] =
            ["service", "stage", "result", "project"].map(|name| data(approval, &[name]).concat());
        let mut row = vec![id, service, approval.version()];
        row.extend(known.then(|| approval.runs()));
        row.extend([stage, approval.age.clone(), result, project]);
        row.extend(ids.then(|| approval.id().to_owned()));
        table.row(row);
    }
    table
}

/// Whether some can be named only by `--id`.
fn has_twins(approvals: &[Approval]) -> bool {
    approvals.iter().any(|approval| approvals.iter().any(|other| approval.is_twin(other)))
}

/// The commands that would decide them.
pub fn hints(approvals: &[Approval]) -> Vec<String> {
    let contexts: Vec<&str> = approvals.iter().map(Approval::context).collect();
    let hint = |(approval, id): (&Approval, String)| {
        let several = contexts.iter().filter(|context| **context == approval.context()).count() > 1;
        let which = if approvals.iter().any(|other| approval.is_twin(other)) {
            format!(" --id {}", approval.id())
        } else if several {
            format!(" --stage {} --service {}", approval.text("/data/stage"), approval.text("/data/service"))
        } else {
            String::new()
        };
        Hint { command: format!("keelway approve {id}{which}"), about: approval.subject() }
    };
    let hints: Vec<Hint> = approvals.iter().zip(short_ids(&contexts)).map(hint).take(5).collect();
    board::hints(&hints, &look())
}

/// Finds the one open approval that is meant, waiting for it if asked to, and answers it.
///
/// # Errors
/// None or several, a newer delivery that has gone there already, or the API's refusal.
pub async fn decide(api: &Api, what: &Decide, verdict: Verdict) -> Result<(), CliError> {
    let context = match &what.named {
        Some(Awaiting::Promotion { namespace, name, environment, revision }) => {
            let of = Address { namespace: namespace.to_string(), name: name.clone() };
            let verdict = match verdict {
                Verdict::Approve => ApprovalDecision::Approve,
                Verdict::Decline => ApprovalDecision::Reject,
            };
            let revision = revision.as_deref();
            let decision =
                decide::Decision { of, environment, revision, verdict, message: &what.message, by: &what.by, wait: what.wait };
            return decide::of_verb(api, what, decision).await;
        }
        Some(Awaiting::Sequence(context)) => Some(context),
        None => None,
    };
    if context.is_none() {
        refuse_unnamed(api, what, verdict).await?;
    }
    let approval = find(api, what, context).await?;
    let (project, context) = (approval.text("/data/project"), approval.context());
    let id = short_ids(&[context]).concat();
    if verdict == Verdict::Approve && !what.older {
        refuse_older(api, &approval, &id).await?;
    }
    let decision = json!(Decision { decision: verdict, message: what.message.clone(), by: what.by.clone() });
    let path = ["project", project, "approval", context, approval.id()];
    let decided: Decided = api.post(&path, &decision).await?;
    let done = match verdict {
        Verdict::Approve => "approved",
        Verdict::Decline => "declined",
    };
    let waited = if approval.age.is_empty() { String::new() } else { format!(", which waited {}", approval.age) };
    let told = format!("{done}: {} of {project}{waited} ({id})", approval.subject());
    match decided.result {
        Some(_) => say(&told),
        None => say(&format!("{told}, but it is not in the state yet; see: keelway watch {id}")),
    }
}

/// A promotion is decided only by its name: where one waits, too, everything is listed that does.
async fn refuse_unnamed(api: &Api, what: &Decide, verdict: Verdict) -> Result<(), CliError> {
    let Scope { project, stage: None, service: None } = &what.scope else { return Ok(()) };
    if what.id.is_some() || what.wait.is_some() {
        return Ok(());
    }
    let promotions = pipelines::waiting(api, project.as_ref()).await?;
    if promotions.is_empty() {
        return Ok(());
    }
    let open = open_approvals(api, &what.scope).await?;
    let verb = match verdict {
        Verdict::Approve => "approve",
        Verdict::Decline => "decline",
    };
    let tables = [listed(&open, Format::Table), pipelines::table(&promotions)];
    let tables: Vec<String> = tables.iter().filter(|table| !table.is_empty()).map(|table| table.render(&look())).collect();
    let n = open.len() + promotions.len();
    let waits = if n == 1 { "one waits".into() } else { format!("{n} wait") };
    let say = format!(
        "{waits} for approval: say which: keelway {verb} CONTEXT, or keelway {verb} PROJECT/PIPELINE/ENVIRONMENT[@REVISION]"
    );
    Err(CliError::Failed(format!("{say}\n{}", tables.join("\n\n"))))
}

/// Refuses to put an older delivery behind a newer one.
async fn refuse_older(api: &Api, approval: &Approval, id: &str) -> Result<(), CliError> {
    let project = approval.text("/data/project");
    let (Ok(stage), Ok(service)) = (StageName::new(approval.text("/data/stage")), ServiceName::new(approval.text("/data/service")))
    else {
        return Ok(());
    };
    let page: SequencePage = api.get(&["sequence", project], &[("keptnContext", approval.context())]).await?;
    let waits = |x: &&ExecutionState| x.waits.as_ref().is_some_and(|waits| waits.id.as_deref() == Some(approval.id()));
    let accepted = page.items.iter().flat_map(|state| &state.executions).find(waits).map(|x| x.delivery_accepted_at.as_str());
    let Some(accepted) = accepted.and_then(Timestamp::parse) else { return Ok(()) };
    let (environments, now) = environments::read(api, project, Some(&stage), Some(&service)).await?;
    match environments.iter().find_map(|one| newer(one, accepted, now)) {
        Some(newer) => Err(CliError::Failed(format!(
            "{service} {newer}, and was triggered after {}: approving would put the older one there. If that is meant: keelway approve {id} --older",
            approval.version()
        ))),
        None => Ok(()),
    }
}

/// What went to an environment, or goes there, and was triggered later than `accepted`.
fn newer(one: &EnvironmentState, accepted: Timestamp, now: Option<Timestamp>) -> Option<String> {
    let later = |time: Option<&str>| time.and_then(Timestamp::parse).is_some_and(|time| time > accepted);
    let shown = |image: &Option<String>| image.as_deref().map(version).unwrap_or_default();
    if later(one.delivery_accepted_at.as_deref()) {
        let since = age(one.since.as_deref().unwrap_or_default(), now);
        return Some(format!("{} runs in {} since {since}", shown(&one.image), one.stage));
    }
    let decided =
        |x: &&ExecutionState| !x.waits.as_ref().is_some_and(|waits| ["approval", "resume"].contains(&waits.reason.as_str()));
    let coming = one.coming.iter().find(|x| later(Some(&x.delivery_accepted_at)) && decided(x))?;
    Some(format!("{} is on its way to {}", shown(&coming.image), one.stage))
}

async fn find(api: &Api, what: &Decide, given: Option<&Context>) -> Result<Approval, CliError> {
    let began = Instant::now();
    loop {
        let mut open = open_approvals(api, &what.scope).await?;
        open.retain(|approval| given.is_none_or(|given| is_meant(approval.context(), given.as_str())));
        open.retain(|approval| what.id.as_ref().is_none_or(|id| approval.id() == id));
        match (open.pop(), open.is_empty()) {
            (Some(one), true) => return Ok(one),
            (Some(last), false) => {
                open.push(last);
                return Err(CliError::Failed(ambiguous(&open)));
            }
            (None, _) if what.wait.is_some_and(|wait| began.elapsed() < wait) => tokio::time::sleep(PAUSE).await,
            (None, _) => return Err(CliError::Failed(none(api, what, given).await?)),
        }
    }
}

fn is_meant(context: &str, given: &str) -> bool {
    context == given || (given.chars().count() >= SHORT && context.starts_with(given))
}

/// Why nothing is there to be decided.
async fn none(api: &Api, what: &Decide, given: Option<&Context>) -> Result<String, CliError> {
    let list = "What waits is listed by keelway get approvals";
    let waited = what.wait.map(|wait| format!(" within {}", length(wait))).unwrap_or_default();
    let Some(given) = given else {
        let later = if what.wait.is_none() { "; --wait 60s waits for it" } else { "" };
        return Ok(format!(
            "nothing like that waits for approval{waited}{later}. {list}. Where a sequence stands: keelway get sequences --project P"
        ));
    };
    let (states, now) = find::like(api, what.scope.project.as_ref(), given).await?;
    match states.as_slice() {
        [] => Ok(format!("no context is, or begins with, {given}: check its spelling. {list}")),
        [state] => Ok(decided(state, what, now).unwrap_or_else(|| stands(state, &waited, now))),
        several => Err(find::ambiguous(given, several, now)),
    }
}

/// Who has decided it, and when.
fn decided(state: &SequenceState, what: &Decide, now: Option<Timestamp>) -> Option<String> {
    let in_scope = |x: &&ExecutionState| what.scope.stage.as_ref().is_none_or(|stage| x.stage == stage.as_str());
    let mut tasks = state.executions.iter().filter(in_scope).flat_map(|x| x.tasks.iter().map(move |task| (x, task)));
    let (x, task) = tasks.rfind(|(_, task)| task.name == APPROVAL && task.result.is_some())?;
    let how = if task.result.as_deref() == Some("fail") { "declined" } else { "approved" };
    let by = task.by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
    let ago = task.finished_at.as_deref().map(|at| format!(" {} ago", age(at, now))).unwrap_or_default();
    let id = short_ids(&[&state.shkeptncontext]).concat();
    let subject = [state.service.clone(), x.image.as_deref().map(version).unwrap_or_default()].join(" ");
    Some(format!("{} to {} ({id}) is decided already: {how}{by}{ago}", subject.trim(), x.stage))
}

/// Where a delivery stands that does not wait for approval.
fn stands(state: &SequenceState, waited: &str, now: Option<Timestamp>) -> String {
    let id = short_ids(&[&state.shkeptncontext]).concat();
    let line = delivery::line(state, &id, now);
    let rows = board::rows(&[line], &crate::terminal::Look { width: None, colours: false, ..look() });
    format!("this one did not come to wait for approval{waited}: {}", rows.concat())
}

fn ambiguous(open: &[Approval]) -> String {
    let differs = |pointer: &str| open.iter().any(|approval| approval.text(pointer) != open[0].text(pointer));
    let flags = [
        ("/data/project", "--project"),
        ("/data/stage", "--stage"),
        ("/data/service", "--service"),
        ("/shkeptncontext", "CONTEXT"),
    ];
    let flags = flags.into_iter().filter(|(pointer, _)| differs(pointer)).map(|(_, flag)| flag);
    // The table shows ids only where nothing else tells two of them apart.
    let flags: Vec<&str> = flags.chain(has_twins(open).then_some("--id")).collect();
    format!("{} wait for approval: say which by {}\n{}", open.len(), flags.join(", "), listed(open, Format::Table).render(&look()))
}
