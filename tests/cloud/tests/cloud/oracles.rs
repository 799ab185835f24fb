//! With `KEELWAY_ORACLES`, a folder: what our own matchers say of every event that the other tests put on a bus, written down there
//! so that AWS's event-ruler can say the same (`make test-oracles`). The local cloud has written the events, and what its own
//! matcher says.

use crate::bed::Bed;
use keelway_cloud_tests::cloud::now_millis;
use keelway_cloud_tests::problem::ensure;
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Outcome, Problem};
use keelway_domain::event::{CloudEvent, HANDLED};
use keelway_domain::time::Timestamp;
use keelway_domain::webhooks::Subscription;
use keelway_wire::cloudevent::from_bus_envelope;
use keelway_world::{promotions, sequences, webhooks};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A rule of the template by the end of its name, and what stands for it in memory: of the source, the type and the event.
type Twin = (&'static str, fn(&str, &str, &Value) -> bool);
const TWINS: [Twin; 3] = [
    // The bus in memory itself keeps from the queue what the API has handled.
    ("sequences", |source, ty, event| sequences::takes(source, ty) && event[HANDLED].is_null()),
    ("observations", |source, ty, _| promotions::takes(source, ty)),
    ("webhooks", |source, ty, _| webhooks::takes(source, ty)),
];

pub fn tests() -> Vec<Test<Bed>> {
    let folder = std::env::var_os("KEELWAY_ORACLES").map(PathBuf::from);
    let told = |folder: PathBuf| {
        Test::new("oracles::our own matchers are asked about every event", move |bed: &Bed| tell(bed, &folder)).needs(&[]).last()
    };
    folder.map(told).into_iter().collect()
}

/// Subscriptions to webhooks, and the patterns that EventBridge would need in their place.
fn subscriptions() -> [(Value, Value); 5] {
    let either = |stage: &str| json!([{"stage": [{"wildcard": stage}]}, {"stage": [{"exists": false}], "environment": [{"wildcard": stage}]}]);
    [
        (json!({"events": ["sh.keptn.event.*.finished"]}), json!({"detail-type": [{"wildcard": "sh.keptn.event.*.finished"}]})),
        (
            json!({"events": ["*.deployment.*", "dev.keelway.p*"], "services": ["c*t", "*r"]}),
            json!({"detail-type": [{"wildcard": "*.deployment.*"}, {"wildcard": "dev.keelway.p*"}],
                "detail": {"data": {"service": [{"wildcard": "c*t"}, {"wildcard": "*r"}]}}}),
        ),
        (
            json!({"events": ["sh.keptn.*"], "stages": ["*o*"]}),
            json!({"detail-type": [{"prefix": "sh.keptn."}], "detail": {"data": {"$or": either("*o*")}}}),
        ),
        (
            json!({"events": ["sh.keptn.event.*"], "matchExpressions":
                [{"key": "data.result", "operator": "In", "values": ["pass", "warning"]}]}),
            json!({"detail-type": [{"prefix": "sh.keptn.event."}], "detail": {"data": {"result": ["pass", "warning"]}}}),
        ),
        (
            json!({"events": ["sh.keptn.event.*ed"], "matchExpressions":
                [{"key": "data.status", "operator": "NotIn", "values": ["errored", "aborted"]}]}),
            json!({"detail-type": [{"wildcard": "sh.keptn.event.*ed"}], "detail": {"data":
                {"$or": [{"status": [{"anything-but": ["errored", "aborted"]}]}, {"status": [{"exists": false}]}]}}}),
        ),
    ]
}

fn subscription(mut fields: Value) -> Result<Subscription, Problem> {
    for (name, value) in [("projects", json!(["*"])), ("url", json!("https://hooks.example.com")), ("attempts", json!(1))] {
        fields[name] = value;
    }
    serde_json::from_value(fields).map_err(|error| Problem::of("a subscription", error))
}

/// The events that the local cloud has written down, by their numbers.
fn events(folder: &Path) -> Result<Vec<(u64, Value)>, Problem> {
    let path = folder.join("matches.jsonl");
    let text = std::fs::read_to_string(&path).map_err(|error| Problem::of(&path.display().to_string(), error))?;
    // The last line may be under way.
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Ok(lines.filter_map(|line| Some((line["n"].as_u64()?, line.get("event")?.clone()))).collect())
}

/// What AWS services tell on the account's bus, as they document it, and the rule of the template that is to take it.
fn of_services() -> Vec<(Value, Option<&'static str>)> {
    let variables = |name: &str| json!([{"name": "STAGE", "value": "prod"}, {"name": name, "value": "1"}]);
    let task = |status: &str, name: &str| {
        json!({"source": "aws.ecs", "detail-type": "ECS Task State Change", "detail": {"lastStatus": status, "desiredStatus": status,
            "overrides": {"containerOverrides": [{"name": "proxy"}, {"name": "deploy", "environment": variables(name)}]}}})
    };
    let build = |name: &str| {
        json!({"source": "aws.codebuild", "detail-type": "CodeBuild Build State Change", "detail": {"build-status": "SUCCEEDED",
            "additional-information": {"environment": {"environment-variables": variables(name)}}}})
    };
    let of =
        |source: &str, detail_type: &str, detail: Value| json!({"source": source, "detail-type": detail_type, "detail": detail});
    let image = json!({"action-type": "PUSH", "result": "SUCCESS", "repository-name": "cart", "image-tag": "latest"});
    let alarm = json!({"alarmName": "errors", "state": {"value": "ALARM"}, "previousState": {"value": "OK"}});
    vec![
        (of("aws.ecr", "ECR Image Action", image.clone()), Some("services")),
        (of("aws.cloudwatch", "CloudWatch Alarm State Change", alarm), Some("services")),
        (of("aws.ecr", "ECR Image Scan", image), None),
        (task("RUNNING", "DEPLOYMENT_ATTEMPT"), Some("tasks")),
        (task("STOPPED", "DEPLOYMENT_ATTEMPT"), Some("tasks")),
        (task("PENDING", "DEPLOYMENT_ATTEMPT"), None),
        (task("STOPPED", "PATH"), None),
        (build("DEPLOYMENT_ATTEMPT"), Some("builds")),
        (build("PATH"), None),
    ]
}

/// The pattern of a rule of the stack.
fn pattern(bed: &Bed, name: &str, bus: &str) -> Result<Value, Problem> {
    let rule = json!({"Name": format!("{}-{name}", bed.stack.name()), "EventBusName": bus});
    let told = bed.stack.wait(bed.cloud.raw().json("events", "AWSEvents.DescribeRule", &rule))?;
    let text = told["EventPattern"].as_str().unwrap_or_default();
    serde_json::from_str(text).map_err(|error| Problem::of(&format!("the pattern of {name}"), error))
}

fn tell(bed: &Bed, folder: &Path) -> Outcome {
    let events = events(folder)?;
    ensure(!events.is_empty(), || "the local cloud has written no event down".to_owned())?;
    let mut lines = vec![];
    let claim = |who: &str, pattern: &Value, n: u64, takes: bool| {
        json!({"who": who, "pattern": pattern, "n": n, "takes": takes}).to_string()
    };
    for (name, takes) in TWINS {
        let (who, pattern) = (format!("the world's rule {name}"), pattern(bed, name, &bed.stack.output("BusName"))?);
        lines.extend(events.iter().map(|(n, event)| {
            let text = |field: &str| event[field].as_str().unwrap_or_default();
            claim(&who, &pattern, *n, takes(text("source"), text("detail-type"), &event["detail"]))
        }));
    }
    for (fields, pattern) in subscriptions() {
        let who = format!("a subscription with {fields}");
        let subscription = subscription(fields)?;
        for (n, event) in &events {
            // What is no CloudEvent reaches no subscription, whatever its pattern.
            let read: Result<CloudEvent, _> = from_bus_envelope(event, Timestamp(now_millis()));
            if let Ok(read) = read {
                lines.push(claim(&who, &pattern, *n, subscription.takes(&read)));
            }
        }
    }
    let first = events.iter().map(|(n, _)| n + 1).max().unwrap_or_default();
    for (n, (event, _)) in (first..).zip(of_services()) {
        lines.push(json!({"n": n, "event": event}).to_string());
    }
    for name in ["services", "tasks", "builds"] {
        let (who, pattern) = (format!("the template's rule {name}"), pattern(bed, name, "default")?);
        lines.extend((first..).zip(of_services()).map(|(n, (_, rule))| claim(&who, &pattern, n, rule == Some(name))));
    }
    let path = folder.join("own.jsonl");
    std::fs::write(&path, lines.join("\n")).map_err(|error| Problem::of(&path.display().to_string(), error))
}
