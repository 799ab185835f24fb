//! Images that are deleted at the repository, whole or one tag alone, before or after they are pushed again. What follows a tag
//! stays where it is: a deletion only says what nobody may roll back to.

use super::revision;
use super::scenario::{Action, Delivering};
use super::tags::{ALIAS, IMAGES, TAGS, name, repository};
use crate::deployments::tag;
use crate::sim::Sim;
use keelway_domain::deployments::notice::{Image, Notice};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::deployments::{self, Deployments, Limits, Message};
use keelway_world::exec::block_on;
use keelway_world::queue::Parcel;
use keelway_world::rng::Rng;

/// A deletion: of which image, or of which of its tags alone, and how long ago.
#[derive(Debug, Clone, Copy)]
pub struct Deletion {
    image: u64,
    tag: Option<&'static str>,
    ago: Span,
}

/// What the registry has told of an image: a push to a tag, or a deletion.
#[derive(Debug, Clone, Copy)]
pub struct Told {
    /// The image, by its number.
    pub image: u64,
    /// The tag; of a deletion without one, all of the image is gone.
    pub tag: Option<&'static str>,
    /// Whether it is a push.
    pub pushed: bool,
    /// When.
    pub at: Timestamp,
}

/// Draws what is deleted of the images that are pushed. It has a generator of its own: all else in the seed stays as it was.
pub fn draw(pushes: &[(Span, Action)]) -> Vec<(Span, Action)> {
    let mut deletions = vec![];
    for (at, action) in pushes {
        let Action::Push(push) = action else { continue };
        let mut rng = Rng::new(at.0.unsigned_abs() ^ push.image);
        if !rng.chance(40.0) {
            continue;
        }
        let tag = rng.chance(50.0).then(|| if rng.chance(70.0) { push.tag } else { *rng.pick(&TAGS) });
        let ago = *rng.pick(&[Span(0), Span(0), Span::minutes(1), Span::minutes(10)]);
        let deletion = Deletion { image: push.image, tag, ago };
        deletions.push((Span(at.0 + rng.below(600_000) as i64), Action::DeleteImage(deletion)));
        if rng.chance(30.0) {
            deletions.push((Span(at.0 + rng.below(600_000) as i64), Action::Push(*push)));
        }
    }
    deletions
}

impl Delivering {
    /// The registry tells of a deletion.
    pub(super) fn delete_image(&mut self, sim: &mut Sim<Self>, Deletion { image, tag, ago }: Deletion) {
        let at = sim.world.now() + Span(-ago.0);
        self.registry.push(Told { image, tag, pushed: false, at });
        self.watch.stats.count(if tag.is_some() { "deletions of a tag" } else { "deletions of an image" });
        let image = Image { repository: repository(), digest: revision(image), tag: tag.map(str::to_owned), deleted: true, at };
        let message = Message::Notice { notice: Notice::Image(image) };
        sim.world.enqueue(deployments::NAME, Parcel::Own(message.letter().body));
    }

    /// What was told last of an image and a tag; of the same time, the push counts.
    fn newest(&self, image: u64, tag: &'static str) -> Option<&Told> {
        let of = self.registry.iter().filter(|told| (told.image, told.tag) == (image, Some(tag)));
        of.max_by_key(|told| (told.at, told.pushed))
    }

    /// Whether an image was deleted, or has lost a tag that it did not get again; and whether it has a tag: it was pushed there
    /// after its deletion, and no other image since.
    fn deleted_and_tagged(&self, image: u64) -> (bool, bool) {
        let whole = self.registry.iter().filter(|told| (told.image, told.tag) == (image, None)).map(|told| told.at).max();
        let lost = |tag: &&'static str| self.newest(image, tag).is_some_and(|told| !told.pushed);
        let has = |tag: &&'static str| {
            let pushed = self.newest(image, tag).filter(|told| told.pushed && whole.is_none_or(|whole| told.at >= whole));
            pushed.is_some() && self.pushed.head(tag) == Some(name(image).as_str())
        };
        (whole.is_some() || TAGS.iter().any(lost), TAGS.iter().any(has))
    }

    /// Who rolls back is told which images are gone: those of which a deletion was told, and that have no tag.
    pub(super) fn check_deleted(&self, sim: &mut Sim<Self>) -> Result<(), String> {
        if !self.has_tags() {
            return Ok(());
        }
        let of = tag(ALIAS);
        let deployments = Deployments::new(sim.world.worker(0), Limits::default());
        let digests: Vec<String> = IMAGES.iter().map(|image| revision(*image)).collect();
        let told = block_on(deployments.gone(&[(of.namespace, of.name)], &digests)).map_err(|error| error.to_string())?;
        for image in IMAGES {
            let (deleted, tagged) = self.deleted_and_tagged(image);
            let gone = deleted && !tagged;
            if gone != told.contains(&revision(image)) {
                return Err(format!("image {image} is {}gone: {:?}", if gone { "" } else { "not " }, self.registry));
            }
            sim.stats.add("images that are gone", u64::from(gone));
            sim.stats.add("images that were deleted and are there", u64::from(deleted && !gone));
        }
        Ok(())
    }
}
