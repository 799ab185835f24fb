//! The strict host against a conversation that was recorded with a real Gitea. In `tests/githost/recorded/gitea`, `calls.json` says
//! what is asked, and `answers.json` what was answered. Where they differ, the strict host is wrong. `tests/README.md` says how to
//! record.

mod place;
mod plain;

use place::Place;
use plain::{Differences, Plain, expanded};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// A call that the product makes, or a refusal that it may meet.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    about: String,
    /// Whose token is sent; the owner's if left out.
    #[serde(rename = "as")]
    who: Option<String>,
    /// The method and the path below the API's base. `{name}` is what an earlier step kept.
    call: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<Value>,
    /// What is kept of the answer: a name, and where it is in the body.
    #[serde(default)]
    keep: BTreeMap<String, String>,
    /// A real host, which checks pull requests in the background, is asked until the answer has this status,
    #[serde(default, rename = "status")]
    _status: Option<u16>,
    /// and these places of the body have these values.
    #[serde(default, rename = "until")]
    _until: BTreeMap<String, Value>,
    /// Hosts order changes by the second: this one is newer than those before.
    #[serde(default)]
    later: bool,
    /// The webhook that it makes the host send has these members.
    sends: Option<BTreeMap<String, Value>>,
    /// The strict host has no such call: the only way to merge that people allow there.
    people: Option<keelway_githost::Method>,
}

/// An answer without what changes from one recording to the next.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Told {
    about: String,
    status: u16,
    headers: BTreeMap<String, String>,
    body: Value,
    #[serde(default)]
    sent: Option<Sent>,
}

/// A webhook.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sent {
    headers: BTreeMap<String, String>,
    body: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recording {
    /// The version of the host that was recorded.
    version: String,
    /// Objects that occur in several places, by the text that stands in their place.
    parts: BTreeMap<String, Value>,
    answers: Vec<Told>,
}

fn read<T: for<'de> Deserialize<'de>>(name: &str) -> T {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("recorded/gitea").join(name);
    let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Plays a step to the strict host. `None`: there is no such call, and people did it.
async fn played(place: &mut Place, step: &Step, plain: &mut Plain) -> Option<Told> {
    let reply = place.ask(step, plain).await?;
    let body: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    for (name, at) in &step.keep {
        let found = body.pointer(at).and_then(Value::as_str).map(str::to_owned);
        plain.keep(name, found.unwrap_or_else(|| panic!("{}: {} and no {at}: {body}", step.about, reply.status)));
    }
    let (headers, body) = (plain.headers(&reply.headers), plain.body(&reply.body));
    let sent = match &step.sends {
        Some(wanted) => Some(place.sent(wanted, plain).await),
        None => None,
    };
    Some(Told { about: step.about.clone(), status: reply.status, headers, body, sent })
}

#[tokio::test]
async fn the_strict_host_answers_as_gitea_did_when_it_was_recorded() {
    let (steps, recording): (Vec<Step>, Recording) = (read("calls.json"), read("answers.json"));
    let recorded = expanded(&recording.parts, recording.answers);
    assert_eq!(recorded.len(), steps.len(), "calls.json has changed since answers.json was recorded: record it anew");
    let (mut place, directory) = Place::new().await;
    let mut plain = Plain::new(place.origin());
    let mut differ = Differences::default();
    for (step, recorded) in steps.iter().zip(recorded) {
        assert_eq!(step.about, recorded.about, "calls.json has changed since answers.json was recorded: record it anew");
        if let Some(played) = played(&mut place, step, &mut plain).await {
            differ.find(&step.call, &recorded, &played);
        }
    }
    drop(directory);
    let (version, found) = (recording.version, differ.found);
    assert!(found.is_empty(), "Gitea {version} and the strict host differ {} times:\n{}", found.len(), found.join("\n"));
}
