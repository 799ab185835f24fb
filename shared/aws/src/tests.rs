//! Tests of the ports with prepared answers, for situations that no emulator produces on demand.

mod double;
mod knocks;

use crate::meter::Meter;
use crate::{Aws, Names};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_runtime_api::client::behavior_version::BehaviorVersion;
use aws_smithy_types::retry::RetryConfig;
use aws_types::SdkConfig;
use aws_types::region::Region;
use double::Double;
use keelway_domain::time::Span;
use keelway_engine::item::{Attrs, Item, Key};
use keelway_engine::ports::{Bus, BusEntry, Clock, Condition, PortError, Queue, Store, Transacted, Write, Written};
use serde_json::{Value, json};
use std::time::Duration;

const GET: &str = "DynamoDB_20120810.GetItem";
const PUT: &str = "DynamoDB_20120810.PutItem";
const UPDATE: &str = "DynamoDB_20120810.UpdateItem";

fn names() -> Names {
    Names {
        table: "table".into(),
        bus: "bus".into(),
        queues: [("sequences".to_owned(), crate::QueueName { url: "https://queue".into(), arn: "arn:queue".into() })].into(),
        scheduler_group: "group".into(),
        scheduler_role_arn: "arn:role".into(),
        scheduler_dead_letters_arn: Some("arn:dead".into()),
        ..Names::default()
    }
}

fn config() -> aws_types::sdk_config::Builder {
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new("eu-central-1"))
        .credentials_provider(SharedCredentialsProvider::new(Credentials::new("test", "test", None, None, "test")))
}

fn aws(double: &Double) -> Aws {
    let at_once = RetryConfig::standard().with_initial_backoff(Duration::from_millis(1));
    Aws::new(&config().retry_config(at_once).http_client(double.clone()).build(), names())
}

/// An error of DynamoDB, with or without more fields.
fn failed(code: &str, more: Value) -> (u16, Value) {
    let mut body = json!({"__type": format!("com.amazonaws.dynamodb.v20120810#{code}"), "message": "because"});
    body.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    (400, body)
}

fn key() -> Key {
    Key::new("C#shop#1", "X#1")
}

fn bump() -> Write {
    let set = Attrs::from([("v".into(), 8i64.into())]);
    Write::Update { key: key(), condition: Condition::Version(7), set, remove: vec!["gp1".into()], raise: false }
}

async fn got(status: u16, code: &str) -> PortError {
    let (_, body) = failed(code, Value::Null);
    aws(&Double::new(GET, [(status, body)])).get(&key()).await.unwrap_err()
}

#[tokio::test]
async fn errors_that_pass_and_errors_that_stay() {
    for (status, code) in [
        (400, "ProvisionedThroughputExceededException"),
        (400, "ThrottlingException"),
        (400, "RequestLimitExceeded"),
        (400, "ExpiredTokenException"),
        (429, "SomethingNew"),
        (500, "InternalServerError"),
        (503, "ServiceUnavailable"),
    ] {
        let error = got(status, code).await;
        assert!(matches!(error, PortError::Retry { request: "dynamodb.GetItem", .. }), "{code}: {error:?}");
    }
    let met = got(400, "TransactionConflictException").await;
    assert!(matches!(met, PortError::Contended { request: "dynamodb.GetItem", .. }), "{met:?}");
    for code in
        ["ValidationException", "AccessDeniedException", "ResourceNotFoundException", "ItemCollectionSizeLimitExceededException"]
    {
        let error = got(400, code).await;
        let PortError::Refused { reason, .. } = &error else { panic!("{code}: {error:?}") };
        assert!(reason.starts_with(&format!("{code}: because")), "{reason}");
    }
}

#[tokio::test]
async fn throttling_is_tried_three_times_and_counted_once() {
    let double = Double::new(GET, [(500, Value::Null)]);
    let meter = Meter::default();
    let result = meter.around(aws(&double).get(&key())).await;
    assert!(matches!(result, Err(PortError::Retry { .. })));
    assert_eq!((double.requests().len(), meter.usage().total_requests()), (3, 1));
}

#[tokio::test]
async fn a_service_that_is_not_there_may_be_later() {
    let config = config().retry_config(RetryConfig::disabled()).endpoint_url("http://127.0.0.1:1").build();
    let error = Aws::new(&config, names()).get(&key()).await.unwrap_err();
    assert!(matches!(error, PortError::Retry { .. }), "{error:?}");
}

#[tokio::test]
async fn a_failed_condition_brings_the_old_item_and_costs_its_size() {
    let old = json!({"pk": {"S": "C#shop#1"}, "sk": {"S": "X#1"}, "v": {"N": "9"}, "big": {"S": "x".repeat(1500)}});
    let double = Double::new(UPDATE, [failed("ConditionalCheckFailedException", json!({"Item": old}))]);
    let meter = Meter::default();
    let Ok(Written::Conflict(Some(old))) = meter.around(aws(&double).write(&bump())).await else { panic!("no conflict") };
    assert_eq!((old.key.clone(), old.version()), (key(), 9));
    assert_eq!(meter.usage().write_units, 2.0);
    let [request] = double.requests().try_into().unwrap();
    assert_eq!(request["ConditionExpression"], "#v = :v");
    assert_eq!(request["UpdateExpression"], "SET #s0 = :s0 REMOVE #r0");
    assert_eq!(request["ReturnValuesOnConditionCheckFailure"], "ALL_OLD");
    assert_eq!(request["TableName"], "table");
}

#[tokio::test]
async fn a_failed_condition_costs_the_larger_of_what_is_there_and_what_was_meant() {
    let old = json!({"pk": {"S": "C#shop#1"}, "sk": {"S": "X#1"}});
    let double = Double::new(PUT, [failed("ConditionalCheckFailedException", json!({"Item": old}))]);
    let meter = Meter::default();
    let write = Write::Put(Item::new(key()).with("big", "x".repeat(2500)), Condition::Absent);
    assert_eq!(meter.around(aws(&double).write(&write)).await, Ok(Written::Conflict(Some(Item::new(key())))));
    assert_eq!(meter.usage().write_units, 3.0);
}

#[tokio::test]
async fn a_write_compares_attributes_and_raises_the_version() {
    let double = Double::new(UPDATE, [(200, json!({}))]);
    let condition = Condition::Match { equal: Attrs::from([("k".into(), 3i64.into())]), absent: vec!["en".into()] };
    let set = Attrs::from([("r".into(), "x".into())]);
    let write = Write::Update { key: key(), condition, set, remove: vec![], raise: true };
    assert_eq!(aws(&double).write(&write).await, Ok(Written::Done));
    let [request] = double.requests().try_into().unwrap();
    assert_eq!(request["ConditionExpression"], "#m0 = :m0 AND attribute_not_exists(#a0)");
    assert_eq!(request["UpdateExpression"], "SET #v = #v + :one, #s0 = :s0");
    assert_eq!(request["ReturnValuesOnConditionCheckFailure"], "ALL_OLD");
}

#[tokio::test]
async fn a_write_that_happened_costs_what_the_service_says() {
    let double = Double::new(PUT, [(200, json!({"ConsumedCapacity": {"TableName": "table", "CapacityUnits": 3.0}}))]);
    let meter = Meter::default();
    let write = Write::Put(Item::new(key()).with("v", 1i64), Condition::Absent);
    assert_eq!(meter.around(aws(&double).write(&write)).await, Ok(Written::Done));
    assert_eq!((meter.usage().write_units, meter.usage().requests["dynamodb.PutItem"]), (3.0, 1));
}

#[tokio::test]
async fn writers_that_meet_are_tried_again_at_once() {
    let double = Double::new(UPDATE, [failed("TransactionConflictException", Value::Null), (200, json!({}))]);
    assert_eq!(aws(&double).write(&bump()).await, Ok(Written::Done));
    assert_eq!(double.requests().len(), 2);
}

#[tokio::test]
async fn writers_that_keep_meeting_come_back_later() {
    let double = Double::new(UPDATE, [failed("TransactionConflictException", Value::Null)]);
    let Err(PortError::Contended { reason, .. }) = aws(&double).write(&bump()).await else { panic!("no contention") };
    assert!(reason.starts_with("TransactionConflict"), "{reason}");
    assert_eq!(double.requests().len(), 3);
}

async fn transacted(codes: &'static [&'static str]) -> Result<Transacted, PortError> {
    let reasons: Vec<Value> = codes.iter().map(|code| json!({"Code": code})).collect();
    let cancelled = failed("TransactionCanceledException", json!({"CancellationReasons": reasons}));
    let double = Double::new("DynamoDB_20120810.TransactWriteItems", [cancelled]);
    let check = Write::Check(Key::new("C#shop#1", "!"), Condition::Version(1));
    aws(&double).transact(&[bump(), check]).await
}

#[tokio::test]
async fn why_a_transaction_was_cancelled() {
    assert_eq!(transacted(&["None", "ConditionalCheckFailed"]).await, Ok(Transacted::Cancelled(vec![false, true])));
    assert_eq!(transacted(&["TransactionConflict", "None"]).await, Ok(Transacted::Cancelled(vec![true, false])));
    assert_eq!(transacted(&["ThrottlingError", "ConditionalCheckFailed"]).await, Ok(Transacted::Cancelled(vec![false, true])));
    for passing in [&["ThrottlingError", "None"], &["ProvisionedThroughputExceeded", "None"]] {
        assert!(matches!(transacted(passing).await, Err(PortError::Retry { .. })), "{passing:?}");
    }
    assert!(matches!(transacted(&["None", "ValidationError"]).await, Err(PortError::Refused { .. })));
    assert!(matches!(transacted(&[]).await, Err(PortError::Retry { .. })));
}

#[tokio::test]
async fn leftovers_of_a_batch_come_back_whole() {
    let left = json!({"PutRequest": {"Item": {"pk": {"S": "C#shop#1"}, "sk": {"S": "E#1"}, "n": {"N": "5"}}}});
    let double = Double::new("DynamoDB_20120810.BatchWriteItem", [(200, json!({"UnprocessedItems": {"table": [left]}}))]);
    let item = Item::new(Key::new("C#shop#1", "E#1")).with("n", 5i64);
    let leftover = aws(&double).put_batch(std::slice::from_ref(&item), &[key()]).await.unwrap();
    assert_eq!((leftover.puts, leftover.deletes), (vec![item], vec![]));
}

#[tokio::test]
async fn each_event_has_its_own_outcome() {
    let failed = json!({"ErrorCode": "ThrottlingException", "ErrorMessage": "slow down"});
    let answer = json!({"FailedEntryCount": 1, "Entries": [{"EventId": "1"}, failed]});
    let double = Double::new("AWSEvents.PutEvents", [(200, answer)]);
    let entry = BusEntry { source: "me".into(), detail_type: "t".into(), detail: "{}".into() };
    let meter = Meter::default();
    let outcomes = meter.around(aws(&double).publish(&[entry.clone(), entry.clone()])).await;
    assert_eq!(outcomes, Ok(vec![None, Some("ThrottlingException: slow down".into())]));
    assert_eq!(meter.usage().events, 1);
    let short = aws(&double).publish(&[entry]).await;
    assert!(matches!(short, Err(PortError::Retry { .. })), "{short:?}");
}

#[tokio::test]
async fn each_body_has_its_own_outcome_and_silence_is_no_success() {
    let sent = json!({"Id": "1", "MessageId": "m", "MD5OfMessageBody": "d"});
    let failed = json!({"Id": "0", "Code": "InternalError", "SenderFault": false});
    let double = Double::new("AmazonSQS.SendMessageBatch", [(200, json!({"Successful": [sent], "Failed": [failed]}))]);
    let outcomes = aws(&double).send("sequences", &["a".into(), "b".into(), "c".into()]).await.unwrap();
    assert_eq!(outcomes, [Some("InternalError: no message".into()), None, Some("not answered".into())]);
}

#[tokio::test]
async fn a_schedule_that_exists_is_the_same_one() {
    let conflict = json!({"__type": "ConflictException", "Message": "already there"});
    let double = Double::new("POST /schedules/x-1", [(409, conflict)]);
    let aws = aws(&double);
    let at = aws.now() + Span::minutes(60);
    assert_eq!(aws.send_at("sequences", "x-1", "{}", at).await, Ok(()));
    let [request] = double.requests().try_into().unwrap();
    let target = &request["Target"];
    let arns = (&target["Arn"], &target["RoleArn"], &target["DeadLetterConfig"]["Arn"]);
    assert_eq!(arns, (&json!("arn:queue"), &json!("arn:role"), &json!("arn:dead")));
    assert_eq!(request["GroupName"], "group");
    assert!(matches!(aws.send_at("sequences", &"n".repeat(65), "{}", at).await, Err(PortError::Refused { .. })));
}

#[tokio::test]
async fn nothing_too_large_leaves_the_process() {
    let double = Double::new(PUT, [(200, json!({}))]);
    let aws = aws(&double);
    let large = Item::new(key()).with("b", vec![0u8; 400 * 1024]);
    assert!(matches!(aws.write(&Write::Put(large.clone(), Condition::Always)).await, Err(PortError::Refused { .. })));
    assert!(matches!(aws.put_batch(&[large], &[]).await, Err(PortError::Refused { .. })));
    assert!(matches!(aws.send("sequences", &["x".repeat(1024 * 1024 + 1)]).await, Err(PortError::Refused { .. })));
    assert_eq!(double.requests().len(), 0);
}
