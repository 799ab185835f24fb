//! The containers of a template. A pod template has them in `spec.containers` and `spec.initContainers`, a task definition in
//! `containerDefinitions`; any other document may have a list `containers`.

use crate::json::canonical;
use serde_json::Value;
use std::collections::BTreeMap;

/// The images of a template by the name of their container.
pub type Images = BTreeMap<String, String>;

/// Where containers are.
const PLACES: [&str; 4] = ["/spec/containers", "/spec/initContainers", "/containerDefinitions", "/containers"];

fn all(template: &Value) -> impl Iterator<Item = &Value> {
    PLACES.iter().filter_map(|place| template.pointer(place)).filter_map(Value::as_array).flatten()
}

/// The environment variables of all containers: `env` in a pod template, `environment` in a task definition. A variable whose value
/// comes from elsewhere is shown with its origin.
pub fn environment(template: &Value) -> impl Iterator<Item = (String, String)> {
    let lists = all(template).filter_map(|container| container.get("env").or(container.get("environment"))?.as_array());
    lists.flatten().filter_map(|variable| {
        let name = variable.get("name")?.as_str()?.to_owned();
        let value = match variable.get("value") {
            Some(Value::String(value)) => value.clone(),
            Some(value) => canonical(value),
            None => variable.get("valueFrom").map(canonical).unwrap_or_default(),
        };
        Some((name, value))
    })
}

/// The containers that have a name, in the order of the template.
pub fn containers(template: &Value) -> impl Iterator<Item = (&str, &str)> {
    all(template).filter_map(|container| {
        Some((container.get("name")?.as_str()?, container.get("image").and_then(Value::as_str).unwrap_or("")))
    })
}

/// The images of all named containers. Empty for a container without one.
pub fn images(template: &Value) -> Images {
    containers(template).map(|(name, image)| (name.to_owned(), image.trim().to_owned())).collect()
}

/// The template with other images; names that it does not have are ignored.
pub fn with_images(template: &Value, images: &Images) -> Value {
    let mut template = template.clone();
    for place in PLACES {
        let Some(containers) = template.pointer_mut(place).and_then(Value::as_array_mut) else { continue };
        for container in containers {
            let image = container.get("name").and_then(Value::as_str).and_then(|name| images.get(name)).cloned();
            if let (Some(image), Some(container)) = (image, container.as_object_mut()) {
                container.insert("image".into(), image.into());
            }
        }
    }
    template
}

/// The hash of a document, independent of the order of its members.
pub fn hash(document: &Value) -> u64 {
    crate::ids::hash64(&[b"document", canonical(document).as_bytes()])
}

/// The digest of an image reference: what follows `@`, or the whole reference if it has none.
pub fn digest(reference: &str) -> &str {
    reference.rsplit_once('@').map_or(reference, |(_, digest)| digest)
}

/// The part of an image reference that promotions carry: the digest, so that each environment may have its own registry. A package
/// of code in S3 is carried with its whole name.
pub fn revision(image: &str) -> &str {
    if image.starts_with("s3://") { image } else { digest(image) }
}

/// An image reference without digest and tag.
pub fn repository(image: &str) -> &str {
    let image = image.split_once('@').map_or(image, |(repository, _)| repository);
    match image.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => repository,
        _ => image,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_revision_of_an_image_is_what_another_environment_needs_to_find_it() {
        assert_eq!(revision("r.test:5000/cart:1@sha256:ab"), "sha256:ab");
        assert_eq!(revision("s3://releases/cart.zip@sha256:ab"), "s3://releases/cart.zip@sha256:ab");
        assert_eq!(revision("arn:aws:lambda:r:1:function:cart:7"), "arn:aws:lambda:r:1:function:cart:7");
    }
}
