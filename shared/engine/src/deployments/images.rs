//! The images that the tags of artifact sources point to. A tag points to the newest pushed image; an older push changes nothing. A
//! push wakes only the configs that watch its tag.

use super::message::Message;
use super::{Address, Deployments, keys};
use crate::border::let_in;
use crate::item::{Item, Key};
use crate::json::stored;
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
use keelway_domain::stored::Stored;
use keelway_domain::time::Timestamp;

/// The most configs in one page of the watchers of a tag.
const PAGE: u32 = 200;
/// The most tags of a source that are read when a pattern is added.
const TAGS: usize = 2000;

/// A reported push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Push {
    /// The tag.
    pub tag: String,
    /// The image by its digest.
    pub image: String,
    /// When.
    pub at: Timestamp,
    /// The verified identity of who pushed. Empty: it is not known.
    pub by: String,
}

/// The images of the tags that a config watches. Tags of other namespaces count only while those consent; for tags of its own
/// namespace, no consent is read.
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

/// The image of a tag.
pub(super) fn read(item: &Item, source: (&str, &str)) -> Result<Option<Head>, PortError> {
    if is_of(item, source) { stored::<Head>(item, "j") } else { Ok(None) }
}

/// The reports about an image. Items of older versions contain only its deletion.
pub(super) fn presence(item: &Item) -> Result<Presence, PortError> {
    let known = stored::<Presence>(item, "j")?;
    Ok(known.unwrap_or_else(|| {
        let mut deleted = Presence::default();
        deleted.deleted(None, Timestamp(item.number("at").unwrap_or_default()));
        deleted
    }))
}

/// The attribute with the source of an item. The partition is a hash of the name, for which somebody could find a second name.
const SOURCE: &str = "of";

fn named((namespace, name): (&str, &str)) -> String {
    format!("{namespace}/{name}")
}

/// Whether an item belongs to a source. Items of older versions, which lack the attribute, do.
pub(super) fn is_of(item: &Item, source: (&str, &str)) -> bool {
    item.text(SOURCE).is_none_or(|of| of == named(source))
}

/// An image of a repository, as a template names it.
pub(super) fn name(of: &Repository, home: &Home, digest: &str) -> String {
    format!("{}@{digest}", of.images(home))
}

impl<P: Ports> Deployments<P> {
    /// Puts an artifact source in force, and points tags with a pattern to earlier pushes. The images of a deleted source's tags
    /// stay, so that its configs keep their images.
    ///
    /// # Errors
    /// A port fails. Applying it again completes what was begun.
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

    /// Records a push if it is newer than the known one, and wakes the configs that watch the tag, or a tag that follows it.
    /// `false`: the source does not exist.
    ///
    /// # Errors
    /// A port fails. Reporting it again completes what was begun.
    pub async fn pushed(&self, namespace: &str, name: &str, push: &Push) -> Result<bool, PortError> {
        let Some(source) = self.source(namespace, name).await? else { return Ok(false) };
        let head = Head { image: push.image.clone(), at: push.at, by: push.by.clone() };
        self.remember((namespace, name), digest(&head.image), |image| image.pushed(&push.tag, push.at)).await?;
        for tag in source.moved_by(&push.tag) {
            self.point(&ImageTag { namespace: namespace.into(), name: name.into(), tag }, &head).await?;
        }
        Ok(true)
    }

    /// Points a tag to an image that a namespace has deployed, if the tag's namespace consents. `false`: the source does not exist.
    ///
    /// # Errors
    /// A port fails; reporting it again completes what was begun. Inner error: there is no consent.
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

    /// Records the deletion of an image or of one of its tags at the source, because nothing must be rolled back to a deleted
    /// image.
    ///
    /// # Errors
    /// A port fails. Reporting it again completes what was begun.
    pub async fn deleted(&self, of: (&str, &str), digest: &str, tag: Option<&str>, at: Timestamp) -> Result<(), PortError> {
        self.remember(of, digest, |image| image.deleted(tag, at)).await
    }

    /// Records an event of an image at its source. Repeated and late reports change nothing.
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
            let item = Item::new(key.clone()).with("j", next.to_json()).with(SOURCE, named(of)).with("v", next_version(found));
            Ok(Step::Write(Write::Put(item, as_read(found)), ()))
        })
        .await
    }

    /// Points a tag to an image, if that is newer, and wakes the configs that watch the tag.
    async fn point(&self, tag: &ImageTag, head: &Head) -> Result<(), PortError> {
        if !self.keep(tag, head).await? {
            return Ok(());
        }
        let because = format!("{tag} {}", head.at.0);
        let query = Query::table(keys::source_partition(&tag.namespace, &tag.name), PAGE).prefix(&keys::watchers(&tag.tag));
        self.for_each(query, |to| Message::Evaluate { to, because: because.clone() }).await
    }

    /// Points a tag to an image. `false`: a newer image is known.
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
            // Of two pushes in the same millisecond, every function takes the same one.
            if known.is_some_and(|known| known.at == head.at && known.image > head.image) {
                return Ok(Step::Leave(false));
            }
            let item = Item::new(key.clone())
                .with("j", head.to_json())
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
            // The source may follow another repository now, if the writer stopped before it deleted this entry.
            let source = self.source(&of.namespace, &of.name).await?;
            if source.and_then(|source| Some(keys::repository_partition(source.repository()?, here))) != Some(partition.clone()) {
                continue;
            }
            match tag {
                // An image with several tags may lose one of them.
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
