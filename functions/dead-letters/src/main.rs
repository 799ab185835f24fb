//! The function on the dead-letter queue. It connects the parts; [`handler`] stores each letter.

mod handler;

use aws_lambda_events::event::sqs::SqsEvent;
use keelway_lambda::{aws, batch};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = keelway_lambda::start_with_table()?;
    let ports = &aws::connect_table(&config);
    lambda_runtime::run(service_fn(|event: LambdaEvent<Value>| async move {
        let until = batch::until(event.context.deadline);
        // While the queue is polled, batches come; otherwise the sweep knocks.
        if event.payload.get("Records").is_none() {
            handler::all(ports, until).await?;
            return Ok::<_, Error>(Value::Null);
        }
        let records = serde_json::from_value::<SqsEvent>(event.payload)?.records.into_iter().map(Into::into).collect();
        Ok(serde_json::to_value(batch::answer(&handler::batch(ports, records, until).await))?)
    }))
    .await
}
