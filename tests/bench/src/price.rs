//! What a million of something would cost, by `infra/prices.json`.

use crate::cost::{Costs, Used};
use crate::report::{Aim, Report};
use keelway_cloud_tests::Problem;
use serde_json::Value;
use std::path::Path;

/// Answers of the executors per task: `started` and `finished`.
const ANSWERS: f64 = 2.0;

/// Tells the modelled price of a million tasks, and of a million sequences of four tasks.
pub fn tell(report: &mut Report, costs: &Costs) -> Result<(), Problem> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../infra/prices.json");
    let text = std::fs::read_to_string(&path).map_err(|error| Problem::of(&path.display().to_string(), error))?;
    let prices: Value = serde_json::from_str(&text).map_err(|error| Problem::of("infra/prices.json", error))?;
    let group = format!("price, modelled, {} list prices of {}", text_of(&prices["region"]), text_of(&prices["checked"]));
    for (name, value) in parts(&prices, &costs.task, ANSWERS) {
        report.row(&group, &format!("a million tasks: {name}"), value, "$", Aim::None);
    }
    let four = costs.fixed + costs.task * 4.0;
    let total = parts(&prices, &four, ANSWERS * 4.0 + 1.0).last().map_or(0.0, |(_, value)| *value);
    report.row(&group, "a million sequences of four tasks, all in", total, "$", Aim::None);
    Ok(())
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// `events`: those that others put on the bus.
fn parts(prices: &Value, used: &Used, events: f64) -> Vec<(&'static str, f64)> {
    let price = |name: &str| prices["perMillion"][name].as_f64().unwrap_or_default();
    let assumed = |name: &str| prices["assumed"][name].as_f64().unwrap_or_default();
    let dynamodb = used.writes * price("dynamodbWriteUnits") + used.reads * price("dynamodbReadUnits");
    let bus = (used.events + events) * price("eventbridgeCustomEvents");
    // Each message from the bus is sent, received and deleted; the engine's own are sent by the function, which counts that itself.
    let handled =
        used.outside * assumed("sqsRequestsPerMessage") + (used.messages - used.outside) * (assumed("sqsRequestsPerMessage") - 1.0);
    let sqs = (handled + used.sends) * price("sqsRequests");
    let invocations = used.messages / assumed("messagesPerInvocation").max(1.0);
    let seconds = used.messages * assumed("lambdaMillisecondsPerMessage") / 1000.0;
    let gb_seconds = seconds * assumed("lambdaMemoryGb") * prices["lambdaGbSecondArm64"].as_f64().unwrap_or_default() * 1e6;
    let lambda = invocations * price("lambdaRequests") + gb_seconds;
    vec![("DynamoDB", dynamodb), ("EventBridge", bus), ("SQS", sqs), ("Lambda", lambda), ("all", dynamodb + bus + sqs + lambda)]
}
