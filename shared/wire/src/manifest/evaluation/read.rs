//! Values as Keptn's reader of YAML takes them.

use super::super::finding::Report;
use super::super::tree::{At, Node, Yaml};
use super::super::{levels, values};
use serde_json::Number;
use std::collections::BTreeMap;

/// Words that Keptn reads as truth values, in any of three writings.
const WORDS: [(&str, bool); 6] = [("y", true), ("yes", true), ("on", true), ("n", false), ("no", false), ("off", false)];
/// The versions of the format.
const VERSIONS: [&str; 4] = ["1.0", "0.1.0", "0.1.1", "0.2.0"];

pub struct Reader<'r, 't> {
    pub report: &'r mut Report<'t>,
    /// Whether Keptn could not read the file.
    pub broken: bool,
}

impl Reader<'_, '_> {
    /// Reports what Keptn cannot read.
    pub fn broken(&mut self, at: &impl At, path: impl Into<String>, message: String) {
        self.broken = true;
        self.report.error(at, path, message);
    }

    /// Checks the fields of a level. What is missing is a finding, and nothing that Keptn stumbles over.
    pub fn fields(&mut self, node: &Node, level: &'static levels::Level, path: &str) {
        levels::check(node, level, path, self.report);
    }

    pub fn version(&mut self, root: &Node) {
        let told = root.get("spec_version").is_some_and(|version| !version.is_null() && version.scalar().is_none());
        match self.text(root, "spec_version", "").as_str() {
            _ if told => (),
            "" => {
                let at = root.get("spec_version").unwrap_or(root);
                self.report.warning(at, "spec_version", "is missing, and nobody looks at it: write `spec_version: \"1.0\"`".into());
            }
            known if VERSIONS.contains(&known) || known == "1" => (),
            other => {
                let at = root.get("spec_version").unwrap_or(root);
                let message = format!("{other:?} is a version not known here, and is read like 1.0: write `spec_version: \"1.0\"`");
                self.report.warning(at, "spec_version", message);
            }
        }
    }

    /// A text as written; empty if there is none.
    pub fn text(&mut self, node: &Node, field: &str, path: &str) -> String {
        let Some(value) = node.get(field).filter(|value| !value.is_null()) else { return String::new() };
        self.broken |= value.scalar().is_none();
        values::text(node, field, path, self.report).unwrap_or_default()
    }

    /// The mapping under a field. `None` if there is none.
    pub fn mapping<'n>(&mut self, node: &'n Node, field: &str) -> Option<&'n Node> {
        let value = node.get(field).filter(|value| !value.is_null())?;
        self.broken |= value.entries().is_none();
        values::mapping(node, field, field, self.report)
    }

    /// The list under a field; empty if there is none.
    pub fn list<'n>(&mut self, node: &'n Node, field: &str, path: &str, example: &str) -> &'n [Node] {
        let Some(value) = node.get(field).filter(|value| !value.is_null()) else { return &[] };
        if value.list().is_none() {
            self.broken(
                value,
                format!("{path}.{field}"),
                format!("is {}, not a list: write entries like `- {example}`", value.what()),
            );
        }
        value.list().unwrap_or_default()
    }

    /// Names and texts; `None` if there are none.
    pub fn texts(&mut self, node: &Node, field: &str) -> BTreeMap<String, String> {
        let Some(mapping) = self.mapping(node, field) else { return BTreeMap::new() };
        self.broken |=
            mapping.entries().unwrap_or_default().iter().any(|entry| entry.value.scalar().is_none() && !entry.value.is_null());
        values::texts(node, field, "", self.report)
    }

    /// A whole number; 0 if there is none. Keptn cuts what is behind the point.
    pub fn whole(&mut self, node: &Node, field: &str, path: &str) -> i64 {
        let Some(value) = node.get(field).filter(|value| !value.is_null()) else { return 0 };
        let path = format!("{path}.{field}");
        let read = match &value.value {
            Yaml::Number(number, text) => whole(number, text),
            _ => None,
        };
        let Some(read) = read else {
            self.broken(value, path, format!("is {}, not a whole number: write one, without quotes", value.what()));
            return 0;
        };
        let written = value.scalar().unwrap_or_default();
        if written != read.to_string() && written != format!("+{read}") {
            self.report.error(value, path, format!("{written:?} is read as {read}: write `{field}: {read}`, or what you mean"));
        } else if read < 0 {
            self.report.error(value, path, format!("is {read}: write 1 or more"));
        }
        read
    }

    /// A truth value; false if there is none.
    pub fn flag(&mut self, node: &Node, field: &str, path: &str) -> bool {
        let Some(value) = node.get(field).filter(|value| !value.is_null()) else { return false };
        let path = format!("{path}.{field}");
        match &value.value {
            Yaml::Bool(flag, _) => *flag,
            Yaml::Text(text) => {
                let known = WORDS.iter().find(|(word, _)| *word == text.to_lowercase()).filter(|_| is_one_of_three(text));
                match known {
                    Some((_, flag)) => {
                        self.report.warning(value, path, format!("{text:?} is read as {flag}: write `{field}: {flag}`"));
                        *flag
                    }
                    None => {
                        self.broken(value, path, format!("is {text:?}, a text: write `true` or `false`, without quotes"));
                        false
                    }
                }
            }
            _ => {
                self.broken(value, path, format!("is {}: write `true` or `false`", value.what()));
                false
            }
        }
    }
}

/// As `yes`, `Yes` or `YES`.
fn is_one_of_three(text: &str) -> bool {
    let rest = text.get(1..).unwrap_or_default();
    rest == rest.to_lowercase() || text == text.to_uppercase()
}

fn whole(number: &Number, text: &str) -> Option<i64> {
    let digits = text.trim_start_matches(['+', '-']);
    if digits.len() > 1 && digits.starts_with('0') && digits.chars().all(|c| c.is_digit(8)) {
        let value = i64::from_str_radix(digits, 8).ok()?;
        return Some(if text.starts_with('-') { -value } else { value });
    }
    number.as_i64().or_else(|| {
        let value = number.as_f64().filter(|value| value.abs() < 9e15)?;
        // Cut to a whole number whose digits are exact.
        format!("{:.0}", value.trunc()).parse().ok()
    })
}
