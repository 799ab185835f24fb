//! Asks the registries for pushes whose events were lost, because their events are delivered on a best-effort basis.

use super::{Address, Deployments, images, keys};
use crate::item::{Item, Key};
use crate::ports::{Condition, PortError, Ports, Query, Write};
use crate::protocol::fact;
use crate::protocol::record::SKEW;
use crate::registry::{Registry, Tagged};
use crate::table;
use keelway_domain::deployments::definition::ImageTag;
use keelway_domain::deployments::registry::{ArtifactSource, Head, Repository};
use keelway_domain::deployments::template::digest;
use keelway_domain::time::{Span, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// The interval at which a source is asked for: a little less than the sweep's usual interval, so that each sweep asks.
const EVERY: Span = Span::seconds(4 * 60);
/// The most sources, and the most entries of one source, that are read.
const MOST: usize = 10_000;
const PAGE: u32 = 200;

/// The result of asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Asked {
    /// The number of sources that were asked for.
    pub sources: usize,
    /// The number of tags that point to another image than was known.
    pub moved: usize,
}

impl<P: Ports> Deployments<P> {
    /// Asks for every source that is due, those first that have waited longest, as long as there is `more` time. A registry that
    /// does not answer does not prevent requests to the others. No config is woken, because the sweep checks all configs next.
    ///
    /// # Errors
    /// A port fails.
    pub async fn ask_registries(&self, registry: &impl Registry, more: impl Fn() -> bool) -> Result<Asked, PortError> {
        let (entries, _) = table::all(&self.ports, Query::table(keys::ASKABLE, PAGE), MOST).await?;
        let since = |item: &Item| Timestamp(item.number("at").unwrap_or_default());
        let mut due: Vec<&Item> = entries.iter().filter(|item| since(item) + EVERY <= self.ports.now()).collect();
        due.sort_by_key(|item| since(item));
        let mut asked = Asked::default();
        for entry in due {
            if !more() {
                break;
            }
            let Some(of) = fact::entered(entry) else { continue };
            let now = self.ports.now();
            let source = self.sources().get(&of).await?.map(|source| source.spec);
            let Some((source, repository)) = source.as_ref().and_then(|source| Some((source, source.repository()?))) else {
                self.ports.write(&Write::Delete(entry.key.clone(), Condition::Always)).await?;
                continue;
            };
            let watched = self.watched(&of).await?;
            // No config watches its tags.
            if !watched.is_empty() {
                match registry.tags(repository).await {
                    Ok(Some(tags)) => {
                        let mut wanted = self.wanted(source, repository, &tags, now);
                        wanted.retain(|tag, _| watched.contains(&keys::watchers(tag)));
                        asked.moved += self.catch_up(&of, wanted).await?;
                    }
                    Ok(None) => tracing::warn!(source = %of, repository = repository.name, "there is no such repository"),
                    Err(error) => {
                        tracing::warn!(source = %of, repository = repository.name, %error, "the registry does not answer")
                    }
                }
                asked.sources += 1;
            }
            let entry = askable(&of).with("at", now.0);
            self.ports.write(&Write::Put(entry, Condition::Always)).await?;
        }
        Ok(asked)
    }

    /// The tags of a source that configs watch, in the form of [`keys::watchers`]. A source may have many more tags, for example
    /// one for each build.
    async fn watched(&self, of: &Address) -> Result<BTreeSet<String>, PortError> {
        let query = Query::table(keys::source_partition(&of.namespace, &of.name), PAGE).prefix(keys::WATCHERS);
        let (entries, _) = table::all(&self.ports, query, MOST).await?;
        Ok(entries.iter().filter_map(|entry| keys::watched(&entry.key.sk)).map(str::to_owned).collect())
    }

    /// Points tags to the images that the registry has named. Returns how many tags have moved.
    async fn catch_up(&self, of: &Address, wanted: BTreeMap<String, Head>) -> Result<usize, PortError> {
        let tag = |tag: &str| ImageTag { namespace: of.namespace.clone(), name: of.name.clone(), tag: tag.to_owned() };
        let heads: Vec<Key> = wanted.keys().map(|name| keys::head(&tag(name))).collect();
        let known = table::read(&self.ports, &heads).await?;
        let mut moved = 0;
        for (name, head) in wanted {
            let tag = tag(&name);
            let old = known.get(&keys::head(&tag)).map(|item| images::read(item, (&of.namespace, &of.name))).transpose()?.flatten();
            if old.is_none_or(|old| old.image != head.image && old.at < head.at) {
                // The pushed tag is not known: this tag may follow others.
                self.remember((&of.namespace, &of.name), digest(&head.image), |image| image.pushed("", head.at)).await?;
                moved += usize::from(self.keep(&tag, &head).await?);
            }
        }
        Ok(moved)
    }

    /// The images of tags, by name. A tag that was moved to an older image counts from now on, because only the registry knows when
    /// that happened. Clocks differ, and a push that this answer does not contain yet must count as newer.
    fn wanted(&self, source: &ArtifactSource, of: &Repository, tags: &[Tagged], at: Timestamp) -> BTreeMap<String, Head> {
        let mut wanted: BTreeMap<String, Head> = BTreeMap::new();
        for pushed in tags {
            let image = images::name(of, &self.home(), &pushed.digest);
            for tag in source.moved_by(&pushed.tag) {
                let own = tag == pushed.tag && !source.tags.contains_key(&tag);
                let since = if own { pushed.at.max(Timestamp(at.0 - SKEW.0)) } else { pushed.at };
                let head = Head { image: image.clone(), at: since, by: String::new() };
                if wanted.get(&tag).is_none_or(|other| (other.at, &other.image) < (head.at, &head.image)) {
                    wanted.insert(tag, head);
                }
            }
        }
        wanted
    }
}

/// The entry of a source whose registry can be asked.
pub(crate) fn askable(of: &Address) -> Item {
    fact::entry(Item::new(keys::askable(&of.namespace, &of.name)), of)
}
