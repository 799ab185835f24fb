//! The function behind the API's URL. It connects the parts; the routes are in the library.

use axum::body::Body;
use axum::response::Response;
use keelway_api::{Api, Paces, Settings, SignIn, Tokens, answer, router};
use keelway_lambda::aws;
use keelway_lambda::incoming::About;
use keelway_outgoing::{Guard, Hosts};
use lambda_http::http::StatusCode;
use lambda_http::request::LambdaRequest;
use lambda_http::{Error, LambdaEvent, Request, lambda_runtime, service_fn};
use std::time::Duration;
use tower::ServiceExt;

/// How long an answer waits for the state to show a result.
const PATIENCE: Duration = Duration::from_secs(5);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = keelway_lambda::start()?;
    let ports = aws::connect(&config);
    ports.warm().await;
    if config.token_sha256.is_none() {
        tracing::error!("KEELWAY_TOKEN_SHA256 is not set: nobody has a token that is accepted");
    }
    // The template calls this function by the stack's name and `-api`.
    let function = std::env::var("AWS_LAMBDA_FUNCTION_NAME").unwrap_or_default();
    let sign_in = SignIn::told(&config.page_sign_in, config.identities.as_ref());
    if let Some(why) = sign_in.wrong() {
        tracing::error!(why, "people cannot sign in to the page at a provider: PageSignIn");
    }
    let settings = Settings {
        tokens: Tokens::from_hex(config.token_sha256.as_deref().unwrap_or_default()),
        patience: PATIENCE,
        deployments: config.deployments(),
        sign_in,
        delivers_webhooks: config.delivers_webhooks,
        identities: config.identities.clone(),
        paces: Paces { token: config.token_requests, address: config.address_requests },
        guard: Guard::new(Hosts::parse(&config.allowed_hosts)).with_loopback(config.loopback),
        stack: function.strip_suffix("-api").unwrap_or(&function).to_owned(),
    };
    let api = Api::new(ports, config.limits, settings);
    let app = router(api);
    lambda_runtime::run(service_fn(move |event: LambdaEvent<LambdaRequest>| {
        let (app, id) = (app.clone(), event.context.request_id.clone());
        let service = service_fn(move |request: Request| {
            let (response, id) = (app.clone().oneshot(request), id.clone());
            async move {
                let about = About { kind: "http", ..About::default() };
                // An answer to a task is handled as the function on the queue would, and leaves the same line.
                let handled =
                    |response: &Response<Body>| response.extensions().get::<About>().map(|about| (id.clone(), about.clone()));
                aws::accounted_as(&about, |response| (outcome(response.status()).to_owned(), handled(response)), response).await
            }
        });
        answer(service, event)
    }))
    .await
}

/// The outcome in the log line about the cost of a request. The log line of the fence has the status.
fn outcome(status: StatusCode) -> &'static str {
    match status.as_u16() {
        0..400 => "done",
        400..500 => "refused",
        _ => "failed",
    }
}
