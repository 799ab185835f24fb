//! The HTTP API under `/v1`, in Keptn's shape where Keptn has one.
//!
//! [`router`] is the entry point. The API itself writes definitions, which have no effects, and desired state (control). Events go
//! to the bus and commands to the queues, and results are read from the state.
//!
//! There are six faces (`keptn`, `pipelines`, `deployments`, `webhooks`, `overview`, `access`), and `apply`, which accepts
//! manifests of every kind. Each lists its routes; each resource has a file that parses the request, calls the engine, and shapes
//! the answer. They share one `fence`: the checks before every handler, the audit after it, and helpers. The fence uses no handler.

mod access;
mod apply;
mod deployments;
mod fence;
mod keptn;
mod kinds;
mod overview;
mod page;
mod pipelines;
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
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use keelway_domain::access::Identities;
use keelway_domain::names::ProjectName;
use keelway_engine::access::Access;
use keelway_engine::checks::Rules;
use keelway_engine::deployments::Deployments;
use keelway_engine::evaluations::{self, Evaluations, Reading};
use keelway_engine::keptn::integrations::Integration;
use keelway_engine::ports::{PortError, Ports};
use keelway_engine::promotions::{self, Promotions};
use keelway_engine::remembered::Remembered;
use keelway_engine::secrets::Secrets;
use keelway_engine::sequences::{Limits, Sequences};
use keelway_engine::webhooks::{self as webhook_deliveries, Webhooks};
use keelway_outgoing::Guard;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

/// The API: engines, settings and caches that handlers use. Clones share them.
pub struct Api<P> {
    inner: Arc<Inner<P>>,
}

/// Enables the rule that feeds the queue of webhooks.
type Feed = Box<dyn Fn() -> BoxFuture<'static, Result<(), PortError>> + Send + Sync>;

struct Inner<P> {
    engine: Sequences<P>,
    promotions: Promotions<P>,
    deployments: Deployments<P>,
    webhooks: Webhooks<P>,
    evaluations: Evaluations<P>,
    access: Access<P>,
    providers: Option<identity::Providers>,
    paces: (pace::Pace, pace::Pace),
    secrets: Remembered<P>,
    feed: Feed,
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

impl<P> Clone for Api<P> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

/// Handlers take it as it is.
impl<P: Ports + 'static> FromRequestParts<Api<P>> for Api<P> {
    type Rejection = Infallible;
    async fn from_request_parts(_: &mut Parts, api: &Self) -> Result<Self, Infallible> {
        Ok(api.clone())
    }
}

impl<P: Ports + 'static> Argument for Api<P> {}

impl<P: Ports> Api<P> {
    /// An API on the engines over these ports.
    pub fn new(ports: P, limits: Limits, settings: Settings) -> Self
    where
        P: Rules + Clone + 'static,
    {
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
        let rules = ports.clone();
        let feed: Feed = Box::new(move || {
            let rules = rules.clone();
            async move { webhook_deliveries::feed(&rules).await }.boxed()
        });
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
            feed,
            settings,
            projects,
            pings,
        };
        Self { inner: Arc::new(inner) }
    }
    fn promotions(&self) -> &Promotions<P> {
        &self.inner.promotions
    }
    fn deployments(&self) -> &Deployments<P> {
        &self.inner.deployments
    }
    fn webhooks(&self) -> &Webhooks<P> {
        &self.inner.webhooks
    }
    fn evaluations(&self) -> &Evaluations<P> {
        &self.inner.evaluations
    }
    /// Has the rule of the bus feed the queue of webhooks: before the answer to whoever has applied a subscription.
    async fn feed_webhooks(&self) -> Result<(), PortError> {
        if self.settings().delivers_webhooks { (self.inner.feed)().await } else { Ok(()) }
    }
    fn providers(&self) -> Option<&identity::Providers> {
        self.inner.providers.as_ref()
    }
    /// Of tokens, and of addresses.
    fn paces(&self) -> &(pace::Pace, pace::Pace) {
        &self.inner.paces
    }
    fn access(&self) -> &Access<P> {
        &self.inner.access
    }
    fn secrets(&self) -> &Remembered<P> {
        &self.inner.secrets
    }
    fn engine(&self) -> &Sequences<P> {
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
fn routes<P: Ports + Secrets + Rules + 'static>() -> Vec<Route<P>> {
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
pub fn listed<P: Ports + Secrets + Rules + 'static>() -> Vec<Listed> {
    routes::<P>().iter().flat_map(Route::listed).collect()
}

/// All routes, behind the fence and the check of permissions, and the page, which is public.
pub fn router<P: Ports + Secrets + Rules + 'static>(api: Api<P>) -> Served {
    let page = from_fn_with_state(api.clone(), page::serve::<P>);
    served(routes(), api).behind(|router| router.layer(page))
}
