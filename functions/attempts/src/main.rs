//! The function on the queue of attempts. It connects the parts; the engine handles the messages.

mod about;

use keelway_attempts::Carrier;
use keelway_domain::promotions::HEARTBEAT;
use keelway_engine::promotions::Promotions;
use keelway_engine::promotions::attempts::Attempts;
use keelway_engine::sequences::Sequences;
use keelway_lambda::aws;
use keelway_lambda::messages::Consumer;
use keelway_outgoing::{Client, Guard, Hosts};
use lambda_runtime::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = keelway_lambda::start()?;
    let ports = aws::connect(&config);
    ports.warm().await;
    let pipelines = || Promotions::new(ports.clone(), config.promotions());
    let client = Client::new(Hosts::parse(&config.webhook_hosts()));
    let guard = Guard::new(Hosts::parse(&config.allowed_hosts)).with_loopback(config.loopback);
    let sequences = Sequences::new(ports.clone(), config.limits.clone());
    let carrier = Carrier::new(ports.clone(), sequences, pipelines(), (client, guard));
    let engine = Attempts::new(pipelines(), carrier.persistent()).with_heartbeat(HEARTBEAT);
    Consumer::new(engine, about::about, config.max_receives).holding().taking(5).run_knocked().await
}
