//! The function on the queue of webhooks. Only connects the parts; the engine handles the messages.

mod about;

use aws_lambda_events::event::sqs::SqsEvent;
use keelway_engine::webhooks::Webhooks;
use keelway_lambda::{aws, batch, messages};
use keelway_outgoing::{Client, Hosts};
use keelway_webhooks::Deliverer;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use std::sync::Arc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = keelway_lambda::start()?;
    let ports = aws::connect(&config).await;
    ports.warm().await;
    let client = Client::new(Hosts::parse(&config.webhook_hosts()));
    let engine = Arc::new(Webhooks::with(ports.clone(), config.webhooks(), Deliverer::new(ports, client)));
    lambda_runtime::run(service_fn(|event: LambdaEvent<SqsEvent>| {
        let engine = engine.clone();
        async move {
            let until = batch::until(event.context.deadline);
            let not_done = messages::batch(&engine, about::about, event.payload.records, until).await;
            Ok::<_, Error>(batch::answer(&not_done, config.max_receives))
        }
    }))
    .await
}
