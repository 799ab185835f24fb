//! The function behind the API's URL. Wires; the routes are in the library.

use keelway_api::{Api, Settings, Tokens, router, without_prefix};
use keelway_engine::sequences::Engine;
use keelway_lambda::aws;
use lambda_http::{Error, run};
use std::time::Duration;
use tower::ServiceExt;

/// How long an answer waits for the state to show an outcome.
const PATIENCE: Duration = Duration::from_secs(5);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = keelway_lambda::start()?;
    let ports = aws::connect(&config).await;
    ports.warm().await;
    if config.token_sha256.is_none() {
        tracing::error!("KEELWAY_TOKEN_SHA256 is not set: nobody has a token that is accepted");
    }
    let settings = Settings {
        tokens: Tokens::from_hex(config.token_sha256.as_deref().unwrap_or_default()),
        patience: PATIENCE,
        stack: std::env::var("AWS_LAMBDA_FUNCTION_NAME").unwrap_or_default(),
    };
    let api = Api::new(Engine::new(ports, config.limits), settings);
    run(router(api).map_request(without_prefix)).await
}
