//! The function on a schedule. It connects the parts.

// The futures of all engines' sweeps are nested.
#![recursion_limit = "256"]

use keelway_engine::ports::Clock;
use keelway_engine::trouble::Trouble;
use keelway_lambda::{aws, batch, metrics};
use keelway_sweep::{Engines, Limits, sweep};
use lambda_runtime::{Error, LambdaEvent, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = keelway_lambda::start()?;
    let ports = aws::connect(&config);
    let (promotions, deployments, webhooks) = (config.promotions(), config.deployments(), config.webhooks());
    let evaluations = config.evaluations();
    let limits = Limits { sequences: config.limits, promotions, deployments, webhooks, evaluations };
    let (engines, outside) = (&Engines::new(&ports, limits), &ports);
    let (patience, report) = (config.max_message_age, |seen: &[Trouble]| metrics::trouble(seen, outside.now()));
    lambda_runtime::run(service_fn(|event: LambdaEvent<serde_json::Value>| async move {
        sweep(engines, outside, patience, report, batch::until(event.context.deadline)).await.map_err(Error::from)
    }))
    .await
}
