//! A config as cases see it.

use keelway_domain::deployments::{Config, Deployment, Part, Past, Snapshot, Why};
use serde_json::{Value, json};

/// An image as cases name it: its digest, or the whole reference.
fn short(image: &str) -> &str {
    image.rsplit_once("@sha256:").map_or(image, |(_, digest)| digest)
}

fn word(why: &Why) -> String {
    match why {
        Why::ConfigChange { by } => format!("ConfigChange {by}"),
        Why::ImageChange { from, image, .. } => format!("ImageChange {} {}", from.tag, short(image)),
        Why::Manual { by, .. } => format!("Manual {by}"),
        Why::Rollback { release, by, notes, .. } => format!("Rollback {release} {by} {notes}"),
        Why::Drift { of, found } => format!("Drift {of} {found}"),
        Why::AutoRollback { of, release, .. } => format!("AutoRollback {of} {release}"),
    }
    .trim_end()
    .to_owned()
}

/// What Keelway does for a deployer, and how far it goes: `open 50`, `back 50` on the way back, `done 50` or `failed 50`.
fn part(part: &Part) -> String {
    let word = match (part.is_open(), part.has_failed()) {
        (true, _) if part.back.is_some() => "back",
        (true, _) => "open",
        (_, failed) => {
            if failed {
                "failed"
            } else {
                "done"
            }
        }
    };
    format!("{word} {}", part.until)
}

fn deployment(d: &Deployment) -> Value {
    let images: serde_json::Map<_, _> = d.content.images.iter().map(|(name, image)| (name.clone(), short(image).into())).collect();
    json!({
        "version": d.n,
        "status": d.status.to_string(),
        "attempt": d.attempt,
        "reason": d.reason,
        "message": d.message,
        "causes": d.causes.iter().map(word).collect::<Vec<_>>(),
        "images": images,
        "by": d.claim.as_ref().map(|claim| claim.by.as_str()),
        "cancel": d.cancel.as_ref().map(|cancel| cancel.reason.as_str()),
        "rollbackTo": d.rollback.as_ref().map(|rollback| rollback.release),
        "proceeds": d.proceeds,
        "part": d.part.as_ref().map(part),
        "targets": d.progress.targets.iter().map(|(name, at)| (name.clone(), at.status.to_string().into())).collect::<serde_json::Map<_, _>>(),
    })
}

/// `latest`, `active`, `oldest`, `paused`, `suspended`, `deleted` and `condition` (its reason, empty: nothing is left to do) of the
/// config; of its last deployment `version`, `status`, `attempt`, `reason`, `message`, `causes`, `images`, `by`, `cancel`,
/// `rollbackTo`, `targets`, `part`; `pending`, the version that waits; `deployed`, what the snapshot of the last one says;
/// `history`: `<version>[/<attempt>] <status> [<reason>]` of each attempt that has ended.
pub fn view(x: &Config, history: &[Past], last: Option<&Snapshot>) -> Value {
    let line = |past: &Past| {
        let d = &past.deployment;
        let attempt = if d.attempt == 1 { String::new() } else { format!("/{}", d.attempt) };
        format!("{}{attempt} {} {}", d.n, d.status, d.reason).trim_end().to_owned()
    };
    let mut view = x.last.as_ref().map_or_else(|| json!({"status": "none"}), deployment);
    let of = [
        ("latest", x.latest.into()),
        ("oldest", x.oldest.into()),
        ("active", x.active.as_ref().map(|active| active.n).into()),
        ("pending", x.pending.as_ref().map(|pending| pending.n).into()),
        ("paused", x.paused.is_some().into()),
        ("suspended", x.suspended.is_some().into()),
        ("deleted", x.deleted.into()),
        ("condition", x.condition.reason.as_str().into()),
        ("says", x.condition.message.as_str().into()),
        ("alarms", x.alarms.iter().filter(|(_, (on, _))| *on).map(|(name, _)| name.as_str()).collect::<Vec<_>>().into()),
        ("deployed", last.and_then(|last| serde_json::to_value(&last.definition).ok()).into()),
        ("history", history.iter().map(line).collect::<Vec<_>>().into()),
    ];
    view.as_object_mut().into_iter().for_each(|view| view.extend(of.clone().map(|(name, value)| (name.to_owned(), value))));
    view
}
