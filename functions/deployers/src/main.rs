//! The function on the queue of the deployers that Keelway runs itself. Only connects the parts.

mod about;

use aws_lambda_events::event::sqs::SqsEvent;
use keelway_deployers::Deployers;
use keelway_engine::deployments::Deployments;
use keelway_lambda::{aws, batch, messages};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use std::sync::Arc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = keelway_lambda::start()?;
    let ports = aws::connect(&config).await;
    ports.warm().await;
    let callback = std::env::var("KEELWAY_API_URL").unwrap_or_default();
    let engine = Arc::new(Deployers::new(Deployments::new(ports.clone(), config.deployments()), ports, &callback));
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
