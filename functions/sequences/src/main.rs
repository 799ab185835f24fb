//! The function on the engine's queue. Wires; [`handler`] maps a message to a call of the engine and its outcome.

mod handler;

use aws_lambda_events::event::sqs::SqsEvent;
use keelway_engine::sequences::Engine;
use keelway_lambda::{aws, batch};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use std::sync::Arc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = keelway_lambda::start()?;
    let ports = aws::connect(&config).await;
    ports.warm().await;
    let engine = Arc::new(Engine::new(ports, config.limits));
    lambda_runtime::run(service_fn(|event: LambdaEvent<SqsEvent>| {
        let engine = engine.clone();
        async move {
            let until = batch::until(event.context.deadline);
            let not_done = handler::batch(&engine, event.payload.records, until).await;
            Ok::<_, Error>(batch::answer(&not_done, config.max_receives))
        }
    }))
    .await
}
