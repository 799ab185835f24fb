//! Functions whose queues nobody polls: each way in which one of them is started. That a killed one is started again,
//! [`deployers_fail`](crate::deployers_fail) shows.
//!
//! Each message is a text that no engine understands, so what is left of it is the record of an invalid input. Webhooks keep none;
//! [their tests](crate::webhooks) need a rule, messages and delayed messages.

use crate::bed::{Bed, Second};
use crate::failures::sweep;
use keelway_cloud_tests::cloud::now_millis;
use keelway_cloud_tests::events::fresh;
use keelway_cloud_tests::patience::until;
use keelway_cloud_tests::problem::same;
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Ability, Outcome, Problem, Stack};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::keys;
use keelway_engine::ports::Queue;
use keelway_engine::promotions::ATTEMPTS;
use serde_json::{Value, json};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// The pause between two sweeps that a test asks for; by itself, one comes every five minutes.
const BETWEEN_SWEEPS: Duration = Duration::from_secs(20);

/// The engines whose queues nobody polls and that record what they cannot read, and the outputs with their queues.
const RARE: [(&str, &str); 6] = [
    ("promotions", "PromotionsQueueUrl"),
    ("attempts", "AttemptsQueueUrl"),
    ("observer", "ObserverQueueUrl"),
    ("deployments", "DeploymentsQueueUrl"),
    ("deployers", "DeployersQueueUrl"),
    ("evaluations", "EvaluationsQueueUrl"),
];

pub fn tests() -> Vec<Test<Bed>> {
    let needs = &[Ability::Functions, Ability::Permissions];
    vec![
        Test::new("knocks::who sends a message starts the function", sent).needs(needs),
        Test::new("knocks::a rule of the bus starts the function", by_a_rule).needs(needs),
        Test::new("knocks::a delayed message starts the function when it is due", delayed).needs(needs),
        Test::new("knocks::what Scheduler sends starts the function", scheduled).needs(needs),
        Test::new("knocks::many messages and one knock", many).needs(needs),
        Test::new("knocks::the sweep makes up for lost knocks", lost).needs(needs),
    ]
}

fn failed(error: impl std::fmt::Debug) -> Problem {
    Problem::of("a message", format!("{error:?}"))
}

/// Waits until each of these texts was handled: it is recorded as invalid.
fn recorded(stack: &Stack, texts: &[String]) -> Outcome {
    recorded_while(stack, texts, || Ok(()))
}

/// The same; `between` is called between two looks.
fn recorded_while(stack: &Stack, texts: &[String], between: impl Fn() -> Outcome) -> Outcome {
    let today = || keys::invalid(Timestamp(now_millis()), 0).pk;
    let first = today();
    let missing = || -> Result<Vec<&String>, Problem> {
        let mut items = stack.items(&first, "")?;
        if today() != first {
            items.extend(stack.items(&today(), "")?);
        }
        let is_there = |text: &&String| items.iter().any(|item| item.text("b").is_some_and(|body| body.contains(text.as_str())));
        Ok(texts.iter().filter(|text| !is_there(text)).collect())
    };
    let done = || match missing()?.is_empty() {
        true => Ok(Some(())),
        false => between().map(|()| None),
    };
    until("the handling of each message", done, || format!("not handled: {:?}", missing()))
}

/// Puts a message into a queue, and knocks at nobody.
fn put(stack: &Stack, output: &str, body: &str) -> Outcome {
    let request = stack.sqs().send_message().queue_url(stack.output(output)).message_body(body);
    stack.wait(request.send()).map(drop).map_err(failed)
}

fn sent(bed: &Bed) -> Outcome {
    let stack = &bed.stack;
    let mut texts = vec![];
    for (engine, _) in RARE {
        let text = format!("sent to {engine}: {}", fresh());
        let outcomes = stack.wait(stack.ports().send(engine, std::slice::from_ref(&text))).map_err(failed)?;
        same(&format!("the message to {engine}"), outcomes, vec![None])?;
        texts.push(text);
    }
    recorded(stack, &texts)
}

fn by_a_rule(bed: &Bed) -> Outcome {
    let stack = &bed.stack;
    // Not even an event, as it says no version; the rule only looks at the type.
    let mark = fresh();
    stack.put_event(&json!({"type": "dev.keelway.target.observed", "source": "somebody", "mark": mark}))?;
    recorded(stack, &[mark])
}

fn delayed(bed: &Bed) -> Outcome {
    let stack = &bed.stack;
    let due = Timestamp(now_millis()) + Span::seconds(2);
    let mut texts = vec![];
    for (engine, _) in RARE {
        let text = format!("delayed for {engine}: {}", fresh());
        stack.wait(stack.ports().send_at(engine, "a name", &text, due)).map_err(failed)?;
        texts.push(text);
    }
    recorded(stack, &texts)
}

fn scheduled(bed: &Bed) -> Outcome {
    let stack = &bed.stack;
    let (name, text) = (format!("knocks-{}", fresh()), format!("scheduled: {}", fresh()));
    let due = Timestamp(now_millis()) + Span::minutes(60);
    stack.wait(stack.ports().send_at(ATTEMPTS, &name, &text, due)).map_err(failed)?;
    let path = format!("/schedules/{name}?groupName={}", stack.output("SchedulerGroupName"));
    let schedule = stack.wait(bed.cloud.raw().ask(reqwest::Method::GET, "scheduler", &path, &Value::Null))?;
    let (to, input) = (&schedule["Target"]["Arn"], schedule["Target"]["Input"].as_str().unwrap_or_default());
    let polled = stack.wait(bed.cloud.raw().queue_arn(&stack.output("QueueUrl")))?;
    same("where it is sent", to, &json!(polled))?;
    // Fifty minutes pass.
    put(stack, "QueueUrl", input)?;
    recorded(stack, &[text])
}

fn many(bed: &Bed) -> Outcome {
    let Second { stack, .. } = bed.second()?;
    let texts: Vec<String> = (0..30).map(|n| format!("one of many, {n}: {}", fresh())).collect();
    for text in &texts {
        put(stack, "AttemptsQueueUrl", text)?;
    }
    stack.wait(stack.ports().knock(ATTEMPTS)).map_err(failed)?;
    recorded(stack, &texts)
}

fn lost(bed: &Bed) -> Outcome {
    let Second { stack, observer } = bed.second()?;
    let mut texts = vec![];
    for (engine, queue) in RARE {
        let text = format!("lost on the way to {engine}: {}", fresh());
        put(stack, queue, &text)?;
        texts.push(text);
    }
    let letter = json!({"keelway": "from-the-future", "mark": fresh()}).to_string();
    put(stack, "DeadLettersUrl", &letter)?;
    sweep(bed, stack)?;
    // Its knock may meet a function that is busy and takes none, as on a slow machine; the next sweep knocks again.
    let last = Cell::new(Instant::now());
    recorded_while(stack, &texts, || match last.get().elapsed() > BETWEEN_SWEEPS {
        true => {
            last.set(Instant::now());
            sweep(bed, stack)
        }
        false => Ok(()),
    })?;
    observer.wait("a dead letter in the table", |_| {
        let letters = stack.items(keys::DEAD_LETTERS, "").unwrap_or_default();
        letters.iter().any(|stored| stored.text("b") == Some(&letter)).then_some(())
    })
}
