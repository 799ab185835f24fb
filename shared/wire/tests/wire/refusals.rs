//! What is refused, as data. Each file in `refusals/` has manifests, changes of them, and every finding about the result, with its
//! place.

use keelway_wire::manifest::{self, Checked, Finding, Severity};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    manifests: BTreeMap<String, String>,
    /// By the name of a manifest; without a name, each case has the whole text.
    refusals: BTreeMap<String, Vec<Refusal>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Refusal {
    /// Texts of the manifest, and what is written instead of their first occurrence.
    #[serde(default)]
    change: BTreeMap<String, String>,
    /// Added to the manifest.
    #[serde(default)]
    end: String,
    /// `<severity> <line>:<column> <path>: <message>`
    finds: Vec<String>,
}

fn shown(finding: &Finding) -> String {
    let severity = if finding.severity == Severity::Error { "error" } else { "warning" };
    format!("{severity} {}:{} {}: {}", finding.line, finding.column, finding.path, finding.message)
}

#[test]
fn everything_that_is_wrong_is_found_where_it_stands() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire/refusals");
    let mut wrong = vec![];
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let table: Table =
            serde_saphyr::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap_or_else(|error| panic!("{name}: {error}"));
        for (of, refusals) in &table.refusals {
            for (place, refusal) in refusals.iter().enumerate() {
                let mut text = table.manifests.get(of).cloned().unwrap_or_default();
                for (from, to) in &refusal.change {
                    assert!(text.contains(from), "{name}, {of:?} {place}: {from:?} is not in the manifest");
                    text = text.replacen(from, to, 1);
                }
                text.push_str(&refusal.end);
                let checked = manifest::check(&text, if of.starts_with("sl") { of } else { "x" }, None);
                if let Checked::Manifests(parsed) = &checked {
                    assert_eq!(parsed.refused(), parsed.documents.is_empty(), "a text of one document is refused or read: {text}");
                }
                let finds: Vec<String> = checked.findings().iter().map(shown).collect();
                if finds != refusal.finds {
                    wrong.push(format!("{name}, {of:?} {place}, {:?}{:?}: {finds:#?}", refusal.change, refusal.end));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} cases differ:\n{}", wrong.len(), wrong.join("\n"));
}
