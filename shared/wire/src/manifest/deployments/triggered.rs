//! `lastTriggeredImage` in the text of a manifest, the only field that the server writes.

use super::super::finding::Report;
use super::super::mark::Mark;
use super::super::tree::{self, Node};
use super::super::{Document, Parsed, parse};
use keelway_domain::deployments::definition::Definition;

const FIELD: &str = "lastTriggeredImage";

/// The text of a DeploymentConfig with the image that each trigger was last deployed with, in the order of the triggers. Everything
/// else stays as it was written, with its comments. A text that this would change in another way is returned as it is.
pub fn with_triggered_images(text: &str, images: &[Option<String>]) -> String {
    let read = |text: &str| tree::read(text, &mut Report::new("", text)).into_iter().next();
    let Some(tree) = read(text) else { return text.to_owned() };
    let root = &tree.root;
    let triggers = root.get("spec").unwrap_or(root).get("triggers").and_then(Node::list).unwrap_or_default();
    let mut edits: Vec<Edit> = vec![];
    for (trigger, image) in triggers.iter().zip(images) {
        let Some((params, image)) = trigger.get("imageChangeParams").zip(image.as_ref()) else { continue };
        let edit = match params.get(FIELD).filter(|given| !given.is_null()) {
            Some(given) => replaced(text, given, image),
            None => added(text, params, image),
        };
        edits.extend(edit);
    }
    // From the end on, so that the places before stay what they are.
    edits.sort_by_key(|edit| edit.at);
    edits.dedup_by_key(|edit| edit.at);
    let mut edited = text.to_owned();
    for edit in edits.iter().rev() {
        edited.replace_range(edit.at..edit.at + edit.instead_of, &edit.text);
    }
    if says(text).is_some() && says(text) == says(&edited) { edited } else { text.to_owned() }
}

/// What a text declares.
fn says(text: &str) -> Option<Definition> {
    let Parsed { mut documents, .. } = parse(text, "-");
    match documents.pop() {
        Some(Document::DeploymentConfig(config)) if documents.is_empty() => config.definition,
        _ => None,
    }
}

/// A change of a text: so many bytes at a place give way to others.
struct Edit {
    at: usize,
    instead_of: usize,
    text: String,
}

/// Adds the field in front of the others of its mapping.
fn added(text: &str, params: &Node, image: &str) -> Option<Edit> {
    let at = place(text, params.at)?;
    let rest = text.get(at..)?;
    let image = serde_json::Value::from(image);
    let Some(inside) = rest.strip_prefix('{') else {
        let indent = " ".repeat(usize::try_from(params.at.column).ok()?.checked_sub(1)?);
        return Some(Edit { at, instead_of: 0, text: format!("{FIELD}: {image}\n{indent}") });
    };
    let quote = if inside.trim_start().starts_with('"') { "\"" } else { "" };
    Some(Edit { at: at + 1, instead_of: 0, text: format!("{quote}{FIELD}{quote}: {image}, ") })
}

/// Replaces the value in a text that has the field already, because it was read from this server.
fn replaced(text: &str, given: &Node, image: &str) -> Option<Edit> {
    let at = place(text, given.at)?;
    let was = given.scalar()?;
    let quote = usize::from(text.get(at..)?.starts_with(['"', '\'']));
    text.get(at + quote..)?.starts_with(was).then(|| Edit { at: at + quote, instead_of: was.len(), text: image.to_owned() })
}

/// Where a mark is, in bytes.
fn place(text: &str, mark: Mark) -> Option<usize> {
    let line = usize::try_from(mark.line).ok()?.checked_sub(1)?;
    let column = usize::try_from(mark.column).ok()?.checked_sub(1)?;
    let before: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let (offset, _) = text.get(before..)?.char_indices().nth(column)?;
    Some(before + offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(params: &str) -> String {
        format!(
            "kind: DeploymentConfig # mine\napiVersion: apps.openshift.io/v1\nmetadata: {{name: cart, namespace: shop}}\nspec:\n  \
             triggers:\n    - type: ConfigChange\n    - type: ImageChange\n      {params}\n  template:\n    metadata: {{labels: {{name: cart}}}}\n    spec:\n      containers:\n        - name: web\n"
        )
    }

    fn edited(params: &str) -> String {
        let text = manifest(params);
        let edited = with_triggered_images(&text, &[None, Some("r.test/cart@sha256:22".into())]);
        assert_eq!(says(&text), says(&edited));
        assert_eq!(with_triggered_images(&edited, &[None, Some("r.test/cart@sha256:22".into())]), edited, "once is enough");
        edited
    }

    #[test]
    fn the_image_stands_in_the_text_and_the_text_stays_as_it_was_written() {
        let block = "imageChangeParams:\n        # who follows it\n        automatic: true\n        containerNames: [web]\n        from: {kind: ImageStreamTag, name: 'cart:v1'}";
        let shown = edited(block);
        let expected = block.replace("automatic", "lastTriggeredImage: \"r.test/cart@sha256:22\"\n        automatic");
        assert_eq!(shown, manifest(&expected));
        let flow = "imageChangeParams: {containerNames: [web], from: {kind: ImageStreamTag, name: 'cart:v1'}}";
        let expected = flow.replace("{containerNames", "{lastTriggeredImage: \"r.test/cart@sha256:22\", containerNames");
        assert_eq!(edited(flow), manifest(&expected));
        for quote in ["", "'", "\""] {
            let old = |digest: &str| {
                format!(
                    "imageChangeParams: {{containerNames: [web], lastTriggeredImage: {quote}r.test/cart@sha256:{digest}{quote}, \
                     from: {{kind: ImageStreamTag, name: 'cart:v1'}}}}"
                )
            };
            assert_eq!(edited(&old("1")), manifest(&old("22")));
        }
    }

    #[test]
    fn a_text_that_cannot_be_read_stays() {
        for text in ["", "kind: [", "kind: Project\n", "triggers: [{imageChangeParams: {}}]"] {
            assert_eq!(with_triggered_images(text, &[Some("r.test/cart@sha256:22".into())]), text);
        }
    }
}
