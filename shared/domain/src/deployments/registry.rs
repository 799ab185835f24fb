//! Artifact sources: where images come from, and what their tags point to.

use super::definition::ImageTag;
use crate::border::{Home, Pattern, Resource, ResourceKind};
use crate::pattern::matches;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An artifact source: binds `<namespace>/<name>` to an origin of images.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactSource {
    /// The origin that reports images.
    pub from: Origin,
    /// Tags that follow the newest image of any tag that matches a pattern, by name. `*` matches any text, `?` one character.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// For webhooks: which images a request may report, as patterns of `<registry>/<repository>` and `s3://<bucket>/<key>`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    /// Whether an administrator of the installation applied it ([`crate::border::Vouched`]). No manifest can set this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub vouched: bool,
}

crate::stored!(ArtifactSource);

/// The origin that reports the images of a source.
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

/// An ECR repository.
#[expect(missing_docs, reason = "the names of the fields say what they are")]
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Repository {
    /// The account. Absent: the installation's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The region. Absent: the installation's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    pub name: String,
}

impl Repository {
    /// The images of the repository as templates name them, without tag and digest.
    pub fn images(&self, home: &Home) -> String {
        let (account, region) = (self.account.as_deref().unwrap_or(&home.account), self.region.as_deref().unwrap_or(&home.region));
        format!("{account}.dkr.ecr.{region}.amazonaws.com/{}", self.name)
    }
}

impl ArtifactSource {
    /// The patterns of the images that may be reported for this source. Empty: the source does not limit them.
    pub fn takes(&self, home: &Home) -> Vec<String> {
        match &self.from {
            Origin::Ecr(repository) => vec![repository.images(home)],
            Origin::Webhook { .. } => self.images.clone(),
        }
    }

    /// The ECR repository of the source, if it has one.
    pub fn repository(&self) -> Option<&Repository> {
        match &self.from {
            Origin::Ecr(repository) => Some(repository),
            Origin::Webhook { .. } => None,
        }
    }

    /// The tags that a push of `tag` moves: the tag itself, and those whose pattern it matches.
    pub fn moved_by(&self, tag: &str) -> Vec<String> {
        let followed =
            self.tags.iter().filter(|(name, pattern)| *name != tag && matches(pattern, tag)).map(|(name, _)| name.clone());
        std::iter::once(tag.to_owned()).chain(followed).collect()
    }
}

/// Whether one of these patterns matches the repository of an image, or a package of code.
pub fn is_among(patterns: &[String], image: &Resource) -> bool {
    let name = match image.kind {
        ResourceKind::Packages => format!("s3://{}", image.name),
        _ => image.name.clone(),
    };
    patterns.iter().any(|pattern| Pattern::named(pattern).names(&name))
}

/// The image that a tag points to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The image by its digest, as a template names it: `registry/repository@sha256:…`.
    #[serde(rename = "i")]
    pub image: String,
    /// When it was pushed. An older push changes nothing.
    #[serde(rename = "t")]
    pub at: Timestamp,
    /// The verified identity of who pushed it. Empty: it is not known.
    #[serde(rename = "b", default, skip_serializing_if = "String::is_empty")]
    pub by: String,
}

crate::stored!(Head);

impl Head {
    /// The head that replaces an earlier one. A report of the same image keeps the identity of the first report.
    pub fn after(&self, earlier: Option<&Self>) -> Self {
        let same = earlier.filter(|earlier| earlier.image == self.image);
        Self { by: same.map_or_else(|| self.by.clone(), |earlier| earlier.by.clone()), ..self.clone() }
    }
}

/// The most tags of an image that are remembered. The oldest are forgotten first.
const MAX_TAGS: usize = 100;

/// The reported pushes and deletions of an image. The newest report counts, in whatever order and however often reports arrive; of
/// two reports with the same time, the push counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// When the image was last deleted, with all its tags.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    deleted: Option<Timestamp>,
    /// By tag: when it was last pushed (`true`) or deleted (`false`). The empty tag stands for pushes without a tag.
    #[serde(rename = "t", default, skip_serializing_if = "BTreeMap::is_empty")]
    tags: BTreeMap<String, (Timestamp, bool)>,
}

crate::stored!(Presence);

impl Presence {
    /// Records a push.
    pub fn pushed(&mut self, tag: &str, at: Timestamp) {
        self.keep(tag, (at, true));
    }

    /// Records a deletion of one tag, or of the whole image.
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

    /// The tags that the image still has according to its own reports, and since when. Nothing, if no deletion was reported.
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

    /// Whether the image is gone. `moved`: whether a tag was given to another image at that time or later.
    pub fn is_gone(&self, moved: impl Fn(&str, Timestamp) -> bool) -> bool {
        self.last().is_some() && self.remains().all(|(tag, at)| moved(tag, at))
    }
}

/// The images that the tags watched by a config point to.
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

    /// Applies all reports in every order, each of them twice; returns whether the image is gone then.
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
