//! Pipelines in the shapes of the API.

use crate::pipelines::compare::comparison;
use crate::pipelines::explain;
use keelway_domain::evaluations::Violation;
use keelway_domain::note::Note;
use keelway_domain::promotions::definition::{Approval, Definition, PromotionSpec, Strategy};
use keelway_domain::promotions::{Command, Environment, Evaluation, Made, Obeyed, Past, Phase, Pipeline, Promotion};
use keelway_domain::time::Timestamp;
use keelway_engine::promotions::Address;
use keelway_engine::promotions::views::{View, looked_at};
use keelway_engine::protocol::declare::Declared;
use keelway_wire::http::promotions::{
    Actor, AppState, ConditionState, EnvironmentState, EvaluationState, Healthy, Hold, LookState, OpenPullRequest, PastCommand,
    PastPromotion, PipelineEntry, PipelineState, PromotionState, PullRequestState, RunState, TargetState, ViolatedObjective,
    WaitingApproval,
};
use std::borrow::Cow;

/// The condition of a pipeline that has not been evaluated yet.
const NOT_YET: (&str, &str) = ("NotEvaluated", "it was applied just now, and is evaluated in a moment");

/// A pipeline in one line.
pub fn entry(of: &Address, applied: &Declared<Definition>, state: Option<&Pipeline>) -> PipelineEntry {
    let run = state.and_then(|state| state.run.as_ref());
    let (reason, message) = state.map_or((NOT_YET.0.into(), NOT_YET.1.into()), condition);
    PipelineEntry {
        namespace: of.namespace.clone(),
        name: of.name.clone(),
        environments: applied.spec.environments.iter().map(|environment| environment.name.clone()).collect(),
        run: run.map(|run| run.number),
        revision: run.map(|run| run.revision.clone()),
        suspended: state.is_some_and(|state| state.suspended.is_some()),
        reason,
        message,
        conditions: state.map(|state| conditions(applied, state)).unwrap_or_default(),
        applied_at: applied.at.rfc3339(),
    }
}

/// The troubles in the environments of a pipeline.
fn conditions(applied: &Declared<Definition>, x: &Pipeline) -> Vec<ConditionState> {
    let names = applied.spec.environments.iter().map(|environment| environment.name.as_str());
    names.filter_map(|name| Some((name, x.environments.get(name)?))).flat_map(|(name, state)| wrong(name, state)).collect()
}

fn wrong(name: &str, state: &Environment) -> Vec<ConditionState> {
    let of = |reason: &str, message: &str| ConditionState {
        environment: name.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
    };
    let unreadable = state.unreadable.as_ref().map(|why| of("TargetNotReadable", why));
    let unseen = state.promotion.as_ref().filter(|promotion| promotion.is_unobserved());
    unreadable.into_iter().chain(unseen.map(|promotion| of(&promotion.why.reason, &promotion.why.message))).collect()
}

fn condition(x: &Pipeline) -> (String, String) {
    // The state has each environment after the first evaluation.
    if x.environments.is_empty() && x.run.is_none() {
        return (NOT_YET.0.into(), NOT_YET.1.into());
    }
    (x.condition.reason.clone(), x.condition.message.clone())
}

/// A pipeline with its environments.
pub fn pipeline(of: &Address, view: &View) -> PipelineState {
    let View { state, applied, now, .. } = view;
    let definition = &applied.spec;
    let first = definition.environments.first().and_then(|first| state.environments.get(&first.name));
    let healthy = first.and_then(|first| first.healthy.as_ref()).map(|(revision, _)| revision);
    let (reason, message) = condition(state);
    PipelineState {
        namespace: of.namespace.clone(),
        name: of.name.clone(),
        app: AppState {
            api_version: definition.app.api_version.clone(),
            kind: definition.app.kind.clone(),
            name: definition.app.name.clone(),
        },
        applied_at: applied.at.rfc3339(),
        version: applied.version,
        vouched: definition.vouched,
        latest_revision: healthy.or(state.run.as_ref().map(|run| &run.revision)).cloned(),
        run: state.run.as_ref().map(|run| RunState {
            number: run.number,
            revision: run.revision.clone(),
            since: run.since.rfc3339(),
        }),
        suspended: state.suspended.as_ref().map(actor),
        reason,
        message,
        conditions: conditions(applied, state),
        abandoned: state.abandoned.clone(),
        environments: (0..definition.environments.len()).map(|place| environment(view, place)).collect(),
        now: now.rfc3339(),
    }
}

fn environment(view: &View, place: usize) -> EnvironmentState {
    let definition = &view.applied.spec;
    let spec = &definition.environments[place];
    let settings = definition.promotion(spec).filter(|_| place > 0);
    let state = view.state.environments.get(&spec.name);
    let targets = spec.targets.iter().map(|target| {
        let observed = view.observations.get(target);
        TargetState {
            cluster: target.cluster.clone(),
            namespace: target.namespace.clone(),
            revision: observed.and_then(|observed| observed.revision.clone()),
            ready: observed.is_some_and(|observed| observed.ready),
            error: observed.and_then(|observed| observed.error.clone()),
            observed_at: observed.filter(|observed| observed.at > Timestamp::default()).map(|observed| observed.at.rfc3339()),
        }
    });
    EnvironmentState {
        name: spec.name.clone(),
        targets: targets.collect(),
        strategy: settings.map(|settings| strategy(&settings.strategy).to_owned()),
        manual: settings.is_some_and(|settings| settings.manual),
        promotion: state.and_then(|state| state.promotion.as_ref()).map(|promotion| shown(view, &spec.name, promotion)),
        conditions: state.map(|state| wrong(&spec.name, state)).unwrap_or_default(),
        waiting_approval: waiting(view, &spec.name),
        hold: state
            .and_then(|state| state.hold.as_ref())
            .map(|(revision, note)| Hold { revision: revision.clone(), actor: actor(note) }),
        healthy: state
            .and_then(|state| state.healthy.as_ref())
            .map(|(revision, since)| Healthy { revision: revision.clone(), since: since.rfc3339() }),
        closing: state.map(|state| state.closing.iter().map(|closing| promotion(&closing.promotion)).collect()).unwrap_or_default(),
        evaluation: state.and_then(|state| state.evaluation.as_ref()).map(evaluation),
        next_opening: explain::gate(view, place).and_then(|gate| gate.opens).map(Timestamp::rfc3339),
    }
}

fn evaluation(of: &Evaluation) -> EvaluationState {
    let answer = of.answer.as_ref();
    let violated = |one: &Violation| ViolatedObjective { sli: one.sli.clone(), value: one.value, limit: one.limit.clone() };
    EvaluationState {
        id: of.id.clone(),
        stage: of.stage.clone(),
        service: of.service.clone(),
        start: of.period.start.rfc3339(),
        end: of.period.end.rfc3339(),
        asked: u64::from(of.times),
        result: answer.map(|answer| answer.result.as_str().to_owned()),
        evaluated: answer.is_some_and(|answer| answer.evaluated),
        score: answer.filter(|answer| answer.evaluated).map(|answer| answer.score),
        message: answer.map(|answer| answer.message.clone()).unwrap_or_default(),
        violated: answer.iter().flat_map(|answer| &answer.violated).map(violated).collect(),
    }
}

fn strategy(strategy: &Strategy) -> &'static str {
    match strategy {
        Strategy::Notification(_) => "notification",
        Strategy::PullRequest(_) => "pullRequest",
        Strategy::Sequence(_) => "sequence",
    }
}

/// The approval that an environment waits for.
pub fn waiting(view: &View, name: &str) -> Option<WaitingApproval> {
    let state = view.state.environments.get(name)?;
    let promotion = state.promotion.as_ref()?;
    let definition = &view.applied.spec;
    let (_, environment) = definition.environment(name)?;
    let rule: Option<&Approval> = definition.promotion(environment).map(|settings: &PromotionSpec| &settings.approval);
    let current = view.state.run.as_ref().is_some_and(|run| run.number == promotion.run);
    let separate = rule.is_some_and(|rule| rule.separate);
    (current && promotion.phase == Phase::Waiting && !promotion.approved).then(|| WaitingApproval {
        from: state.healthy.as_ref().map(|(revision, _)| revision.clone()),
        revision: promotion.revision.clone(),
        given: promotion.approvals.len() as u64,
        needed: u64::from(rule.map_or(1, |rule| rule.quorum.max(1))),
        authors: separate.then(|| view.state.run.as_ref().map(|run| run.authors.clone())).flatten().unwrap_or_default(),
        separate,
        approvers: rule.map(|rule| rule.people().map(Cow::into_owned).collect()).unwrap_or_default(),
    })
}

fn actor(note: &Note) -> Actor {
    Actor { by: note.by.clone(), at: note.at.rfc3339(), message: note.message.clone() }
}

/// A promotion, with the last look at its repository if it has an open pull request, and what it would change there.
fn shown(view: &View, name: &str, of: &Promotion) -> PromotionState {
    let mut state = promotion(of);
    state.compare_url = comparison(view, name, of);
    if let Some(request) = &mut state.pull_request {
        request.look = looked_at(view, of).map(|look| LookState {
            at: look.at.rfc3339(),
            error: look.trouble.as_ref().map(|trouble| trouble.why.message.clone()),
            since: look.trouble.as_ref().map(|trouble| trouble.since.rfc3339()),
        });
    }
    state
}

/// A promotion.
pub fn promotion(promotion: &Promotion) -> PromotionState {
    let (mut request, mut context, mut notification) = (None, None, None);
    match promotion.effect.clone() {
        Some(Made::PullRequest { number, url, branch, mergeable, .. }) => {
            request = Some(PullRequestState { number, url, branch, mergeable, look: None });
        }
        Some(Made::Sequence { context: of }) => context = Some(of),
        Some(Made::Notification { id }) => notification = Some(id),
        None => {}
    }
    PromotionState {
        run: promotion.run,
        revision: promotion.revision.clone(),
        phase: phase(promotion.phase).to_owned(),
        reason: promotion.why.reason.clone(),
        message: promotion.why.message.clone(),
        since: promotion.since.rfc3339(),
        attempts: u64::from(promotion.attempt),
        again: u64::from(promotion.again),
        attempted_at: promotion.attempted.map(Timestamp::rfc3339),
        retry_at: promotion.due.filter(|_| promotion.phase == Phase::Failed).map(Timestamp::rfc3339),
        approvals: promotion.approvals.iter().map(actor).collect(),
        approved: promotion.approved,
        completed: promotion.completed,
        done_at: promotion.done.map(Timestamp::rfc3339),
        contested: promotion.contested,
        pull_request: request,
        compare_url: None,
        keptn_context: context,
        notification,
    }
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Waiting => "waiting",
        Phase::Attempting => "attempting",
        Phase::Created => "created",
        Phase::Failed => "failed",
        Phase::Succeeded => "succeeded",
        Phase::Abandoned => "abandoned",
        Phase::Rejected => "rejected",
    }
}

/// A promotion that has ended.
pub fn past(past: &Past) -> PastPromotion {
    PastPromotion { environment: past.environment.clone(), at: past.at.rfc3339(), promotion: promotion(&past.promotion) }
}

/// A command that was obeyed, in the format of the request.
pub fn command(obeyed: Obeyed) -> PastCommand {
    let (word, environment, revision) = match obeyed.command {
        Command::Approve(at) => ("approve", Some(at.environment), Some(at.revision)),
        Command::Reject(at) => ("reject", Some(at.environment), Some(at.revision)),
        Command::GiveUp(at) => ("abandon", Some(at.environment), Some(at.revision)),
        Command::Accept(at) => ("accept", Some(at.environment), Some(at.revision)),
        Command::Hold(at) => ("hold", Some(at.environment), Some(at.revision)),
        Command::Abandon(revision) => ("abandon", None, Some(revision)),
        Command::Suspend => ("suspend", None, None),
        Command::Resume => ("resume", None, None),
        Command::Release(environment) => ("release", Some(environment), None),
        Command::Retry(environment) => ("retry", Some(environment), None),
        Command::Abort(environment) => ("abort", Some(environment), None),
    };
    let Note { by, message, .. } = obeyed.note;
    PastCommand { at: obeyed.at.rfc3339(), command: word.to_owned(), environment, revision, by, message }
}

/// The open pull requests of a pipeline, in the order of its environments. Those of removed environments come last.
pub fn pull_requests(view: &View) -> Vec<OpenPullRequest> {
    let known: Vec<&String> = view.applied.spec.environments.iter().map(|environment| &environment.name).collect();
    let gone = view.state.environments.keys().filter(|name| !known.contains(name));
    let states = known.iter().copied().chain(gone).filter_map(|name| Some((name, view.state.environments.get(name)?)));
    states.flat_map(|(name, state)| of_environment(view, name, state)).collect()
}

fn of_environment(view: &View, name: &str, state: &Environment) -> Vec<OpenPullRequest> {
    let open = |from: &Promotion, closing: bool| {
        let Some(Strategy::PullRequest(settings)) = &from.strategy else { return None };
        let request = shown(view, name, from).pull_request?;
        let (environment, revision) = (name.to_owned(), from.revision.clone());
        Some(OpenPullRequest { environment, revision, repository: settings.url.clone(), closing, request })
    };
    let current = state.promotion.iter().filter(|promotion| promotion.phase == Phase::Created);
    let closing = state.closing.iter().map(|closing| &closing.promotion);
    current.filter_map(|one| open(one, false)).chain(closing.filter_map(|one| open(one, true))).collect()
}
