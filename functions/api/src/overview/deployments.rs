//! What deployment configs wait for.

use super::wait::{FAILING, PERSON, Part, WAITING, at, is_long};
use crate::Api;
use crate::deployments::shape::holds;
use crate::fence::problem::Answer;
use keelway_domain::access::Need;
use keelway_domain::deployments::{Claim, Config, Deployment, Status, template};
use keelway_domain::names::ProjectName;
use keelway_domain::note::Note;
use keelway_domain::time::Timestamp;
use keelway_wire::http::WaitItem;

/// Configs that are read.
const STATES: usize = 500;

/// What waits of the deployment configs.
pub(crate) async fn part(api: &Api, among: Option<&[ProjectName]>) -> Answer<Part> {
    let there = api.deployments().there(among, STATES).await?;
    let now = api.deployments().now();
    let items = there.subjects.iter().filter(|x| !x.deleted).flat_map(|x| items(x, now)).collect();
    Ok(Part { found: !there.subjects.is_empty(), items, cut: there.more })
}

fn items(x: &Config, now: Timestamp) -> Vec<WaitItem> {
    let mut items = vec![];
    let noted = |reason: &str, note: &Note| WaitItem {
        group: PERSON.into(),
        reason: reason.to_owned(),
        message: note.message.clone(),
        since: note.at.rfc3339(),
        by: note.by.clone(),
        ..of_config(x)
    };
    items.extend(x.paused.as_ref().map(|note| noted("Paused", note)));
    items.extend(x.suspended.as_ref().map(|suspended| noted("TriggersSuspended", &suspended.note)));
    items.extend(x.last.as_ref().and_then(|last| deployment(x, last, now)));
    if x.condition.reason == "Unresolved" {
        let since = x.last.as_ref().and_then(|last| last.ended).unwrap_or(x.began);
        items.push(WaitItem {
            group: FAILING.into(),
            reason: x.condition.reason.clone(),
            message: x.condition.message.clone(),
            since: since.rfc3339(),
            needs: None,
            ..of_config(x)
        });
    }
    items.extend(x.watch.says().map(|says| WaitItem {
        group: FAILING.into(),
        reason: "Drifted".into(),
        message: says.to_string(),
        since: x.watch.since.rfc3339(),
        ..of_config(x)
    }));
    items
}

fn of_config(x: &Config) -> WaitItem {
    let active = x.active.as_ref();
    WaitItem {
        engine: "deployment".into(),
        project: x.namespace.clone(),
        name: x.name.clone(),
        from: active.and_then(|active| one_of(&active.images)),
        needs: Some(Need::Trigger.to_string()),
        ..WaitItem::default()
    }
}

/// The image, where there is one.
fn one_of(images: &template::Images) -> Option<String> {
    let mut all = images.values().filter(|image| !image.is_empty());
    all.next().filter(|_| all.next().is_none()).cloned()
}

/// What the latest version waits for, or why it failed.
fn deployment(x: &Config, d: &Deployment, now: Timestamp) -> Option<WaitItem> {
    let item = |group: &str, reason: &str, since: Timestamp| WaitItem {
        group: group.to_owned(),
        reason: reason.to_owned(),
        context: d.task.as_ref().map(|task| task.context.clone()).unwrap_or_default(),
        number: Some(d.n),
        version: one_of(&d.content.images),
        since: since.rfc3339(),
        by: d.claim.as_ref().map(|claim| claim.by.clone()).unwrap_or_default(),
        heard: at(d.claim.as_ref().filter(|_| !d.status.is_final()).map(Claim::heard)),
        ..of_config(x)
    };
    match d.status {
        // It waits for the config to be resumed, which is told.
        Status::New if x.paused.is_some() => None,
        Status::New => is_long(d.since, now).then(|| WaitItem {
            message: "no deployer has claimed it".into(),
            until: at(d.due),
            ..item(FAILING, "Unclaimed", d.since)
        }),
        Status::Running if holds(d) => {
            let since = d.claim.as_ref().and_then(|claim| claim.running).unwrap_or(d.since);
            Some(WaitItem { message: d.progress.message.clone(), until: at(d.due), ..item(PERSON, "Held", since) })
        }
        Status::Failed => {
            let message = d.message.clone();
            Some(WaitItem { message, ..item(FAILING, &d.reason, d.ended.unwrap_or(d.since)) })
        }
        Status::Pending | Status::Running if x.pending.is_some() => {
            let since = d.cancel.as_ref().map_or(d.since, |cancel| cancel.at);
            let until = at(d.cancel.as_ref().map(|cancel| cancel.due));
            Some(WaitItem { message: x.condition.message.clone(), until, ..item(WAITING, "AwaitingCancellation", since) })
        }
        Status::Pending | Status::Running | Status::Complete => None,
    }
}
