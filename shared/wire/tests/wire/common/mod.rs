//! Manifests around the lines a test is about.

use keelway_wire::manifest::{self, Document, Finding, Parsed, ShipyardManifest};

/// The text as a file `shipyard.yaml`.
pub fn parse(text: &str) -> Parsed {
    manifest::parse(text, "shipyard.yaml")
}

/// All findings as the command line shows them.
pub fn findings(text: &str) -> String {
    let parsed = parse(text);
    assert_eq!(parsed.refused(), parsed.documents.is_empty(), "a text of one document is refused or read");
    parsed.findings.iter().map(Finding::to_string).collect::<Vec<_>>().join("\n")
}

/// A shipyard around `stages`, whose lines are indented by two.
pub fn shipyard(stages: &str) -> String {
    format!("apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nspec:\n  stages:\n{stages}")
}

/// A shipyard with a stage dev and a sequence delivery of one task; what follows goes into the sequence.
pub fn sequence(rest: &str) -> String {
    shipyard(&format!("  - name: dev\n    sequences:\n    - name: delivery\n      tasks:\n      - name: deployment\n{rest}"))
}

/// The one shipyard the text holds.
pub fn read(text: &str) -> ShipyardManifest {
    let parsed = parse(text);
    assert!(!parsed.refused(), "{:?}", parsed.findings);
    match parsed.documents.into_iter().next() {
        Some(Document::Shipyard(shipyard)) => shipyard,
        other => panic!("not a shipyard: {other:?}"),
    }
}
