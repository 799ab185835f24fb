//! Things that go wrong: messages nobody can handle, messages that are lost, functions that die.

use crate::bed::{Bed, Second};
use crate::trouble;
use aws_sdk_sqs::types::MessageAttributeValue;
use keelway_cloud_tests::cloud::now_millis;
use keelway_cloud_tests::events::{Scope, answer, fresh};
use keelway_cloud_tests::executor::{Executor, count};
use keelway_cloud_tests::observer::Root;
use keelway_cloud_tests::patience::until;
use keelway_cloud_tests::problem::{ensure, same};
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Ability, Outcome, Problem, Stack, processes};
use keelway_domain::ids::RecordId;
use keelway_domain::names::{Context, ProjectName};
use keelway_engine::item::{Attrs, Item, Key};
use keelway_engine::keys;
use keelway_engine::ports::{Condition, Store, Write};
use keelway_engine::sequences::{self, Address};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::process::Command;
use std::time::Duration;

/// The function that stores dead letters.
const DEAD_LETTERS: &str = "dead-letters";

const SHIPYARD: &str = "apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shipyard-failures}
spec: {stages: [{name: dev, sequences: [{name: delivery, tasks: [{name: deploy}, {name: test}]}]}]}
";
const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;

pub fn tests() -> Vec<Test<Bed>> {
    vec![
        Test::new("failures::what nobody can handle ends as a dead letter in the table", dead_letters),
        Test::new("failures::the sweep ends an execution whose wake-up was lost", swept),
        Test::new("failures::the sweep keeps the payload of what stays open for long", prolonged),
        Test::new("failures::functions that die in the middle lose nothing", crash)
            .needs(&[Ability::Functions, Ability::Processes]),
    ]
}

fn dead_letters(bed: &Bed) -> Outcome {
    let Second { stack, observer } = bed.second()?;
    let marks: Vec<String> = (0..2).map(|_| fresh()).collect();
    // A sweep that another test asks for sends letters again, and takes out what is handled then: nobody handles these.
    let body = |mark: &str| json!({"keelway": "from-the-future", "mark": mark}).to_string();
    stack.send(&body(&marks[0]))?;
    // As rules and schedules do with what they cannot hand over.
    let url = stack.output("DeployersQueueUrl");
    let target = format!("arn:aws:sqs:us-east-1:000000000000:{}", url.rsplit('/').next().unwrap_or_default());
    let named = MessageAttributeValue::builder().data_type("String").string_value(target).build();
    let named = named.map_err(|error| Problem::of("an attribute", error))?;
    let request = stack.sqs().send_message().queue_url(stack.output("DeadLettersUrl")).message_body(body(&marks[1]));
    stack
        .wait(request.message_attributes("TARGET_ARN", named).send())
        .map_err(|error| Problem::of("a dead letter", format!("{error:?}")))?;
    for (mark, engine) in marks.iter().zip(["sequences", "deployers"]) {
        let letter = observer.wait("a dead letter in the table", |_| {
            knock_for_letters(stack);
            let letters = stack.items(keys::DEAD_LETTERS, "").unwrap_or_default();
            letters.into_iter().find(|letter| letter.text("b").is_some_and(|body| body.contains(mark.as_str())))
        })?;
        ensure(letter.text("to") == Some(engine), || format!("it is for {engine}: {letter:?}"))?;
        ensure(letter.text("qn").is_some_and(|queue| queue.ends_with(&format!("-{engine}"))), || format!("its queue: {letter:?}"))?;
        ensure(letter.number("ttl").is_none(), || "it expires before anybody has looked at it".into())?;
        observer.wait("the trouble that a letter is", |_| {
            let told = trouble::told(bed, stack, "dead-letters").unwrap_or_default();
            told.iter().any(|line| line["trouble"] == "dead-letter" && line["engine"] == engine).then_some(())
        })?;
    }
    // One that was sent again may just pass through.
    observer.wait("an empty dead-letter queue", |_| {
        knock_for_letters(stack);
        let left = stack.queue_number(&stack.output("DeadLettersUrl"), "ApproximateNumberOfMessages");
        left.is_ok_and(|left| left == 0).then_some(())
    })
}

/// Has the function for dead letters look at its queue, as the sweep does if there are some.
fn knock_for_letters(stack: &Stack) {
    let left = stack.queue_number(&stack.output("DeadLettersUrl"), "ApproximateNumberOfMessages");
    if left.is_ok_and(|left| left > 0) && stack.wait(stack.ports().knock(DEAD_LETTERS)).is_ok() {
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// A sequence whose first task is triggered, and the item of its execution.
fn open_task(second: &Second) -> Result<(Scope, Value, Key), Problem> {
    let Second { stack, observer } = second;
    let project = format!("failures-{}", &fresh()[24..]);
    stack.wait(stack.api().apply_project(&project, SHIPYARD))?;
    let (scope, context) = (Scope::new(&project, "dev", "cart"), fresh());
    stack.put_event(&scope.trigger("delivery", &context, Map::new()))?;
    let trigger = observer.event(&context, "sh.keptn.event.deploy.triggered", 0)?;
    let wrong = |_| Problem::from("the test's own names are no names");
    let record = RecordId::from_uuid(trigger.event["id"].as_str().unwrap_or_default()).ok_or("the trigger's id leads nowhere")?;
    let to = Address {
        project: ProjectName::new(project.as_str()).map_err(wrong)?,
        context: Context::new(context.as_str()).map_err(wrong)?,
        execution: record.subject,
    };
    // The handler has yet to arm the wake-up after it has published.
    observer.wait("the trigger's handling", |observer| (!observer.done(&context, Root::Outside).is_empty()).then_some(()))?;
    Ok((scope, trigger.event.clone(), sequences::keys::execution(&to)))
}

/// Changes an item as if time had gone by; not its version, so nobody loses a race to this.
fn rewrite(stack: &Stack, key: &Key, set: Attrs) -> Outcome {
    let write = Write::Update { key: key.clone(), condition: Condition::Always, set, remove: vec![], raise: false };
    stack.wait(stack.ports().write(&write)).map(drop).map_err(|error| Problem(error.to_string()))
}

/// A sweep that comes to its end.
pub fn sweep(bed: &Bed, stack: &Stack) -> Outcome {
    tick(bed, stack, "SweepFunctionName")
}

/// Runs the function of this output, as its timer does, until it comes to its end: after a tick that fails, the next does the same.
pub fn tick(bed: &Bed, stack: &Stack, output: &str) -> Outcome {
    let tick = || stack.wait(bed.cloud.raw().invoke(&stack.output(output), &json!({})));
    until(output, || Ok(tick().ok().map(drop)), || format!("{:?}", tick()))
}

fn item(stack: &Stack, key: &Key) -> Result<Item, Problem> {
    stack.item(key)?.ok_or_else(|| format!("there is no item {key}").into())
}

fn swept(bed: &Bed) -> Outcome {
    let second = bed.second()?;
    let (_, trigger, key) = open_task(second)?;
    let stack = &second.stack;
    ensure(item(stack, &key)?.number("w").is_some(), || "no wake-up is armed for the start deadline".into())?;
    // An hour later, and the wake-up never came.
    let past = now_millis() - HOUR;
    rewrite(stack, &key, Attrs::from([("tt".into(), past.into()), ("w".into(), (past + 10 * MINUTE).into())]))?;
    sweep(bed, stack)?;
    let context = trigger["shkeptncontext"].as_str().unwrap_or_default();
    let finished = second.observer.event(context, "sh.keptn.event.dev.delivery.finished", 0)?;
    same("its result", finished.event["data"]["result"].as_str(), Some("fail"))?;
    // It should have gone on long ago.
    second.observer.wait("the trouble that it is", |_| {
        let told = trouble::told(bed, stack, "sweep").unwrap_or_default();
        told.iter().any(|line| line["trouble"] == "work-stuck").then_some(())
    })?;
    // And the late answer changes nothing any more.
    stack.put_event(&answer(&trigger, "finished", "executor", Map::new()))?;
    second.observer.wait("the late answer's handling", |observer| {
        observer.lines(context).iter().any(|line| line.text("outcome") == "Stale").then_some(())
    })
}

fn prolonged(bed: &Bed) -> Outcome {
    let second = bed.second()?;
    let (scope, trigger, key) = open_task(second)?;
    let stack = &second.stack;
    let record = RecordId::from_uuid(trigger["id"].as_str().unwrap_or_default()).ok_or("the trigger's id leads nowhere")?;
    let record = Key::new(key.pk.clone(), keys::record_sort(&record));
    // Retention is a day here: open since more than half of it, and its record about to expire.
    let past = now_millis() - 13 * HOUR;
    rewrite(stack, &key, Attrs::from(["tt", "ac", "st"].map(|name| (name.into(), past.into()))))?;
    let soon = (now_millis() + HOUR) / 1000;
    rewrite(stack, &record, Attrs::from([("ttl".into(), soon.into())]))?;
    sweep(bed, stack)?;
    let expires = item(stack, &record)?.number("ttl").unwrap_or_default();
    ensure(expires > soon + 12 * 3600, || format!("the record of {scope:?} still expires at {expires}, an hour from now is {soon}"))
}

fn crash(bed: &Bed) -> Outcome {
    const DELIVERIES: usize = 12;
    let Second { stack, observer } = bed.second()?;
    let project = format!("crash-{}", &fresh()[24..]);
    stack.wait(stack.api().apply_project(&project, SHIPYARD))?;
    let contexts: Vec<String> = (0..DELIVERIES).map(|_| fresh()).collect();
    for (i, context) in contexts.iter().enumerate() {
        stack.put_event(&Scope::new(&project, "dev", &format!("service-{i}")).trigger("delivery", context, Map::new()))?;
    }
    let executor = Executor { stack, observer, keys: HashSet::from([project.clone()]) };
    let finished = "sh.keptn.event.dev.delivery.finished";
    // In the middle of the work, twice: a message is handed out five times before it is a dead letter.
    let (mut killed, mut kills) = (0, vec![DELIVERIES / 2, 1]);
    let events = executor.until(
        |_| Map::new(),
        |events| {
            if kills.last().is_some_and(|deploys| count(events, "sh.keptn.event.deploy.triggered") >= *deploys) {
                kills.pop();
                killed += kill_functions(&stack.output("SequencesFunctionName"));
            }
            count(events, finished) >= DELIVERIES
        },
    )?;
    same("ends", count(&events, finished), DELIVERIES)?;
    for ty in ["sh.keptn.event.dev.delivery.started", "sh.keptn.event.deploy.triggered", "sh.keptn.event.test.triggered"] {
        same(ty, count(&events, ty), DELIVERIES)?;
    }
    ensure(kills.is_empty() && killed > 0, || {
        format!("{killed} processes of the function were ended, {} times were left", kills.len())
    })
}

/// Ends the processes that run this function, as a crash would; how many.
pub fn kill_functions(function: &str) -> usize {
    let kill = |pid: u32| Command::new("kill").args(["-9", &pid.to_string()]).status().is_ok_and(|status| status.success());
    processes::of_function(function).into_iter().filter(|pid| kill(*pid)).count()
}
