//! The function on the queue of attempts. Only connects the parts; the engine handles the messages.

mod about;

use aws_lambda_events::event::sqs::SqsEvent;
use keelway_attempts::Carrier;
use keelway_domain::promotions::HEARTBEAT;
use keelway_engine::promotions::Promotions;
use keelway_engine::promotions::attempts::Attempts;
use keelway_engine::sequences::Sequences;
use keelway_lambda::{aws, batch, messages};
use keelway_outgoing::{Client, Guard, Hosts};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use std::sync::Arc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = keelway_lambda::start()?;
    let ports = aws::connect(&config).await;
    ports.warm().await;
    let pipelines = || Promotions::new(ports.clone(), config.promotions());
    let client = Client::new(Hosts::parse(&config.webhook_hosts()));
    let guard = Guard::new(Hosts::parse(&config.allowed_hosts)).with_loopback(config.loopback);
    let sequences = Sequences::new(ports.clone(), config.limits.clone());
    let carrier = Carrier::new(ports.clone(), sequences, pipelines(), (client, guard));
    let engine = Arc::new(Attempts::new(pipelines(), carrier.persistent()).with_heartbeat(HEARTBEAT));
    lambda_runtime::run(service_fn(|event: LambdaEvent<SqsEvent>| {
        let engine = engine.clone();
        async move {
            let until = batch::until(event.context.deadline);
            let not_done = messages::held_batch(&engine, about::about, event.payload.records, until).await;
            Ok::<_, Error>(batch::answer(&not_done, config.max_receives))
        }
    }))
    .await
}
