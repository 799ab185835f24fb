//! `rollback SERVICE --stage STAGE`: back to what ran in a stage before.

use super::past::{Came, before, came};
use super::{environments, trigger};
use crate::address::Address;
use crate::api::Api;
use crate::args::Rollback;
use crate::error::CliError;
use crate::output::{say, say_data};
use crate::terminal::look;
use crate::words::version;
use keelway_domain::event::Object;
use keelway_domain::names::{SequenceName, ServiceName, StageName};
use keelway_domain::shipyard::Stage;
use keelway_wire::manifest::{self, Document};
use serde_json::json;

/// The names of sequences that go back, likeliest first. Whoever may trigger may start them, also where they follow others.
const BACK: [&str; 3] = ["rollback", "revert", "undo"];
/// The sequence that delivers.
const DELIVERY: &str = "delivery";

/// Plays the stage's sequence that goes back; without one, the version that ran before is delivered.
///
/// # Errors
/// What runs, or what ran, is not known; nothing differs; the API's refusal.
pub async fn rollback(api: &Api, what: &Rollback) -> Result<(), CliError> {
    let ([name], Some(stage)) = (what.names.as_slice(), &what.stage) else {
        return Err(CliError::Usage("--stage is for one service, but several are named: go back one at a time".into()));
    };
    let of = Address::of(name, what.project.project.as_ref());
    let service = ServiceName::new(of.name.clone()).map_err(|error| CliError::Usage(error.to_string()))?;
    let (found, _) = environments::read(api, &of.namespace, Some(stage), Some(&service)).await?;
    let place = format!("{of} in {stage}");
    let Some(present) = found.into_iter().find(|one| one.since.is_some()) else {
        let project = &of.namespace;
        return Err(CliError::Failed(format!("nothing runs as {place}: keelway get environments -p {project} lists what does")));
    };
    let came = came(api, &of.namespace, Some(stage), Some(&service)).await?;
    let to = target(what.image.as_deref(), present.image.as_deref(), &came, &place)?;
    if present.image.as_ref() == Some(&to) && !what.again {
        return Err(CliError::Failed(format!("{place} is {to} already: --again delivers it once more")));
    }
    let sequence = sequence(api, &of.namespace, stage).await?;
    let arrow = if look().ascii { "->" } else { "→" };
    let moves = format!("{} {arrow} {}, by sequence {sequence}", shown(present.image.as_deref(), &to), version(&to));
    let mut answer = json!({
        "project": of.namespace, "service": of.name, "stage": stage, "from": present.image, "to": to, "sequence": sequence, "dryRun": what.dry_run
    });
    if what.dry_run {
        return match what.output.format.is_data() {
            true => say_data(&answer, what.output.format),
            false => say(&format!("{place} would go back: {moves}")),
        };
    }
    let mut data = Object::new();
    data.extend([("project", &of.namespace), ("service", &of.name)].map(|(field, value)| (field.to_owned(), json!(value))));
    data.insert("stage".into(), json!(stage));
    data.insert("configurationChange".into(), json!({"values": {"image": to}}));
    if !what.said.message.is_empty() {
        data.insert("message".into(), json!(what.said.message));
    }
    let id = uuid::Uuid::now_v7().to_string();
    let context = trigger::hand_in(api, (&sequence, stage), data, &id, &[]).await?.context;
    if what.output.format.is_data() {
        answer["keptnContext"] = json!(context);
        return say_data(&answer, what.output.format);
    }
    say(&format!("{place}: {moves}, context {context}"))?;
    eprintln!("follow it: keelway watch {context} -p {}", of.namespace);
    Ok(())
}

/// The present version as it is told: in full if the other one is called the same.
fn shown(present: Option<&str>, to: &str) -> String {
    match present {
        None => "what a rollback left there".into(),
        Some(present) if version(present) == version(to) => present.to_owned(),
        Some(present) => version(present),
    }
}

/// The image to go back to.
fn target(given: Option<&str>, present: Option<&str>, came: &[Came], place: &str) -> Result<String, CliError> {
    let known = || {
        let mut versions: Vec<String> = came.iter().map(|one| version(&one.image)).collect();
        versions.dedup();
        versions.truncate(5);
        if versions.is_empty() { String::new() } else { format!(": {} came there lately", versions.join(", ")) }
    };
    let Some(given) = given else {
        let found = present.and_then(|present| before(came, present));
        let unknown = || format!("what ran as {place} before is not known; name it by --image{}", known());
        return found.map(|one| one.image.clone()).ok_or_else(|| CliError::Failed(unknown()));
    };
    if came.iter().any(|one| one.image == given) {
        return Ok(given.to_owned());
    }
    let mut images: Vec<&str> = came.iter().map(|one| one.image.as_str()).filter(|image| version(image) == given).collect();
    images.sort_unstable();
    images.dedup();
    match images[..] {
        [one] => Ok(one.to_owned()),
        // It may have run longer ago than the history tells.
        [] if given.contains([':', '/']) => Ok(given.to_owned()),
        [] => Err(CliError::Failed(format!("no version {given} came to {place}; name the whole image{}", known()))),
        _ => Err(CliError::Failed(format!("several images are called {given}: name one of {}", images.join(", ")))),
    }
}

/// The stage's sequence that goes back; else the one that delivers.
async fn sequence(api: &Api, project: &str, stage: &StageName) -> Result<SequenceName, CliError> {
    let text = api.text(&["project", project, "shipyard"]).await?;
    let parsed = manifest::parse(&text, "the shipyard");
    let stages = parsed.documents.iter().find_map(|document| match document {
        Document::Shipyard(manifest) => Some(&manifest.shipyard.stages),
        _ => None,
    });
    let here: Option<&Stage> = stages.and_then(|stages| stages.iter().find(|one| one.name == *stage));
    let named = |name: &&str| here.and_then(|here| here.sequences.iter().find(|one| one.name.as_str() == *name));
    let found = BACK.iter().chain([&DELIVERY]).find_map(named);
    found.map(|sequence| sequence.name.clone()).ok_or_else(|| {
        let text =
            format!("stage {stage} of {project} has no sequence rollback and no sequence delivery: start the one that goes back");
        CliError::Failed(format!("{text}, keelway trigger sequence NAME -p {project} --stage {stage}"))
    })
}
