//! A function that does nothing: what any Rust function takes to start, for the bench to compare with.

use lambda_runtime::{Error, LambdaEvent, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    lambda_runtime::run(service_fn(|event: LambdaEvent<serde_json::Value>| async move { Ok::<_, Error>(event.payload) })).await
}
