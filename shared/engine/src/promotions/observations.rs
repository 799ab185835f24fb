//! Facts about targets. The version of a fact only rises; an older fact changes nothing. A new fact wakes only the pipelines that
//! name its target.

use super::message::{Address, Message};
use super::{Promotions, keys};
use crate::border::Border;
use crate::item::{Attrs, Item, Key, Name};
use crate::kinds::Clusters;
use crate::ports::{Condition, PortError, Ports, Query, Store, Write, Written};
use crate::protocol::{COMMIT_TRIES, Handled, check_format, contended, invalid};
use crate::protocol::{declare, fact};
use crate::table::{self, Items};
use keelway_domain::border::Act;
use keelway_domain::cause::Cause;
use keelway_domain::deployments;
use keelway_domain::event::CloudEvent;
use keelway_domain::promotions::definition::{App, Definition, Target};
use keelway_domain::promotions::observe::{Observations, Observed};
use keelway_domain::promotions::report::{self, Observation};
use keelway_domain::stored::Stored;
use keelway_domain::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// The type of the event that reports facts over the bus.
pub const OBSERVED: &str = "dev.keelway.target.observed";
/// The newest format of a fact that this code knows.
const FORMAT: i64 = 1;
/// How long a fact that no pipeline asks for is kept.
const UNASKED: Span = Span::minutes(24 * 60);
/// The most pipelines in one page of a target's entries.
const PAGE: u32 = 200;

/// A fact about a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// What runs there.
    pub app: App,
    /// Where.
    pub target: Target,
    /// Rises with every fact about the target.
    pub version: i64,
    /// What was observed.
    pub observed: Observed,
}

/// The observations of a pipeline's targets, as far as it may see them.
pub(super) async fn of(store: &impl Store, of: &Address, definition: &Definition) -> Result<Observations, PortError> {
    let known = table::read(store, &wanted(definition)).await?;
    among(store, &known, of, definition).await
}

/// The observations in these items, as far as the pipeline may see them.
pub(super) async fn among(
    store: &impl Store,
    items: &Items,
    of: &Address,
    definition: &Definition,
) -> Result<Observations, PortError> {
    let mut all = known(items, definition)?;
    unregistered(store, definition, &mut all).await?;
    beyond(store, &of.namespace, definition, &mut all).await?;
    Ok(all)
}

/// The result of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// The fact is older than the known one, and changed nothing.
    Older,
    /// The fact has the known revision.
    Same,
    /// The fact has a new revision.
    Revision,
}

/// Replaces the observations of targets in other namespaces by the missing consent, if those do not consent (any more). For targets
/// of its own namespace, nothing is read.
async fn beyond(store: &impl Store, own: &str, definition: &Definition, all: &mut Observations) -> Result<(), PortError> {
    let mut borders: BTreeMap<&str, Border> = BTreeMap::new();
    for target in definition.targets() {
        let Some((namespace, name)) = target.beyond(&definition.app, own) else { continue };
        let border = match borders.entry(namespace) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(Border::of(store, namespace).await?),
        };
        if let Err(no) = border.let_in(own, Act::Observe, name) {
            // This was not observed, so it has no time.
            let hidden =
                Observed { revision: None, ready: false, error: Some(no.to_string()), at: Timestamp::default(), by: vec![] };
            all.insert(target.clone(), hidden);
        }
    }
    Ok(())
}

/// The items that tell about a pipeline's targets, each once.
pub(super) fn wanted(definition: &Definition) -> Vec<Key> {
    let mut wanted: Vec<Key> = definition.targets().map(|target| keys::observation(&definition.app, target)).collect();
    wanted.sort();
    wanted.dedup();
    wanted
}

fn known(items: &Items, definition: &Definition) -> Result<Observations, PortError> {
    let mut all = Observations::new();
    for target in definition.targets() {
        let (app, key) = (&definition.app, keys::observation(&definition.app, target));
        let known = items.get(&key).map(|item| read(item, (app, target))).transpose()?.flatten();
        all.extend(known.map(|(_, observed)| (target.clone(), observed)));
    }
    Ok(all)
}

/// The attribute of a fact whose cluster was deregistered: only a new report keeps it from expiring.
const TAKEN_OUT: &str = "to";

/// Whether a fact expires because no pipeline asked for it. The first one that does keeps it.
pub(crate) fn unasked(item: &Item) -> bool {
    item.number("ttl").is_some() && !item.flag(TAKEN_OUT)
}

/// The write that keeps a fact from expiring.
pub(crate) fn keep(item: &Item) -> Write {
    change(item, [].into(), vec![Name::Borrowed("ttl"), Name::Borrowed(TAKEN_OUT)])
}

fn change(item: &Item, mut set: Attrs, remove: Vec<Name>) -> Write {
    set.insert(Name::Borrowed("v"), (item.version() + 1).into());
    Write::Update { key: item.key.clone(), condition: Condition::Version(item.version()), set, remove, raise: false }
}

/// The attribute with the target's whole name.
const TARGET: &str = "of";

/// Whether an item belongs to a target. Items of older versions, which lack the attribute, do.
fn is_of(item: &Item, (app, target): (&App, &Target)) -> bool {
    item.text(TARGET).is_none_or(|name| name == keys::target_name(app, target))
}

/// The stored fact about a target, and its version.
pub(super) fn read(item: &Item, of: (&App, &Target)) -> Result<Option<(i64, Observed)>, PortError> {
    check_format(item, FORMAT)?;
    if !is_of(item, of) {
        return Ok(None);
    }
    let version = item.number("n").unwrap_or_default();
    Ok(crate::json::stored::<Observed>(item, "j")?.map(|observed| (version, observed)))
}

/// Adds an explanation for targets without reports, in clusters that are not registered. Without such targets, nothing is read.
async fn unregistered(store: &impl Store, definition: &Definition, all: &mut Observations) -> Result<(), PortError> {
    let unknown: Vec<&Target> = definition.targets().filter(|target| !all.contains_key(target)).collect();
    let entry = |cluster: &str| Key::new(keys::CLUSTERS, cluster);
    let is_deleted = |item: &Item| declare::read::<Clusters>(item).is_ok_and(|cluster| cluster.is_none());
    let wanted: BTreeSet<Key> = unknown.iter().filter_map(|target| target.cluster.as_deref()).map(entry).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let found = table::read(store, &wanted.into_iter().collect::<Vec<_>>()).await?;
    for target in unknown {
        if let Some(cluster) = target.cluster.as_deref().filter(|cluster| found.get(&entry(cluster)).is_none_or(is_deleted)) {
            let why =
                format!("cluster {cluster} is not registered: apply a Cluster, or report about it with POST /v1/observations");
            // This was not observed, so it has no time.
            all.insert(
                target.clone(),
                Observed { revision: None, ready: false, error: Some(why), at: Timestamp::default(), by: vec![] },
            );
        }
    }
    Ok(())
}

impl<P: Ports> Promotions<P> {
    /// Stores a fact if it is newer than the known one, and wakes the pipelines that depend on its target.
    ///
    /// # Errors
    /// A port fails. Reporting it again completes what was begun.
    pub async fn observe(&self, fact: &Fact) -> Result<Kept, PortError> {
        let partition = keys::target_partition(&fact.app, &fact.target);
        let key = keys::observation(&fact.app, &fact.target);
        for _ in 0..COMMIT_TRIES {
            // One query reads the known fact and the pipelines that depend on it.
            let page = self.ports.query(&Query::table(partition.clone(), PAGE)).await?;
            let known = page.items.first().filter(|item| item.key == key).cloned();
            known.as_ref().map_or(Ok(()), |item| check_format(item, FORMAT))?;
            if known.as_ref().is_some_and(|item| !is_of(item, (&fact.app, &fact.target))) {
                tracing::error!(%key, target = keys::target_name(&fact.app, &fact.target), "the place of this target is taken by another one");
                return Ok(Kept::Older);
            }
            let version = known.as_ref().and_then(|item| item.number("n"));
            if version.is_some_and(|version| version > fact.version) {
                return Ok(Kept::Older);
            }
            let earlier = known.as_ref().map(|item| read(item, (&fact.app, &fact.target))).transpose()?.flatten();
            let earlier = earlier.as_ref().map(|(_, observed)| observed);
            let same = earlier.is_some_and(|earlier| earlier.revision == fact.observed.revision);
            let kept = if same { Kept::Same } else { Kept::Revision };
            let observed = fact.observed.clone().after(earlier);
            let asked = page.items.iter().any(|item| item.key.sk.starts_with(keys::DEPENDS));
            if version != Some(fact.version) {
                let now = self.ports.now();
                let item = Item::new(key.clone())
                    .with("j", observed.to_json())
                    .with("n", fact.version)
                    .with(TARGET, keys::target_name(&fact.app, &fact.target))
                    .with("v", known.as_ref().map_or(0, Item::version) + 1)
                    .with("f", FORMAT)
                    .with_some("ttl", (!asked).then_some((now + UNASKED).0 / 1000));
                let condition = known.as_ref().map_or(Condition::Absent, |item| Condition::Version(item.version()));
                if self.ports.write(&Write::Put(item, condition)).await? != Written::Done {
                    continue;
                }
            } else if let Some(known) = known.filter(|known| asked && known.number("ttl").is_some())
                && self.ports.write(&keep(&known)).await? != Written::Done
            {
                continue;
            }
            let because = format!("{partition} {}", fact.version);
            let concerned = |item: &Item| fact::entered(item).filter(|_| item.key.sk.starts_with(keys::DEPENDS));
            fact::tell(&self.ports, Query::table(partition, PAGE), Some(page), |item| {
                concerned(item).map(|to| Message::Evaluate { to, because: because.clone() }.letter())
            })
            .await?;
            return Ok(kept);
        }
        Err(contended(key))
    }

    /// Lets the facts of a deregistered cluster expire, as soon as facts that no pipeline asks for.
    pub(super) async fn expire(&self, facts: &[(&App, &Target)]) -> Result<(), PortError> {
        let expires = (self.ports.now() + UNASKED).0 / 1000;
        let wanted: BTreeMap<Key, (&App, &Target)> = facts.iter().map(|of| (keys::observation(of.0, of.1), *of)).collect();
        let found = table::read(&self.ports, &wanted.keys().cloned().collect::<Vec<_>>()).await?;
        let theirs = |item: &&Item| wanted.get(&item.key).is_some_and(|of| is_of(item, *of));
        for item in found.values().filter(theirs).filter(|item| item.number("ttl").is_none()) {
            // If the fact has changed in between, the target still has a reporter.
            let set = [(Name::Borrowed("ttl"), expires.into()), (Name::Borrowed(TAKEN_OUT), true.into())];
            drop(self.ports.write(&change(item, set.into(), vec![])).await?);
        }
        Ok(())
    }

    /// Facts that were reported over the bus: `data.facts` is what `POST /v1/observations` takes, `data.cluster` its query.
    pub(super) async fn observed_by_event(&self, event: &CloudEvent, cause: Cause) -> Result<Handled, PortError> {
        let facts = event.data.get("facts").filter(|_| event.ty == OBSERVED);
        let Some(facts) = facts else {
            return self.unusable(event, cause, &format!("type must be {OBSERVED}, and data.facts a list of facts")).await;
        };
        // Only the deployments engine may name the authors of a revision. Other senders on the bus cannot vouch for anybody.
        let ours = event.source == deployments::SOURCE;
        let by = event.data.get("by").filter(|_| ours).and_then(|by| serde_json::from_value::<Vec<String>>(by.clone()).ok());
        let by = by.unwrap_or_default();
        // Every delivery of the event must read the same.
        let read = report::read(facts, event.text("cluster"), cause.sent);
        match read.and_then(|all| if ours { Ok(all) } else { report::by_others(&all).map(|()| all) }) {
            Ok(all) => {
                for Observation { app, target, version, observed, .. } in all {
                    let observed = Observed { by: by.clone(), ..observed };
                    self.observe(&Fact { app, target, version, observed }).await?;
                }
                Ok(Handled::Recorded)
            }
            Err(wrong) => {
                let wrong: Vec<String> = wrong.iter().take(5).map(|wrong| format!("data.facts{wrong}")).collect();
                self.unusable(event, cause, &wrong.join("; ")).await
            }
        }
    }

    async fn unusable(&self, event: &CloudEvent, cause: Cause, reason: &str) -> Result<Handled, PortError> {
        invalid::record(&self.ports, self.limits.retention, cause.sent, reason, &event.to_bytes()).await
    }
}
