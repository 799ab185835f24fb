//! What a case puts in: definitions, pushes, commands, and what deployers say.

use super::Own;
use super::stand::Happened;
use super::{Deploys, SOURCE, Waiting, namespace};
use crate::case::{Expected, Step, Telling, merge};
use keelway_domain::deployments::definition::Definition;
use keelway_domain::deployments::{Back, Call, Command, LEASE, Latest, Progress, Status, TargetProgress};
use keelway_domain::event::SPEC_VERSION;
use keelway_domain::ids::hash64;
use keelway_domain::stored::Stored;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::registry::Tagged;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The config that all cases begin with: two containers, both of which run what the manifest says.
fn first() -> Map<String, Value> {
    let first = json!({
        "template": {"spec": {"containers": [{"name": "web", "image": "web:1", "env": "a"}, {"name": "log", "image": "log:1"}]}},
        "strategy": {"type": "Rolling", "timeout": 600_000, "deadline": 21_600_000},
        "triggers": ["config"],
    });
    first.as_object().cloned().unwrap_or_default()
}

/// A config as the case has it now: what it was first, with everything that was applied since, and `change`.
pub(super) fn definition(telling: &Telling<'_, Deploys>, alias: &str, change: &Map<String, Value>) -> Result<Definition, String> {
    let given = &telling.case.given;
    let mut all = first();
    let refused = |step: &&Step<Deploys>| matches!(step.answer, Some(Expected::Status(400..)));
    let before = telling.case.steps.iter().take(telling.step.saturating_sub(1));
    let before = before.filter(|step| step.about() == alias && !refused(step)).filter_map(|step| step.own.apply.as_ref());
    for change in given.configs.get(alias).or(given.config.as_ref()).into_iter().chain(before).chain([change]) {
        apply(&mut all, change)?;
    }
    let namespace = namespace(telling);
    let triggers = all.get("triggers").and_then(Value::as_array).into_iter().flatten();
    let triggers = triggers.map(|text| trigger(text, &namespace)).collect::<Result<Vec<_>, _>>()?;
    all.insert("triggers".into(), triggers.into());
    Definition::from_value(&Value::Object(all)).map_err(|e| format!("config {alias}: {e}"))
}

/// `env: <value>` and `images: {<container>: <image>}` change the template; everything else is merged.
fn apply(all: &mut Map<String, Value>, change: &Map<String, Value>) -> Result<(), String> {
    let mut change = change.clone();
    let (env, images) = (change.remove("env"), change.remove("images"));
    merge(all, &change);
    let containers =
        all.get_mut("template").and_then(|template| template.pointer_mut("/spec/containers")).and_then(Value::as_array_mut);
    let containers = containers.ok_or("the template has no containers")?;
    if let (Some(env), Some(first)) = (env, containers.first_mut()) {
        first["env"] = env;
    }
    for container in containers {
        let image = container["name"].as_str().and_then(|name| images.as_ref()?.get(name)).cloned();
        if let Some(image) = image {
            container["image"] = image;
        }
    }
    Ok(())
}

/// `config`, `manual`, or `<tag> <container>[,<container>] [manual]`: an image trigger.
fn trigger(text: &Value, namespace: &str) -> Result<Value, String> {
    let line = text.as_str().ok_or_else(|| format!("{text} is no trigger"))?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let image = |tag: &str, containers: &str, automatic: bool| {
        let from = json!({"namespace": namespace, "name": SOURCE, "tag": tag});
        json!({"imageChange": {"automatic": automatic, "from": from, "containers": containers.split(',').collect::<Vec<_>>()}})
    };
    Ok(match words[..] {
        ["config"] => json!("configChange"),
        ["manual"] => json!("manual"),
        [tag, containers] => image(tag, containers, true),
        [tag, containers, "manual"] => image(tag, containers, false),
        _ => return Err(format!("{line:?} is not `config`, `manual` or `<tag> <containers> [manual]`")),
    })
}

/// What happened to images.
pub(super) fn images(own: &Own, now: Timestamp) -> Result<Vec<Happened>, String> {
    let age = own.age.as_deref().map(Span::parse).transpose().map_err(|e| e.to_string())?.unwrap_or(Span(0));
    let at = now + Span(-age.0);
    let pushed = own.push.iter().flatten().map(|(tag, digest)| Happened { tag: Some(tag.clone()), digest: digest.clone(), at });
    let gone = own.gone.iter().map(|digest| Happened { tag: None, digest: digest.clone(), at });
    Ok(pushed.chain(gone).collect())
}

/// What the registry says when it is asked.
pub(super) fn registry(all: &BTreeMap<String, String>, now: Timestamp) -> Result<Vec<Tagged>, String> {
    let tagged = |(tag, what): (&String, &String)| {
        let (digest, age) = what.split_once(' ').unwrap_or((what, "0s"));
        let age = Span::parse(age).map_err(|e| e.to_string())?;
        Ok(Tagged { tag: tag.clone(), digest: format!("sha256:{digest}"), at: now + Span(-age.0) })
    };
    all.iter().map(tagged).collect()
}

/// What a step asks of a config, if it does.
pub(super) fn command(own: &Own) -> Result<Option<Command>, String> {
    Ok(match own {
        Own { latest: Some(how), .. } => {
            let latest: Latest = serde_json::from_value(Value::Object(how.clone())).map_err(|e| format!("latest: {e}"))?;
            Some(Command::Latest(latest))
        }
        Own { rollback: Some(how), .. } => {
            let mut all = json!({"config": true, "application": true}).as_object().cloned().unwrap_or_default();
            merge(&mut all, how);
            let back: Back = serde_json::from_value(Value::Object(all)).map_err(|e| format!("rollback: {e}"))?;
            Some(Command::Rollback(back))
        }
        Own { cancel: Some(_), all, .. } => Some(if *all { Command::CancelAll } else { Command::Cancel }),
        Own { retry: Some(_), .. } => Some(Command::Retry),
        Own { pause: Some(_), .. } => Some(Command::Pause),
        Own { resume: Some(_), .. } => Some(Command::Resume),
        Own { suspend: Some(_), .. } => Some(Command::SuspendTriggers),
        Own { unsuspend: Some(_), .. } => Some(Command::ResumeTriggers),
        Own { proceed: Some(_), .. } => Some(Command::Proceed),
        _ => None,
    })
}

/// What a deployer says, if it says something. Its token follows from its name.
pub(super) fn call(own: &Own) -> Result<Option<Call>, String> {
    let lease = own.lease.as_deref().map(Span::parse).transpose().map_err(|e| e.to_string())?.unwrap_or(LEASE);
    let status = |word: &String| serde_json::from_value::<Status>(word.as_str().into()).map_err(|e| format!("targets: {e}"));
    let mut progress = Progress::default();
    for (name, word) in &own.targets {
        progress.targets.insert(name.clone(), TargetProgress { status: status(word)?, message: String::new() });
    }
    let token = |name: &str| format!("token of {name}");
    let by = || own.by.clone().unwrap_or_else(|| "ci".into());
    let message = own.message.clone().unwrap_or_default();
    Ok(match own {
        Own { claim: Some(name), .. } => {
            let id = hash64(&[b"claim", name.as_bytes()]);
            Some(Call::Claim { by: name.clone(), id, token: token(name), lease })
        }
        Own { beat: Some(name), .. } => Some(Call::Heartbeat { token: token(name), running: !own.idle, lease, progress }),
        Own { carry: Some(until), .. } => Some(Call::Carry { token: token(&by()), until: *until }),
        Own { end: Some(exit), .. } => Some(Call::End { token: token(&by()), exit: Some(*exit), message, progress }),
        Own { never: Some(_), .. } => Some(Call::End { token: token(&by()), exit: None, message, progress }),
        _ => None,
    })
}

/// The execution that waits for a task.
pub(super) fn waiting(telling: &Telling<'_, Deploys>, step: &Step<Deploys>) -> Waiting {
    Waiting {
        project: namespace(telling),
        context: telling.context("T"),
        task: step.own.task.clone().unwrap_or_default(),
        name: telling.fresh_id(),
    }
}

/// The trigger of a task that names the config.
pub(super) fn task(telling: &Telling<'_, Deploys>, step: &Step<Deploys>, id: &str, now: Timestamp) -> Value {
    let name = step.own.task.clone().unwrap_or_default();
    let mut data = json!({"project": namespace(telling), "stage": "dev", "service": "svc"});
    data[&name] = json!({"deploymentConfig": step.about()});
    if !step.own.image.is_empty() {
        data["configurationChange"] = json!({"values": {"image": step.own.image}});
    }
    json!({
        "specversion": "1.0", "datacontenttype": "application/json", "shkeptnspecversion": SPEC_VERSION, "id": id,
        "source": "shipyard-controller", "type": format!("sh.keptn.event.{name}.triggered"), "time": now.rfc3339(),
        "shkeptncontext": telling.context("T"), "data": data,
    })
}
