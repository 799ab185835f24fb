//! `keelway deploy`: the command of a deployer has Keelway carry out the strategy, whole or until the new version gets a share of
//! the requests.

use crate::api::Api;
use crate::args;
use crate::error::CliError;
use keelway_wire::http::deployments::{StrategyAnswer, StrategyRequest};
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;

/// Between two requests. Each of them waits for an outcome itself.
const PAUSE: Duration = Duration::from_secs(1);

/// Asks until it is done or has failed.
///
/// # Errors
/// When it does not run as the command of a deployer, or the API refuses it.
pub async fn run(what: &args::Deploy) -> Result<ExitCode, CliError> {
    let given = |name: &str| std::env::var(name).ok().filter(|text| !text.trim().is_empty());
    let (callback, token) = (given("DEPLOYMENT_CALLBACK"), given("DEPLOYMENT_TOKEN"));
    let (Some((base, version)), Some(token)) = (callback.as_ref().and_then(|url| url.rsplit_once("/deployments/")), token) else {
        return Err(CliError::Usage(
            "DEPLOYMENT_CALLBACK and DEPLOYMENT_TOKEN are not set: this is for the command of a keelway deployer; what deploys is \
             keelway trigger delivery, or keelway rollout latest"
                .into(),
        ));
    };
    let api = Api::with_attempt(base, &token)?;
    let request = json!(StrategyRequest { until: Some(what.until) });
    let mut told = String::new();
    loop {
        // What failed for now is asked again for as long as the deployment may take: its deadline ends this command.
        let answer: StrategyAnswer = match api.post(&["deployments", version, "strategy"], &request).await {
            Ok(answer) => answer,
            Err(error) if error.is_transient() => {
                eprintln!("trying again: {error}");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        if !what.quiet && !answer.message.is_empty() && answer.message != told {
            println!("{}", answer.message);
            told.clone_from(&answer.message);
        }
        match answer.state.as_str() {
            "done" => return Ok(ExitCode::SUCCESS),
            "running" => tokio::time::sleep(PAUSE).await,
            _ => return Err(CliError::Failed(format!("the strategy was not carried out: {}", answer.message))),
        }
    }
}
