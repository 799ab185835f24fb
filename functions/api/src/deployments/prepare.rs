//! Prepares a rollback without writing: whether it would be obeyed, whether its images still exist, and what it changes.

use super::{PAUSED, error, version};
use crate::Api;
use crate::fence::problem::Answer;
use keelway_domain::deployments::definition::Definition;
use keelway_domain::deployments::registry::{ArtifactSource, Origin};
use keelway_domain::deployments::{
    Back, Command, Images, Input, Refused as Conflict, Snapshot, Status, candidate, resolve, target, template,
};
use keelway_domain::diff::{FieldChange, diff};
use keelway_domain::note::Note;
use keelway_engine::deployments::Address;
use keelway_engine::deployments::views::View;
use keelway_wire::http::deployments::FieldError;
use keelway_wire::manifest::render;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The most artifact sources of a namespace that are searched for images.
const SOURCES: u32 = 100;

/// A request to roll one config back.
#[derive(Debug, Clone)]
pub struct Wish {
    /// The text of the version.
    pub release: Value,
    /// The options, without the version.
    pub back: Back,
    /// Why.
    pub notes: Option<String>,
    /// Who.
    pub by: Option<String>,
    /// Whether this is a dry run.
    pub dry_run: bool,
}

/// A rollback that would be obeyed.
pub struct Prepared {
    pub of: Address,
    pub view: View,
    pub command: Command,
    pub note: Note,
    /// The version to go back to.
    pub release: u64,
    /// Why this version was chosen, if the request names none.
    pub reason: String,
    /// The present definition.
    pub present: Definition,
    /// The definition after the rollback.
    pub candidate: Definition,
    pub changes: Vec<FieldChange>,
    pub warnings: Vec<String>,
}

/// Checks a rollback. The inner error lists everything that is wrong with it.
pub(crate) async fn prepare(
    api: &Api,
    (of, view): (Address, View),
    wish: &Wish,
    note: Note,
) -> Answer<Result<Prepared, Vec<FieldError>>> {
    let release = match release(&of, &wish.release) {
        Ok(release) => release,
        Err(error) => return Ok(Err(vec![error])),
    };
    let back = Back { release, ..wish.back.clone() };
    let command = Command::Rollback(back.clone());
    if let Err(why) = api.deployments().forecast(&of, &view, &command, &note).await? {
        return Ok(Err(vec![refusal(why, &back, &view)]));
    }
    let n = target(&view.state, Input::Command(&command, &note), Some(&view.applied));
    let found = match n {
        Some(n) => match api.deployments().ended(&of, n).await? {
            Ok(found) => found,
            // The forecast would refuse this, too; but the command may have been obeyed before.
            Err(damaged) => return Ok(Err(vec![error("release", "Invalid", format!("{}: name another version", damaged.why))])),
        },
        None => None,
    };
    // The forecast has found the version. Otherwise the command was obeyed before, and the version was pruned since.
    let Some((past, snapshot)) = found else {
        let message = format!("no version of {} to go back to is kept", of.name);
        return Ok(Err(vec![error("release", "NotFound", message)]));
    };
    let present = resolve(&view.state, &view.applied.definition, &view.heads, Images::Same).definition;
    let candidate = candidate(&present, &snapshot.definition, &back);
    let (errors, mut warnings) = images(api, &of, &back, (&present, &candidate)).await?;
    if !errors.is_empty() {
        return Ok(Err(errors));
    }
    if past.deployment.status != Status::Complete {
        warnings
            .push(format!("version {} is {}: it goes back to it because that was asked for", snapshot.n, past.deployment.status));
    }
    warnings.extend(stays(&present, &snapshot, &back));
    let shown = |definition: &Definition| render(&of.namespace, &of.name, definition);
    let changes = diff(&shown(&present), &shown(&candidate));
    let reason = if release.is_none() { why(&view, snapshot.n) } else { String::new() };
    Ok(Ok(Prepared { release: snapshot.n, reason, changes, warnings, command, note, present, candidate, of, view }))
}

fn refusal(why: Conflict, back: &Back, view: &View) -> FieldError {
    let field = match () {
        () if view.state.paused.is_some() => PAUSED,
        () if back.parts().is_empty() => "application",
        () => "release",
    };
    match why {
        Conflict::Unknown(message) => error(field, "NotFound", message),
        Conflict::Conflict(message) | Conflict::Nothing(message) => error(field, "Invalid", message),
    }
}

/// The version that a request names, as `<config>-<n>`, `<id>-<n>` or `<n>`.
fn release(of: &Address, given: &Value) -> Result<Option<u64>, FieldError> {
    let wrong = |shown: &str| {
        let shown: String = shown.chars().take(100).collect();
        Err(error("release", "Invalid", format!("{shown} is no version of {}: write `{0}-<number>`", of.name)))
    };
    match given {
        Value::Null => Ok(None),
        Value::String(text) if text.is_empty() => Ok(None),
        Value::Number(number) => number.as_u64().filter(|n| *n > 0).map_or_else(|| wrong(&number.to_string()), |n| Ok(Some(n))),
        Value::String(text) => {
            let plain = text.parse::<u64>().ok().filter(|n| *n > 0 && text.bytes().all(|byte| byte.is_ascii_digit()));
            let named = version(text).filter(|(named, _)| named == of || !text.contains(':') && named.name == of.name);
            plain.or(named.map(|(_, n)| n)).map_or_else(|| wrong(&format!("{text:?}")), |n| Ok(Some(n)))
        }
        other => wrong(&other.to_string()),
    }
}

/// Why a version was chosen that the request does not name.
fn why(view: &View, n: u64) -> String {
    if n + 1 == view.state.latest {
        "it is the version before the latest".into()
    } else {
        format!("it is the newest complete version below #{} that deploys something else", view.state.latest)
    }
}

/// The differences that a rollback never restores.
fn stays(present: &Definition, snapshot: &Snapshot, back: &Back) -> Option<String> {
    let targets =
        |definition: &Definition| definition.targets.iter().map(|target| target.name.clone()).collect::<Vec<_>>().join(", ");
    let differ = back.parts().template && present.targets != snapshot.definition.targets;
    differ.then(|| {
        format!("targets never go back: it deploys to {:?} and not to {:?}", targets(present), targets(&snapshot.definition))
    })
}

/// An image that a rollback needs: its field, and its container.
struct Needed<'a> {
    field: String,
    container: Option<&'a str>,
    image: &'a str,
}

/// Images that were deleted at their source, and images without a known source.
async fn images(
    api: &Api,
    of: &Address,
    back: &Back,
    (present, candidate): (&Definition, &Definition),
) -> Answer<(Vec<FieldError>, Vec<String>)> {
    let parts = back.parts();
    let mut needed: Vec<Needed<'_>> = vec![];
    if parts.template {
        needed.extend(template::containers(&candidate.template).map(|(name, image)| Needed {
            field: format!("spec.template.spec.containers[{name}].image"),
            container: Some(name),
            image,
        }));
    }
    let custom = candidate.strategy.custom.as_ref().filter(|custom| parts.strategy && !custom.image.is_empty());
    needed.extend(custom.map(|custom| Needed {
        field: "spec.strategy.customParams.image".into(),
        container: None,
        image: &custom.image,
    }));
    if needed.is_empty() {
        return Ok((vec![], vec![]));
    }
    let sources = sources(api, of, &[present, candidate]).await?;
    let names: Vec<(String, String)> = sources.keys().cloned().collect();
    let digests: BTreeSet<String> =
        needed.iter().filter(|one| one.image.contains('@')).map(|one| template::digest(one.image).to_owned()).collect();
    let gone = api.deployments().gone(&names, &digests.into_iter().collect::<Vec<_>>()).await?;
    let (mut errors, mut warnings) = (vec![], vec![]);
    for Needed { field, container, image } in needed {
        if gone.iter().any(|gone| gone == template::digest(image)) {
            errors.push(error(
                field,
                "NotFound",
                format!("image {image} was deleted from its repository: name another version, or push it again"),
            ));
        } else if !image.contains('@') {
            warnings.push(format!("{field}: {image} is not named by its digest, so whether it is still what it was is not known"));
        } else if !is_known(&sources, &[present, candidate], container, image) {
            warnings.push(format!("{field}: no artifact source tells about {image}, so whether it still exists is not known"));
        }
    }
    Ok((errors, warnings))
}

type Sources = BTreeMap<(String, String), ArtifactSource>;

/// The sources that may know the images: those of the triggers, and those of the namespace.
async fn sources(api: &Api, of: &Address, definitions: &[&Definition]) -> Answer<Sources> {
    let watched = definitions.iter().flat_map(|definition| definition.watched());
    let names: BTreeSet<(String, String)> = watched.map(|tag| (tag.namespace.clone(), tag.name.clone())).collect();
    let (listed, _) = api.deployments().sources().page(&of.namespace, None, SOURCES).await?;
    let mut sources: Sources = listed.into_iter().map(|(at, source)| ((at.namespace, at.name), source.spec)).collect();
    for (namespace, name) in names {
        if !sources.contains_key(&(namespace.clone(), name.clone()))
            && let Some(source) = api.deployments().sources().get(&Address::new(&namespace, &name)).await?
        {
            sources.insert((namespace, name), source.spec);
        }
    }
    Ok(sources)
}

/// Whether a source reports deletions of an image: the source of the container's trigger, or the source of the image's repository.
fn is_known(sources: &Sources, definitions: &[&Definition], container: Option<&str>, image: &str) -> bool {
    let triggered = definitions.iter().flat_map(|definition| definition.image_changes()).any(|change| {
        let source = (change.from.namespace.clone(), change.from.name.clone());
        container.is_some_and(|name| change.containers.iter().any(|one| one == name)) && sources.contains_key(&source)
    });
    let holds = |source: &ArtifactSource| match &source.from {
        Origin::Ecr(repository) => image.contains(&format!(".amazonaws.com/{}@", repository.name)),
        Origin::Webhook { .. } => false,
    };
    triggered || sources.values().any(holds)
}
