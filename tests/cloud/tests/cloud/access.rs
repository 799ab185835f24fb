//! Tokens with scopes, and the audit, on the deployed stack.

use crate::bed::Bed;
use crate::shell::Shell;
use keelway_cloud_tests::api::Api;
use keelway_cloud_tests::events::{Scope, answer, fresh};
use keelway_cloud_tests::patience::until;
use keelway_cloud_tests::problem::{ensure, same};
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Outcome, Problem};
use reqwest::Method;
use serde_json::{Map, Value, json};

const SHIPYARD: &str = "apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shipyard-access}
spec: {stages: [{name: dev, sequences: [{name: delivery, tasks: [{name: deploy}, {name: verify}]}]}]}
";

pub fn tests() -> Vec<Test<Bed>> {
    vec![Test::new("access::a token does what it is for, leaves a trace, and ends", life)]
}

/// A token that the command makes, and an API that is asked with it.
fn made(bed: &Bed, name: &str, scopes: &str, project: &str) -> Result<Api, Problem> {
    let secret = Shell(bed).fine(&["token", "create", name, "--scope", scopes, "--project", project])?;
    Ok(Api::new(&bed.stack.api().url, secret.trim()))
}

fn life(bed: &Bed) -> Outcome {
    let (stack, shell) = (&bed.stack, Shell(bed));
    let run = fresh()[24..].to_owned();
    let project = format!("access-{run}");
    stack.wait(stack.api().apply_project(&project, SHIPYARD))?;
    let (starter, worker) = (format!("starter-{run}"), format!("worker-{run}"));
    let start = made(bed, &starter, "trigger", &project)?;
    let work = made(bed, &worker, "execute:deploy", &project)?;

    let context = fresh();
    let trigger = Scope::new(&project, "dev", "cart").trigger("delivery", &context, Map::new());
    same("an executor triggers", stack.wait(work.post("/v1/event", &trigger))?.status, 403)?;
    stack.wait(start.post("/v1/event", &trigger))?.fine("trigger")?;
    let task = bed.observer.event(&context, "sh.keptn.event.deploy.triggered", 0)?;
    for kind in ["started", "finished"] {
        let event = answer(&task.event, kind, "executor", Map::new());
        same("who triggers answers", stack.wait(start.post("/v1/event", &event))?.status, 403)?;
        stack.wait(work.post("/v1/event", &event))?.fine(kind)?;
    }
    let next = bed.observer.event(&context, "sh.keptn.event.verify.triggered", 0)?;
    let event = answer(&next.event, "started", "executor", Map::new());
    same("another task", stack.wait(work.post("/v1/event", &event))?.status, 403)?;
    same("what a token does not open", stack.wait(work.get("/v1/tokens"))?.status, 403)?;

    let entries = shell.json(&["audit", "--project", &project])?;
    let entries = entries["items"].as_array().cloned().unwrap_or_default();
    let mut lines: Vec<String> =
        entries.iter().rev().map(|entry| format!("{} {}", text(entry, "action"), text(entry, "token"))).collect();
    lines.dedup();
    same(
        "the audit",
        &lines,
        &vec!["apply administrator".to_owned(), "token administrator".to_owned(), format!("trigger {starter}")],
    )?;
    ensure(!text(&entries[0], "address").is_empty(), || format!("no address: {}", entries[0]))?;

    shell.fine(&["token", "revoke", &starter])?;
    let refused = || {
        let reply = stack.wait(start.request(Method::GET, "/v1/whoami", Some(&start.token), None))?;
        Ok((reply.status == 401).then_some(()))
    };
    until("a revoked token is refused", refused, String::new)?;
    // What the functions log tells none of them.
    let group = format!("/aws/lambda/{}", stack.output("ApiFunctionName"));
    let asked = json!({"logGroupName": group, "limit": 10_000});
    let all = stack.wait(bed.cloud.raw().json("logs", "Logs_20140328.FilterLogEvents", &asked))?.to_string();
    for token in [&start.token, &work.token] {
        ensure(!all.contains(token.as_str()), || format!("{group} tells a token"))?;
    }
    Ok(())
}

fn text<'a>(entry: &'a Value, name: &str) -> &'a str {
    entry[name].as_str().unwrap_or_default()
}
