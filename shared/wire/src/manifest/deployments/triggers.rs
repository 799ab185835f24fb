//! `triggers`: when a new version is cut.

use super::containers::Template;
use crate::manifest::finding::Report;
use crate::manifest::levels::{self, triggers};
use crate::manifest::names::nearest;
use crate::manifest::objects::is_name;
use crate::manifest::tree::Node;
use crate::manifest::values::{flag, text, words};
use keelway_domain::deployments::definition::{ImageChange, ImageTag, Trigger};
use std::collections::HashMap;

const TYPES: [&str; 3] = ["ConfigChange", "ImageChange", "Manual"];
/// The longest tag a registry takes.
const LONGEST_TAG: usize = 128;
/// The tag of what names none, in the proposal's form.
const LATEST: &str = "latest";

/// What a trigger is read against.
pub struct Around<'a> {
    /// The config's namespace, for tags that name none.
    pub namespace: &'a str,
    /// The template, unless it is refused.
    pub template: Option<&'a Template<'a>>,
    /// Whether the config is written in the proposal's form.
    pub proposed: bool,
}

/// The triggers under a node, unless one of them is refused. Absent: when the template changes; an empty list: never.
pub fn read(node: &Node, path: &str, around: &Around, report: &mut Report) -> Option<Vec<Trigger>> {
    if node.get("triggers").is_none_or(Node::is_null) {
        return Some(vec![Trigger::ConfigChange]);
    }
    let before = report.errors();
    let mut owners: HashMap<String, usize> = HashMap::new();
    let mut triggers = vec![];
    for (place, (node, path)) in levels::entries(node, "triggers", &triggers::TRIGGER, path, report).into_iter().enumerate() {
        let Some(trigger) = trigger(node, &path, around, report) else { continue };
        for container in image_change(&trigger).map(|change| change.containers.as_slice()).unwrap_or_default() {
            if let Some(other) = owners.insert(container.clone(), place).filter(|other| *other != place) {
                let message = format!("names {container:?}, as triggers[{other}] does: only one tag can set a container's image");
                report.error(node, format!("{path}.imageChangeParams.containerNames"), message);
            }
        }
        triggers.push(trigger);
    }
    (report.errors() == before).then_some(triggers)
}

fn image_change(trigger: &Trigger) -> Option<&ImageChange> {
    if let Trigger::ImageChange(change) = trigger { Some(change) } else { None }
}

fn trigger(node: &Node, path: &str, around: &Around, report: &mut Report) -> Option<Trigger> {
    let at = node.get("type").unwrap_or(node);
    let given = text(node, "type", path, report).unwrap_or_default();
    let unused = node.get("imageChangeParams").filter(|params| !params.is_null() && given != "ImageChange");
    match given.as_str() {
        "ImageChange" => return params(node, path, around, report).map(Trigger::ImageChange),
        "ConfigChange" | "Manual" => {
            if let Some(params) = unused {
                let message = format!("is not used by `{given}`: write `type: ImageChange`, or leave it out");
                report.warning(params, format!("{path}.imageChangeParams"), message);
            }
            return Some(if given == "Manual" { Trigger::Manual } else { Trigger::ConfigChange });
        }
        "" => report.error(at, format!("{path}.type"), format!("is missing: write one of `{}`", TYPES.join("`, `"))),
        _ => {
            let remedy =
                nearest(&given, TYPES).map_or(format!("write one of `{}`", TYPES.join("`, `")), |near| format!("write `{near}`"));
            report.error(at, format!("{path}.type"), format!("{given:?} is not a type of triggers: {remedy}"));
        }
    }
    None
}

fn params(node: &Node, path: &str, around: &Around, report: &mut Report) -> Option<ImageChange> {
    let level = if around.proposed { &triggers::PROPOSED_IMAGE_CHANGE } else { &triggers::IMAGE_CHANGE };
    let Some((params, path)) = levels::mapping(node, "imageChangeParams", level, path, report) else {
        let message = "is missing: write `from` and `containerNames` below it";
        report.error(node.get("imageChangeParams").unwrap_or(node), format!("{path}.imageChangeParams"), message.into());
        return None;
    };
    let automatic = flag(params, "automatic", &path, report);
    if let Some(at) = params.get("lastTriggeredImage").filter(|image| image.scalar().is_some_and(|image| !image.is_empty())) {
        let message = "is ignored: the server records which image a trigger fired for";
        report.warning(at, format!("{path}.lastTriggeredImage"), message.into());
    }
    let containers = containers(params, &path, around, report);
    let from = match params.get("repositoryName").filter(|name| !name.is_null()) {
        Some(_) => repository(params, &path, around, report),
        None => image_tag(params, "from", &path, around, report),
    };
    Some(ImageChange { automatic, from: from?, containers })
}

fn containers(params: &Node, path: &str, around: &Around, report: &mut Report) -> Vec<String> {
    let containers = words(params, "containerNames", path, report);
    let path = format!("{path}.containerNames");
    let at = params.get("containerNames").unwrap_or(params);
    let Some(template) = around.template else { return containers };
    for (place, name) in containers.iter().enumerate().filter(|(_, name)| !template.has(name)) {
        let at = at.list().and_then(|list| list.get(place)).unwrap_or(at);
        let message = format!("{name:?} is no container of the template and is ignored: {}", template.names());
        report.warning(at, format!("{path}[{place}]"), message);
    }
    containers
}

/// The proposal's `repositoryName` and `tag`.
fn repository(params: &Node, path: &str, around: &Around, report: &mut Report) -> Option<ImageTag> {
    let at = params.get("repositoryName").unwrap_or(params);
    let given = text(params, "repositoryName", path, report)?;
    let (namespace, name) = given.split_once('/').unwrap_or((around.namespace, &given));
    if let Some(from) = params.get("from").filter(|from| !from.is_null()) {
        report.error(from, format!("{path}.from"), "stands beside `repositoryName`: leave one of them out".into());
    }
    if !is_name(namespace, 63) || !is_source(name) {
        let message = format!(
            "{given:?} is not the name of an artifact source: write `<name>` or `<namespace>/<name>`, and bind it to the repository with \
             `kind: ArtifactSource`"
        );
        report.error(at, format!("{path}.repositoryName"), message);
    }
    let tag = text(params, "tag", path, report).unwrap_or_else(|| LATEST.to_owned());
    checked_tag(&tag, (params.get("tag").unwrap_or(at), &format!("{path}.tag")), report);
    Some(ImageTag { namespace: namespace.to_owned(), name: name.to_owned(), tag })
}

/// Reports what is not a tag.
pub fn checked_tag(tag: &str, (at, path): (&Node, &str), report: &mut Report) {
    let inside = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let valid = !tag.is_empty() && tag.len() <= LONGEST_TAG && tag.chars().all(inside) && !tag.starts_with(['.', '-']);
    if !valid {
        let message = format!("{tag:?} is not a tag: use at most {LONGEST_TAG} letters, digits, `_`, `.` and `-`");
        report.error(at, path, message);
    }
}

/// Whether an artifact source can have this name.
pub fn is_source(name: &str) -> bool {
    is_name(&name.replace('_', "-"), 63)
}

/// The reference to an image tag under `field`.
pub fn image_tag(parent: &Node, field: &str, path: &str, around: &Around, report: &mut Report) -> Option<ImageTag> {
    let Some((node, path)) = levels::mapping(parent, field, &triggers::REFERENCE, path, report) else {
        let message = "is missing: name the tag, `{kind: ImageStreamTag, name: <name>:<tag>}`";
        report.error(parent.get(field).unwrap_or(parent), format!("{path}.{field}"), message.into());
        return None;
    };
    let kind = text(node, "kind", &path, report).unwrap_or_default();
    // What a hook tags is named in full.
    let needed = field == "to";
    if (kind.is_empty() && needed) || !["", "ImageStreamTag"].contains(&kind.as_str()) {
        let what = if kind.is_empty() { "is missing".to_owned() } else { format!("{kind:?} is not a kind of tags") };
        let message = format!("{what}: write `kind: ImageStreamTag`, with `name: <name>:<tag>`");
        report.error(node.get("kind").unwrap_or(node), format!("{path}.kind"), message);
    }
    for field in ["apiVersion", "uid", "resourceVersion", "fieldPath"] {
        if let Some(at) = node.get(field).filter(|at| at.scalar().is_some_and(|text| !text.is_empty())) {
            report.warning(at, format!("{path}.{field}"), "is ignored: a tag is found by its name".into());
        }
    }
    let given = text(node, "name", &path, report).unwrap_or_default();
    let at = node.get("name").unwrap_or(node);
    // In the proposal's form, the tag may stand beside `from`.
    let beside = around.proposed.then(|| text(parent, "tag", &path, report)).flatten();
    let (name, tag) = match (given.rsplit_once(':'), beside) {
        (Some((name, tag)), _) => (name, tag.to_owned()),
        (None, Some(tag)) => (given.as_str(), tag),
        (None, None) => (given.as_str(), String::new()),
    };
    if !is_source(name) || tag.is_empty() {
        let what = if given.is_empty() { "is missing".to_owned() } else { format!("{given:?} does not name a tag") };
        report.error(at, format!("{path}.name"), format!("{what}: write `<name>:<tag>`, for example `app:latest`"));
        return None;
    }
    checked_tag(&tag, (at, &format!("{path}.name")), report);
    let namespace = text(node, "namespace", &path, report).filter(|namespace| !namespace.is_empty());
    let namespace = namespace.unwrap_or_else(|| around.namespace.to_owned());
    if !is_name(&namespace, 63) {
        let message = format!("{namespace:?} is not a namespace: use lower-case letters, digits and `-`");
        report.error(node.get("namespace").unwrap_or(node), format!("{path}.namespace"), message);
    }
    Some(ImageTag { namespace, name: name.to_owned(), tag })
}
