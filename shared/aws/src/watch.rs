//! Queues and functions from outside: the attributes of a queue, and what CloudWatch has measured.

use crate::Aws;
use crate::aliases::read;
use crate::error::{port_error, refused};
use crate::meter;
use crate::signed::{Ask, Signed};
use aws_sdk_sqs::types::QueueAttributeName;
use keelway_domain::json::canonical;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::ports::{Clock, PortError};
use keelway_engine::sequences;
use keelway_engine::trouble::{Measure, Watch};
use serde_json::{Value, json};
use std::time::Duration;

const ATTRIBUTES: &str = "sqs.GetQueueAttributes";
const METRICS: &str = "cloudwatch.GetMetricData";

/// The metric behind a measure: namespace, name, dimension, statistic.
fn metric(of: Measure) -> [&'static str; 4] {
    match of {
        Measure::Age => ["AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName", "Maximum"],
        Measure::Waiting => ["AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", "Minimum"],
        Measure::Errors => ["AWS/Lambda", "Errors", "FunctionName", "Sum"],
        Measure::Throttles => ["AWS/Lambda", "Throttles", "FunctionName", "Sum"],
    }
}

impl Signed {
    /// `of`: the value of the dimension; `from`, `to`: an hour at most, which is one page.
    async fn measured(&self, of: &str, what: &[Measure], (from, to): (Timestamp, Timestamp)) -> Result<Vec<Vec<f64>>, PortError> {
        let query = |(i, measure): (usize, &Measure)| {
            let [namespace, name, dimension, statistic] = metric(*measure);
            json!({"Id": format!("m{i}"), "MetricStat": {"Period": 60, "Stat": statistic, "Metric": {
                "Namespace": namespace, "MetricName": name, "Dimensions": [{"Name": dimension, "Value": of}],
            }}})
        };
        let queries: Vec<Value> = what.iter().enumerate().map(query).collect();
        let seconds = |at: Timestamp| at.0 / 1000;
        let request = json!({
            "MetricDataQueries": queries, "StartTime": seconds(from), "EndTime": seconds(to),
        });
        let ask = Ask {
            name: METRICS,
            service: "monitoring",
            region: None,
            method: "POST",
            path: "/".into(),
            headers: &[
                ("content-type", "application/x-amz-json-1.0"),
                ("x-amz-target", "GraniteServiceVersion20100801.GetMetricData"),
            ],
            body: canonical(&request),
            patience: Duration::from_secs(5),
        };
        let answer = read(METRICS, &self.ask(&ask).await?)?;
        let results = answer["MetricDataResults"].as_array().map(Vec::as_slice).unwrap_or_default();
        let values = |i: usize| {
            let result = results.iter().find(|result| result["Id"] == format!("m{i}").as_str());
            let values = result.and_then(|result| result["Values"].as_array());
            let missing = || refused(METRICS, format!("the answer has no values of {:?}: {answer}", what[i]));
            values.map(|values| values.iter().filter_map(Value::as_f64).collect()).ok_or_else(missing)
        };
        (0..what.len()).map(values).collect()
    }
}

impl Aws {
    /// The name of an engine's queue, which is that of its function, too. The bus has the stack's name.
    fn named(&self, engine: &str) -> String {
        format!("{}-{engine}", self.inner.names.bus)
    }
}

impl Watch for Aws {
    async fn messages(&self, engine: &str) -> Result<u64, PortError> {
        // All queues of the stack are in one place.
        let place = self.inner.names.queues.get(sequences::NAME).and_then(|queue| queue.url.rsplit_once('/'));
        let (place, _) = place.ok_or_else(|| refused(ATTRIBUTES, "this function knows no queue"))?;
        let names = [QueueAttributeName::ApproximateNumberOfMessages, QueueAttributeName::ApproximateNumberOfMessagesNotVisible];
        meter::request(ATTRIBUTES);
        let request = self.inner.sqs.get_queue_attributes().queue_url(format!("{place}/{}", self.named(engine)));
        let answer =
            request.set_attribute_names(Some(names.to_vec())).send().await.map_err(|error| port_error(ATTRIBUTES, error))?;
        let number = |name| answer.attributes()?.get(name)?.parse::<u64>().ok();
        let numbers = names.iter().map(number).sum::<Option<u64>>();
        numbers.ok_or_else(|| refused(ATTRIBUTES, format!("the answer lacks numbers: {:?}", answer.attributes())))
    }

    async fn measured(&self, engine: &str, what: &[Measure], minutes: i64) -> Result<Vec<Vec<f64>>, PortError> {
        let now = self.now();
        self.inner.signed.measured(&self.named(engine), what, (now - Span::minutes(minutes), now)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signed::tests::answering;

    #[tokio::test]
    async fn values_by_minute() {
        // In any order; a metric without data has no values.
        let body = r#"{"MetricDataResults": [
            {"Id": "m1", "Label": "Errors", "StatusCode": "Complete", "Timestamps": [], "Values": []},
            {"Id": "m0", "Label": "Age", "StatusCode": "Complete", "Timestamps": [1795222200, 1795222140], "Values": [312.0, 252.0]}
        ]}"#;
        let (signed, seen) = answering(200, &[], body);
        let during = (Timestamp(1_795_221_666_686), Timestamp(1_795_222_266_686));
        let measured = signed.measured("keelway-sequences", &[Measure::Age, Measure::Errors], during).await.unwrap();
        assert_eq!(measured, [vec![312.0, 252.0], vec![]]);
        let seen = seen.lock().unwrap();
        assert_eq!(seen[0].uri(), "https://monitoring.eu-central-1.amazonaws.com/");
        assert_eq!(seen[0].headers().get("x-amz-target"), Some("GraniteServiceVersion20100801.GetMetricData"));
        let body: Value = serde_json::from_slice(seen[0].body().bytes().unwrap()).unwrap();
        assert_eq!((&body["StartTime"], &body["EndTime"]), (&json!(1_795_221_666), &json!(1_795_222_266)));
        let first = json!({"Id": "m0", "MetricStat": {"Period": 60, "Stat": "Maximum", "Metric": {"Namespace": "AWS/SQS",
            "MetricName": "ApproximateAgeOfOldestMessage", "Dimensions": [{"Name": "QueueName", "Value": "keelway-sequences"}]}}});
        assert_eq!(body["MetricDataQueries"][0], first);
        let second = &body["MetricDataQueries"][1]["MetricStat"]["Metric"];
        assert_eq!(second["Dimensions"], json!([{"Name": "FunctionName", "Value": "keelway-sequences"}]));
    }

    #[tokio::test]
    async fn what_was_not_answered_is_no_good_news() {
        let answer = |status, body| async move {
            let (signed, _) = answering(status, &[], body);
            signed.measured("keelway-sequences", &[Measure::Age], (Timestamp(0), Timestamp(600_000))).await
        };
        assert!(matches!(answer(200, r#"{"MetricDataResults": []}"#).await, Err(PortError::Refused { .. })));
        let throttled = answer(400, r#"{"__type": "ThrottlingException", "message": "Rate exceeded"}"#).await;
        assert!(matches!(throttled, Err(PortError::Retry { .. })));
    }
}
