//! The ports against answers made by hand: what no emulator gives on demand.

use crate::meter::Meter;
use crate::{Aws, Names};
use aws_config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{Credentials, SharedCredentialsProvider};
use aws_sdk_dynamodb::operation::batch_write_item::BatchWriteItemOutput;
use aws_sdk_dynamodb::operation::put_item::{PutItemError, PutItemOutput};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::{UpdateItemError, UpdateItemOutput};
use aws_sdk_dynamodb::types::error::{ConditionalCheckFailedException, TransactionCanceledException};
use aws_sdk_dynamodb::types::{
    AttributeValue, CancellationReason, ConsumedCapacity, PutRequest, ReturnValuesOnConditionCheckFailure, WriteRequest,
};
use aws_sdk_eventbridge::operation::put_events::PutEventsOutput;
use aws_sdk_eventbridge::types::PutEventsResultEntry;
use aws_sdk_scheduler::operation::create_schedule::CreateScheduleError;
use aws_sdk_scheduler::types::error::ConflictException;
use aws_sdk_sqs::operation::send_message_batch::SendMessageBatchOutput;
use aws_sdk_sqs::types::{BatchResultErrorEntry, SendMessageBatchResultEntry};
use aws_smithy_mocks::{Rule, RuleMode, mock, mock_client};
use keelway_domain::time::Span;
use keelway_engine::item::{Attrs, Item, Key};
use keelway_engine::ports::{Bus, BusEntry, Clock, Condition, PortError, Queue, Store, Transacted, Write, Written};
use std::time::Duration;

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

fn aws(rule: &Rule) -> Aws {
    let at_once = RetryConfig::standard().with_initial_backoff(Duration::from_millis(1));
    Aws::with_clients(
        (names(), crate::signed::Signed::new(&aws_config::SdkConfig::builder().build())),
        mock_client!(aws_sdk_dynamodb, RuleMode::MatchAny, &[rule], |config| config
            .retry_config(at_once.clone())
            .retry_classifier(crate::error::Contention)),
        mock_client!(aws_sdk_eventbridge, RuleMode::MatchAny, &[rule]),
        mock_client!(aws_sdk_scheduler, RuleMode::MatchAny, &[rule]),
        mock_client!(aws_sdk_sqs, RuleMode::MatchAny, &[rule]),
    )
}

fn key() -> Key {
    Key::new("C#shop#1", "X#1")
}

fn bump() -> Write {
    let set = Attrs::from([("v".into(), 8i64.into())]);
    Write::Update { key: key(), condition: Condition::Version(7), set, remove: vec!["gp1".into()], raise: false }
}

async fn got(status: u16, code: &str) -> PortError {
    let body = format!(r#"{{"__type":"com.amazonaws.dynamodb.v20120810#{code}","message":"because"}}"#);
    let rule = mock!(aws_sdk_dynamodb::Client::get_item).sequence().http_status(status, Some(body)).repeatedly().build();
    aws(&rule).get(&key()).await.unwrap_err()
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
    let rule = mock!(aws_sdk_dynamodb::Client::get_item).sequence().http_status(500, None).repeatedly().build();
    let meter = Meter::default();
    let result = meter.around(aws(&rule).get(&key())).await;
    assert!(matches!(result, Err(PortError::Retry { .. })));
    assert_eq!((rule.num_calls(), meter.usage().total_requests()), (3, 1));
}

#[tokio::test]
async fn a_service_that_is_not_there_may_be_later() {
    let config = aws_config::SdkConfig::builder()
        .behavior_version(aws_config::BehaviorVersion::v2026_01_12())
        .region(aws_config::Region::new("eu-central-1"))
        .credentials_provider(SharedCredentialsProvider::new(Credentials::new("test", "test", None, None, "test")))
        .retry_config(RetryConfig::disabled())
        .endpoint_url("http://127.0.0.1:1")
        .build();
    let error = Aws::new(&config, names()).get(&key()).await.unwrap_err();
    assert!(matches!(error, PortError::Retry { .. }), "{error:?}");
}

#[tokio::test]
async fn a_failed_condition_brings_the_old_item_and_costs_its_size() {
    let rule = mock!(aws_sdk_dynamodb::Client::update_item)
        .match_requests(|request| {
            assert_eq!(request.condition_expression(), Some("#v = :v"));
            assert_eq!(request.update_expression(), Some("SET #s0 = :s0 REMOVE #r0"));
            assert_eq!(request.return_values_on_condition_check_failure(), Some(&ReturnValuesOnConditionCheckFailure::AllOld));
            request.table_name() == Some("table")
        })
        .then_error(|| {
            let failed = ConditionalCheckFailedException::builder()
                .item("pk", AttributeValue::S("C#shop#1".into()))
                .item("sk", AttributeValue::S("X#1".into()))
                .item("v", AttributeValue::N("9".into()))
                .item("big", AttributeValue::S("x".repeat(1500)));
            UpdateItemError::ConditionalCheckFailedException(failed.build())
        });
    let meter = Meter::default();
    let Ok(Written::Conflict(Some(old))) = meter.around(aws(&rule).write(&bump())).await else { panic!("no conflict") };
    assert_eq!((old.key.clone(), old.version()), (key(), 9));
    assert_eq!(meter.usage().write_units, 2.0);
}

#[tokio::test]
async fn a_failed_condition_costs_the_larger_of_what_is_there_and_what_was_meant() {
    let rule = mock!(aws_sdk_dynamodb::Client::put_item).then_error(|| {
        let failed = ConditionalCheckFailedException::builder()
            .item("pk", AttributeValue::S("C#shop#1".into()))
            .item("sk", AttributeValue::S("X#1".into()));
        PutItemError::ConditionalCheckFailedException(failed.build())
    });
    let meter = Meter::default();
    let write = Write::Put(Item::new(key()).with("big", "x".repeat(2500)), Condition::Absent);
    assert_eq!(meter.around(aws(&rule).write(&write)).await, Ok(Written::Conflict(Some(Item::new(key())))));
    assert_eq!(meter.usage().write_units, 3.0);
}

#[tokio::test]
async fn a_write_compares_attributes_and_raises_the_version() {
    let rule = mock!(aws_sdk_dynamodb::Client::update_item)
        .match_requests(|request| {
            assert_eq!(request.condition_expression(), Some("#m0 = :m0 AND attribute_not_exists(#a0)"));
            assert_eq!(request.update_expression(), Some("SET #v = #v + :one, #s0 = :s0"));
            assert_eq!(request.return_values_on_condition_check_failure(), Some(&ReturnValuesOnConditionCheckFailure::AllOld));
            true
        })
        .then_output(|| UpdateItemOutput::builder().build());
    let condition = Condition::Match { equal: Attrs::from([("k".into(), 3i64.into())]), absent: vec!["en".into()] };
    let set = Attrs::from([("r".into(), "x".into())]);
    let write = Write::Update { key: key(), condition, set, remove: vec![], raise: true };
    assert_eq!(aws(&rule).write(&write).await, Ok(Written::Done));
}

#[tokio::test]
async fn a_write_that_happened_costs_what_the_service_says() {
    let rule = mock!(aws_sdk_dynamodb::Client::put_item).then_output(|| {
        PutItemOutput::builder().consumed_capacity(ConsumedCapacity::builder().capacity_units(3.0).build()).build()
    });
    let meter = Meter::default();
    let write = Write::Put(Item::new(key()).with("v", 1i64), Condition::Absent);
    assert_eq!(meter.around(aws(&rule).write(&write)).await, Ok(Written::Done));
    assert_eq!((meter.usage().write_units, meter.usage().requests["dynamodb.PutItem"]), (3.0, 1));
}

#[tokio::test]
async fn writers_that_meet_are_tried_again_at_once() {
    let body = r#"{"__type":"com.amazonaws.dynamodb.v20120810#TransactionConflictException","message":"ongoing"}"#;
    let rule = mock!(aws_sdk_dynamodb::Client::update_item)
        .sequence()
        .http_status(400, Some(body.into()))
        .http_status(200, Some("{}".into()))
        .build();
    assert_eq!(aws(&rule).write(&bump()).await, Ok(Written::Done));
    assert_eq!(rule.num_calls(), 2);
}

#[tokio::test]
async fn writers_that_keep_meeting_come_back_later() {
    let body = r#"{"__type":"com.amazonaws.dynamodb.v20120810#TransactionConflictException","message":"ongoing"}"#;
    let rule = mock!(aws_sdk_dynamodb::Client::update_item).sequence().http_status(400, Some(body.into())).repeatedly().build();
    let Err(PortError::Contended { reason, .. }) = aws(&rule).write(&bump()).await else { panic!("no contention") };
    assert!(reason.starts_with("TransactionConflict"), "{reason}");
    assert_eq!(rule.num_calls(), 3);
}

async fn transacted(codes: &'static [&'static str]) -> Result<Transacted, PortError> {
    let rule = mock!(aws_sdk_dynamodb::Client::transact_write_items).then_error(|| {
        let reasons = codes.iter().map(|code| CancellationReason::builder().code(*code).build()).collect();
        let cancelled = TransactionCanceledException::builder().set_cancellation_reasons(Some(reasons)).build();
        TransactWriteItemsError::TransactionCanceledException(cancelled)
    });
    let check = Write::Check(Key::new("C#shop#1", "!"), Condition::Version(1));
    aws(&rule).transact(&[bump(), check]).await
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
    let rule = mock!(aws_sdk_dynamodb::Client::batch_write_item).then_output(|| {
        let put = PutRequest::builder()
            .item("pk", AttributeValue::S("C#shop#1".into()))
            .item("sk", AttributeValue::S("E#1".into()))
            .item("n", AttributeValue::N("5".into()));
        let left = WriteRequest::builder().put_request(put.build().unwrap()).build();
        BatchWriteItemOutput::builder().unprocessed_items("table", vec![left]).build()
    });
    let item = Item::new(Key::new("C#shop#1", "E#1")).with("n", 5i64);
    let leftover = aws(&rule).put_batch(std::slice::from_ref(&item), &[key()]).await.unwrap();
    assert_eq!((leftover.puts, leftover.deletes), (vec![item], vec![]));
}

#[tokio::test]
async fn each_event_has_its_own_outcome() {
    let rule = mock!(aws_sdk_eventbridge::Client::put_events).then_output(|| {
        let failed = PutEventsResultEntry::builder().error_code("ThrottlingException").error_message("slow down").build();
        let put = PutEventsResultEntry::builder().event_id("1").build();
        PutEventsOutput::builder().failed_entry_count(1).entries(put).entries(failed).build()
    });
    let entry = BusEntry { source: "me".into(), detail_type: "t".into(), detail: "{}".into() };
    let meter = Meter::default();
    let outcomes = meter.around(aws(&rule).publish(&[entry.clone(), entry.clone()])).await;
    assert_eq!(outcomes, Ok(vec![None, Some("ThrottlingException: slow down".into())]));
    assert_eq!(meter.usage().events, 1);
    let short = aws(&rule).publish(&[entry]).await;
    assert!(matches!(short, Err(PortError::Retry { .. })), "{short:?}");
}

#[tokio::test]
async fn each_body_has_its_own_outcome_and_silence_is_no_success() {
    let rule = mock!(aws_sdk_sqs::Client::send_message_batch).then_output(|| {
        let sent = SendMessageBatchResultEntry::builder().id("1").message_id("m").md5_of_message_body("d");
        let failed = BatchResultErrorEntry::builder().id("0").code("InternalError").sender_fault(false);
        SendMessageBatchOutput::builder().successful(sent.build().unwrap()).failed(failed.build().unwrap()).build().unwrap()
    });
    let outcomes = aws(&rule).send("sequences", &["a".into(), "b".into(), "c".into()]).await.unwrap();
    assert_eq!(outcomes, [Some("InternalError: no message".into()), None, Some("not answered".into())]);
}

#[tokio::test]
async fn a_schedule_that_exists_is_the_same_one() {
    let rule = mock!(aws_sdk_scheduler::Client::create_schedule)
        .match_requests(|request| {
            let target = request.target().unwrap();
            let dead = target.dead_letter_config().and_then(|config| config.arn());
            assert_eq!((target.arn(), target.role_arn(), dead), ("arn:queue", "arn:role", Some("arn:dead")));
            request.name() == Some("x-1") && request.group_name() == Some("group")
        })
        .then_error(|| {
            let conflict = ConflictException::builder().message("already there").build().unwrap();
            CreateScheduleError::ConflictException(conflict)
        });
    let aws = aws(&rule);
    let at = aws.now() + Span::minutes(60);
    assert_eq!(aws.send_at("sequences", "x-1", "{}", at).await, Ok(()));
    assert_eq!(rule.num_calls(), 1);
    assert!(matches!(aws.send_at("sequences", &"n".repeat(65), "{}", at).await, Err(PortError::Refused { .. })));
}

#[tokio::test]
async fn nothing_too_large_leaves_the_process() {
    let rule = mock!(aws_sdk_dynamodb::Client::put_item).then_output(|| PutItemOutput::builder().build());
    let aws = aws(&rule);
    let large = Item::new(key()).with("b", vec![0u8; 400 * 1024]);
    assert!(matches!(aws.write(&Write::Put(large.clone(), Condition::Always)).await, Err(PortError::Refused { .. })));
    assert!(matches!(aws.put_batch(&[large], &[]).await, Err(PortError::Refused { .. })));
    assert!(matches!(aws.send("sequences", &["x".repeat(1024 * 1024 + 1)]).await, Err(PortError::Refused { .. })));
    assert_eq!(rule.num_calls(), 0);
}
