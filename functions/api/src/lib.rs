//! The HTTP API under `/v1`, in Keptn's shape where Keptn has one.
//!
//! [`router`] is the entry point. The API itself writes definitions, which have no effects, and desired state (control). Events go
//! to the bus and commands to the queues, and results are read from the state.
//!
//! There are six faces (`keptn`, `pipelines`, `deployments`, `webhooks`, `overview`, `access`), and `apply`, which accepts
//! manifests of every kind. Each lists its routes; each resource has a file that parses the request, calls the engine, and shapes
//! the answer. They share one `fence`: the checks before every handler, the audit after it, and helpers. The fence uses no handler.
//!
//! Handlers are `pub(crate)`: rustc compiles each `pub async fn` into every executable of its crate, that of its unit tests among
//! them.

mod access;
mod apply;
mod deployments;
mod fence;
mod keptn;
mod kinds;
mod overview;
mod page;
mod pipelines;
mod ports;
mod webhooks;

pub use fence::allowed::{Listed, Needs};
pub use fence::auth::Tokens;
pub use fence::client::Client;
pub use fence::raw::answer;
pub use fence::route::Served;
pub use page::SignIn;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::middleware::from_fn_with_state;
use fence::input::Argument;
use fence::memory::Memory;
use fence::route::{Route, served};
use fence::{identity, pace};
use keelway_domain::access::Identities;
use keelway_domain::names::ProjectName;
use keelway_engine::access::Access;
use keelway_engine::checks::Rules;
use keelway_engine::deployments::Deployments;
use keelway_engine::evaluations::{self, Evaluations, Reading};
use keelway_engine::keptn::integrations::Integration;
use keelway_engine::ports::{PortError, Ports};
use keelway_engine::promotions::{self, Promotions};
use keelway_engine::protocol::Inbox;
use keelway_engine::remembered::Remembered;
use keelway_engine::secrets::Secrets;
use keelway_engine::sequences::{Limits, Sequences};
use keelway_engine::webhooks::{self as webhook_deliveries, Webhooks};
use keelway_outgoing::Guard;
use ports::AnyPorts;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

/// The API: engines, settings and caches that handlers use. Clones share them.
#[derive(Clone)]
pub struct Api {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Sequences<AnyPorts>,
    promotions: Promotions<AnyPorts>,
    deployments: Deployments<AnyPorts>,
    webhooks: Webhooks<AnyPorts>,
    evaluations: Evaluations<AnyPorts>,
    access: Access<AnyPorts>,
    providers: Option<identity::Providers>,
    paces: (pace::Pace, pace::Pace),
    secrets: Remembered<AnyPorts>,
    settings: Settings,
    /// Caches of existing projects and of recent pings, which clients ask for every second.
    projects: Memory<ProjectName>,
    pings: Memory<Integration>,
}

/// The API's own settings, in addition to the engine's limits.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The tokens of the deployment.
    pub tokens: Tokens,
    /// How long an answer waits for the state to show a result. Afterwards it is 202.
    pub patience: Duration,
    /// The limits of the deployments engine, equal to those of its function.
    pub deployments: keelway_engine::deployments::Limits,
    /// Whether events are delivered to webhook subscriptions.
    pub delivers_webhooks: bool,
    /// The name of this installation in `GET /v1/metadata`.
    pub stack: String,
    /// The accepted identity providers.
    pub identities: Option<Identities>,
    /// At which of them people sign in to the page.
    pub sign_in: SignIn,
    /// The rate limits of callers.
    pub paces: Paces,
    /// The guard of requests to identity providers.
    pub guard: Guard,
}

/// The most requests in a minute for each instance of the function. 0: no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Paces {
    /// With the same token.
    pub token: u32,
    /// From the same address.
    pub address: u32,
}

/// Handlers take it as it is.
impl FromRequestParts<Api> for Api {
    type Rejection = Infallible;
    async fn from_request_parts(_: &mut Parts, api: &Self) -> Result<Self, Infallible> {
        Ok(api.clone())
    }
}

impl Argument for Api {}

impl Api {
    /// An API on the engines over these ports.
    pub fn new(ports: impl Ports + Secrets + Rules + 'static, limits: Limits, settings: Settings) -> Self {
        let ports = AnyPorts::new(ports);
        let promotions = Promotions::new(ports.clone(), promotions::Limits { retention: limits.retention });
        let deployments = Deployments::new(ports.clone(), settings.deployments.clone());
        let webhooks = Webhooks::new(
            ports.clone(),
            webhook_deliveries::Limits {
                retention: limits.retention,
                max_event_bytes: limits.max_event_bytes,
                delivers: settings.delivers_webhooks,
            },
        );
        let access = Access::new(ports.clone(), limits.retention);
        let providers = settings.identities.clone().map(|known| identity::Providers::new(known, &settings.guard));
        let paces = (pace::Pace::new(settings.paces.token), pace::Pace::new(settings.paces.address));
        let kept = evaluations::Limits { retention: limits.retention, ..evaluations::Limits::default() };
        let evaluations = Evaluations::new(ports.clone(), kept, Reading::default());
        let engine = Sequences::new(ports.clone(), limits);
        let secrets = Remembered::new(ports);
        let (projects, pings) = (Memory::default(), Memory::default());
        let inner = Inner {
            engine,
            promotions,
            deployments,
            webhooks,
            evaluations,
            access,
            providers,
            paces,
            secrets,
            settings,
            projects,
            pings,
        };
        Self { inner: Arc::new(inner) }
    }
    fn promotions(&self) -> &Promotions<AnyPorts> {
        &self.inner.promotions
    }
    fn deployments(&self) -> &Deployments<AnyPorts> {
        &self.inner.deployments
    }
    fn webhooks(&self) -> &Webhooks<AnyPorts> {
        &self.inner.webhooks
    }
    fn evaluations(&self) -> &Evaluations<AnyPorts> {
        &self.inner.evaluations
    }
    /// Has the rule of the bus feed the queue of webhooks: before the answer to whoever has applied a subscription.
    async fn feed_webhooks(&self) -> Result<(), PortError> {
        if self.settings().delivers_webhooks { webhook_deliveries::feed(self.webhooks().ports()).await } else { Ok(()) }
    }
    fn providers(&self) -> Option<&identity::Providers> {
        self.inner.providers.as_ref()
    }
    /// Of tokens, and of addresses.
    fn paces(&self) -> &(pace::Pace, pace::Pace) {
        &self.inner.paces
    }
    fn access(&self) -> &Access<AnyPorts> {
        &self.inner.access
    }
    fn secrets(&self) -> &Remembered<AnyPorts> {
        &self.inner.secrets
    }
    fn engine(&self) -> &Sequences<AnyPorts> {
        &self.inner.engine
    }
    /// The identity of this installation: account, region and name of the stack. Signed requests contain it.
    fn installation(&self) -> String {
        let home = self.deployments().home();
        format!("{}/{}/{}", home.account, home.region, self.settings().stack)
    }
    fn projects(&self) -> &Memory<ProjectName> {
        &self.inner.projects
    }
    fn pings(&self) -> &Memory<Integration> {
        &self.inner.pings
    }
    fn settings(&self) -> &Settings {
        &self.inner.settings
    }
}

/// Every route.
fn routes() -> Vec<Route> {
    let faces = [
        access::routes(),
        keptn::routes(),
        apply::routes(),
        kinds::routes(),
        pipelines::routes(),
        deployments::routes(),
        webhooks::routes(),
        overview::routes(),
    ];
    faces.into_iter().flatten().collect()
}

/// Every route, with what it needs.
pub fn listed() -> Vec<Listed> {
    routes().iter().flat_map(Route::listed).collect()
}

/// All routes, behind the fence and the check of permissions, and the page, which is public.
pub fn router(api: Api) -> Served {
    let page = from_fn_with_state(api.clone(), page::serve);
    served(routes(), api).behind(|router| router.layer(page))
}
