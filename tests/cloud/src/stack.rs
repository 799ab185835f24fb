//! One deployed stack and the ways into it: its API, its bus, its queues, its table.

use crate::api::Api;
use crate::patience::LAST_LIMIT;
use crate::problem::Problem;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region, SharedCredentialsProvider};
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use aws_sdk_sqs::types::QueueAttributeName;
use aws_types::SdkConfig;
use keelway_aws::{Aws, Names, QueueName};
use keelway_engine::item::{Item, Key};
use keelway_engine::ports::{Query, Store};
use keelway_engine::sequences;
use keelway_engine::table;
use keelway_engine::{deployments, evaluations, promotions, webhooks};
use serde_json::Value;
use std::sync::Arc;
use tokio::runtime::Handle;

/// A deployed stack. A clone is the same stack.
#[derive(Clone)]
pub struct Stack {
    inner: Arc<Inner>,
}

struct Inner {
    outputs: Value,
    config: SdkConfig,
    aws: Aws,
    sqs: aws_sdk_sqs::Client,
    eventbridge: aws_sdk_eventbridge::Client,
    api: Api,
    handle: Handle,
}

impl Stack {
    /// From the outputs `cloud.py deploy` prints.
    ///
    /// # Errors
    /// When an output is missing.
    pub fn new(outputs: &Value, token: &str, handle: Handle) -> Result<Self, Problem> {
        let output = |name: &str| {
            let found = outputs[name].as_str().map(str::to_owned);
            found.ok_or_else(|| Problem(format!("the stack has no output {name}: infra/template.yaml must have it")))
        };
        let config = SdkConfig::builder()
            .behavior_version(BehaviorVersion::v2026_01_12())
            .endpoint_url(output("Endpoint")?)
            .region(Region::new(output("Region")?))
            .credentials_provider(SharedCredentialsProvider::new(Credentials::new("test", "test", None, None, "test")))
            // A request without an answer is sent again.
            .timeout_config(TimeoutConfig::builder().operation_attempt_timeout(LAST_LIMIT / 5).build())
            .build();
        let names = Names {
            table: output("TableName")?,
            bus: output("BusName")?,
            queues: [
                (sequences::NAME, "QueueUrl"),
                (promotions::NAME, "PromotionsQueueUrl"),
                (promotions::ATTEMPTS, "AttemptsQueueUrl"),
                (promotions::OBSERVER, "ObserverQueueUrl"),
                (deployments::NAME, "DeploymentsQueueUrl"),
                (deployments::DEPLOYERS, "DeployersQueueUrl"),
                (webhooks::NAME, "WebhooksQueueUrl"),
                (evaluations::NAME, "EvaluationsQueueUrl"),
            ]
            .into_iter()
            .map(|(engine, queue)| {
                let url = output(queue)?;
                // All queues of the emulator are of one account.
                let arn = format!("arn:aws:sqs:{}:000000000000:{}", output("Region")?, url.rsplit('/').next().unwrap_or_default());
                Ok((engine.to_owned(), QueueName { url, arn }))
            })
            .collect::<Result<_, Problem>>()?,
            scheduler_group: output("SchedulerGroupName")?,
            // The emulator does not ask whether there is such a role.
            scheduler_role_arn: "arn:aws:iam::000000000000:role/scheduler".into(),
            knocks: true,
            ..Names::default()
        };
        let inner = Inner {
            aws: Aws::new(&config, names),
            sqs: aws_sdk_sqs::Client::new(&config),
            eventbridge: aws_sdk_eventbridge::Client::new(&config),
            api: Api::new(&output("ApiUrl")?, token),
            outputs: outputs.clone(),
            config,
            handle,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// An output of the template; empty if there is none.
    pub fn output(&self, name: &str) -> String {
        self.inner.outputs[name].as_str().unwrap_or_default().to_owned()
    }
    /// All of them.
    pub fn outputs(&self) -> &Value {
        &self.inner.outputs
    }
    /// The stack's name.
    pub fn name(&self) -> String {
        self.output("StackName")
    }
    /// Its API.
    pub fn api(&self) -> &Api {
        &self.inner.api
    }
    /// Clients for anything else, as the account's root user.
    pub fn config(&self) -> &SdkConfig {
        &self.inner.config
    }
    /// The engine's ports, as the account's root user.
    pub fn ports(&self) -> &Aws {
        &self.inner.aws
    }
    /// Its queues' client.
    pub fn sqs(&self) -> &aws_sdk_sqs::Client {
        &self.inner.sqs
    }
    /// Its bus's client.
    pub fn eventbridge(&self) -> &aws_sdk_eventbridge::Client {
        &self.inner.eventbridge
    }
    /// Waits for something asynchronous; never from inside of it.
    pub fn wait<F: Future>(&self, work: F) -> F::Output {
        self.inner.handle.block_on(work)
    }
    /// The runtime.
    pub fn handle(&self) -> &Handle {
        &self.inner.handle
    }

    /// Puts events in structured JSON on the bus, as executors do; ten at most.
    ///
    /// # Errors
    /// When the bus does not take all of them.
    pub async fn put_events(&self, events: &[Value]) -> Result<(), Problem> {
        let entry = |event: &Value| {
            PutEventsRequestEntry::builder()
                .event_bus_name(self.output("BusName"))
                .source(event["source"].as_str().unwrap_or(keelway_domain::event::DEFAULT_SOURCE))
                .detail_type(event["type"].as_str().unwrap_or_default())
                .detail(event.to_string())
                .build()
        };
        let request = self.inner.eventbridge.put_events().set_entries(Some(events.iter().map(entry).collect()));
        let answer = request.send().await.map_err(|error| Problem::of("PutEvents", format!("{error:?}")))?;
        match answer.failed_entry_count() {
            0 => Ok(()),
            n => Err(format!("PutEvents: {n} entries failed: {:?}", answer.entries()).into()),
        }
    }

    /// Puts one event on the bus and waits until it is there.
    ///
    /// # Errors
    /// When the bus does not take it.
    pub fn put_event(&self, event: &Value) -> Result<(), Problem> {
        self.wait(self.put_events(std::slice::from_ref(event)))
    }

    /// Puts a body into the engine's queue.
    ///
    /// # Errors
    /// When the queue does not take it.
    pub fn send(&self, body: &str) -> Result<(), Problem> {
        let request = self.sqs().send_message().queue_url(self.output("QueueUrl")).message_body(body);
        self.wait(request.send()).map(drop).map_err(|error| Problem::of("SendMessage", format!("{error:?}")))
    }

    /// Sets attributes of a queue: `[("VisibilityTimeout", "2")]`.
    ///
    /// # Errors
    /// When the queue refuses.
    pub fn tune(&self, queue_url: &str, attributes: &[(&str, &str)]) -> Result<(), Problem> {
        let mut request = self.sqs().set_queue_attributes().queue_url(queue_url);
        for (name, value) in attributes {
            request = request.attributes(QueueAttributeName::from(*name), *value);
        }
        self.wait(request.send()).map(drop).map_err(|error| Problem::of("SetQueueAttributes", format!("{error:?}")))
    }

    /// A number among a queue's attributes.
    ///
    /// # Errors
    /// When the queue does not say.
    pub fn queue_number(&self, queue_url: &str, attribute: &str) -> Result<u64, Problem> {
        let name = QueueAttributeName::from(attribute);
        let request = self.sqs().get_queue_attributes().queue_url(queue_url).attribute_names(name.clone());
        let answer = self.wait(request.send()).map_err(|error| Problem::of("GetQueueAttributes", format!("{error:?}")))?;
        let text = answer.attributes().and_then(|all| all.get(&name)).cloned().unwrap_or_default();
        text.parse().map_err(|error| Problem::of(attribute, error))
    }

    /// An item of the table.
    ///
    /// # Errors
    /// When the table does not answer.
    pub fn item(&self, key: &Key) -> Result<Option<Item>, Problem> {
        self.wait(self.ports().get(key)).map_err(|error| Problem(error.to_string()))
    }

    /// Items of a partition whose sort key begins so; 1,000 at most.
    ///
    /// # Errors
    /// When the table does not answer.
    pub fn items(&self, partition: &str, prefix: &str) -> Result<Vec<Item>, Problem> {
        let query = Query::table(partition, 100).prefix(prefix);
        let (items, _) = self.wait(table::all(self.ports(), query, 1000)).map_err(|error| Problem(error.to_string()))?;
        Ok(items)
    }
}
