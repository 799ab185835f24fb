//! `send event`: a CloudEvent from a file.

use super::files;
use crate::api::Api;
use crate::args::Send;
use crate::clock::now;
use crate::error::CliError;
use crate::output::say;
use keelway_wire::cloudevent::{self, Origin};
use keelway_wire::http::Accepted;
use serde_json::Value;

/// Reads, completes, checks and sends it.
///
/// # Errors
/// What is wrong with the file or the event, or the API's refusal.
pub async fn send(api: &Api, what: &Send) -> Result<(), CliError> {
    let Send::Event { file } = what;
    let file = files::read(file)?;
    let mut event: Value = serde_json::from_str(&file.text)
        .map_err(|error| CliError::Usage(format!("{} is not JSON: {error}; write one CloudEvent in structured JSON", file.name)))?;
    // The id is made here, so that a request that has to be sent twice is the same event.
    cloudevent::fill_id(&mut event, || uuid::Uuid::now_v7().to_string());
    let refused = |error| CliError::Failed(format!("{} is not sent: {error}", file.name));
    let parsed = cloudevent::parse(&event, Origin::Client, now()).map_err(refused)?;
    cloudevent::check_client_event(&parsed).map_err(refused)?;
    let accepted: Accepted = api.post(&["event"], &event).await?;
    say(&format!("{} {} is sent: context {}", parsed.ty, parsed.id, accepted.context))
}
