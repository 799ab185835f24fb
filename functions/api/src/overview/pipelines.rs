//! What the environments of pipelines wait for, as `explain` says it.

use super::wait::{FAILING, PERSON, Part, WAITING, at};
use crate::Api;
use crate::fence::problem::Answer;
use crate::pipelines::compare::comparison;
use crate::pipelines::{explain, shape};
use futures_util::future::join_all;
use keelway_domain::access::Need;
use keelway_domain::names::ProjectName;
use keelway_domain::promotions::{EVALUATING, EVALUATION_FAILED, Made, Phase, Pipeline, Promotion};
use keelway_domain::time::Timestamp;
use keelway_engine::promotions::Address;
use keelway_engine::promotions::views::View;
use keelway_wire::http::WaitItem;
use keelway_wire::http::promotions::Explained;

/// Pipelines whose state is read, and those of them that are explained.
const STATES: usize = 500;
const EXPLAINED: usize = 100;
/// Pipelines that are read at the same time.
const TOGETHER: usize = 10;

/// What waits of the pipelines.
pub(crate) async fn part(api: &Api, among: Option<&[ProjectName]>) -> Answer<Part> {
    let there = api.promotions().there(among, STATES).await?;
    let mut part = Part { found: !there.subjects.is_empty(), cut: there.more, ..Part::default() };
    let mut unfinished: Vec<Address> = vec![];
    for x in there.subjects.iter().filter(|x| !x.deleted) {
        part.items.extend(suspended(x));
        if x.run.is_some() && !x.condition.reason.is_empty() {
            unfinished.push(Address::new(&x.namespace, &x.name));
        }
    }
    part.cut |= unfinished.len() > EXPLAINED;
    unfinished.truncate(EXPLAINED);
    for together in unfinished.chunks(TOGETHER) {
        let views = join_all(together.iter().map(|of| api.promotions().view(of))).await;
        for (of, view) in together.iter().zip(views) {
            match view {
                Ok(view) => part.items.extend(view.iter().flat_map(|view| items(of, view))),
                // A definition that this code cannot read hides no other pipeline.
                Err(error) if error.is_of_an_item() => part.cut = true,
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(part)
}

fn of_pipeline(namespace: &str, name: &str) -> WaitItem {
    WaitItem { engine: "pipeline".into(), project: namespace.to_owned(), name: name.to_owned(), ..WaitItem::default() }
}

fn suspended(x: &Pipeline) -> Option<WaitItem> {
    let note = x.suspended.as_ref()?;
    Some(WaitItem {
        group: PERSON.into(),
        reason: "Suspended".into(),
        message: note.message.clone(),
        version: x.run.as_ref().map(|run| run.revision.clone()),
        since: note.at.rfc3339(),
        by: note.by.clone(),
        needs: Some(Need::Trigger.to_string()),
        ..of_pipeline(&x.namespace, &x.name)
    })
}

fn items(of: &Address, view: &View) -> Vec<WaitItem> {
    let view = View { state: view.evaluated(), ..view.clone() };
    let explained = explain::explain(of, &view).environments;
    explained.into_iter().filter(|one| !one.done).filter_map(|one| item(of, &view, one)).collect()
}

fn item(of: &Address, view: &View, one: Explained) -> Option<WaitItem> {
    let run = view.state.run.as_ref()?;
    let environment = view.state.environments.get(&one.environment);
    let promotion = environment.and_then(|state| state.promotion.as_ref()).filter(|promotion| promotion.run == run.number);
    let group = group(&one, promotion)?;
    let name = one.environment.clone();
    let hold = environment.and_then(|state| state.hold.as_ref()).filter(|_| one.reason == "Held");
    let approves = one.reason == "ApprovalNeeded";
    let needs = match (group, approves) {
        (_, true) => Some(Need::Approve(&one.environment).to_string()),
        (WAITING, _) => None,
        _ => Some(Need::Trigger.to_string()),
    };
    let since = hold.map(|(_, note)| note.at).or_else(|| promotion.map(|promotion| promotion.since)).unwrap_or(run.since);
    let url = promotion.and_then(|promotion| match &promotion.effect {
        Some(Made::PullRequest { url, .. }) if promotion.phase == Phase::Created => Some(url.clone()),
        _ => None,
    });
    Some(WaitItem {
        group: group.into(),
        approval: shape::waiting(view, &one.environment).filter(|_| approves),
        version: Some(run.revision.clone()),
        from: environment.and_then(|state| state.healthy.as_ref()).map(|(revision, _)| revision.clone()),
        since: since.rfc3339(),
        until: one.opens.or_else(|| at(promotion.and_then(retried))),
        by: hold.map(|(_, note)| note.by.clone()).unwrap_or_default(),
        reason: one.reason,
        message: one.message,
        remedy: one.remedy,
        environment: one.environment,
        url,
        compare_url: promotion.filter(|_| matches!(group, PERSON | WAITING)).and_then(|one| comparison(view, &name, one)),
        needs,
        ..of_pipeline(&of.namespace, &of.name)
    })
}

fn retried(promotion: &Promotion) -> Option<Timestamp> {
    promotion.due.filter(|_| promotion.phase == Phase::Failed)
}

/// `None`: it is at work, comes later, or a person has decided that it does not go on.
fn group(one: &Explained, promotion: Option<&Promotion>) -> Option<&'static str> {
    match one.reason.as_str() {
        "ApprovalNeeded" | "Held" => return Some(PERSON),
        // Told once for the pipeline.
        "Suspended" | "WaitingForEnvironment" | "RevisionAbandoned" => return None,
        "TargetNotReadable" | "Drifted" | "PromotionFailed" | "NoPromotionConfigured" | EVALUATION_FAILED => return Some(FAILING),
        "WindowClosed" | "Soaking" | EVALUATING | "WaitingForRollout" | "EnvironmentNotReady" => return Some(WAITING),
        _ => {}
    }
    let promotion = promotion?;
    match (promotion.phase, &promotion.effect) {
        (Phase::Abandoned | Phase::Rejected | Phase::Attempting | Phase::Waiting, _) => None,
        (Phase::Failed, _) => Some(FAILING),
        (Phase::Created, Some(Made::PullRequest { .. })) if promotion.is_unobserved() => Some(FAILING),
        (Phase::Created, Some(Made::PullRequest { .. })) => Some(PERSON),
        // The sequence is listed itself, where it waits.
        (Phase::Created, Some(Made::Sequence { .. })) => None,
        (Phase::Created | Phase::Succeeded, _) => Some(WAITING),
    }
}
