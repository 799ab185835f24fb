//! `pipeline`: what environments run, what is promoted into them, and what people decide about it.

pub mod decide;
mod explain;
mod follow;
mod history;
mod list;
mod status;
mod steer;
mod waiting;

pub use list::list;
pub use status::{manifest, show};
pub use waiting::{Waiting, hints, table, waiting};

use crate::address::Address;
use crate::api::Api;
use crate::args::{Format, Pipeline};
use crate::error::CliError;
use crate::kinds::Asked;
use keelway_domain::names::ProjectName;
use keelway_domain::time::Timestamp;
use keelway_wire::http::promotions::ApprovalDecision::{Accept, Approve, Reject};
use keelway_wire::http::promotions::PipelineState;

/// At most this many are shown by `get pipelines`.
const MOST: u32 = 1000;

/// What the command line says about the API.
pub struct Settings<'a> {
    /// Its address.
    pub api: Option<&'a str>,
    /// Its token.
    pub token: Option<&'a str>,
}

impl Settings<'_> {
    fn api(&self) -> Result<Api, CliError> {
        Api::new(self.api, self.token)
    }
}

/// Does what was asked for.
///
/// # Errors
/// As the API answers.
pub async fn run(settings: Settings<'_>, what: &Pipeline) -> Result<(), CliError> {
    match what {
        Pipeline::List(what) => {
            list(&settings.api()?, what.projects.only().map(ProjectName::as_str), what.limit, what.output.format).await
        }
        Pipeline::Status(what) => status::status(&settings.api()?, what).await,
        Pipeline::History(what) => history::history(&settings.api()?, what).await,
        Pipeline::Explain(what) => explain::explain(&settings.api()?, what).await,
        Pipeline::PullRequests(what) => history::pull_requests(&settings.api()?, what).await,
        Pipeline::Manifest { of } => manifest(&settings.api()?, &Address::of(&of.name, of.project.project.as_ref()).path()).await,
        Pipeline::Approve(what) => decide::named(&settings, what, Approve).await,
        Pipeline::Decline(what) => decide::named(&settings, what, Reject).await,
        Pipeline::Accept(what) => decide::named(&settings, what, Accept).await,
        other => steer::steer(&settings.api()?, other).await,
    }
}

/// `get pipelines`
///
/// # Errors
/// As the API answers.
pub async fn get(api: &Api, asked: &Asked) -> Result<(), CliError> {
    let Some(of) = &asked.at else {
        return list(api, asked.project.as_deref(), MOST, asked.format).await;
    };
    if asked.format == Format::Yaml {
        return manifest(api, &of.path()).await;
    }
    let (state, now) = read(api, of).await?;
    show(&state, now, asked.format)
}

/// A pipeline, and the server's clock.
///
/// # Errors
/// As the API answers.
pub async fn read(api: &Api, of: &Address) -> Result<(PipelineState, Option<Timestamp>), CliError> {
    let state: PipelineState = api.get(&of.path(), &[]).await?;
    let now = Timestamp::parse(&state.now);
    Ok((state, now))
}
