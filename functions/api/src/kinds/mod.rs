//! The kinds of definitions, a file each: what a manifest of the kind says, what it names outside of its namespace, where it is
//! kept, and how it is shown. Everything else is the same for all of them: [`routes`] lists, reads and deletes them, and
//! [`crate::apply`] puts them in force. `docs/adding-a-kind.md` adds one.

mod artifact_source;
pub mod border;
mod cluster;
pub mod deployment_config;
mod document;
mod git_host;
mod kept;
mod metrics_source;
mod pipeline;
pub mod routes;
mod schedule;
pub mod webhook_subscription;

pub use document::{Called, Context, Document, How, Known, Said, put};
pub use kept::Kept;

use crate::Api;
use crate::fence::pages::KNOWN;
use crate::fence::problem::{Answer, Refused};
use crate::fence::route::Route;
use axum::http::StatusCode;
use border::Outside;
use keelway_domain::address::Address;
use keelway_domain::border::{Counted, Home, Vouched};
use keelway_engine::protocol::declare::Declared;
use keelway_engine::refusal::Refusal;
use keelway_wire::manifest::{
    ArtifactSourceManifest, ClusterManifest, DeploymentConfigManifest, Finding, MetricsSourceManifest, PipelineManifest,
};
use serde_json::Value;
use std::future::Future;

/// How findings call the text of a request.
pub const FILE: &str = "-";

/// A kind of definition: what its manifests have in common.
pub trait Kind: Send + Sync + 'static {
    /// The name in manifests.
    const KIND: &'static str;
    /// In sentences.
    const NOUN: &'static str;
    /// What contains those of one list.
    const WITHIN: &'static str = "namespace";
    /// Its place among the documents of a text: what others name has 0 and comes first.
    const ORDER: usize = 0;
    /// What a project may have a limited number of.
    const COUNTED: Option<Counted> = None;
    /// How many an installation may have.
    const MOST: usize = usize::MAX;
    /// What a definition says.
    type Spec: Vouched + Send + Sync;

    /// What a manifest declares.
    fn said(&self) -> Said<'_, Self::Spec>;
    /// What it says, to note who vouches for it.
    fn spec(&mut self) -> Option<&mut Self::Spec>;
    /// Where definitions are kept.
    fn kept(api: &Api) -> impl Kept<Spec = Self::Spec>;

    /// What a definition names outside of its namespace.
    fn outside<'a>(namespace: &'a str, _spec: &Self::Spec, _home: &Home) -> Outside<'a> {
        Outside { namespace, ..Outside::default() }
    }
    /// What else would be refused, before anything is written.
    fn validate(&self, _api: &Api, _with: &Context<'_>) -> impl Future<Output = Answer<()>> + Send {
        async { Ok(()) }
    }
    /// Tells the context what others in the same text need to know of it.
    fn join<'a>(&'a self, _context: &mut Context<'a>) {}
    /// The one in force and a new one as they are to be compared, where nobody applied the text of the one in force: it has what a
    /// manifest leaves out, which is no difference.
    fn compared(_at: &Address, _old: &Declared<Self::Spec>, _new: &Self::Spec) -> Option<[Value; 2]> {
        None
    }
    /// What people should know of one that was applied.
    fn warnings(&self, _api: &Api) -> impl Future<Output = Answer<Vec<Finding>>> + Send {
        async { Ok(vec![]) }
    }
    /// What one that is written needs besides, before the answer. Applying it again comes here again.
    fn applied(_api: &Api) -> impl Future<Output = Answer<()>> + Send {
        async { Ok(()) }
    }
    /// The project whose administrators may apply it; `None`: it concerns all of them.
    fn project(&self) -> Option<&str> {
        Some(self.said().namespace).filter(|namespace| !namespace.is_empty())
    }
    /// The names of those in a namespace, some of them.
    fn names(api: &Api, namespace: &str) -> impl Future<Output = Answer<Vec<String>>> + Send {
        async move { Ok(Self::kept(api).names(namespace, None, KNOWN).await?.0) }
    }
    /// Deletes one. `false`: there is none.
    fn delete(api: &Api, at: &Address) -> impl Future<Output = Answer<bool>> + Send {
        async move { Self::kept(api).delete(at).await }
    }
}

/// The routes of the kinds that are shown as they are applied. Those of pipelines and deployment configs stand with what they show.
pub fn routes() -> Vec<Route> {
    let kinds = [
        artifact_source::of_kind(),
        cluster::of_kind(),
        git_host::of_kind(),
        metrics_source::of_kind(),
        schedule::of_kind(),
        webhook_subscription::of_kind(),
    ];
    kinds.into_iter().flatten().collect()
}

/// What keeps a project from being deleted, some of each kind. Pipelines and configs would go on without the project; clusters,
/// sources of artifacts and of metrics, and who vouched for them, would belong to the next project of its name.
pub(crate) async fn inside(api: &Api, project: &str) -> Answer<Vec<String>> {
    let mut inside = some::<PipelineManifest>(api, project).await?;
    inside.extend(some::<DeploymentConfigManifest>(api, project).await?);
    inside.extend(some::<ClusterManifest>(api, project).await?);
    inside.extend(some::<ArtifactSourceManifest>(api, project).await?);
    inside.extend(some::<MetricsSourceManifest>(api, project).await?);
    Ok(inside)
}

async fn some<K: Kind>(api: &Api, project: &str) -> Answer<Vec<String>> {
    let (found, _) = K::kept(api).names(project, None, 3).await?;
    Ok(found.iter().map(|name| format!("{} {project}/{name}", K::NOUN)).collect())
}

/// The refusal of one that does not exist, with the names of those that do.
pub(crate) async fn unknown<K: Kind>(api: &Api, namespace: &str, name: &str) -> Answer<Refused> {
    // Whoever asks may see what is in this namespace.
    let known = if routes::is_place(namespace) { K::names(api, namespace).await? } else { vec![] };
    let refusal = Refusal::unknown(K::NOUN, name, known.iter().map(String::as_str));
    let Refusal::Unknown { kind, name, hint } = refusal else { return Ok(refusal.into()) };
    let namespace: String = namespace.chars().take(100).collect();
    let place = if namespace.is_empty() { String::new() } else { format!(" in {} {namespace:?}", K::WITHIN) };
    let detail = format!("{kind} {name:?} does not exist{place}: {hint}");
    Ok(Refused::new(StatusCode::NOT_FOUND, &format!("unknown {kind}"), detail))
}
