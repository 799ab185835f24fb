//! The function on the queue of Keelway's own deployer. It connects the parts.

mod about;

use keelway_engine::deployers::Deployers;
use keelway_engine::deployments::Deployments;
use keelway_lambda::aws;
use keelway_lambda::messages::Consumer;
use lambda_runtime::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = keelway_lambda::start()?;
    let ports = aws::connect(&config).await;
    ports.warm().await;
    let callback = std::env::var("KEELWAY_API_URL").unwrap_or_default();
    let engine = Deployers::new(Deployments::new(ports.clone(), config.deployments()), ports, &callback);
    Consumer::new(engine, about::about, config.max_receives).holding().taking(5).run_knocked().await
}
