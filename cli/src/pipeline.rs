//! A pipeline as one line, like a delivery: its environments, what is on its way into each, what waits for whom, and the command
//! that would help. Pure: the API's answer in, words out.

use crate::delivery::{Cell, Hint, Line, Mark};
use crate::output::one_line;
use crate::words::{age, between, revision, short_ids, span};
use keelway_domain::time::Timestamp;
use keelway_wire::http::promotions::{EnvironmentState, PipelineState, PromotionState, TargetState};

/// The line of a pipeline; `now` is the server's clock.
pub fn line(state: &PipelineState, now: Option<Timestamp>) -> Line {
    let mut cells = vec![];
    if let Some(suspended) = &state.suspended {
        let what = if suspended.by.is_empty() { String::new() } else { format!("by {}", one_line(&suspended.by, 40)) };
        cells.push(Cell { label: "suspended".into(), mark: Mark::Held, what, time: age(&suspended.at, now) });
    }
    let environments = state.environments.iter().enumerate();
    cells.extend(environments.map(|(place, environment)| {
        let (mark, what, time) = about(state, place, now);
        Cell { label: one_line(&environment.name, 60), mark, what, time }
    }));
    let version = state.run.as_ref().map(|run| revision(&run.revision)).unwrap_or_default();
    Line { service: state.name.clone(), version, id: String::new(), cells, hints: hints(state) }
}

/// `shop/carts`
pub fn address(state: &PipelineState) -> String {
    format!("{}/{}", state.namespace, state.name)
}

/// The promotion of the present run into an environment.
pub fn current<'s>(state: &'s PipelineState, environment: &'s EnvironmentState) -> Option<&'s PromotionState> {
    let run = state.run.as_ref()?;
    environment.promotion.as_ref().filter(|promotion| promotion.run == run.number)
}

/// Whether all targets of an environment are healthy on the revision that is carried through.
pub fn is_done(state: &PipelineState, environment: &EnvironmentState) -> bool {
    let (Some(run), Some(healthy)) = (&state.run, &environment.healthy) else { return false };
    if current(state, environment).is_some_and(|promotion| promotion.contested) {
        return false;
    }
    let digest = |revision: &'_ str| revision.rsplit_once('@').map(|(_, digest)| digest.to_owned());
    // Two branches may have the same digest, and a pipeline may say that this is what counts.
    let alike = || digest(&healthy.revision).is_some() && digest(&healthy.revision) == digest(&run.revision);
    healthy.revision == run.revision || (alike() && current(state, environment).is_some_and(|promotion| promotion.completed))
}

/// Whether every environment runs the revision.
pub fn all_done(state: &PipelineState) -> bool {
    state.run.is_some() && state.reason.is_empty()
}

/// Whether nothing goes on without a person: a promotion of this run ended badly, and those after it never begin.
pub fn is_stuck(state: &PipelineState) -> bool {
    let ended = |promotion: &PromotionState| match promotion.phase.as_str() {
        "rejected" | "abandoned" => true,
        "failed" => promotion.retry_at.is_none(),
        _ => false,
    };
    let first_open = state.environments.iter().find(|environment| !is_done(state, environment));
    first_open.and_then(|environment| current(state, environment)).is_some_and(ended)
}

/// Whether something waits for approval and nothing has failed: what `--for-approval` was asked to wait for.
pub fn only_waits(state: &PipelineState) -> bool {
    let failed = |cell: &Cell| cell.mark == Mark::Fail;
    waits_for_approval(state) && !line(state, None).cells.iter().any(failed)
}

/// Whether an environment waits for approval.
pub fn waits_for_approval(state: &PipelineState) -> bool {
    state.environments.iter().any(|environment| environment.waiting_approval.is_some())
}

/// The revision that an environment runs, as far as its targets agree on one.
pub fn runs(environment: &EnvironmentState) -> String {
    if let Some(healthy) = &environment.healthy {
        return revision(&healthy.revision);
    }
    let mut revisions: Vec<String> =
        environment.targets.iter().filter_map(|target| Some(revision(target.revision.as_ref()?))).collect();
    revisions.dedup();
    revisions.join(", ")
}

/// Whether the targets of an environment are healthy.
pub fn health(environment: &EnvironmentState) -> String {
    let targets = &environment.targets;
    let count = |is: fn(&TargetState) -> bool| targets.iter().filter(|target| is(target)).count();
    let ready = count(|target| target.ready);
    match (ready == targets.len(), count(|target| target.error.is_some()), count(|target| target.observed_at.is_some())) {
        (true, ..) => "healthy".into(),
        (_, 0, 0) => "not reported".into(),
        (_, 1.., _) => "error".into(),
        _ if targets.len() == 1 => "not ready".into(),
        _ => format!("{ready} of {} ready", targets.len()),
    }
}

/// What is wrong with the targets of an environment.
pub fn fault(environment: &EnvironmentState) -> Option<String> {
    environment.targets.iter().find_map(|target| {
        let error = one_line(target.error.as_ref()?, 160);
        let at = target.cluster.as_ref().map(|cluster| format!("{cluster} ")).unwrap_or_default();
        Some(if environment.targets.len() == 1 { error } else { format!("{at}{}: {error}", target.namespace) })
    })
}

/// What an environment does or waits for, and a time to go with it.
fn about(state: &PipelineState, place: usize, now: Option<Timestamp>) -> (Mark, String, String) {
    let environment = &state.environments[place];
    let promotion = current(state, environment);
    if is_done(state, environment) {
        let since = promotion.map(|promotion| promotion.since.as_str());
        let took = between(since, environment.healthy.as_ref().map(|healthy| healthy.since.as_str()));
        return (Mark::Pass, environment.hold.as_ref().map(|_| "held".to_owned()).unwrap_or_default(), took);
    }
    let message = || one_line(&state.message, 160);
    match promotion {
        Some(promotion) => of(environment, promotion, now),
        _ if fault(environment).is_some() => (Mark::Fail, fault(environment).unwrap_or_default(), String::new()),
        // The first one decides what is promoted; it has not, or does not any more.
        None if place == 0 && state.run.is_none() => (Mark::Waits, message(), String::new()),
        None if place == 0 => (Mark::Warning, unhealthy(environment), String::new()),
        None => match &environment.hold {
            Some(hold) => (Mark::Held, format!("held on {}", revision(&hold.revision)), age(&hold.actor.at, now)),
            None => (Mark::Missed, unhealthy(environment), String::new()),
        },
    }
}

/// `runs 1.3.0`, and what is wrong with it.
fn unhealthy(environment: &EnvironmentState) -> String {
    let (runs, health) = (runs(environment), health(environment));
    match (runs.is_empty(), health.as_str()) {
        (true, _) => health,
        (false, "healthy") => format!("runs {runs}"),
        (false, health) => format!("runs {runs}, {health}"),
    }
}

/// What a promotion does or waits for.
fn of(environment: &EnvironmentState, promotion: &PromotionState, now: Option<Timestamp>) -> (Mark, String, String) {
    let since = age(&promotion.since, now);
    let message = one_line(&promotion.message, 160);
    match promotion.phase.as_str() {
        "waiting" => match &environment.waiting_approval {
            Some(waiting) if waiting.needed > 1 => {
                (Mark::Held, format!("{} of {} approvals", waiting.given, waiting.needed), since)
            }
            Some(_) => (Mark::Held, "approval".into(), since),
            None => gate(environment, promotion, now),
        },
        "attempting" => {
            let which = if promotion.attempts > 1 { format!("attempt {}", promotion.attempts) } else { "attempt".into() };
            (Mark::Runs, which, promotion.attempted_at.as_deref().map(|at| age(at, now)).unwrap_or_default())
        }
        "created" => {
            let since = promotion.attempted_at.as_deref().map_or(since, |at| age(at, now));
            match (&promotion.pull_request, &promotion.keptn_context) {
                (Some(request), _) => (Mark::Held, format!("pull request {}", request.number), since),
                (None, Some(context)) => (Mark::Runs, format!("sequence {}", short_ids(&[context]).concat()), since),
                (None, None) => (Mark::Runs, message, since),
            }
        }
        "failed" => match due(promotion.retry_at.as_deref(), now) {
            Some(due) => (Mark::Waits, format!("{} due in {due}", retry(promotion, &message)), String::new()),
            None => (Mark::Fail, message, String::new()),
        },
        "succeeded" if promotion.completed => (Mark::Warning, unhealthy(environment), String::new()),
        "succeeded" => (Mark::Waits, "rollout".into(), since),
        _ => (Mark::Fail, message, String::new()),
    }
}

fn retry(promotion: &PromotionState, message: &str) -> String {
    format!("{message}: attempt {}", promotion.attempts + 1)
}

/// The closed gate before a promotion, in a word where there is one.
fn gate(environment: &EnvironmentState, promotion: &PromotionState, now: Option<Timestamp>) -> (Mark, String, String) {
    let since = age(&promotion.since, now);
    let (mark, what) = match promotion.reason.as_str() {
        "Soaking" => (Mark::Waits, "soak".to_owned()),
        "WindowClosed" => (Mark::Waits, "window".to_owned()),
        "Evaluating" => (Mark::Waits, "evaluation".to_owned()),
        "EvaluationFailed" => (Mark::Fail, one_line(&promotion.message, 160)),
        "Suspended" => (Mark::Held, "suspended".to_owned()),
        "Held" => {
            let on = environment.hold.as_ref().map(|hold| format!(" on {}", revision(&hold.revision))).unwrap_or_default();
            (Mark::Held, format!("held{on}"))
        }
        "RevisionAbandoned" => return (Mark::Fail, "revision abandoned".into(), String::new()),
        "" => (Mark::Waits, "its turn".to_owned()),
        _ => (Mark::Waits, one_line(&promotion.message, 160)),
    };
    match due(environment.next_opening.as_deref(), now).filter(|_| mark == Mark::Waits) {
        Some(due) => (mark, format!("{what} due in {due}"), String::new()),
        None => (mark, what, since),
    }
}

/// How long it is until a time.
pub fn due(time: Option<&str>, now: Option<Timestamp>) -> Option<String> {
    let (time, now) = (Timestamp::parse(time?)?, now?);
    Some(span((time - now).0))
}

/// The command that approves what waits in an environment.
pub fn approve(state: &PipelineState, environment: &str, awaited: &str) -> Hint {
    let short = revision(awaited);
    let about = format!("{} {short} to {environment}", state.name);
    Hint { command: format!("keelway approve {}/{environment}@{short}", address(state)), about }
}

/// The commands that would help.
fn hints(state: &PipelineState) -> Vec<Hint> {
    let of = address(state);
    let mut hints = vec![];
    if state.suspended.is_some() {
        hints.push(Hint { command: format!("keelway pipeline resume {of}"), about: format!("{} is suspended", state.name) });
    }
    for environment in state.environments.iter().filter(|environment| !is_done(state, environment)) {
        let name = &environment.name;
        if let Some(waiting) = &environment.waiting_approval {
            hints.push(approve(state, name, &waiting.revision));
        }
        let Some(promotion) = current(state, environment) else { continue };
        let subject = format!("{} {}", state.name, revision(&promotion.revision));
        if promotion.contested && matches!(promotion.phase.as_str(), "failed" | "abandoned") {
            hints.push(Hint {
                command: format!("keelway pipeline accept {of} {name}"),
                about: format!("{name} runs {} although its promotion failed", revision(&promotion.revision)),
            });
        }
        match (promotion.phase.as_str(), promotion.reason.as_str()) {
            ("waiting", "Held") => {
                hints.push(Hint {
                    command: format!("keelway pipeline release {of} {name}"),
                    about: format!("{subject} may go to {name}"),
                });
            }
            ("failed", _) if promotion.retry_at.is_none() => {
                hints.push(Hint {
                    command: format!("keelway pipeline retry {of} {name}"),
                    about: format!("{subject} failed for {name}"),
                });
            }
            ("waiting", "EvaluationFailed") => {
                hints.push(Hint {
                    command: format!("keelway pipeline retry {of} {name}"),
                    about: format!("{subject} is evaluated once more before {name}"),
                });
            }
            ("succeeded", _) if promotion.completed => {
                let about = format!("{name} does not run {} any more", revision(&promotion.revision));
                hints.push(Hint { command: format!("keelway pipeline retry {of} {name}"), about });
            }
            _ => {}
        }
    }
    hints
}
