//! The function on the dead-letter queue. It connects the parts; [`handler`] stores each letter.

mod handler;

use aws_lambda_events::event::sqs::SqsEvent;
use keelway_lambda::{aws, batch};
use lambda_runtime::{Error, LambdaEvent, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = keelway_lambda::start_with_table()?;
    let ports = aws::connect_table(&config).await;
    lambda_runtime::run(service_fn(|event: LambdaEvent<SqsEvent>| {
        let ports = ports.clone();
        async move {
            let until = batch::until(event.context.deadline);
            let not_done = handler::batch(&ports, event.payload.records, until).await;
            // This queue has no dead-letter queue of its own: a letter stays there until it is stored.
            Ok::<_, Error>(batch::answer(&not_done, u32::MAX))
        }
    }))
    .await
}
