//! `kind: ArtifactSource`: where images come from.
//!
//! `spec` has `ecr: {repository, account, region}` or `webhook: {secret}`. With `webhook`, `images` lists patterns of what the tags
//! may point to. It may have `tags: [{name, pattern}]`: the tag `name` follows the newest image whose own tag matches `pattern`,
//! where `*` stands for any text and `?` for one character.

use super::additions::place;
use super::triggers::is_source;
use crate::manifest::finding::Report;
use crate::manifest::levels::projects::API_VERSION;
use crate::manifest::levels::{self, artifacts};
use crate::manifest::objects;
use crate::manifest::tree::Node;
use crate::manifest::values::{text, words};
use keelway_domain::deployments::registry::{ArtifactSource, Origin, Repository};
use keelway_domain::names::ProjectName;
use std::collections::BTreeMap;

/// The longest name of a repository of ECR.
const LONGEST_REPOSITORY: usize = 256;
/// Most patterns of images of a source, and the longest one, in bytes.
const MOST_IMAGES: usize = 50;
const LONGEST_IMAGE: usize = 512;

/// A source of images as its manifest declares it.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "named as the fields of the manifest are")]
pub struct ArtifactSourceManifest {
    /// The project; `default` if absent.
    pub namespace: ProjectName,
    pub name: String,
    pub artifacts: ArtifactSource,
    /// The text of the document.
    pub source: String,
}

pub fn read(root: &Node, source: &str, report: &mut Report) -> Option<ArtifactSourceManifest> {
    levels::check(root, &artifacts::SOURCE, "", report);
    objects::version(root, "ArtifactSource", API_VERSION, report);
    let metadata = objects::metadata(root, report);
    let name = name(root, metadata, report);
    let namespace = objects::namespace(root, metadata, report);
    let (spec, path) = levels::mapping(root, "spec", &artifacts::SPEC, "", report)?;
    let path = path.trim_start_matches('.');
    let named: Vec<&str> = ["ecr", "webhook"].into_iter().filter(|name| spec.get(name).is_some()).collect();
    let from = match named[..] {
        ["ecr"] => ecr(spec, path, report).map(Origin::Ecr),
        ["webhook"] => webhook(spec, path, report).map(|secret| Origin::Webhook { secret }),
        _ => {
            let message = "says nothing, or too much, about who tells of new images: write one of `ecr` and `webhook`";
            report.error(spec, path, message.into());
            None
        }
    };
    let tags = tags(spec, path, report);
    let images = images(spec, path, report);
    let artifacts = ArtifactSource { from: from?, tags, images, vouched: false };
    Some(ArtifactSourceManifest { namespace: namespace?, name: name?, artifacts, source: source.to_owned() })
}

/// As other names, but image streams may have `_` in theirs.
fn name(root: &Node, metadata: Option<&Node>, report: &mut Report) -> Option<String> {
    let given = metadata.and_then(|metadata| metadata.get("name")).and_then(Node::scalar);
    match given.filter(|name| name.contains('_') && is_source(name)) {
        Some(name) => Some(name.to_owned()),
        None => objects::name(metadata.unwrap_or(root), "metadata", report),
    }
}

fn ecr(spec: &Node, path: &str, report: &mut Report) -> Option<Repository> {
    let Some((node, path)) = levels::mapping(spec, "ecr", &artifacts::ECR, path, report) else {
        report.error(spec.get("ecr").unwrap_or(spec), format!("{path}.ecr"), "is empty: write `repository` below it".into());
        return None;
    };
    let name = text(node, "repository", &path, report).unwrap_or_default();
    let part = |part: &str| {
        let inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        part.starts_with(inside) && part.ends_with(inside) && part.chars().all(|c| inside(c) || "._-".contains(c))
    };
    if name.len() < 2 || name.len() > LONGEST_REPOSITORY || !name.split('/').all(part) {
        let what = if name.is_empty() { "is missing".to_owned() } else { format!("{name:?} is not a repository of ECR") };
        let message = format!("{what}: write its name without the registry and without a tag, for example `shop/carts`");
        report.error(node.get("repository").unwrap_or(node), format!("{path}.repository"), message);
    }
    let (region, account) = place(node, &path, report);
    Some(Repository { account, region, name })
}

fn webhook(spec: &Node, path: &str, report: &mut Report) -> Option<String> {
    let (at, place) = (spec.get("webhook").unwrap_or(spec), format!("{path}.webhook"));
    let Some((node, path)) = levels::mapping(spec, "webhook", &artifacts::WEBHOOK, path, report) else {
        report.error(at, place, "is empty: name the secret with the key, `webhook: {secret: …}`".into());
        return None;
    };
    let name = text(node, "secret", &path, report).unwrap_or_default();
    if !objects::is_name(&name, 253) {
        let what = if name.is_empty() { "is missing".to_owned() } else { format!("{name:?} is not the name of a secret") };
        let message = format!("{what}: name the secret that has the webhook's key, in lower-case letters, digits, `-` and `.`");
        report.error(node.get("secret").unwrap_or(node), format!("{path}.secret"), message);
    }
    Some(name)
}

/// What a webhook may say that the tags point to. Of a repository of ECR, that is the repository.
fn images(spec: &Node, path: &str, report: &mut Report) -> Vec<String> {
    let given = words(spec, "images", path, report);
    let Some(list) = spec.get("images").filter(|list| !list.is_null()) else { return given };
    let path = format!("{path}.images");
    if spec.get("webhook").is_none() {
        report.error(
            list,
            path,
            "goes with `webhook` only: leave it out, a source of ECR takes the images of its repository".into(),
        );
        return given;
    }
    if given.is_empty() {
        report.error(list, path.clone(), "is empty, so that no push would count: list repositories, or leave it out".into());
    }
    if given.len() > MOST_IMAGES {
        let message = format!("has {} entries: at most {MOST_IMAGES} are taken; `*` stands for any text", given.len());
        report.error(list, path.clone(), message);
    }
    for (place, image) in given.iter().enumerate() {
        let (first, rest) = image.strip_prefix("s3://").unwrap_or(image).split_once('/').unwrap_or_default();
        let odd = image.len() > LONGEST_IMAGE || !image.chars().all(|c| c.is_ascii_graphic()) || rest.contains('@');
        let tag = !image.starts_with("s3://") && rest.contains(':');
        if image != "*" && (odd || tag || first.is_empty() || rest.is_empty()) {
            let message = format!(
                "{image:?} names no repository: write `<registry>/<repository>` without tag and digest, or `s3://<bucket>/<key>`; `*` \
                 stands for any text"
            );
            report.error(list.list().and_then(|list| list.get(place)).unwrap_or(list), format!("{path}[{place}]"), message);
        }
    }
    given
}

fn tags(spec: &Node, path: &str, report: &mut Report) -> BTreeMap<String, String> {
    let mut tags = BTreeMap::new();
    for (node, path) in levels::entries(spec, "tags", &artifacts::TAG, path, report) {
        let name = text(node, "name", &path, report).unwrap_or_default();
        super::triggers::checked_tag(&name, (node.get("name").unwrap_or(node), &format!("{path}.name")), report);
        let pattern = text(node, "pattern", &path, report).unwrap_or_default();
        let inside = |c: char| c.is_ascii_alphanumeric() || "_.-*?".contains(c);
        if pattern.is_empty() || !pattern.chars().all(inside) {
            let message = format!(
                "{pattern:?} matches no tag: write for example `v1.*`, where `*` stands for any text and `?` for one character"
            );
            report.error(node.get("pattern").unwrap_or(node), format!("{path}.pattern"), message);
        }
        if tags.insert(name.clone(), pattern).is_some() {
            let message = format!("{name:?} is there twice: only one pattern could count");
            report.error(node.get("name").unwrap_or(node), format!("{path}.name"), message);
        }
    }
    tags
}
