//! The function on the queue of webhooks. It connects the parts; the engine handles the messages.

mod about;

use keelway_engine::webhooks::{PLACES, Webhooks};
use keelway_lambda::aws;
use keelway_lambda::messages::Consumer;
use keelway_outgoing::{Client, Hosts};
use keelway_webhooks::Deliverer;
use lambda_runtime::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = keelway_lambda::start()?;
    let ports = aws::connect(&config);
    ports.warm().await;
    let client = Client::new(Hosts::parse(&config.webhook_hosts()));
    let engine = Webhooks::with(ports.clone(), config.webhooks(), Deliverer::new(ports, client));
    Consumer::new(engine, about::about, config.max_receives).taking(PLACES).run_knocked().await
}
