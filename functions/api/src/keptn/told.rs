//! Sentences of the audit about sequences.

use keelway_domain::event::{CloudEvent, EventType, Kind};
use serde_json::Value;

/// What an event triggers: `triggered delivery of cart 1.5.0 in dev (<context>)`.
pub fn triggered(event: &CloudEvent) -> String {
    let service = event.text("service").unwrap_or_default();
    match EventType::parse(&event.ty) {
        EventType::Sequence(stage, sequence, Kind::Triggered) => {
            let members = ["configurationChange", "values", "image"];
            let image = members
                .iter()
                .try_fold(&Value::Object(event.data.clone()), |inside, member| inside.get(member))
                .and_then(Value::as_str)
                .map(str::to_owned);
            let what = subject(service, image.as_deref());
            format!("triggered {sequence} of {what} in {stage} ({})", event.context)
        }
        _ if service.is_empty() => format!("sent {} ({})", event.ty, event.context),
        _ => format!("sent {} for {service} ({})", event.ty, event.context),
    }
}

/// A service with the version of its image, if that is known: `cart 1.5.0`.
pub fn subject(service: &str, image: Option<&str>) -> String {
    match image.filter(|image| !image.is_empty()) {
        Some(image) => format!("{service} {}", version(image)),
        None => service.to_owned(),
    }
}

/// The tag of an image, or all of its last part if it has a digest or no tag.
fn version(image: &str) -> &str {
    let last = image.rsplit('/').next().unwrap_or(image);
    match last.split_once(':') {
        Some((_, tag)) if !last.contains('@') => tag,
        _ => last,
    }
}

#[cfg(test)]
mod tests {
    use super::subject;

    #[test]
    fn a_service_is_named_with_its_version() {
        for (image, told) in [
            (None, "cart"),
            (Some(""), "cart"),
            (Some("cart:1.5.0"), "cart 1.5.0"),
            (Some("registry.example.com:5000/shop/cart:1.5.0"), "cart 1.5.0"),
            (Some("registry.example.com:5000/shop/cart"), "cart cart"),
            (Some("shop/cart@sha256:ab"), "cart cart@sha256:ab"),
        ] {
            assert_eq!(subject("cart", image), told);
        }
    }
}
