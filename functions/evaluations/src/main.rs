//! The function on the queue of evaluations. It connects the parts; the engine handles the messages.

mod about;

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
    let guard = Guard::new(Hosts::parse(&config.allowed_hosts)).with_loopback(config.loopback);
    let reading = Reading { slo: evaluation::slo, sli: evaluation::sli, provided: evaluation::answered };
    let engine = Evaluations::with(ports.clone(), config.evaluations(), reading, Sources::new(ports, &guard));
    Consumer::new(engine, about::about, config.max_receives).holding().taking(5).run_knocked().await
}
