//! The function on the queue of Keelway's own deployer. It connects the parts.

mod about;

use keelway_engine::deployers::Deployers;
use keelway_engine::deployments::Deployments;
use keelway_engine::evaluations::{Evaluations, Reading};
use keelway_lambda::aws;
use keelway_lambda::messages::Consumer;
use keelway_metrics::Sources;
use keelway_outgoing::{Guard, Hosts};
use keelway_wire::evaluation;
use lambda_runtime::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = keelway_lambda::start()?;
    let ports = aws::connect(&config);
    ports.warm().await;
    let callback = std::env::var("KEELWAY_API_URL").unwrap_or_default();
    let guard = Guard::new(Hosts::parse(&config.allowed_hosts)).with_loopback(config.loopback);
    let sources = Sources::new(ports.clone(), &guard);
    let reading = Reading { slo: evaluation::slo, sli: evaluation::sli, provided: evaluation::answered };
    let evaluations = Evaluations::with(ports.clone(), config.evaluations(), reading, sources);
    let engine = Deployers::new(Deployments::new(ports.clone(), config.deployments()), ports, evaluations, &callback);
    Consumer::new(engine, about::about, config.max_receives).holding().taking(5).run_knocked().await
}
