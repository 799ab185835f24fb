//! The ports against an emulator of AWS, when `AWS_ENDPOINT_URL` names one on this machine:
//!
//! `AWS_ENDPOINT_URL=http://127.0.0.1:4566 cargo test -p keelway-aws --test emulator`
//!
//! Everything it makes there bears a name of its own and is taken away again.

use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region, SharedCredentialsProvider};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection, ProjectionType,
    ScalarAttributeType,
};
use aws_sdk_eventbridge::types::Target;
use aws_types::SdkConfig;
use keelway_aws::meter::Meter;
use keelway_aws::{Aws, Names, QueueName};
use keelway_domain::time::Span;
use keelway_engine::item::{Item, Key};
use keelway_engine::ports::{
    Bus, BusEntry, Clock, Consistency, Index, Leftover, Page, PortError, Query, Queue, Store, Transacted, Write, Written,
};
use keelway_world::contract;
use std::io::Write as _;
use std::net::IpAddr;
use std::time::{Duration, Instant, SystemTime};

/// The engine whose queue the tests use.
const ENGINE: &str = "sequences";
/// Only says that nothing moves any more.
const LAST_LIMIT: Duration = Duration::from_secs(300);

struct Cloud {
    config: SdkConfig,
    aws: Aws,
    name: String,
    queue_url: String,
}

/// The emulator's address, if there is one and it is this machine: a test never touches an account.
fn endpoint(test: &str) -> Option<String> {
    let reason = match std::env::var("AWS_ENDPOINT_URL") {
        Ok(url) if is_this_machine(&url) => return Some(url),
        Ok(url) => format!("AWS_ENDPOINT_URL is {url}, which is not this machine"),
        Err(_) => "AWS_ENDPOINT_URL is not set".to_owned(),
    };
    // Not by `println!`, which the test runner keeps to itself.
    let mut terminal = std::io::stderr();
    writeln!(terminal, "not run: keelway-aws on an emulator, {test}: {reason}").unwrap();
    None
}

fn is_this_machine(url: &str) -> bool {
    let host = url.split("://").nth(1).and_then(|rest| rest.split(['/', ':']).next());
    host.is_some_and(|host| host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback()))
}

async fn cloud(test: &str) -> Option<Cloud> {
    let url = endpoint(test)?;
    let config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .endpoint_url(url)
        .region(Region::new("eu-central-1"))
        .credentials_provider(SharedCredentialsProvider::new(Credentials::new("test", "test", None, None, "test")))
        .build();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let name = format!("keelway-aws-{test}-{}-{}", std::process::id(), now.subsec_nanos());
    make_table(&config, &name).await;
    aws_sdk_eventbridge::Client::new(&config).create_event_bus().name(&name).send().await.unwrap();
    aws_sdk_scheduler::Client::new(&config).create_schedule_group().name(&name).send().await.unwrap();
    let sqs = aws_sdk_sqs::Client::new(&config);
    let queue_url = sqs.create_queue().queue_name(&name).send().await.unwrap().queue_url.unwrap();
    let names = Names {
        table: name.clone(),
        bus: name.clone(),
        queues: [(
            ENGINE.to_owned(),
            QueueName { url: queue_url.clone(), arn: format!("arn:aws:sqs:eu-central-1:000000000000:{name}") },
        )]
        .into(),
        scheduler_group: name.clone(),
        scheduler_role_arn: "arn:aws:iam::000000000000:role/scheduler".into(),
        ..Names::default()
    };
    Some(Cloud { aws: Aws::new(&config, names), config, name, queue_url })
}

async fn make_table(config: &SdkConfig, name: &str) {
    let attribute =
        |name: &str| AttributeDefinition::builder().attribute_name(name).attribute_type(ScalarAttributeType::S).build().unwrap();
    let key = |name: &str, kind: KeyType| KeySchemaElement::builder().attribute_name(name).key_type(kind).build().unwrap();
    let index = |index: Index| {
        let (name, partition, sort) = index.names();
        GlobalSecondaryIndex::builder()
            .index_name(name)
            .key_schema(key(partition, KeyType::Hash))
            .key_schema(key(sort, KeyType::Range))
            .projection(Projection::builder().projection_type(ProjectionType::KeysOnly).build())
            .build()
            .unwrap()
    };
    let table = aws_sdk_dynamodb::Client::new(config).create_table().table_name(name).billing_mode(BillingMode::PayPerRequest);
    ["pk", "sk", "gp1", "gs1", "gp2", "gs2"]
        .into_iter()
        .fold(table, |table, name| table.attribute_definitions(attribute(name)))
        .key_schema(key("pk", KeyType::Hash))
        .key_schema(key("sk", KeyType::Range))
        .global_secondary_indexes(index(Index::ByWork))
        .global_secondary_indexes(index(Index::ByAge))
        .send()
        .await
        .unwrap();
}

impl Cloud {
    /// So many messages, deleted; fewer when nothing moves any more.
    async fn receive(&self, wanted: usize) -> Vec<String> {
        let sqs = aws_sdk_sqs::Client::new(&self.config);
        let (mut bodies, start) = (vec![], Instant::now());
        while bodies.len() < wanted && start.elapsed() < LAST_LIMIT {
            let answer = sqs.receive_message().queue_url(&self.queue_url).max_number_of_messages(10).send().await.unwrap();
            for message in answer.messages.into_iter().flatten() {
                let receipt = message.receipt_handle.unwrap();
                sqs.delete_message().queue_url(&self.queue_url).receipt_handle(receipt).send().await.unwrap();
                bodies.push(message.body.unwrap());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        bodies.sort();
        bodies
    }

    async fn remove(self) {
        aws_sdk_dynamodb::Client::new(&self.config).delete_table().table_name(&self.name).send().await.unwrap();
        aws_sdk_sqs::Client::new(&self.config).delete_queue().queue_url(&self.queue_url).send().await.unwrap();
        aws_sdk_scheduler::Client::new(&self.config).delete_schedule_group().name(&self.name).send().await.unwrap();
    }
}

/// A store that knows what its writes cost.
struct Metered<'a>(&'a Aws, Meter);

impl contract::Meter for Metered<'_> {
    fn write_units(&self) -> f64 {
        self.1.usage().write_units
    }
}

impl Store for Metered<'_> {
    async fn get(&self, key: &Key) -> Result<Option<Item>, PortError> {
        self.0.get(key).await
    }
    async fn get_batch(&self, keys: &[Key], consistency: Consistency) -> Result<(Vec<Item>, Vec<Key>), PortError> {
        self.0.get_batch(keys, consistency).await
    }
    async fn query(&self, query: &Query) -> Result<Page, PortError> {
        self.0.query(query).await
    }
    async fn put_batch(&self, puts: &[Item], deletes: &[Key]) -> Result<Leftover, PortError> {
        self.0.put_batch(puts, deletes).await
    }
    async fn write(&self, write: &Write) -> Result<Written, PortError> {
        self.1.around(self.0.write(write)).await
    }
    async fn transact(&self, writes: &[Write]) -> Result<Transacted, PortError> {
        self.1.around(self.0.transact(writes)).await
    }
}

#[tokio::test]
async fn the_store_keeps_its_contract() {
    let Some(cloud) = cloud("store").await else { return };
    let mut broken = vec![];
    for (property, name) in contract::PROPERTIES.iter().enumerate() {
        match contract::check(&cloud.aws, property, "T#").await {
            Ok(()) => println!("holds: {name}"),
            Err(error) => broken.push(format!("{name}: {error}")),
        }
    }
    for (name, instead) in contract::TWIN_ONLY {
        println!("of the twin only: {name}: {instead}");
    }
    if let Err(error) = contract::write_units(&Metered(&cloud.aws, Meter::default()), "U#").await {
        broken.push(format!("write units: {error}"));
    }
    cloud.remove().await;
    assert_eq!(broken, Vec::<String>::new());
}

#[tokio::test]
async fn events_reach_a_rules_target() {
    let Some(cloud) = cloud("bus").await else { return };
    let rules = aws_sdk_eventbridge::Client::new(&cloud.config);
    let pattern = r#"{"detail-type":[{"prefix":"sh.keptn."}]}"#;
    rules.put_rule().name("all").event_bus_name(&cloud.name).event_pattern(pattern).send().await.unwrap();
    let arn = format!("arn:aws:sqs:eu-central-1:000000000000:{}", cloud.name);
    let target = Target::builder().id("queue").arn(arn).build().unwrap();
    rules.put_targets().rule("all").event_bus_name(&cloud.name).targets(target).send().await.unwrap();
    let entry =
        |n: usize| BusEntry { source: "me".into(), detail_type: "sh.keptn.event.x".into(), detail: format!(r#"{{"n":{n}}}"#) };
    let entries: Vec<BusEntry> = (0..10).map(entry).collect();
    assert_eq!(cloud.aws.publish(&entries).await, Ok(vec![None; 10]));
    let bodies = cloud.receive(10).await;
    assert_eq!(bodies.len(), 10, "{bodies:?}");
    assert!(bodies[0].contains(r#""detail-type""#), "{}", bodies[0]);
    rules.remove_targets().rule("all").event_bus_name(&cloud.name).ids("queue").send().await.unwrap();
    rules.delete_rule().name("all").event_bus_name(&cloud.name).send().await.unwrap();
    rules.delete_event_bus().name(&cloud.name).send().await.unwrap();
    cloud.remove().await;
}

#[tokio::test]
async fn messages_arrive_at_once_or_later_or_by_schedule() {
    let Some(cloud) = cloud("queue").await else { return };
    let aws = &cloud.aws;
    assert_eq!(aws.send(ENGINE, &["one".into()]).await, Ok(vec![None]));
    let many: Vec<String> = (0..10).map(|i| format!("many {i}")).collect();
    assert_eq!(aws.send(ENGINE, &many).await, Ok(vec![None; 10]));
    assert_eq!(cloud.receive(11).await.len(), 11);

    let at = aws.now() + Span::seconds(2);
    aws.send_at(ENGINE, "soon", "soon", at).await.unwrap();
    assert_eq!(cloud.receive(1).await, ["soon"]);
    assert!(aws.now() >= at, "it came {} early", at - aws.now());

    let at = aws.now() + Span::minutes(60);
    aws.send_at(ENGINE, "later", "later", at).await.unwrap();
    aws.send_at(ENGINE, "later", "later", at).await.unwrap();
    let schedules = aws_sdk_scheduler::Client::new(&cloud.config);
    let schedule = schedules.get_schedule().group_name(&cloud.name).name("later").send().await.unwrap();
    let wanted = (at - Span::minutes(10)).rfc3339();
    assert_eq!(schedule.schedule_expression, Some(format!("at({})", &wanted[..19])));
    schedules.delete_schedule().group_name(&cloud.name).name("later").send().await.unwrap();
    cloud.remove().await;
}

#[tokio::test]
async fn a_message_that_failed_comes_back_soon() {
    let Some(cloud) = cloud("back").await else { return };
    cloud.aws.send(ENGINE, &["again".into()]).await.unwrap();
    let sqs = aws_sdk_sqs::Client::new(&cloud.config);
    // Without being told otherwise it would come back in twelve hours.
    let first = sqs.receive_message().queue_url(&cloud.queue_url).visibility_timeout(12 * 3600).send().await.unwrap();
    let receipt = first.messages()[0].receipt_handle().unwrap();
    cloud.aws.come_back_in(ENGINE, receipt, 1).await.unwrap();
    assert_eq!(cloud.receive(1).await, ["again"]);
    cloud.remove().await;
}

#[tokio::test]
async fn messages_are_hidden_for_as_long_as_was_said_last() {
    let Some(cloud) = cloud("hidden").await else { return };
    cloud.aws.send(ENGINE, &["a".into(), "b".into()]).await.unwrap();
    let sqs = aws_sdk_sqs::Client::new(&cloud.config);
    let mut receipts = vec![];
    while receipts.len() < 2 {
        let request = sqs.receive_message().queue_url(&cloud.queue_url).visibility_timeout(12 * 3600).max_number_of_messages(10);
        let some = request.send().await.unwrap();
        receipts.extend(some.messages().iter().filter_map(|message| message.receipt_handle().map(str::to_owned)));
    }
    cloud.aws.hide_for(ENGINE, &receipts, 1).await.unwrap();
    let mut back = cloud.receive(2).await;
    back.sort();
    assert_eq!(back, ["a", "b"]);
    cloud.aws.hide_for(ENGINE, &["no receipt".into()], 1).await.unwrap_err();
    cloud.remove().await;
}

#[tokio::test]
async fn a_table_that_is_not_there_is_no_empty_one() {
    let Some(cloud) = cloud("none").await else { return };
    let names = Names { table: "keelway-no-such-table".into(), ..Names::default() };
    let error = Aws::new(&cloud.config, names).get(&Key::new("a", "b")).await.unwrap_err();
    assert!(matches!(error, PortError::Refused { .. }), "{error:?}");
    cloud.remove().await;
}
