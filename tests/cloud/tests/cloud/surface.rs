//! What surrounds a sequence: who may ask, what is logged, timers that come by schedule.

use crate::bed::Bed;
use keelway_cloud_tests::events::{Scope, answer, fresh};
use keelway_cloud_tests::problem::{ensure, same};
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Ability, Outcome, Problem};
use keelway_domain::time::Timestamp;
use reqwest::Method;
use serde_json::{Map, Value, json};

const SHIPYARD: &str = "apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shipyard-surface}
spec: {stages: [{name: dev, sequences: [{name: delivery, tasks: [{name: deploy}]}]}]}
";

pub fn tests() -> Vec<Test<Bed>> {
    vec![
        Test::new("surface::without the right token there is nothing to see", tokens),
        Test::new("surface::what is logged is correlated by context and tells no payload", logs),
        Test::new("surface::a timer beyond fifteen minutes is a schedule of the stack's group", schedule)
            .needs(&[Ability::Functions, Ability::Schedules]),
        Test::new("surface::what a schedule sends arrives under the stack's role", fired)
            .needs(&[Ability::Functions, Ability::Schedules]),
    ]
}

fn tokens(bed: &Bed) -> Outcome {
    let api = bed.stack.api();
    let event = ("application/json", json!({"type": "sh.keptn.event.dev.delivery.triggered"}).to_string());
    for (method, path) in
        [(Method::GET, "/v1/metadata"), (Method::GET, "/v1/project"), (Method::POST, "/v1/event"), (Method::POST, "/v1/apply")]
    {
        for token in [None, Some("wrong"), Some("")] {
            let body = (method == Method::POST).then(|| event.clone());
            let reply = bed.stack.wait(api.request(method.clone(), path, token, body))?;
            let what = format!("{method} {path} with the token {token:?}");
            same(&what, reply.status, 401)?;
            ensure(reply.content_type.starts_with("application/problem+json"), || format!("{what}: {}", reply.content_type))?;
        }
    }
    let reply = bed.stack.wait(api.get("/v1/metadata"))?;
    same("with the right one", reply.status, 200)
}

fn run_one(bed: &Bed, secret: &str) -> Result<(String, String), Problem> {
    let stack = &bed.stack;
    let project = format!("surface-{}", &fresh()[24..]);
    stack.wait(stack.api().apply_project(&project, SHIPYARD))?;
    let context = fresh();
    let data = Map::from_iter([("secret".to_owned(), Value::from(secret))]);
    let trigger = Scope::new(&project, "dev", "cart").trigger("delivery", &context, data);
    stack.wait(stack.api().post("/v1/event", &trigger))?.fine("trigger")?;
    let task = bed.observer.event(&context, "sh.keptn.event.deploy.triggered", 0)?;
    stack.put_event(&answer(&task.event, "started", "executor", Map::new()))?;
    Ok((project, context))
}

fn logs(bed: &Bed) -> Outcome {
    let secret = format!("s3cret-{}", fresh());
    let (project, context) = run_one(bed, &secret)?;
    let task = bed.observer.event(&context, "sh.keptn.event.deploy.triggered", 0)?;
    bed.stack.put_event(&answer(&task.event, "finished", "executor", Map::new()))?;
    bed.observer.event(&context, "sh.keptn.event.dev.delivery.finished", 0)?;
    let kinds = ["sequence.triggered", "task.started", "task.finished"];
    let lines = bed.observer.wait("a line for each message", |observer| {
        let lines = observer.lines(&context);
        kinds.iter().all(|kind| lines.iter().any(|line| line.text("message.kind") == *kind)).then_some(lines)
    })?;
    for line in &lines {
        let json = &line.json;
        for field in ["timestamp", "level", "outcome", "message.kind"] {
            ensure(json[field].is_string(), || format!("no {field} in {json}"))?;
        }
        for field in ["duration_ms", "aws.requests", "dynamodb.write_units", "dynamodb.read_units"] {
            ensure(json[field].is_number(), || format!("no {field} in {json}"))?;
        }
        ensure(!line.id().is_empty(), || format!("no message.id in {}", line.json))?;
        same("the span's context", json["span"]["context"].as_str(), Some(context.as_str()))?;
        same("the span's project", json["span"]["project"].as_str(), Some(project.as_str()))?;
    }
    // What follows from a message can be followed: here at least the timer of the task's start deadline.
    ensure(lines.iter().any(|line| !line.sent.is_empty()), || "no line tells of a message it sent".into())?;
    // Everything any function has said, whatever the context.
    for function in ["ApiFunctionName", "SequencesFunctionName"] {
        let group = format!("/aws/lambda/{}", bed.stack.output(function));
        let asked = json!({"logGroupName": group, "limit": 10_000});
        let all = bed.stack.wait(bed.cloud.raw().json("logs", "Logs_20140328.FilterLogEvents", &asked))?.to_string();
        ensure(!all.contains(&secret), || format!("{group} tells what was in an event's data"))?;
        ensure(!all.contains(&bed.stack.api().token), || format!("{group} tells the API's token"))?;
    }
    Ok(())
}

fn schedule(bed: &Bed) -> Outcome {
    let stack = &bed.stack;
    let project = format!("surface-{}", &fresh()[24..]);
    let later = SHIPYARD.replace("{name: deploy}", "{name: deploy, triggeredAfter: 2h}");
    stack.wait(stack.api().apply_project(&project, &later))?;
    let context = fresh();
    stack.put_event(&Scope::new(&project, "dev", "cart").trigger("delivery", &context, Map::new()))?;
    bed.observer.wait("a schedule for a task that is due in two hours", |observer| {
        observer.lines(&context).iter().any(|line| line.text("requests").contains("scheduler.CreateSchedule")).then_some(())
    })?;
    let group = stack.output("SchedulerGroupName");
    let listed = stack.wait(bed.cloud.raw().list_schedules(&group))?;
    ensure(listed.to_string().contains("keelway-"), || format!("no schedule in group {group}: {listed}"))
}

fn fired(bed: &Bed) -> Outcome {
    let (stack, raw) = (&bed.stack, bed.cloud.raw());
    let role = stack.wait(raw.role_arn(&format!("{}-SchedulerRole-", stack.name())))?;
    let context = fresh();
    let at = Timestamp(keelway_cloud_tests::cloud::now_millis() + 5000).rfc3339();
    // As the engine's own: the message is for an execution that does not exist, and does nothing.
    let message = json!({"keelway": "conform", "project": "nobody", "context": context});
    let arn = stack.wait(raw.queue_arn(&stack.output("QueueUrl")))?;
    let body = json!({
        "GroupName": stack.output("SchedulerGroupName"), "ScheduleExpression": format!("at({})", &at[..19]),
        "FlexibleTimeWindow": {"Mode": "OFF"}, "ActionAfterCompletion": "DELETE",
        "Target": {"Arn": arn, "RoleArn": role, "Input": message.to_string()},
    });
    stack.wait(raw.rest("scheduler", &format!("/schedules/keelway-test-{context}"), &body))?;
    bed.observer.wait("the schedule's message", |observer| (!observer.lines(&context).is_empty()).then_some(()))
}
