//! Modelled prices by `infra/prices.json`.

use crate::cost::{Costs, Used};
use crate::report::{Aim, Report};
use keelway_cloud_tests::Problem;
use serde_json::Value;
use std::path::Path;

/// The answers of executors to a task: `started` and `finished`.
const ANSWERS: f64 = 2.0;

/// The price file.
pub fn prices() -> Result<Value, Problem> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../infra/prices.json");
    let text = std::fs::read_to_string(&path).map_err(|error| Problem::of(&path.display().to_string(), error))?;
    serde_json::from_str(&text).map_err(|error| Problem::of("infra/prices.json", error))
}

/// Reports the modelled price of a million tasks, and of a million sequences of four tasks.
pub fn tell(report: &mut Report, costs: &Costs) -> Result<(), Problem> {
    let prices = prices()?;
    let group = format!("price, modelled, {} list prices of {}", text_of(&prices["region"]), text_of(&prices["checked"]));
    for (name, value) in parts(&prices, &costs.task, ANSWERS) {
        report.row(&group, &format!("a million tasks: {name}"), value, "$", Aim::None);
    }
    let four = costs.fixed + costs.task * 4.0;
    let (sequences, events) = ("a million sequences of four tasks", ANSWERS * 4.0 + 1.0);
    report.row(&group, &format!("{sequences}, all in"), all(&parts(&prices, &four, events)), "$", Aim::None);
    let busy = in_batches(&prices);
    let task = all(&parts(&busy, &costs.task, ANSWERS));
    report.row(&group, "a million tasks, ten messages in an invocation", task, "$", Aim::AtMost(8.0));
    report.row(&group, &format!("{sequences}, ten messages in an invocation"), all(&parts(&busy, &four, events)), "$", Aim::None);
    let most = Aim::AtMost(assumed(&prices, "logBytesPerMessage"));
    report.row(&group, "the line of a message in the log, which the bill assumes", four.logged / four.messages, "bytes", most);
    Ok(())
}

/// The prices where so much happens that messages come in batches.
fn in_batches(prices: &Value) -> Value {
    let mut busy = prices.clone();
    for (name, value) in prices["batches"].as_object().into_iter().flatten() {
        busy["assumed"][name] = value.clone();
    }
    busy
}

/// Reports the modelled price of a million times `what`, each with one event over the bus, during which the function waits for this
/// many calls of a git host.
pub fn tell_one(report: &mut Report, group: &str, what: &str, one: &Used, calls: f64) -> Result<(), Problem> {
    let prices = prices()?;
    let waiting = calls * assumed(&prices, "lambdaMillisecondsPerHostCall") / 1000.0;
    let waiting = waiting * gb_second(&prices) * 1e6;
    report.row(group, &format!("a million {what}, modelled price"), all(&parts(&prices, one, 1.0)) + waiting, "$", Aim::None);
    if calls > 0.0 {
        report.row(group, "of it, for waiting for the git host", waiting, "$", Aim::None);
    }
    Ok(())
}

/// What was asked of CloudWatch.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// The requests.
    pub requests: f64,
    /// The metrics in them.
    pub metrics: f64,
}

/// Reports the modelled price of a million times `what`, each of which asks CloudWatch so much. Waiting for the source is taken to
/// be as long as for a git host.
pub fn tell_measured(report: &mut Report, group: &str, what: &str, one: &Used, asked: Asked) -> Result<(), Problem> {
    let prices = prices()?;
    let waiting = asked.requests * assumed(&prices, "lambdaMillisecondsPerHostCall") / 1000.0 * gb_second(&prices) * 1e6;
    let read = asked.metrics * prices["perMillion"]["metricsRead"].as_f64().unwrap_or_default();
    let own = all(&parts(&prices, one, 0.0)) + waiting;
    report.row(group, &format!("a million {what}, modelled price"), own + read, "$", Aim::None);
    report.row(group, "of it, for metrics of CloudWatch", read, "$", Aim::None);
    Ok(())
}

/// Reports the modelled price of a million tasks whose answers came over HTTP, each in a request.
pub fn tell_over_http(report: &mut Report, group: &str, task: &Used) -> Result<(), Problem> {
    let prices = prices()?;
    let lambda = ANSWERS * prices["perMillion"]["lambdaRequests"].as_f64().unwrap_or_default();
    let seconds = ANSWERS * assumed(&prices, "lambdaMillisecondsPerMessage") / 1000.0;
    let price = all(&parts(&prices, task, 0.0)) + lambda + seconds * gb_second(&prices) * 1e6;
    report.row(group, "a million tasks, modelled price", price, "$", Aim::None);
    Ok(())
}

/// The modelled price of so many requests to the API, which have used this.
pub fn of_requests(calls: f64, used: &Used) -> Result<f64, Problem> {
    let prices = prices()?;
    let lambda = calls * prices["perMillion"]["lambdaRequests"].as_f64().unwrap_or_default();
    let seconds = calls * assumed(&prices, "lambdaMillisecondsPerMessage") / 1000.0;
    Ok((all(&parts(&prices, used, 0.0)) + lambda) / 1e6 + seconds * gb_second(&prices))
}

fn all(parts: &[(&str, f64)]) -> f64 {
    parts.last().map_or(0.0, |(_, value)| *value)
}

/// A number that the model assumes.
pub fn assumed(prices: &Value, name: &str) -> f64 {
    prices["assumed"][name].as_f64().unwrap_or_default()
}

/// The price of a second of a function.
pub fn gb_second(prices: &Value) -> f64 {
    assumed(prices, "lambdaMemoryGb") * prices["lambdaGbSecondArm64"].as_f64().unwrap_or_default()
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The parts of a price. `events`: those that others put on the bus.
fn parts(prices: &Value, used: &Used, events: f64) -> Vec<(&'static str, f64)> {
    let price = |name: &str| prices["perMillion"][name].as_f64().unwrap_or_default();
    let assumed = |name: &str| assumed(prices, name);
    let dynamodb = used.writes * price("dynamodbWriteUnits") + used.reads * price("dynamodbReadUnits");
    let bus = (used.events + events) * price("eventbridgeCustomEvents");
    // Each message from the bus is sent, received and deleted. The engine's own messages are sent by the function, which counts
    // them itself.
    let handled =
        used.outside * assumed("sqsRequestsPerMessage") + (used.messages - used.outside) * (assumed("sqsRequestsPerMessage") - 1.0);
    let sqs = (handled + used.sends) * price("sqsRequests");
    let invocations = used.messages / assumed("messagesPerInvocation").max(1.0);
    let seconds = used.messages * assumed("lambdaMillisecondsPerMessage") / 1000.0;
    let lambda = invocations * price("lambdaRequests") + seconds * gb_second(prices) * 1e6;
    vec![("DynamoDB", dynamodb), ("EventBridge", bus), ("SQS", sqs), ("Lambda", lambda), ("all", dynamodb + bus + sqs + lambda)]
}
