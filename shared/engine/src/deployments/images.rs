//! What the tags of artifact sources point to. Each tag has the newest image that was pushed; an older push changes nothing. A push
//! wakes the configs that watch its tag, and no others.

use super::message::Message;
use super::{Address, Deployments, keys};
use crate::border::let_in;
use crate::item::{Item, Key};
use crate::json::{json, member};
use crate::ports::{PortError, Ports, Query, Store, Write};
use crate::protocol::change::{Step, as_read, change, next_version};
use crate::protocol::declare::Outcome;
use crate::protocol::{Handled, fact};
use crate::table;
use keelway_domain::border::{Act, Home, NoConsent};
use keelway_domain::deployments::definition::{Definition, ImageTag};
use keelway_domain::deployments::notice::{Alarm, Image};
use keelway_domain::deployments::registry::{ArtifactSource, Head, Heads, Presence, Repository};
use keelway_domain::deployments::template::digest;
use keelway_domain::time::Timestamp;

/// So many configs are found at once by their tag.
const PAGE: u32 = 200;
/// So many tags of a source are looked at when a pattern is added.
const TAGS: usize = 2000;

/// A push, as whoever saw it tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Push {
    /// Which tag.
    pub tag: String,
    /// The image by its digest.
    pub image: String,
    /// When.
    pub at: Timestamp,
    /// Who, as the API knows them; empty: that is not known.
    pub by: String,
}

/// What the tags that a config watches point to. Of another namespace's, only while that consents; of one's own, nothing more is
/// read.
pub(super) async fn of(store: &impl Store, to: &Address, definition: &Definition) -> Result<Heads, PortError> {
    let watched: Vec<(ImageTag, Key)> = definition.watched().into_iter().map(|tag| (tag.clone(), keys::head(tag))).collect();
    if watched.is_empty() {
        return Ok(Heads::new());
    }
    let wanted: Vec<Key> = watched.iter().map(|(_, key)| key.clone()).collect();
    let items = table::read(store, &wanted).await?;
    let mut heads = Heads::new();
    for (tag, key) in watched {
        let head = items.get(&key).map(|item| read(item, (&tag.namespace, &tag.name))).transpose()?.flatten();
        if let Some(head) = head
            && let_in(store, &to.namespace, Act::Observe, (&tag.namespace, &tag.name)).await?.is_ok()
        {
            heads.insert(tag, head);
        }
    }
    Ok(heads)
}

/// What a tag of a source points to.
pub(super) fn read(item: &Item, source: (&str, &str)) -> Result<Option<Head>, PortError> {
    if is_of(item, source) { member::<Option<Head>>(item, "j") } else { Ok(None) }
}

/// What was told of an image. Items of before tell only when it was deleted.
pub(super) fn presence(item: &Item) -> Result<Presence, PortError> {
    let known = member::<Option<Presence>>(item, "j")?;
    Ok(known.unwrap_or_else(|| {
        let mut deleted = Presence::default();
        deleted.deleted(None, Timestamp(item.number("at").unwrap_or_default()));
        deleted
    }))
}

/// The attribute with the source that an item is about. The partition is only a hash of its name, which others could find a second
/// name for.
const SOURCE: &str = "of";

fn named((namespace, name): (&str, &str)) -> String {
    format!("{namespace}/{name}")
}

/// Whether an item is about a source. One that was written before that was noted is.
pub(super) fn is_of(item: &Item, source: (&str, &str)) -> bool {
    item.text(SOURCE).is_none_or(|of| of == named(source))
}

/// An image of a repository, as a template names it.
pub(super) fn name(of: &Repository, home: &Home, digest: &str) -> String {
    format!("{}@{digest}", of.images(home))
}

impl<P: Ports> Deployments<P> {
    /// Puts an artifact source in force, and has the tags that follow a pattern point to what was pushed before. What the tags of a
    /// source that is deleted point to stays: configs go on with the images they have.
    ///
    /// # Errors
    /// Of the ports. Applying it again completes what was begun.
    pub async fn apply_source(&self, at: &Address, source: &ArtifactSource, text: &str) -> Result<Outcome, PortError> {
        let outcome = self.sources().apply(at, source, text).await?;
        let (namespace, name) = (at.namespace.as_str(), at.name.as_str());
        let query = Query::table(keys::source_partition(namespace, name), PAGE).prefix(keys::HEADS);
        let known = if source.tags.is_empty() { vec![] } else { table::all(&self.ports, query, TAGS).await?.0 };
        for item in &known {
            let (Some(head), Some(tag)) = (read(item, (namespace, name))?, item.text("t")) else { continue };
            for follows in source.moved_by(tag).into_iter().skip(1) {
                self.point(&ImageTag { namespace: namespace.into(), name: name.into(), tag: follows }, &head).await?;
            }
        }
        Ok(outcome)
    }

    /// An artifact source in force.
    async fn source(&self, namespace: &str, name: &str) -> Result<Option<ArtifactSource>, PortError> {
        Ok(self.sources().get(&Address::new(namespace, name)).await?.map(|source| source.spec))
    }

    /// Keeps what was pushed if it is newer than what is known, and wakes the configs that watch the tag, or one that follows it.
    /// `false`: no such source.
    ///
    /// # Errors
    /// Of the ports. Telling it again completes what was begun.
    pub async fn pushed(&self, namespace: &str, name: &str, push: &Push) -> Result<bool, PortError> {
        let Some(source) = self.source(namespace, name).await? else { return Ok(false) };
        let head = Head { image: push.image.clone(), at: push.at, by: push.by.clone() };
        self.remember((namespace, name), digest(&head.image), |image| image.pushed(&push.tag, push.at)).await?;
        for tag in source.moved_by(&push.tag) {
            self.point(&ImageTag { namespace: namespace.into(), name: name.into(), tag }, &head).await?;
        }
        Ok(true)
    }

    /// Points a tag to an image that a namespace has deployed, if the tag's namespace lets it. `false`: no such source.
    ///
    /// # Errors
    /// Of the ports. Telling it again completes what was begun. Inside: there is no consent.
    pub async fn tagged(
        &self,
        from: &str,
        to: &ImageTag,
        image: &str,
        at: Timestamp,
    ) -> Result<Result<bool, NoConsent>, PortError> {
        let reached = match let_in(&self.ports, from, Act::Tag, (&to.namespace, &to.name)).await? {
            Ok(reached) => reached,
            Err(no) => return Ok(Err(no)),
        };
        let push = Push { tag: to.tag.clone(), image: image.to_owned(), at, by: String::new() };
        self.pushed(reached.namespace(), reached.name(), &push).await.map(Ok)
    }

    /// Remembers that an image was deleted at its source, or that one of its tags was: nothing is rolled back to an image that is
    /// gone.
    ///
    /// # Errors
    /// Of the ports. Telling it again completes what was begun.
    pub async fn deleted(&self, of: (&str, &str), digest: &str, tag: Option<&str>, at: Timestamp) -> Result<(), PortError> {
        self.remember(of, digest, |image| image.deleted(tag, at)).await
    }

    /// Remembers what happened to an image at its source. What is told again, or late, changes nothing.
    pub(super) async fn remember(
        &self,
        of: (&str, &str),
        digest: &str,
        happened: impl Fn(&mut Presence) + Send + Sync,
    ) -> Result<(), PortError> {
        let key = keys::image(of.0, of.1, digest);
        change(&self.ports, &key, |found| {
            if found.is_some_and(|item| !is_of(item, of)) {
                tracing::error!(%key, source = named(of), "the place of this image is taken by another source: its name must change");
                return Ok(Step::Leave(()));
            }
            let known = found.map(presence).transpose()?;
            let mut next = known.clone().unwrap_or_default();
            happened(&mut next);
            if known.as_ref() == Some(&next) {
                return Ok(Step::Leave(()));
            }
            let item = Item::new(key.clone()).with("j", json(&next)).with(SOURCE, named(of)).with("v", next_version(found));
            Ok(Step::Write(Write::Put(item, as_read(found)), ()))
        })
        .await
    }

    /// Has a tag point to an image, if that is newer, and wakes who watches it.
    async fn point(&self, tag: &ImageTag, head: &Head) -> Result<(), PortError> {
        if !self.keep(tag, head).await? {
            return Ok(());
        }
        let because = format!("{tag} {}", head.at.0);
        let query = Query::table(keys::source_partition(&tag.namespace, &tag.name), PAGE).prefix(&keys::watchers(&tag.tag));
        self.for_each(query, |to| Message::Evaluate { to, because: because.clone() }).await
    }

    /// Has a tag point to an image. `false`: something newer is known.
    pub(super) async fn keep(&self, tag: &ImageTag, head: &Head) -> Result<bool, PortError> {
        let key = keys::head(tag);
        let source = (tag.namespace.as_str(), tag.name.as_str());
        change(&self.ports, &key, |found| {
            if found.is_some_and(|item| !is_of(item, source)) {
                tracing::error!(%key, %tag, "the place of this tag is taken by another source: its name must change");
                return Ok(Step::Leave(false));
            }
            let known = found.map(|item| read(item, source)).transpose()?.flatten();
            if known.as_ref().is_some_and(|known| known.at > head.at) {
                return Ok(Step::Leave(false));
            }
            let head = head.after(known.as_ref());
            if known.as_ref() == Some(&head) {
                return Ok(Step::Leave(true));
            }
            // Two pushes of one moment: every function keeps the same one.
            if known.is_some_and(|known| known.at == head.at && known.image > head.image) {
                return Ok(Step::Leave(false));
            }
            let item = Item::new(key.clone())
                .with("j", json(&head))
                .with("t", tag.tag.as_str())
                .with(SOURCE, named(source))
                .with("v", next_version(found));
            Ok(Step::Write(Write::Put(item, as_read(found)), true))
        })
        .await
    }

    /// Sends a message to each config that is entered there.
    async fn for_each(&self, query: Query, message: impl Fn(Address) -> Message + Send + Sync) -> Result<(), PortError> {
        fact::tell(&self.ports, query, None, |item| fact::entered(item).map(|to| message(to).letter())).await
    }

    /// An image was pushed to a repository, or deleted there.
    pub(super) async fn image(&self, notice: &Image) -> Result<Handled, PortError> {
        let Image { repository: from, digest, tag, deleted, at } = notice;
        let here = (self.limits.account.as_str(), self.limits.region.as_str());
        let partition = keys::repository_partition(from, here);
        let (fed, _) = table::all(&self.ports, Query::table(partition.clone(), PAGE), TAGS).await?;
        for of in fed.iter().filter_map(fact::entered) {
            // Whoever had it follow another repository may have stopped before deleting this entry.
            let source = self.source(&of.namespace, &of.name).await?;
            if source.and_then(|source| Some(keys::repository_partition(source.repository()?, here))) != Some(partition.clone()) {
                continue;
            }
            match tag {
                // Of an image with several tags, one may be deleted alone.
                tag if *deleted => self.deleted((&of.namespace, &of.name), digest, tag.as_deref(), *at).await?,
                Some(tag) => {
                    let image = name(from, &self.home(), digest);
                    let push = Push { tag: tag.clone(), image, at: *at, by: String::new() };
                    self.pushed(&of.namespace, &of.name, &push).await?;
                }
                None => self.remember((&of.namespace, &of.name), digest, |image| image.pushed("", *at)).await?,
            }
        }
        Ok(Handled::Recorded)
    }

    /// An alarm changed its state.
    pub(super) async fn alarm(&self, Alarm { name, on, at }: &Alarm) -> Result<Handled, PortError> {
        let query = Query::table(keys::alarm_partition(name), PAGE);
        self.for_each(query, |to| Message::Alarm { to, alarm: name.clone(), on: *on, at: *at }).await?;
        Ok(Handled::Recorded)
    }
}
