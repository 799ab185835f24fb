//! Arguments of an analysis, `{{args.name}}`, as placeholders of queries.

use super::{Fields, fields};
use crate::manifest::finding::Report;
use crate::manifest::tree::Node;
use std::collections::BTreeMap;

/// What queries name already.
const PLACEHOLDERS: [&str; 9] =
    ["$PROJECT", "$STAGE", "$SERVICE", "$DEPLOYMENT", "$FUNCTION", "$ALIAS", "$VERSION", "$LABEL.", "$DURATION_SECONDS"];

const ARGUMENT: Fields = Fields {
    taken: &["name", "value"],
    left: &[],
    refused: &[(
        "valueFrom",
        "takes the value from Kubernetes, which evaluations do not read: write it as `value`, or have triggers name it as a label; \
         the credentials of a source are in the secret that its MetricsSource names",
    )],
};

/// The arguments by name, with the values that the template gives them.
#[derive(Default)]
pub struct Arguments(BTreeMap<String, Option<String>>);

impl Arguments {
    pub fn read(spec: &Node, report: &mut Report) -> Self {
        let mut all = BTreeMap::new();
        for (place, node) in spec.get("args").and_then(Node::list).unwrap_or_default().iter().enumerate() {
            let path = format!("spec.args[{place}]");
            fields(node, &path, &ARGUMENT, report);
            let Some(name) = node.get("name").and_then(Node::scalar).filter(|name| !name.is_empty()) else {
                report.error(node, format!("{path}.name"), "is missing: queries name it `{{args.name}}`".into());
                continue;
            };
            let value = node.get("value").and_then(Node::scalar).map(str::to_owned);
            if let Some(why) = value.as_ref().and_then(|value| unsafe_in_filter(name, value)) {
                report.error(node, path, why);
            }
            all.insert(name.to_owned(), value);
        }
        Self(all)
    }

    /// Those that the template gives a value, as `filter` has them.
    pub fn filter(&self) -> impl Iterator<Item = (&String, &String)> {
        self.0.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)))
    }

    /// Those that whoever triggers gives as labels.
    pub fn labels(&self) -> impl Iterator<Item = &String> {
        self.0.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| name)
    }

    /// A query with placeholders in place of arguments.
    ///
    /// # Errors
    /// It names an argument that there is not, or what is a placeholder here.
    pub fn query(&self, text: &str) -> Result<String, String> {
        if let Some(name) = PLACEHOLDERS.iter().find(|name| text.contains(*name)) {
            return Err(format!("contains `{name}`, which evaluations replace: write it differently"));
        }
        self.replaced(text, |name, value| Ok(if value.is_some() { format!("${name}") } else { format!("$LABEL.{name}") }))
    }

    /// A text with the values of its arguments.
    ///
    /// # Errors
    /// One of them has none.
    pub fn constant(&self, text: &str) -> Result<String, String> {
        self.replaced(text, |name, value| {
            let without =
                || format!("names {{{{args.{name}}}}}, which has no value, and only queries have placeholders: give it a `value`");
            value.clone().ok_or_else(without)
        })
    }

    fn replaced(&self, text: &str, by: impl Fn(&str, &Option<String>) -> Result<String, String>) -> Result<String, String> {
        let (mut done, mut rest) = (String::new(), text);
        while let Some((before, behind)) = rest.split_once("{{") {
            done.push_str(before);
            let Some((inside, after)) = behind.split_once("}}") else {
                done.push_str("{{");
                rest = behind;
                continue;
            };
            match inside.trim().strip_prefix("args.") {
                Some(name) => {
                    let value = self.0.get(name).ok_or_else(|| format!("names {{{{args.{name}}}}}, which is none of spec.args"))?;
                    done.push_str(&by(name, value)?);
                }
                None => done.push_str(&format!("{{{{{inside}}}}}")),
            }
            rest = after;
        }
        done.push_str(rest);
        Ok(done)
    }
}

/// Why an argument cannot stand in `filter` of the objectives.
fn unsafe_in_filter(name: &str, value: &str) -> Option<String> {
    if value.contains(['\'', '"', '`', '\\', '\n', '\r']) {
        return Some(format!(
            "{name:?} has quotes or backslashes in its value, which evaluations leave out: write it into the query"
        ));
    }
    // `filter` comes first, and its names count within longer words.
    let hides = |known: &&&str| known.to_lowercase().starts_with(&format!("${}", name.to_lowercase()));
    let hidden = PLACEHOLDERS.iter().find(hides)?;
    Some(format!("{name:?} would stand for the beginning of `{hidden}` in queries: call it differently"))
}
