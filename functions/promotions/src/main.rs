//! The function on the queue of the promotions engine. It connects the parts; the engine handles the messages.

mod about;

use keelway_engine::promotions::Promotions;
use keelway_lambda::aws;
use keelway_lambda::messages::Consumer;
use lambda_runtime::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = keelway_lambda::start()?;
    let ports = aws::connect(&config);
    ports.warm().await;
    let engine = Promotions::new(ports, config.promotions());
    Consumer::new(engine, about::about, config.max_receives).run_knocked().await
}
