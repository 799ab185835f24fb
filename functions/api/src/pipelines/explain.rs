//! Explains what each environment of a pipeline waits for, what would end that, and when it ends by itself.

use keelway_domain::condition::Condition;
use keelway_domain::promotions::observe::{self, First, Later};
use keelway_domain::promotions::{EVALUATING, EVALUATION_FAILED, Gate, Phase, Pipeline, Promotion, closed};
use keelway_domain::time::Timestamp;
use keelway_engine::promotions::Address;
use keelway_engine::promotions::views::{View, looked_at};
use keelway_wire::http::promotions::{Explained, Explanation};

/// The first closed gate of a promotion that waits for its first attempt.
pub fn gate(view: &View, place: usize) -> Option<Gate> {
    let definition = &view.applied.spec;
    let environment = definition.environments.get(place).filter(|_| place > 0)?;
    let promotion = current(&view.state, &environment.name)?;
    let may_begin = match promotion.phase {
        Phase::Waiting => true,
        Phase::Failed => promotion.due.is_some_and(|due| due <= view.now),
        _ => false,
    };
    closed(&view.state, place, promotion, definition.promotion(environment)?, &view.facts()).filter(|_| may_begin)
}

/// The promotion of the present run.
fn current<'x>(x: &'x Pipeline, name: &str) -> Option<&'x Promotion> {
    let run = x.run.as_ref()?.number;
    x.environments.get(name)?.promotion.as_ref().filter(|promotion| promotion.run == run)
}

/// Explains every environment in the state after an evaluation at this moment.
pub fn explain(of: &Address, view: &View) -> Explanation {
    let view = View { state: view.evaluated(), ..view.clone() };
    let names = view.applied.spec.environments.iter().map(|environment| environment.name.clone());
    let mut environments = vec![];
    let mut stops: Option<String> = None;
    for (place, name) in names.enumerate() {
        let explained = match place {
            0 => first(&view, &name),
            _ => later(&view, place, &name, stops.as_deref()),
        };
        if !explained.done && stops.is_none() {
            stops = Some(name);
        }
        environments.push(explained);
    }
    Explanation {
        namespace: of.namespace.clone(),
        name: of.name.clone(),
        revision: view.state.run.as_ref().map(|run| run.revision.clone()),
        environments,
        now: view.now.rfc3339(),
    }
}

fn done(environment: &str) -> Explained {
    Explained { environment: environment.to_owned(), done: true, ..Explained::default() }
}

fn waits(environment: &str, why: &Condition, remedy: impl Into<String>, opens: Option<Timestamp>) -> Explained {
    Explained {
        environment: environment.to_owned(),
        done: false,
        reason: why.reason.clone(),
        message: why.message.clone(),
        remedy: remedy.into(),
        opens: opens.map(Timestamp::rfc3339),
    }
}

fn first(view: &View, name: &str) -> Explained {
    let definition = &view.applied.spec;
    let why = |reason: &str, message: &str| Condition::new(reason, message);
    match observe::first(&definition.environments[0], &view.observations, definition.compare) {
        First::Current(_) => done(name),
        First::Unknown(error) => waits(name, &why("TargetNotReadable", &error), READABLE, None),
        First::Mixed => {
            let message = "its targets do not all run the same revision";
            waits(name, &why("EnvironmentNotReady", message), format!("let all targets of {name} run the same revision"), None)
        }
        First::Unready(revision) => {
            let message = format!("not all of its targets are healthy on {revision}");
            waits(name, &why("EnvironmentNotReady", &message), format!("let all targets of {name} become healthy"), None)
        }
    }
}

const READABLE: &str = "have the target reported: register its cluster, or push its state to /v1/observations";

fn later(view: &View, place: usize, name: &str, stops: Option<&str>) -> Explained {
    let definition = &view.applied.spec;
    let environment = &definition.environments[place];
    let Some(run) = &view.state.run else {
        let message = format!("no revision has been healthy in {} yet", definition.environments[0].name);
        return waits(name, &Condition::new("NoRun", message), "let all targets of the first environment become healthy", None);
    };
    let revision = &run.revision;
    let promotion = current(&view.state, name);
    if let Some(error) = observe::unreadable(environment, &view.observations) {
        return waits(name, &Condition::new("TargetNotReadable", error), READABLE, None);
    }
    // Work for a person or a host is shown even while an earlier environment must catch up.
    let under_way = promotion.filter(|promotion| matches!(promotion.phase, Phase::Attempting | Phase::Created));
    if let (Some(before), None) = (stops, under_way) {
        let why = Condition::new("WaitingForEnvironment", format!("{before} is not done: {name} comes after it"));
        return waits(name, &why, format!("let {before} run {revision} and be healthy"), None);
    }
    match observe::later(environment, &view.observations, revision, definition.compare) {
        Later::Healthy => match promotion.filter(|promotion| promotion.contested) {
            Some(promotion) if promotion.ended_badly() => {
                let why = Condition::new(
                    "PromotionFailed",
                    format!("{name} runs {revision}, but its promotion failed: {}", promotion.why.message),
                );
                let remedy = format!("retry the promotion into {name}, or accept it as it is");
                return waits(name, &why, remedy, None);
            }
            Some(promotion) if promotion.phase != Phase::Succeeded => {}
            _ => return done(name),
        },
        Later::Unknown(error) => return waits(name, &Condition::new("TargetNotReadable", error), READABLE, None),
        Later::Unready | Later::Partly => {
            let why = Condition::new("WaitingForRollout", format!("not all targets of {name} are healthy on {revision}"));
            return waits(name, &why, format!("let all targets of {name} run {revision} and become healthy"), None);
        }
        Later::Absent => {}
    }
    let Some(promotion) = promotion else {
        let why = Condition::new("NoPromotionConfigured", format!("neither {name} nor the pipeline says how to promote into it"));
        return waits(name, &why, "write `promotion:` in its manifest", None);
    };
    if let Some(gate) = gate(view, place) {
        return waits(name, &gate.why, opener(&gate, name, revision), gate.opens);
    }
    let why = &promotion.why;
    match promotion.phase {
        Phase::Waiting | Phase::Attempting => waits(name, why, "nothing: the attempt is on its way", None),
        Phase::Created => waits(name, &looked(view, promotion), created(promotion), None),
        Phase::Failed => match promotion.due {
            Some(due) => waits(name, why, mending(&why.reason), Some(due)),
            None => waits(name, why, "mend what the message names, and retry it", None),
        },
        Phase::Succeeded if promotion.completed => {
            let why = Condition::new("Drifted", format!("{name} ran {revision} and does not any more"));
            waits(name, &why, "retry the promotion, or leave it", None)
        }
        Phase::Succeeded => {
            let why =
                Condition::new("WaitingForRollout", format!("{revision} was promoted into {name}, which does not run it yet"));
            waits(name, &why, format!("let the targets of {name} run {revision}"), None)
        }
        Phase::Abandoned => waits(name, why, "retry the promotion, or let another revision become healthy", None),
        Phase::Rejected => waits(name, why, "let another revision become healthy in the first environment", None),
    }
}

/// What can end a failure that is repeated.
fn mending(reason: &str) -> &'static str {
    match reason {
        "NoMarkerFound" => "write the marker beside the version on the base branch, and retry it",
        "MarkedFileUnusable" => "correct the file that the message names, or take the marker out of it, and retry it",
        "BaseBranchMissing" => "create the branch, or correct `baseBranch`, and retry it",
        "NotFound" => "correct the URL, or let the token see the repository, and retry it",
        "CredentialsRefused" | "Forbidden" | "SecretMissing" | "SecretUnusable" => {
            "mend the secret or what it permits, as the message says, and retry it"
        }
        "RepositoryTooLarge" | "UnusableUrl" | "Refused" | "ReceiverRefused" | "TriggerRefused" => {
            "mend what the message names, and retry it"
        }
        _ => "nothing: it is attempted again; or retry it now",
    }
}

/// Why a promotion waits for its effect, and why the state of the effect cannot be read, if it cannot.
fn looked(view: &View, promotion: &Promotion) -> Condition {
    let trouble = looked_at(view, promotion).and_then(|look| Some((look.at, look.trouble.as_ref()?)));
    match trouble.filter(|_| !promotion.is_unobserved()) {
        Some((at, trouble)) => {
            let message = format!("{}; the last look, at {}, failed: {}", promotion.why.message, at.rfc3339(), trouble.why.message);
            Condition::new(&promotion.why.reason, message)
        }
        None => promotion.why.clone(),
    }
}

fn created(promotion: &Promotion) -> &'static str {
    if promotion.is_unobserved() {
        return "let the host answer Keelway again: mend what the message names";
    }
    match &promotion.strategy {
        Some(keelway_domain::promotions::definition::Strategy::Sequence(_)) => "nothing: the sequence runs",
        _ => "merge the pull request, or close it",
    }
}

/// What would open a gate.
fn opener(gate: &Gate, name: &str, revision: &str) -> String {
    match gate.why.reason.as_str() {
        "ApprovalNeeded" => format!("approve {revision} for {name}, or reject it"),
        "Suspended" => "resume the pipeline".into(),
        "Held" => format!("release {name}"),
        "RevisionAbandoned" => "let another revision become healthy in the first environment".into(),
        "WindowClosed" if gate.opens.is_none() => "change the windows: they never open".into(),
        EVALUATING => "nothing: the evaluation is on its way".into(),
        EVALUATION_FAILED => {
            format!(
                "mend what the message names, and retry {name}: the soak time until then counts; or let another revision follow"
            )
        }
        "Soaking" if gate.opens.is_none() => "let the environment before it become healthy".into(),
        _ => "nothing: it opens by itself".into(),
    }
}
