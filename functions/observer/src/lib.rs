//! Reads the Kubernetes APIs of registered clusters.
//!
//! [`Kubernetes`] implements the engine's [`Clusters`]. `connection` makes requests to one API, `discovery` finds the names of
//! kinds in URLs, `object` the path of an object. What an object means, the domain's `report` says.

mod connection;
mod discovery;
mod object;

use connection::{Connection, Found};
use futures_util::StreamExt;
use futures_util::stream;
use keelway_domain::border::Permitted;
use keelway_domain::promotions::observe::Observed;
use keelway_domain::promotions::registry::Cluster;
use keelway_domain::promotions::report;
use keelway_domain::time::Timestamp;
use keelway_engine::ports::{Clock, PortError};
use keelway_engine::promotions::observer::{Clusters, Wanted};
use keelway_engine::remembered::Remembered;
use keelway_engine::secrets::{self, SecretText, Secrets};
use keelway_outgoing::Guard;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How many objects of a cluster are read concurrently.
const AT_ONCE: usize = 8;
/// No reading begins later than this after the first one; another message does the rest. Requests have their own timeouts.
const TIME: Duration = Duration::from_secs(30);
/// The most cached connections. When there are more, the cache is emptied.
const KEPT: usize = 64;

/// Why something cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Failure {
    /// No object of the cluster can be read.
    Cluster(String),
    /// This object cannot be read.
    Object(String),
}

type Known = (Cluster, SecretText, Arc<Connection>);

/// The APIs of clusters with their connections.
pub struct Kubernetes<P> {
    ports: P,
    secrets: Remembered<P>,
    guard: Guard,
    made: Mutex<HashMap<String, Known>>,
}

impl<P: Secrets + Clock + Clone> Kubernetes<P> {
    /// With the secrets of these ports, and the clusters to which the guard permits requests.
    pub fn new(ports: P, guard: Guard) -> Self {
        let secrets = Remembered::new(ports.clone());
        Self { ports, secrets, guard, made: Mutex::default() }
    }

    /// The connection to a cluster, from the cache if neither the cluster nor its secret has changed.
    async fn connection(&self, name: &str, cluster: &Cluster) -> Result<Result<Arc<Connection>, String>, PortError> {
        let namespace = name.split_once('/').map_or("default", |(namespace, _)| namespace);
        let secret = secrets::name(namespace, &cluster.secret);
        let Some(text) = self.secrets.secret(&secret).await? else {
            return Ok(Err(format!("there is no secret {secret:?} with the cluster's token: create it")));
        };
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, _, connection)) = made.get(name).filter(|(known, with, _)| known == cluster && *with == text) {
            return Ok(Ok(connection.clone()));
        }
        let connection = match Connection::new(cluster, &secret, &text, &self.guard) {
            Ok(connection) => Arc::new(connection),
            Err(why) => return Ok(Err(why)),
        };
        if made.len() >= KEPT {
            made.clear();
        }
        made.insert(name.to_owned(), (cluster.clone(), text, connection.clone()));
        Ok(Ok(connection))
    }
}

impl<P: Secrets + Clock + Clone> Clusters for Kubernetes<P> {
    async fn read(&self, name: &str, server: &Permitted, cluster: &Cluster, wanted: &[Wanted]) -> Result<Vec<Observed>, PortError> {
        assert_eq!(server.resource().name, cluster.server, "the border permitted another server");
        let began = self.ports.now();
        let connection = match self.connection(name, cluster).await? {
            Ok(connection) => connection,
            Err(why) => return Ok(wanted.iter().map(|_| unreadable(&why, began)).collect()),
        };
        let until = Instant::now() + TIME;
        let pass = Pass { ports: &self.ports, connection: &connection, began, until, down: OnceLock::new() };
        let readings: Vec<_> = wanted.iter().map(|wanted| pass.one(wanted)).collect();
        let in_time = stream::iter(readings).buffered(AT_ONCE).take_while(|reading| std::future::ready(reading.is_some()));
        let seen: Vec<Option<Observed>> = in_time.collect().await;
        let seen: Vec<Observed> = seen.into_iter().flatten().collect();
        let failed = seen.iter().filter(|observed| observed.error.is_some()).count();
        let error = pass.down.get();
        tracing::info!(cluster = name, wanted = wanted.len(), read = seen.len(), failed, error, "observed");
        Ok(seen)
    }
}

fn unreadable(why: &str, at: Timestamp) -> Observed {
    Observed { revision: None, ready: false, error: Some(why.to_owned()), at, by: vec![] }
}

/// One reading of a cluster.
struct Pass<'a, P> {
    ports: &'a P,
    connection: &'a Connection,
    began: Timestamp,
    until: Instant,
    /// Why no object can be read, once this is known: a cluster that does not answer must not get hundreds of requests.
    down: OnceLock<String>,
}

impl<P: Clock> Pass<'_, P> {
    /// `None`: the time was up.
    async fn one(&self, wanted: &Wanted) -> Option<Observed> {
        if Instant::now() > self.until {
            return None;
        }
        let at = self.ports.now();
        if let Some(why) = self.down.get() {
            return Some(unreadable(why, at));
        }
        Some(match self.fetch(wanted, at).await {
            Ok(observed) => observed,
            Err(Failure::Object(why)) => unreadable(&why, at),
            Err(Failure::Cluster(why)) => unreadable(self.down.get_or_init(|| why), at),
        })
    }

    async fn fetch(&self, wanted: &Wanted, at: Timestamp) -> Result<Observed, Failure> {
        let mut unknown = None;
        for app in &wanted.apps {
            match self.connection.resource(app, self.began, at).await {
                Ok(plural) => {
                    let path = object::path(app, &plural, &wanted.target.namespace)?;
                    let found = match self.connection.get(&path).await? {
                        Found::Object(object) => Some(object),
                        Found::Missing => None,
                    };
                    return report::answered(app, &wanted.target, found, at).map_err(Failure::Object);
                }
                Err(Failure::Object(why)) => unknown = unknown.or(Some(Failure::Object(why))),
                Err(failure) => return Err(failure),
            }
        }
        Err(unknown.unwrap_or_else(|| Failure::Object("nothing is named there".into())))
    }
}
