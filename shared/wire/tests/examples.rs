//! The repository's examples are taken as they are.

use keelway_wire::manifest::{self, Document, Severity};
use std::path::{Path, PathBuf};

fn manifests(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            manifests(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "yaml") {
            found.push(path);
        }
    }
}

#[test]
fn every_example_is_accepted() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut files = vec![];
    manifests(&folder, &mut files);
    files.sort();
    let (mut projects, mut shipyards, mut told) = (vec![], vec![], vec![]);
    for file in files {
        let name = file.strip_prefix(&folder).unwrap().display().to_string();
        let parsed = manifest::parse(&std::fs::read_to_string(&file).unwrap(), &name);
        for finding in &parsed.findings {
            assert_eq!(finding.severity, Severity::Warning, "{finding}");
            told.push(format!("{name}:{} {}", finding.line, finding.path));
        }
        for document in parsed.documents {
            match document {
                Document::Project(project) => projects.push(project.name.to_string()),
                Document::Shipyard(shipyard) => {
                    let named = shipyard.metadata_name.as_deref().map(|name| name.trim_start_matches("shipyard-").to_owned());
                    shipyards.push(shipyard.project_annotation.or(named).unwrap_or_default());
                }
            }
        }
    }
    assert_eq!(projects, ["my-first-keptn-project", "kep06-hardening", "kep06-three-stages", "synopsis", "shop"]);
    assert_eq!(shipyards, projects, "each shipyard finds its project");
    insta::assert_snapshot!(told.join("\n"), @r"
    keptn/kep06-hardening.yaml:25 spec.stages[0].sequences[0].triggeredOn[0]
    keptn/kep06-hardening.yaml:33 spec.stages[0].sequences[0].tasks[2]
    keptn/kep06-hardening.yaml:37 spec.stages[0].sequences[0].tasks[4]
    keptn/kep06-three-stages.yaml:32 spec.stages[0].sequences[0].tasks[2]
    keptn/kep06-three-stages.yaml:47 spec.stages[1].sequences[0].tasks[2]
    keptn/kep06-three-stages.yaml:79 spec.stages[2].sequences[1].tasks[2]
    ");
}

#[test]
fn the_manuals_manifests_are_accepted() {
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/shipyard.md");
    let manual = std::fs::read_to_string(manual).unwrap();
    let blocks: Vec<&str> = manual.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        assert_eq!(manifest::parse(block, "docs/shipyard.md").findings, [], "{block}");
    }
    // The finding it shows is the one its author would see.
    let mistyped =
        manual.replace("          triggeredOn:\n            - event: dev", "          triggers:\n            - event: dev");
    let block = mistyped.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let told = manifest::parse(block, "shipyard.yaml").findings[0].to_string();
    assert!(manual.contains(&told.replace('\n', "\n    ")), "{told}");
}
