//! Pulls facts from the Kubernetes APIs of registered clusters: on a schedule, and on request. It waits for servers of other
//! people, so it has a queue and a function of its own. Each cluster has its own message, so one that does not answer does not
//! delay the others.
//!
//! Only objects that pipelines name are read. Each pipeline has entries at its clusters, so one query finds the objects.
//!
//! The version of a fact is the time in milliseconds at which its reading began, not the `resourceVersion` of the object: an error
//! has none, and those of a restored or replaced cluster begin again with lower numbers. Of two readings, the one that began later
//! counts. A reading that equals the known fact is not stored, so an idle cluster costs only reads and wakes nothing.

use super::message::{Address, Observe};
use super::observations::{self, Fact};
use super::{OBSERVER, Promotions, keys};
use crate::border::Border;
use crate::item::{Item, Key};
use crate::ports::{Condition, PortError, Ports, Query, Write, Written};
use crate::protocol::declare::Declared;
use crate::protocol::work::{Claim, Work, work};
use crate::protocol::{Handled, Inbox};
use crate::table;
use keelway_domain::border::{Act, Denied, Home, Permitted, Resource, ResourceKind};
use keelway_domain::cause::Cause;
use keelway_domain::promotions::definition::{App, Target};
use keelway_domain::promotions::observe::Observed;
use keelway_domain::promotions::registry::Cluster;
use keelway_domain::stored::Stored;
use keelway_domain::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};
use std::future::Future;

/// The default interval of observations.
pub const INTERVAL: Span = Span::seconds(60);
/// How early a tick may come and still find a cluster due. Otherwise a tick would now and then miss its cluster by milliseconds.
const EARLY: Span = Span::seconds(10);
/// The most entries of a cluster that one message handles. The next message handles the rest.
const PAGE: u32 = 100;
/// The most clusters that are read at once.
const CLUSTERS: u32 = 100;
/// How long the time of a cluster's observation is stored, for clusters that are deregistered.
const KEPT: Span = Span::minutes(24 * 60);

/// An object to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The checkpoint.
    pub target: Target,
    /// The object: several entries, if pipelines name it with different API versions. At least one.
    pub apps: Vec<App>,
}

/// The APIs of clusters.
pub trait Clusters: Send + Sync {
    /// Reads objects of a cluster. If an object cannot be read, its fact has an `error`, whose text must not change while its cause
    /// stays the same. `at` of each fact is when its reading began. The answer has the requested order; it is shorter if the time
    /// ran out, but never empty. `server` is the permitted server of the cluster.
    ///
    /// # Errors
    /// A service that Keelway itself uses fails.
    fn read(
        &self,
        name: &str,
        server: &Permitted,
        cluster: &Cluster,
        wanted: &[Wanted],
    ) -> impl Future<Output = Result<Vec<Observed>, PortError>> + Send;
}

/// A delivery of the observer.
pub type Incoming = crate::protocol::Incoming<Observe>;

/// Observes clusters.
pub struct Observer<P, C> {
    pipelines: Promotions<P>,
    clusters: C,
}

/// The content of an entry at a cluster.
#[derive(Serialize, Deserialize)]
struct Named {
    #[serde(rename = "a")]
    app: App,
    #[serde(rename = "t")]
    target: Target,
}

keelway_domain::stored!(Named);

/// The entry of a target with its cluster. `None`: it names no cluster.
pub(crate) fn entry(app: &App, target: &Target, to: &Address) -> Option<Item> {
    let named = Named { app: app.clone(), target: target.clone() };
    Some(Item::new(keys::named(app, target, to)?).with("j", named.to_json()))
}

/// The namespace of the pipeline that an entry is of.
fn asker(item: &Item) -> &str {
    item.key.sk.split('#').nth(2).unwrap_or_default()
}

/// The objects in a cluster that pipelines of these namespaces name, after a place; and whether there may be more.
async fn named(
    ports: &impl Ports,
    cluster: &str,
    after: Option<&str>,
    may: impl Fn(&str) -> bool,
) -> Result<(Vec<Wanted>, bool), PortError> {
    let mut query = Query::table(keys::cluster_partition(cluster), PAGE).prefix(keys::NAMED);
    if let Some(after) = after {
        query.from = format!("{}{after}#\u{10ffff}", keys::NAMED);
    }
    let mut page = ports.query(&query).await?;
    // A page of entries without permission is skipped.
    while !page.items.iter().any(|item| may(asker(item)))
        && let Some(next) = page.next.take()
    {
        page = ports.query(&query.clone().after(Some(next))).await?;
    }
    let mut all: Vec<Wanted> = vec![];
    let mut place = String::new();
    for item in page.items.iter().filter(|item| may(asker(item))) {
        let Some(Named { app, target }) = crate::json::stored::<Named>(item, "j")? else { continue };
        if target.cluster.as_deref() != Some(cluster) {
            continue;
        }
        let here = keys::place(&app, &target);
        match all.last_mut().filter(|_| place == here) {
            Some(wanted) if wanted.apps.contains(&app) => {}
            Some(wanted) => wanted.apps.push(app),
            None => all.push(Wanted { target, apps: vec![app] }),
        }
        place = here;
    }
    Ok((all, page.next.is_some()))
}

/// Whether two facts say the same.
fn same(a: &Observed, b: &Observed) -> bool {
    (&a.revision, a.ready, &a.error) == (&b.revision, b.ready, &b.error)
}

impl<P: Ports> Promotions<P> {
    /// Orders an observation of a cluster. `false`: no cluster of this name is registered.
    ///
    /// # Errors
    /// A port fails.
    pub async fn observe_cluster(&self, of: &Address) -> Result<bool, PortError> {
        let known = self.clusters().get(of).await?.is_some();
        if known {
            table::send_all(&self.ports, &[Observe::Observe { cluster: of.to_string(), after: None }.letter()]).await?;
        }
        Ok(known)
    }

    /// Deregisters a cluster. `false`: it does not exist. The facts about its targets are kept for a day, unless there are new
    /// reports.
    ///
    /// # Errors
    /// A port fails. Removing it again completes what was begun.
    pub async fn deregister_cluster(&self, of: &Address) -> Result<bool, PortError> {
        let known = self.clusters().delete(of).await?;
        let mut after = None;
        loop {
            let (wanted, more) = named(&self.ports, &of.to_string(), after.as_deref(), |_| true).await?;
            let facts: Vec<_> = wanted.iter().map(|wanted| (&wanted.apps[0], &wanted.target)).collect();
            self.expire(&facts).await?;
            after = wanted.last().map(|wanted| keys::place(&wanted.apps[0], &wanted.target));
            if !more || after.is_none() {
                return Ok(known);
            }
        }
    }
}

impl<P: Ports, C: Clusters> Observer<P, C> {
    /// On these ports.
    pub fn new(pipelines: Promotions<P>, clusters: C) -> Self {
        Self { pipelines, clusters }
    }

    /// Sends the message of each cluster that is due, and returns their number. Of two concurrent ticks, only one sends a message.
    /// A cluster in which no pipeline names an object is never due.
    ///
    /// # Errors
    /// A port fails. The next tick does the rest; a cluster whose message was lost is observed one interval later.
    pub async fn tick(&self) -> Result<usize, PortError> {
        let ports = &self.pipelines.ports;
        let mut after: Option<String> = None;
        let mut sent = 0;
        loop {
            let (page, next) = self.pipelines.clusters().everywhere(None, after.as_deref(), CLUSTERS).await?;
            let page: Vec<_> = page.into_iter().map(|(at, cluster)| (at.to_string(), cluster)).collect();
            let wanted: Vec<Key> = page.iter().map(|(name, _)| keys::observed_cluster(name)).collect();
            let items = table::read(ports, &wanted).await?;
            let mut letters = vec![];
            for ((name, entry), key) in page.iter().zip(&wanted) {
                if self.claim(name, entry, items.get(key)).await? {
                    letters.push(Observe::Observe { cluster: name.clone(), after: None }.letter());
                }
            }
            table::send_all(ports, &letters).await?;
            sent += letters.len();
            after = next;
            if after.is_none() {
                return Ok(sent);
            }
        }
    }

    /// Whether a cluster is due and no other tick has claimed it.
    async fn claim(&self, name: &str, entry: &Declared<Cluster>, item: Option<&Item>) -> Result<bool, PortError> {
        let ports = &self.pipelines.ports;
        let now = ports.now();
        let interval = entry.spec.interval.unwrap_or(INTERVAL);
        let early = Span((interval.0 / 2).min(EARLY.0));
        let next = item.and_then(|item| item.number("next")).map(Timestamp);
        // A time further ahead than the interval was planned with a longer one.
        if next.is_some_and(|next| next > now + early && next <= now + interval) {
            return Ok(false);
        }
        let query = Query::table(keys::cluster_partition(name), 1).prefix(keys::NAMED);
        if ports.query(&query).await?.items.is_empty() {
            return Ok(false);
        }
        let next = now + interval;
        let due = Item::new(keys::observed_cluster(name))
            .with("next", next.0)
            .with("v", item.map_or(0, Item::version) + 1)
            .with("ttl", (next + KEPT).0 / 1000);
        let condition = item.map_or(Condition::Absent, |item| Condition::Version(item.version()));
        Ok(ports.write(&Write::Put(due, condition)).await? == Written::Done)
    }
}

/// One reading of a cluster. It is claimed from nobody: of two readings, the newer facts count.
struct Reading<'a, P, C> {
    on: &'a Observer<P, C>,
    name: &'a str,
    after: Option<&'a str>,
    again: bool,
}

/// What of a cluster is read.
struct Asked {
    wanted: Vec<Wanted>,
    /// There may be more.
    more: bool,
    /// The server that its token goes to, if its namespace may use it.
    server: Result<Permitted, Denied>,
}

impl<P: Ports, C: Clusters> Work for Reading<'_, P, C> {
    type Found = Cluster;
    type Task = Asked;
    type Outcome = Vec<Observed>;

    async fn find(&self) -> Result<Option<Cluster>, PortError> {
        let known = self.on.pipelines.clusters().get(&Address::parse(self.name)).await?;
        Ok(known.map(|cluster| cluster.spec))
    }

    /// It serves pipelines of those whom its namespace lets in.
    async fn claim(&self, cluster: &Cluster) -> Result<Claim<Asked>, PortError> {
        let ports = &self.on.pipelines.ports;
        let (namespace, short) = self.name.split_once('/').unwrap_or(("default", self.name));
        let border = Border::of(ports, namespace).await?;
        let may = |from: &str| border.let_in(from, Act::Observe, short).is_ok();
        let (wanted, more) = named(ports, self.name, self.after, may).await?;
        let server = Resource::named(ResourceKind::Servers, cluster.server.as_str());
        Ok(Claim::Mine(Asked { wanted, more, server: border.permit(server, cluster.vouched, &Home::NOWHERE) }))
    }

    async fn outside(&self, cluster: &Cluster, asked: &Asked) -> Result<Option<Vec<Observed>>, PortError> {
        let wanted = &asked.wanted;
        Ok(Some(match &asked.server {
            _ if wanted.is_empty() => vec![],
            Ok(server) => self.on.clusters.read(self.name, server, cluster, wanted).await?,
            Err(denied) => {
                let (error, at) = (Some(denied.to_string()), self.on.pipelines.ports.now());
                vec![Observed { revision: None, ready: false, error, at, by: vec![] }; wanted.len()]
            }
        }))
    }

    async fn tell(&self, _: &Cluster, asked: Asked, seen: Vec<Observed>) -> Result<Handled, PortError> {
        let (pipelines, Asked { wanted, more, .. }) = (&self.on.pipelines, asked);
        let keys: Vec<Key> = wanted.iter().map(|wanted| keys::observation(&wanted.apps[0], &wanted.target)).collect();
        let known = table::read(&pipelines.ports, &keys).await?;
        let expires = |key: &Key| known.get(key).is_some_and(|item| item.number("ttl").is_some());
        let mut place = None;
        for ((Wanted { target, apps }, observed), key) in wanted.iter().zip(&seen).zip(&keys) {
            let fact = |version, observed| Fact { app: apps[0].clone(), target: target.clone(), version, observed };
            match known.get(key).map(|item| observations::read(item, (&apps[0], target))).transpose()?.flatten() {
                Some((version, known)) if same(&known, observed) => {
                    // An earlier delivery may have stored the fact, and then stopped before it woke the pipelines. A fact that
                    // would expire is kept from now on.
                    if self.again || expires(key) {
                        pipelines.observe(&fact(version, known)).await?;
                    }
                }
                _ => drop(pipelines.observe(&fact(observed.at.0, observed.clone())).await?),
            }
            place = Some(keys::place(&apps[0], target));
        }
        match place {
            Some(after) if more || seen.len() < wanted.len() => {
                let rest = Observe::Observe { cluster: self.name.to_owned(), after: Some(after) };
                table::send_all(&pipelines.ports, &[rest.letter()]).await?;
            }
            None if !wanted.is_empty() => {
                let reason = format!("nothing of cluster {} could be read in time", self.name);
                return Err(PortError::Retry { request: "observe", reason });
            }
            _ => {}
        }
        Ok(Handled::Settled)
    }
}

impl<P: Ports, C: Clusters> Inbox for Observer<P, C> {
    type Ports = P;
    type Message = Observe;

    const NAME: &'static str = OBSERVER;

    fn ports(&self) -> &P {
        &self.pipelines.ports
    }
    fn retention(&self) -> Span {
        self.pipelines.limits.retention
    }
    async fn message(&self, message: &Observe, cause: Cause) -> Result<Handled, PortError> {
        let Observe::Observe { cluster, after } = message;
        let reading = Reading { on: self, name: cluster, after: after.as_deref(), again: cause.again };
        work(self.ports(), cause, &reading).await
    }
}
