//! Failures and the alarms that they raise. The local cloud raises none by itself: it neither reads metrics from log lines nor
//! measures queues, so the tests hand both to its CloudWatch, and judge by each alarm's own words.

use crate::bed::Bed;
use crate::failures::sweep;
use keelway_cloud_tests::cloud::now_millis;
use keelway_cloud_tests::patience::until;
use keelway_cloud_tests::problem::{ensure, same};
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Ability, Outcome, Problem, Stack};
use serde_json::{Value, json};

const CLOUDWATCH: &str = "GraniteServiceVersion20100801";
const MINUTE: i64 = 60;

pub fn tests() -> Vec<Test<Bed>> {
    let functions = &[Ability::Functions, Ability::Records];
    vec![
        Test::new("trouble::a function that does not start leaves messages, and the sweep tells", down).needs(functions),
        Test::new("trouble::a sweep that fails, and one that never runs, raise its alarm", no_sweep).needs(functions),
    ]
}

/// A request to the local cloud's CloudWatch.
pub fn cloudwatch(bed: &Bed, operation: &str, body: &Value) -> Result<Value, Problem> {
    bed.cloud.handle().block_on(bed.cloud.raw().json("monitoring", &format!("{CLOUDWATCH}.{operation}"), body))
}

/// The troubles that a function of a stack has reported so far.
pub fn told(bed: &Bed, stack: &Stack, function: &str) -> Result<Vec<Value>, Problem> {
    let asked = json!({"logGroupName": format!("/aws/lambda/{}-{function}", stack.name()), "filterPattern": "trouble"});
    let answer = bed.cloud.handle().block_on(bed.cloud.raw().json("logs", "Logs_20140328.FilterLogEvents", &asked))?;
    let lines = answer["events"].as_array().into_iter().flatten().filter_map(|event| event["message"].as_str());
    let lines = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Ok(lines.filter(|line| line["trouble"].is_string()).collect())
}

/// Hands the metrics of such a line to CloudWatch, as its embedded format says.
fn read(bed: &Bed, line: &Value) -> Outcome {
    for directive in line["_aws"]["CloudWatchMetrics"].as_array().into_iter().flatten() {
        let names = directive["Dimensions"][0].as_array().into_iter().flatten().filter_map(Value::as_str);
        let dimensions: Vec<Value> = names.map(|name| json!({"Name": name, "Value": line[name]})).collect();
        let names = directive["Metrics"].as_array().into_iter().flatten().filter_map(|metric| metric["Name"].as_str());
        let data: Vec<Value> =
            names.map(|name| json!({"MetricName": name, "Value": line[name], "Dimensions": dimensions})).collect();
        cloudwatch(bed, "PutMetricData", &json!({"Namespace": directive["Namespace"], "MetricData": data}))?;
    }
    Ok(())
}

/// Whether an alarm of a stack would be raised: its metric, by its statistic, over the time that it looks at.
pub fn raised(bed: &Bed, stack: &Stack, alarm: &str) -> Result<bool, Problem> {
    let name = format!("{}-{alarm}", stack.name());
    let alarms = cloudwatch(bed, "DescribeAlarms", &json!({"AlarmNames": [name]}))?;
    let alarm = &alarms["MetricAlarms"][0];
    let (period, times) = (&alarm["Period"], &alarm["EvaluationPeriods"]);
    let whole = period.as_i64().zip(times.as_i64()).map(|(period, times)| period * times);
    let whole = whole.ok_or_else(|| Problem(format!("no alarm {name}: {alarms}")))?;
    // As if all of it were one period: what is asserted lasts for as long.
    let now = now_millis() / 1000 + MINUTE;
    let asked = json!({"Namespace": alarm["Namespace"], "MetricName": alarm["MetricName"], "Dimensions": alarm["Dimensions"],
        "Statistics": [alarm["Statistic"]], "Period": whole, "StartTime": now - whole, "EndTime": now});
    let answer = cloudwatch(bed, "GetMetricStatistics", &asked)?;
    let statistic = alarm["Statistic"].as_str().unwrap_or_default();
    let values: Vec<f64> =
        answer["Datapoints"].as_array().into_iter().flatten().filter_map(|point| point[statistic].as_f64()).collect();
    same("how it compares", alarm["ComparisonOperator"].as_str(), Some("GreaterThanThreshold"))?;
    let threshold = alarm["Threshold"].as_f64().unwrap_or_default();
    Ok(match values.is_empty() {
        true => alarm["TreatMissingData"] == "breaching",
        false => values.iter().all(|value| *value > threshold),
    })
}

/// Gives a function another environment, with which it does not start.
fn put_out_of_order(bed: &Bed, function: &str) -> Outcome {
    let handle = bed.cloud.handle();
    let mut variables = handle.block_on(bed.cloud.raw().function(function))?["Environment"]["Variables"].take();
    variables["KEELWAY_START_DEADLINE"] = json!("soon");
    let path = format!("/2015-03-31/functions/{function}/configuration");
    let body = json!({"Environment": {"Variables": variables}});
    handle.block_on(bed.cloud.raw().ask(reqwest::Method::PUT, "lambda", &path, &body)).map(drop)
}

/// Minutes of a metric that the local cloud does not measure, or that would take minutes to become true.
fn minutes(bed: &Bed, (namespace, name): (&str, &str), (dimension, of): (&str, &str), value: f64) -> Outcome {
    let now = now_millis() / 1000;
    let dimensions = json!([{"Name": dimension, "Value": of}]);
    let datum = |ago: i64| json!({"MetricName": name, "Value": value, "Timestamp": now - ago * MINUTE, "Dimensions": dimensions});
    cloudwatch(bed, "PutMetricData", &json!({"Namespace": namespace, "MetricData": [datum(1), datum(2), datum(3)]})).map(drop)
}

/// On a stack of its own, because others need the functions that it puts out of order.
fn down(bed: &Bed) -> Outcome {
    let (stack, _) = &bed.cloud.deploy(&format!("keelway-four{}", std::process::id() % 100_000), &[])?;
    let (function, queue) = (stack.output("ObserverFunctionName"), stack.output("ObserverQueueUrl"));
    put_out_of_order(bed, &function)?;
    let message = stack.sqs().send_message().queue_url(&queue).message_body(json!({"keelway": "observe"}).to_string());
    stack.wait(message.send()).map_err(|error| Problem::of("a message", format!("{error:?}")))?;
    let name = queue.rsplit('/').next().unwrap_or_default();
    minutes(bed, ("AWS/SQS", "ApproximateAgeOfOldestMessage"), ("QueueName", name), 421.0)?;
    minutes(bed, ("AWS/Lambda", "Errors"), ("FunctionName", &function), 1.0)?;
    minutes(bed, ("AWS/Lambda", "Throttles"), ("FunctionName", &function), 7.0)?;
    sweep(bed, stack)?;
    for (kind, much) in [("messages-wait", 421.0), ("function-fails", 1.0), ("function-throttled", 7.0)] {
        let find =
            || Ok(told(bed, stack, "sweep")?.into_iter().find(|line| line["trouble"] == kind && line["engine"] == "observer"));
        let line = until(kind, find, || format!("{:?}", told(bed, stack, "sweep")))?;
        ensure(line["much"].as_f64().is_some_and(|told| told >= much), || format!("how much: {line}"))?;
        read(bed, &line)?;
    }
    ensure(raised(bed, stack, "trouble")?, || "the alarm does not see it".into())
}

fn no_sweep(bed: &Bed) -> Outcome {
    let (stack, _) = bed.cloud.deploy(&format!("keelway-three{}", std::process::id() % 100_000), &[])?;
    ensure(raised(bed, &stack, "sweep")?, || "there was no sweep yet, and that raises no alarm".into())?;
    ensure(!raised(bed, &stack, "trouble")?, || "nothing is trouble".into())?;
    sweep(bed, &stack)?;
    ensure(!raised(bed, &stack, "sweep")?, || "a sweep that succeeds raises its alarm".into())?;
    // The succeeded one is in the same half hour: the alarm is for a time in which none does, so only the number of failures shows.
    put_out_of_order(bed, &stack.output("SweepFunctionName"))?;
    let function = stack.output("SweepFunctionName");
    let failed = stack.wait(bed.cloud.raw().invoke(&function, &json!({})));
    ensure(failed.is_err(), || format!("it started: {failed:?}"))?;
    let now = now_millis() / 1000 + MINUTE;
    let asked = json!({
        "Namespace": "AWS/Lambda", "MetricName": "Errors", "Dimensions": [{"Name": "FunctionName", "Value": function}],
        "Statistics": ["Sum"], "Period": 900, "StartTime": now - 900, "EndTime": now,
    });
    let answer = cloudwatch(bed, "GetMetricStatistics", &asked)?;
    let failures: f64 = answer["Datapoints"].as_array().into_iter().flatten().filter_map(|point| point["Sum"].as_f64()).sum();
    ensure(failures >= 1.0, || format!("a sweep that does not start counts as no error: {answer}"))
}
