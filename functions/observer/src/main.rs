//! The function that observes clusters: on a schedule, it sends a message for each cluster that is due, and each message reads one
//! cluster. It connects the parts.

mod about;

use keelway_engine::promotions::Promotions;
use keelway_engine::promotions::observer::Observer;
use keelway_lambda::aws;
use keelway_lambda::incoming::About;
use keelway_lambda::messages::Consumer;
use keelway_observer::Kubernetes;
use keelway_outgoing::{Guard, Hosts};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = keelway_lambda::start()?;
    let ports = aws::connect(&config);
    ports.warm().await;
    let guard = Guard::new(Hosts::parse(&config.allowed_hosts)).with_loopback(config.loopback);
    let observer = Observer::new(Promotions::new(ports.clone(), config.promotions()), Kubernetes::new(ports, guard));
    let consumer = &Consumer::new(observer, about::about, config.max_receives).holding().taking(5);
    lambda_runtime::run(service_fn(|event: LambdaEvent<Value>| async move {
        // The schedule's tick says what it is.
        if event.payload.get("detail-type").is_some() {
            let about = About { kind: "tick", ..About::default() };
            aws::accounted(&about, |sent| format!("{sent} clusters are due"), consumer.inbox().tick()).await?;
            return Ok(Value::Null);
        }
        consumer.invoked(event.payload, event.context.deadline).await
    }))
    .await
}
