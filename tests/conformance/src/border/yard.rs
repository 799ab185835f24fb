//! What lies outside of Keelway: aliases of functions and the API of a cluster. It remembers who touched what, and since when that
//! work was at hand.

use super::planted::Planted;
use super::{OUR_CLUSTER, PRIVATE};
use keelway_domain::border::Permitted;
use keelway_domain::promotions::observe::Observed;
use keelway_domain::promotions::registry::Cluster;
use keelway_engine::ports::PortError;
use keelway_engine::promotions::observer::{Clusters, Wanted};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Objects of a cluster were read.
#[derive(Debug, Clone)]
pub struct Look {
    /// With the token of this cluster.
    pub cluster: String,
    /// At this server.
    pub server: String,
    /// In these namespaces.
    pub namespaces: Vec<String>,
    /// The work began after so many requests.
    pub since: u64,
}

/// An alias was moved.
#[derive(Debug, Clone)]
pub struct Move {
    /// For a config of this project.
    pub project: String,
    /// Of this function.
    pub function: String,
    /// The work began after so many requests.
    pub since: u64,
}

/// The yard.
#[derive(Debug, Default)]
pub struct Yard {
    /// When the work began whose request was the last one, in requests.
    pub since: u64,
    /// What was read since the last look.
    pub looks: Vec<Look>,
    /// What was moved since the last look.
    pub moves: Vec<Move>,
    /// What runs in the cluster, by namespace.
    pub runs: BTreeMap<String, String>,
    /// What must never happen, and did.
    pub wrong: Option<String>,
    /// So many acts of the hostile project were refused.
    pub refused: u64,
}

/// The yard, in reach of all workers.
pub type Shared = Arc<Mutex<Yard>>;

/// Locks the yard.
pub fn lock(yard: &Shared) -> MutexGuard<'_, Yard> {
    yard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The cluster as a worker reaches it.
pub struct Kube(pub Planted);

impl Clusters for Kube {
    async fn read(&self, name: &str, server: &Permitted, _: &Cluster, wanted: &[Wanted]) -> Result<Vec<Observed>, PortError> {
        let namespaces: Vec<String> = wanted.iter().map(|wanted| wanted.target.namespace.clone()).collect();
        let look = |now| {
            let mut yard = lock(&self.0.yard);
            let since = self.0.began();
            let (cluster, server, namespaces) = (name.to_owned(), server.resource().name.clone(), namespaces.clone());
            let seen = |namespace: &String| {
                // With a token of its own, the hostile project sees what is its own.
                let secret = if name == OUR_CLUSTER { format!("{PRIVATE}1") } else { "nothing".to_owned() };
                let revision = Some(yard.runs.get(namespace).cloned().unwrap_or(secret));
                Observed { revision, ready: true, error: None, at: now, by: vec![] }
            };
            let all: Vec<Observed> = namespaces.iter().map(seen).collect();
            yard.looks.push(Look { cluster, server, namespaces, since });
            all
        };
        self.0.inner.outside(|| format!("read {name}"), look).await
    }
}
