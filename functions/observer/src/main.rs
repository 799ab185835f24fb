//! The function that observes clusters: on a schedule, it sends a message for each cluster that is due, and each message reads one
//! cluster. Only connects the parts.

mod about;

use aws_lambda_events::event::sqs::SqsEvent;
use keelway_engine::promotions::Promotions;
use keelway_engine::promotions::observer::Observer;
use keelway_lambda::delivery::About;
use keelway_lambda::{aws, batch, messages};
use keelway_observer::Kubernetes;
use keelway_outgoing::{Guard, Hosts};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;
use std::sync::Arc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = keelway_lambda::start()?;
    let ports = aws::connect(&config).await;
    ports.warm().await;
    let guard = Guard::new(Hosts::parse(&config.allowed_hosts)).with_loopback(config.loopback);
    let engine = Arc::new(Observer::new(Promotions::new(ports.clone(), config.promotions()), Kubernetes::new(ports, guard)));
    lambda_runtime::run(service_fn(|event: LambdaEvent<Value>| {
        let engine = engine.clone();
        async move {
            // The queue's batches have records; the schedule's tick has none.
            if event.payload.get("Records").is_none() {
                let about = About { kind: "tick", ..About::default() };
                aws::accounted(&about, |sent| format!("{sent} clusters are due"), engine.tick()).await?;
                return Ok::<_, Error>(Value::Null);
            }
            let until = batch::until(event.context.deadline);
            let records = serde_json::from_value::<SqsEvent>(event.payload)?.records;
            let not_done = messages::held_batch(&engine, about::about, records, until).await;
            Ok(serde_json::to_value(batch::answer(&not_done, config.max_receives))?)
        }
    }))
    .await
}
