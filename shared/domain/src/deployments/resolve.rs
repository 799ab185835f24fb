//! Resolves the images of a config: those in the manifest, or those that the tags of its triggers point to.

use super::definition::{Definition, ImageChange, ImageTag};
use super::deployment::{Content, Why};
use super::facts::{Applied, Request};
use super::registry::Heads;
use super::state::Config;
use super::template::{self, with_images};

/// Which images a version gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Images {
    /// For a version without a command: automatic triggers follow their tags, even if they are suspended; other images stay.
    Unattended,
    /// The newest image of every trigger, automatic or not.
    Newest,
    /// The images of the latest version.
    Same,
}

/// A definition with resolved images.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The definition. Its template names the images.
    pub definition: Definition,
    /// The content, by which the next version is compared.
    pub content: Content,
    /// Tags that do not point to an image yet.
    pub unresolved: Vec<ImageTag>,
    /// Containers without an image.
    pub blank: Vec<String>,
}

/// Resolves the images of a definition.
pub fn resolve(x: &Config, definition: &Definition, heads: &Heads, which: Images) -> Resolved {
    let stated = template::images(&definition.template);
    let mut images = stated.clone();
    // An image from a command stays until the manifest names another one.
    for (name, image) in &mut images {
        if let Some(pin) = x.pins.get(name).filter(|pin| pin.was == *image) {
            image.clone_from(&pin.image);
        }
    }
    let mut unresolved = vec![];
    for change in definition.image_changes() {
        for container in &change.containers {
            let Some(says) = stated.get(container) else { continue };
            match image(x, change, (container, says), heads, which) {
                Some(image) => drop(images.insert(container.clone(), image)),
                None if unresolved.contains(&change.from) => {}
                None => unresolved.push(change.from.clone()),
            }
        }
    }
    let blank = images.iter().filter(|(_, image)| image.is_empty()).map(|(name, _)| name.clone()).collect();
    let definition = Definition { template: with_images(&definition.template, &images), ..definition.clone() };
    let content = Content {
        template: template::hash(&definition.template),
        revision: definition.main_image().map(|image| template::revision(image).to_owned()).unwrap_or_default(),
        images,
        starts: definition.starts(),
        wraps: definition.wraps(),
        ours: definition.claims(),
    };
    Resolved { definition, content, unresolved, blank }
}

/// A config with its newest images, and the version that it would become.
#[derive(Debug, Clone, PartialEq)]
pub struct Generated {
    /// The definition, and what is missing.
    pub resolved: Resolved,
    /// The number of the latest version, or one more if the latest version deploys something else.
    pub latest: u64,
    /// The causes of the new version, if there is one.
    pub causes: Vec<Why>,
}

/// Generates the next version of a config with the newest images of all its triggers. It changes nothing.
pub fn generate(x: &Config, applied: &Applied, heads: &Heads) -> Generated {
    let resolved = resolve(x, &applied.definition, heads, Images::Newest);
    let same = x.last.as_ref().is_some_and(|last| last.content.template == resolved.content.template);
    if same {
        return Generated { resolved, latest: x.latest, causes: vec![] };
    }
    let mut causes = causes(x, &resolved, &applied.by, heads);
    if causes.is_empty() {
        causes.push(Why::command("", None));
    }
    Generated { resolved, latest: x.latest + 1, causes }
}

/// The hash of the change that triggers will deploy as soon as nothing runs. `None`: there is no such change.
pub fn change_that_waits(x: &Config, applied: &Applied, heads: &Heads) -> Option<u64> {
    let definition = &applied.definition;
    let resolved = resolve(x, definition, heads, Images::Unattended);
    let complete = resolved.unresolved.is_empty() && resolved.blank.is_empty();
    let fires = complete && x.suspended.is_none() && !causes(x, &resolved, &applied.by, heads).is_empty();
    let template = resolved.content.template;
    (fires && x.dismissed.as_ref().is_none_or(|dismissed| dismissed.template != template)).then_some(template)
}

/// The version that the definition itself asks for, unless that request was cancelled.
pub fn request_that_waits<'a>(x: &Config, applied: &'a Applied) -> Option<&'a Request> {
    let cancelled = x.dismissed.as_ref().is_some_and(|dismissed| dismissed.definition >= applied.version);
    applied.request.as_ref().filter(|request| request.version == x.latest + 1 && !cancelled)
}

/// The image of a container that a trigger controls. `None`: its tag points to nothing, and no other image is known.
fn image(x: &Config, change: &ImageChange, container: (&str, &str), heads: &Heads, which: Images) -> Option<String> {
    let (name, says) = container;
    let head = heads.get(&change.from).map(|head| head.image.clone());
    let pin = x.pins.get(name).filter(|pin| pin.was == says).map(|pin| pin.image.clone());
    let stated = (!says.is_empty()).then(|| says.to_owned());
    match which {
        Images::Same => pin.or(stated).or(head),
        Images::Newest => head.or(pin),
        // The first version waits for every tag; `automatic` applies to later changes.
        Images::Unattended if x.latest == 0 => head,
        Images::Unattended if change.automatic => head.or(pin),
        Images::Unattended => pin.or(stated),
    }
}

/// The causes of a new version with this content. Empty: the latest version has the same content.
pub(super) fn causes(x: &Config, resolved: &Resolved, by: &str, heads: &Heads) -> Vec<Why> {
    let definition = &resolved.definition;
    let Some(last) = &x.last else {
        return first(definition, resolved, by, heads);
    };
    let (old, new) = (&last.content.images, &resolved.content.images);
    if last.content.template == resolved.content.template {
        return vec![];
    }
    let moved = |change: &&ImageChange| {
        change.containers.iter().any(|name| new.contains_key(name) && old.contains_key(name) && old.get(name) != new.get(name))
    };
    let images: Vec<Why> =
        definition.image_changes().filter(moved).filter_map(|change| image_cause(change, resolved, heads)).collect();
    // Whether the templates differ apart from the images that triggers set.
    let same = with_images(&definition.template, old);
    let owned = |name: &str| definition.image_changes().any(|change| change.containers.iter().any(|container| container == name));
    let by_hand = new.iter().any(|(name, image)| old.get(name).is_some_and(|old| old != image) && !owned(name));
    let config = (by_hand || template::hash(&same) != last.content.template) && definition.on_config_change();
    let config = config.then(|| Why::ConfigChange { by: by.to_owned() });
    images.into_iter().chain(config).collect()
}

/// The causes of the first version.
fn first(definition: &Definition, resolved: &Resolved, by: &str, heads: &Heads) -> Vec<Why> {
    let images: Vec<Why> = definition.image_changes().filter_map(|change| image_cause(change, resolved, heads)).collect();
    if images.is_empty() && definition.on_config_change() { vec![Why::ConfigChange { by: by.to_owned() }] } else { images }
}

fn image_cause(change: &ImageChange, resolved: &Resolved, heads: &Heads) -> Option<Why> {
    let image = change.containers.iter().find_map(|name| resolved.content.images.get(name))?.clone();
    let head = heads.get(&change.from).filter(|head| head.image == image);
    let (at, by) = head.map(|head| (head.at, head.by.clone())).unwrap_or_default();
    Some(Why::ImageChange { from: change.from.clone(), image, at, by })
}

/// The causes in a few words, for the history.
pub fn message(causes: &[Why]) -> String {
    let has = |wanted: fn(&Why) -> bool| causes.iter().any(wanted);
    let auto = causes.iter().find_map(|why| match why {
        Why::AutoRollback { release, of, .. } => Some(format!("automatic rollback to #{release}, because #{of} failed")),
        Why::Drift { of, found } => Some(format!("#{of} is brought back, because a target drifted: {found}")),
        Why::Manual { delivery: Some(delivery), .. } => Some(delivery.to_string()),
        Why::Rollback { release, notes, .. } if notes.is_empty() => Some(format!("rollback to #{release}")),
        Why::Rollback { release, notes, .. } => Some(format!("rollback to #{release}: {notes}")),
        _ => None,
    });
    auto.unwrap_or_else(|| {
        if has(|why| matches!(why, Why::Manual { .. })) {
            "manual change".into()
        } else if has(|why| matches!(why, Why::ImageChange { .. })) {
            "image change".into()
        } else {
            "config change".into()
        }
    })
}
