//! The function on a schedule. It connects the parts.

// The futures of all engines' sweeps are nested.
#![recursion_limit = "256"]

use keelway_engine::deployments::Deployments;
use keelway_engine::ports::Clock;
use keelway_engine::promotions::Promotions;
use keelway_engine::sequences::Sequences;
use keelway_engine::trouble::Trouble;
use keelway_engine::webhooks::Webhooks;
use keelway_lambda::{aws, batch, metrics};
use keelway_sweep::{Engines, sweep};
use lambda_runtime::{Error, LambdaEvent, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = keelway_lambda::start()?;
    let ports = aws::connect(&config).await;
    let promotions = Promotions::new(ports.clone(), config.promotions());
    let deployments = Deployments::new(ports.clone(), config.deployments());
    let webhooks = Webhooks::new(ports.clone(), config.webhooks());
    let sequences = Sequences::new(ports.clone(), config.limits);
    let (engines, outside) = (&Engines { sequences, promotions, deployments, webhooks }, &ports);
    let (patience, report) = (config.max_message_age, |seen: &[Trouble]| metrics::trouble(seen, outside.now()));
    lambda_runtime::run(service_fn(|event: LambdaEvent<serde_json::Value>| async move {
        sweep(engines, outside, patience, report, batch::until(event.context.deadline)).await.map_err(Error::from)
    }))
    .await
}
