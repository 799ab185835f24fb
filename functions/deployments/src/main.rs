//! The function on the queue of the deployments engine. It connects the parts; the engine handles the messages.

mod about;
mod read;

use keelway_engine::deployments::Deployments;
use keelway_lambda::aws;
use keelway_lambda::messages::Consumer;
use lambda_runtime::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = keelway_lambda::start()?;
    let ports = aws::connect(&config);
    ports.warm().await;
    let engine = Deployments::new(ports, config.deployments());
    Consumer::new(engine, about::about, config.max_receives).reading(read::read).run_knocked().await
}
