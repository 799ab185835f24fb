//! Where images come from: artifact sources, and what their tags point to.

use super::definition::ImageTag;
use crate::border::{Home, Pattern, Resource, ResourceKind};
use crate::pattern::matches;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A source of images: binds `<namespace>/<name>` to whoever tells about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactSource {
    /// Who tells.
    pub from: Origin,
    /// Tags that follow the newest image of any tag that matches a pattern, by name: `*` stands for any text, `?` for a character.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// What a request may say that its tags point to: patterns of `<registry>/<repository>`, and of `s3://<bucket>/<key>`. Of a webhook only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    /// Whether an administrator of the installation applied it: no manifest says so. See [`crate::border::Vouched`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub vouched: bool,
}

/// Who tells about a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Origin {
    /// A repository of ECR.
    Ecr(Repository),
    /// A signed webhook.
    Webhook {
        /// The name of the secret with its key.
        secret: String,
    },
}

/// A repository of ECR.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Repository {
    /// Its account; absent: the installation's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Its region; absent: the installation's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Its name.
    pub name: String,
}

impl Repository {
    /// Its images, as a template names them, without tag and digest.
    pub fn images(&self, home: &Home) -> String {
        let (account, region) = (self.account.as_deref().unwrap_or(&home.account), self.region.as_deref().unwrap_or(&home.region));
        format!("{account}.dkr.ecr.{region}.amazonaws.com/{}", self.name)
    }
}

impl ArtifactSource {
    /// What a request may say that its tags point to, as patterns. Empty: the source does not say.
    pub fn takes(&self, home: &Home) -> Vec<String> {
        match &self.from {
            Origin::Ecr(repository) => vec![repository.images(home)],
            Origin::Webhook { .. } => self.images.clone(),
        }
    }

    /// The repository that feeds it, if it is one of ECR.
    pub fn repository(&self) -> Option<&Repository> {
        match &self.from {
            Origin::Ecr(repository) => Some(repository),
            Origin::Webhook { .. } => None,
        }
    }

    /// The tags that a push of `tag` moves: itself, and those whose pattern it matches.
    pub fn moved_by(&self, tag: &str) -> Vec<String> {
        let followed =
            self.tags.iter().filter(|(name, pattern)| *name != tag && matches(pattern, tag)).map(|(name, _)| name.clone());
        std::iter::once(tag.to_owned()).chain(followed).collect()
    }
}

/// Whether one of these patterns names an image's repository, or a package of code.
pub fn is_among(patterns: &[String], image: &Resource) -> bool {
    let name = match image.kind {
        ResourceKind::Packages => format!("s3://{}", image.name),
        _ => image.name.clone(),
    };
    patterns.iter().any(|pattern| Pattern::named(pattern).names(&name))
}

/// What a tag points to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The image by its digest, as a template names it: `registry/repository@sha256:…`.
    #[serde(rename = "i")]
    pub image: String,
    /// When it was pushed. A push that is older changes nothing.
    #[serde(rename = "t")]
    pub at: Timestamp,
    /// Who pushed it, as the API knows them; empty: that is not known.
    #[serde(rename = "b", default, skip_serializing_if = "String::is_empty")]
    pub by: String,
}

impl Head {
    /// As it is kept in the place of an earlier one: who tells of the same image again has not pushed it.
    pub fn after(&self, earlier: Option<&Self>) -> Self {
        let same = earlier.filter(|earlier| earlier.image == self.image);
        Self { by: same.map_or_else(|| self.by.clone(), |earlier| earlier.by.clone()), ..self.clone() }
    }
}

/// More tags of an image than these are not remembered: the oldest are forgotten first.
const MAX_TAGS: usize = 100;

/// What was told of an image at its source. The newest counts, in whatever order it is told and however often; of one time, the
/// push does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// When the image was deleted last, with all its tags.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    deleted: Option<Timestamp>,
    /// By tag: when it was last pushed (`true`) or deleted. The empty tag stands for a push that names none.
    #[serde(rename = "t", default, skip_serializing_if = "BTreeMap::is_empty")]
    tags: BTreeMap<String, (Timestamp, bool)>,
}

impl Presence {
    /// It was pushed.
    pub fn pushed(&mut self, tag: &str, at: Timestamp) {
        self.keep(tag, (at, true));
    }

    /// It was deleted: one of its tags, or all of it.
    pub fn deleted(&mut self, tag: Option<&str>, at: Timestamp) {
        match tag {
            Some(tag) => self.keep(tag, (at, false)),
            None => self.deleted = self.deleted.max(Some(at)),
        }
    }

    fn keep(&mut self, tag: &str, told: (Timestamp, bool)) {
        let known = self.tags.entry(tag.to_owned()).or_insert(told);
        *known = told.max(*known);
        while self.tags.len() > MAX_TAGS {
            let oldest = self.tags.iter().min_by_key(|(_, (at, _))| *at).map(|(tag, _)| tag.clone());
            self.tags.retain(|tag, _| Some(tag) != oldest.as_ref());
        }
    }

    /// The last deletion of anything.
    fn last(&self) -> Option<Timestamp> {
        let tags = self.tags.values().filter(|(_, there)| !there).map(|(at, _)| *at);
        tags.chain(self.deleted).max()
    }

    /// The tags that it still has, as far as was told of it alone, and since when: none if nothing of it was deleted.
    pub fn remains(&self) -> impl Iterator<Item = (&str, Timestamp)> {
        let last = self.last();
        let stays = move |tag: &str, at: Timestamp| {
            last.is_some()
                && self.deleted.is_none_or(|deleted| at >= deleted)
                && (!tag.is_empty() || last.is_none_or(|last| at >= last))
        };
        let there = self.tags.iter().filter(|(_, (_, there))| *there).map(|(tag, (at, _))| (tag.as_str(), *at));
        there.filter(move |(tag, at)| stays(tag, *at))
    }

    /// Whether it is gone. `moved`: whether a tag was put on another image at that time or later.
    pub fn is_gone(&self, moved: impl Fn(&str, Timestamp) -> bool) -> bool {
        self.last().is_some() && self.remains().all(|(tag, at)| moved(tag, at))
    }
}

/// What is known about the tags that a config watches.
pub type Heads = BTreeMap<ImageTag, Head>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deployments::code;
    use proptest::prelude::*;

    #[test]
    fn patterns() {
        for (pattern, text) in [("v1.*", "v1.2"), ("*", ""), ("v?", "v1"), ("*-rc*", "1.0-rc2"), ("a*b*c", "aXbXbXc"), ("v1", "v1")]
        {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("v1.*", "v2.1"), ("v?", "v"), ("v?", "v10"), ("a*b", "abc"), ("", "a"), ("v1", "v1.0")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn a_source_takes_images_of_its_own_repositories_only() {
        let home = Home { region: "eu-west-1".into(), account: "1".into() };
        let source = |from, images: &[&str]| ArtifactSource {
            from,
            tags: BTreeMap::new(),
            images: images.iter().map(ToString::to_string).collect(),
            vouched: false,
        };
        let ecr = |account: Option<&str>| {
            source(Origin::Ecr(Repository { account: account.map(Into::into), region: None, name: "shop/web".into() }), &[])
        };
        let hook = |images: &[&str]| source(Origin::Webhook { secret: "key".into() }, images);
        for (source, image, fine) in [
            (ecr(None), "1.dkr.ecr.eu-west-1.amazonaws.com/shop/web", true),
            (ecr(Some("2")), "2.dkr.ecr.eu-west-1.amazonaws.com/shop/web", true),
            (ecr(None), "2.dkr.ecr.eu-west-1.amazonaws.com/shop/web", false),
            (ecr(None), "1.dkr.ecr.eu-west-1.amazonaws.com/shop/web/more", false),
            (ecr(None), "registry.test/shop/web", false),
            (hook(&["registry.test/shop/*"]), "registry.test/shop/web", true),
            (hook(&["registry.test/shop/*"]), "registry.test/other/web", false),
            (hook(&["registry.test/shop/*"]), "evil.test/registry.test/shop/web", false),
            (hook(&["*.test/shop/*"]), "evil.example/x.test/shop/web", false),
            (hook(&["a.test/b", "s3://releases/shop-*"]), "s3://releases/shop-1.zip?versionId=v", true),
            (hook(&["s3://releases/shop-*"]), "s3://others/shop-1.zip", false),
            (hook(&["releases/shop-*"]), "s3://releases/shop-1.zip", false),
            (hook(&["*"]), "s3://releases/shop-1.zip", true),
        ] {
            let code = code(&format!("{image}@sha256:ab")).unwrap();
            assert_eq!(is_among(&source.takes(&home), &code), fine, "{image} {source:?}");
        }
        assert_eq!(hook(&[]).takes(&home), Vec::<String>::new());
    }

    /// Every order of what is told, each of it twice in turn, and whether the image is gone then.
    fn told_in_any_order(told: &[(&str, Option<&str>, i64)]) -> bool {
        fn orders<T: Clone>(of: &[T]) -> Vec<Vec<T>> {
            if of.is_empty() {
                return vec![vec![]];
            }
            let rest = |place: usize| [&of[..place], &of[place + 1..]].concat();
            (0..of.len())
                .flat_map(|place| orders(&rest(place)).into_iter().map(move |order| [&[of[place].clone()], &order[..]].concat()))
                .collect()
        }
        let tell = |image: &mut Presence, (what, tag, at): (&str, Option<&str>, i64)| match what {
            "push" => image.pushed(tag.unwrap_or_default(), Timestamp(at)),
            _ => image.deleted(tag, Timestamp(at)),
        };
        let ends: Vec<bool> = orders(told)
            .into_iter()
            .flat_map(|order| {
                (0..order.len()).map(move |copy| {
                    let mut image = Presence::default();
                    order.iter().chain([&order[copy]]).for_each(|one| tell(&mut image, *one));
                    image.is_gone(|_, _| false)
                })
            })
            .collect();
        assert!(ends.iter().all(|end| *end == ends[0]), "{told:?} depends on the order");
        ends[0]
    }

    #[test]
    fn whether_an_image_is_gone_depends_on_when_it_happened_and_not_on_when_it_is_told() {
        let (push, delete) = ("push", "delete");
        for (told, gone) in [
            (vec![(push, Some("v1"), 0)], false),
            (vec![(push, Some("v1"), 0), (delete, None, 10)], true),
            (vec![(push, Some("v1"), 0), (delete, None, 10), (push, Some("v1"), 20)], false),
            (vec![(push, Some("v1"), 0), (delete, Some("v1"), 10), (push, Some("v1"), 20)], false),
            (vec![(push, Some("v1"), 0), (delete, Some("v1"), 10)], true),
            (vec![(push, Some("v1"), 0), (push, Some("main"), 0), (delete, Some("v1"), 10)], false),
            (vec![(push, Some("v1"), 0), (push, Some("main"), 0), (delete, Some("v1"), 10), (delete, Some("main"), 10)], true),
            (vec![(push, Some("v1"), 10), (delete, None, 10)], false),
            (vec![(push, None, 0), (delete, Some("v1"), 10)], true),
            (vec![(delete, Some("v1"), 10), (push, None, 20)], false),
        ] {
            assert_eq!(told_in_any_order(&told), gone, "{told:?}");
        }
    }

    #[test]
    fn a_tag_that_was_moved_to_another_image_keeps_none() {
        let mut image = Presence::default();
        image.pushed("v1", Timestamp(0));
        image.pushed("main", Timestamp(0));
        let moved = |tag: &str, at: Timestamp| tag == "main" && at <= Timestamp(5);
        assert!(!image.is_gone(moved), "nothing of it was deleted");
        image.deleted(Some("v1"), Timestamp(10));
        assert!(image.is_gone(moved));
        for n in 0..2 * MAX_TAGS {
            image.pushed(&format!("build-{n}"), Timestamp(n as i64));
        }
        assert!(image.tags.len() <= MAX_TAGS && !image.is_gone(moved));
    }

    proptest! {
        #[test]
        fn a_pattern_made_of_a_text_matches_it(text in "[a-c]{0,12}", cut in 0usize..13) {
            let at = cut.min(text.len());
            let (head, tail) = text.split_at(at);
            let (begins, ends) = (format!("{head}*"), format!("*{tail}"));
            prop_assert!(matches(&begins, &text) && matches(&ends, &text));
            prop_assert!(matches(&text, &text));
        }
    }

    #[test]
    fn who_pushed_an_image_stays_when_somebody_tells_of_it_again() {
        let head = |image: &str, by: &str| Head { image: image.into(), at: Timestamp(1), by: by.into() };
        assert_eq!(head("a", "bob").after(Some(&head("a", "ann"))).by, "ann");
        assert_eq!(head("b", "bob").after(Some(&head("a", "ann"))).by, "bob");
        assert_eq!(head("b", "bob").after(None).by, "bob");
    }

    #[test]
    fn of_too_many_tags_the_oldest_are_forgotten() {
        let mut presence = Presence::default();
        for n in 0..MAX_TAGS {
            presence.keep(&format!("tag {n}"), (Timestamp(n as i64), true));
        }
        assert_eq!(presence.tags.len(), MAX_TAGS);
        presence.keep("newest", (Timestamp(1000), true));
        assert!(presence.tags.len() == MAX_TAGS && presence.tags.contains_key("newest") && !presence.tags.contains_key("tag 0"));
    }
}
