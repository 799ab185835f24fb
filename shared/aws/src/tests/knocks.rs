//! Knocks: who sends to a queue that nobody polls starts its function.

use super::*;
use crate::knock::Knock;
use crate::signed::tests::answering;
use crate::{QueueName, Received};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use std::sync::{Arc, Mutex};

const SEND: &str = "AmazonSQS.SendMessage";
const AT: &str = "https://lambda.eu-central-1.amazonaws.com/2015-03-31/functions/bus-webhooks/invocations";

type Seen = Arc<Mutex<Vec<HttpRequest>>>;

/// Ports that knock: SQS is a double, and Lambda answers with this status.
fn knocking(double: &Double, status: u16) -> (Aws, Seen) {
    let at_once = RetryConfig::standard().with_initial_backoff(Duration::from_millis(1));
    let queue = |name: &str| (name.to_owned(), QueueName { url: format!("https://sqs/{name}"), arn: format!("arn:{name}") });
    let names = Names { knocks: true, queues: ["sequences", "webhooks"].map(queue).into(), ..names() };
    let mut aws = Aws::new(&config().retry_config(at_once).http_client(double.clone()).build(), names);
    let (signed, seen) = answering(status, &[], "");
    Arc::get_mut(&mut aws.inner).unwrap().signed = signed;
    (aws, seen)
}

fn sent() -> Double {
    Double::new(SEND, [(200, json!({"MessageId": "m-1"}))])
}

/// Queue, body and delay of each message.
fn messages(double: &Double) -> Vec<(String, String, Option<i64>)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let one = |body: &Value| (text(&body["QueueUrl"]), text(&body["MessageBody"]), body["DelaySeconds"].as_i64());
    double.requests().iter().map(one).collect()
}

#[tokio::test]
async fn a_message_is_sent_before_its_function_is_started() {
    let double = sent();
    let (aws, seen) = knocking(&double, 202);
    let meter = Meter::default();
    assert_eq!(meter.around(aws.send("webhooks", &["{}".into()])).await, Ok(vec![None]));
    assert_eq!(messages(&double), [("https://sqs/webhooks".into(), "{}".into(), None)]);
    let seen = seen.lock().unwrap();
    assert_eq!((seen.len(), seen[0].method(), seen[0].uri()), (1, "POST", AT));
    assert_eq!(seen[0].headers().get("x-amz-invocation-type"), Some("Event"), "nobody waits for the function");
    assert_eq!(seen[0].body().bytes(), Some(br#"{"keelway":"knock"}"#.as_slice()));
    assert_eq!(meter.usage().requests, [("lambda.Invoke", 1), ("sqs.SendMessage", 1)].into());
}

#[tokio::test]
async fn nobody_knocks_where_somebody_polls() {
    let double = sent();
    let (aws, seen) = knocking(&double, 202);
    aws.send("sequences", &["{}".into()]).await.unwrap();
    assert_eq!((messages(&double).len(), seen.lock().unwrap().len()), (1, 0));
    let names = Names { knocks: false, ..aws.inner.names.clone() };
    let polled = Aws::new(&config().http_client(double.clone()).build(), names);
    polled.send("webhooks", &["{}".into()]).await.unwrap();
    polled.send_at("webhooks", "name", "{}", polled.now() + Span::seconds(30)).await.unwrap();
    assert_eq!(messages(&double).len(), 3);
}

#[tokio::test]
async fn a_knock_that_lambda_does_not_take_is_made_by_message() {
    let double = sent();
    let (aws, _) = knocking(&double, 429);
    assert_eq!(aws.send("webhooks", &["{}".into()]).await, Ok(vec![None]), "the message is sent");
    let knock = r#"{"keelway":"knock","engine":"webhooks"}"#;
    assert_eq!(messages(&double)[1..], [("https://sqs/sequences".to_owned(), knock.to_owned(), Some(1))]);
    // The queue of sequences cannot take it either: the sweep knocks.
    let double = Double::new(SEND, [(200, json!({"MessageId": "m-1"})), failed("AccessDenied", Value::Null)]);
    let (aws, _) = knocking(&double, 429);
    assert_eq!(aws.send("webhooks", &["{}".into()]).await, Ok(vec![None]));
}

#[tokio::test]
async fn a_delayed_message_has_a_delayed_knock() {
    let double = sent();
    let (aws, seen) = knocking(&double, 202);
    let meter = Meter::default();
    meter.around(aws.send_at("webhooks", "name", "{}", aws.now() + Span::seconds(30))).await.unwrap();
    let knock = r#"{"keelway":"knock","engine":"webhooks"}"#;
    let expected = [("https://sqs/webhooks", "{}", Some(30)), ("https://sqs/sequences", knock, Some(30))];
    assert_eq!(messages(&double), expected.map(|(queue, body, delay)| (queue.into(), body.into(), delay)));
    assert_eq!(seen.lock().unwrap().len(), 0);
    assert_eq!(meter.usage().sent, [("m-1".to_owned(), 30)].into(), "what follows is the message");
    assert_eq!(Knock::parse(knock), Some(Knock { engine: "webhooks".into(), body: None }));
    // A message whose knock is lost would be late, so it is sent again.
    let double = Double::new(SEND, [(200, json!({"MessageId": "m-1"})), (500, json!({}))]);
    assert!(knocking(&double, 202).0.send_at("webhooks", "name", "{}", aws.now() + Span::seconds(30)).await.is_err());
}

#[tokio::test]
async fn scheduler_sends_to_the_queue_that_is_polled_and_from_there_it_goes_on() {
    let double = Double::new("POST /schedules/name", [(200, json!({"ScheduleArn": "arn:schedule"}))]);
    let (aws, _) = knocking(&double, 202);
    aws.send_at("webhooks", "name", r#"{"a":"b"}"#, aws.now() + Span::minutes(60)).await.unwrap();
    let target = &double.requests()[0]["Target"];
    assert_eq!(target["Arn"], "arn:sequences");
    let knock = Knock::parse(target["Input"].as_str().unwrap()).unwrap();
    assert_eq!(knock, Knock { engine: "webhooks".into(), body: Some(r#"{"a":"b"}"#.into()) });
    let double = sent();
    let (aws, seen) = knocking(&double, 202);
    aws.pass_on(&knock).await.unwrap();
    assert_eq!(messages(&double), [("https://sqs/webhooks".into(), r#"{"a":"b"}"#.into(), None)]);
    assert_eq!(seen.lock().unwrap()[0].uri(), AT);
}

#[tokio::test]
async fn a_knock_that_cannot_be_passed_on_comes_again() {
    let (aws, _) = knocking(&sent(), 429);
    assert!(aws.pass_on(&Knock { engine: "webhooks".into(), body: None }).await.is_err_and(|error| error.passes()));
}

#[tokio::test]
async fn a_message_is_received_with_what_the_queue_tells_of_it() {
    let answer = json!({"Messages": [{"MessageId": "m", "ReceiptHandle": "r", "Body": "{}",
        "Attributes": {"SentTimestamp": "1795222266686", "ApproximateReceiveCount": "3"},
        "MessageAttributes": {"ERROR_CODE": {"StringValue": "NO_PERMISSIONS", "DataType": "String"}}}]});
    let double = Double::new("AmazonSQS.ReceiveMessage", [(200, answer), (200, json!({}))]);
    let (aws, _) = knocking(&double, 202);
    let expected = Received {
        id: "m".into(),
        receipt: "r".into(),
        body: "{}".into(),
        attributes: [("SentTimestamp", "1795222266686"), ("ApproximateReceiveCount", "3")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        texts: [("ERROR_CODE".to_owned(), "NO_PERMISSIONS".to_owned())].into(),
        queue: "webhooks".into(),
    };
    assert_eq!(aws.receive("webhooks", 5, 1, Some(45)).await, Ok(vec![expected]));
    assert_eq!(aws.receive("webhooks", 5, 0, None).await, Ok(vec![]));
    let asked =
        |request: &Value| ["MaxNumberOfMessages", "WaitTimeSeconds", "VisibilityTimeout"].map(|name| request[name].as_i64());
    let requests: Vec<_> = double.requests().iter().map(asked).collect();
    assert_eq!(requests, [[Some(5), Some(1), Some(45)], [Some(5), Some(0), None]]);
}

#[tokio::test]
async fn a_message_that_is_not_deleted_is_told() {
    let failed = json!({"Successful": [], "Failed": [{"Id": "0", "Code": "InternalError", "SenderFault": false}]});
    let double = Double::new("AmazonSQS.DeleteMessageBatch", [(200, failed)]);
    let (aws, _) = knocking(&double, 202);
    assert!(aws.delete("webhooks", &["r".into()]).await.is_err_and(|error| error.passes()));
    assert_eq!(aws.delete("webhooks", &[]).await, Ok(()));
    assert_eq!(double.requests().len(), 1);
}
