//! The repository's examples are taken as they are.

use keelway_domain::time::Timestamp;
use keelway_wire::cloudevent;
use keelway_wire::manifest::{self, Checked, Document, Severity};
use serde_json::json;
use std::path::{Path, PathBuf};

fn manifests(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().is_some_and(|name| name == "repository") {
            // What a configuration repository holds: manifests for others.
        } else if path.is_dir() {
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
    let (mut projects, mut shipyards, mut deployments, mut webhooks, mut told) = (vec![], vec![], vec![], vec![], vec![]);
    for file in files {
        let name = file.strip_prefix(&folder).unwrap().display().to_string();
        let text = std::fs::read_to_string(&file).unwrap();
        let parsed = match manifest::check(&text, &name, None) {
            Checked::Manifests(parsed) => parsed,
            resource => {
                assert!(!resource.refused(), "{name}: {:?}", resource.findings());
                continue;
            }
        };
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
                Document::DeploymentConfig(_) | Document::ArtifactSource(_) => deployments.push(document.named()),
                Document::Webhook(webhook) => webhooks.push(webhook.name),
                _ => {}
            }
        }
    }
    assert_eq!(
        projects,
        [
            "greetings",
            "my-first-keptn-project",
            "kep06-hardening",
            "kep06-three-stages",
            "synopsis",
            "measured",
            "shop",
            "bookshop",
            "bookshop-dev",
            "bookshop-prod"
        ]
    );
    // The last two are namespaces of configs, and have no sequences.
    assert_eq!(shipyards, projects[..8], "each shipyard finds its project");
    let configs = ["deployment config shop/carts", "deployment config shop/frontend"];
    let sources = ["artifact source shop/carts", "artifact source shop/frontend"];
    let together = ["deployment config bookshop-dev/cart", "deployment config bookshop-prod/cart"];
    let greeter = ["artifact source greetings/greeter", "deployment config greetings/greeter"];
    assert_eq!(deployments, [&configs[..], &sources, &greeter, &together].concat());
    assert_eq!(webhooks, ["slack-approvals", "slack-failures", "smoke-test", "teams"]);
    insta::assert_snapshot!(told.join("\n"), @r"
    keptn/kep06-hardening.yaml:26 spec.stages[0].sequences[0].triggeredOn[0]
    keptn/kep06-hardening.yaml:34 spec.stages[0].sequences[0].tasks[2]
    keptn/kep06-hardening.yaml:38 spec.stages[0].sequences[0].tasks[4]
    keptn/kep06-three-stages.yaml:33 spec.stages[0].sequences[0].tasks[2]
    keptn/kep06-three-stages.yaml:48 spec.stages[1].sequences[0].tasks[2]
    keptn/kep06-three-stages.yaml:80 spec.stages[2].sequences[1].tasks[2]
    ");
}

/// Which of these subscriptions take an event.
fn takers(text: &str, ty: &str, data: serde_json::Value) -> Vec<String> {
    let event = json!({"specversion": "1.0", "id": "1", "source": "s", "type": ty, "shkeptncontext": "c", "data": data});
    let event = cloudevent::parse(&event, cloudevent::Origin::Bus, Timestamp(0)).unwrap();
    let documents = manifest::parse(text, "x").documents.into_iter();
    let taken = documents.filter_map(|document| match document {
        Document::Webhook(webhook) if webhook.subscription.takes(&event) => Some(webhook.name),
        _ => None,
    });
    taken.collect()
}

/// An approval that waits has the result of what came before it.
#[test]
fn chats_are_told_of_what_their_examples_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let example = std::fs::read_to_string(root.join("examples/webhooks/slack.yaml")).unwrap();
    let page = std::fs::read_to_string(root.join("docs/webhooks.md")).unwrap();
    let documented = blocks(&page).find(|block| block.contains("form: slack")).unwrap();
    for text in [example.as_str(), documented] {
        let of = |data: &serde_json::Value| {
            let mut all = json!({"project": "shop", "stage": "production", "service": "carts"});
            all.as_object_mut().unwrap().extend(data.as_object().unwrap().clone());
            all
        };
        let approval =
            |pass: &str| of(&json!({"result": "pass", "status": "succeeded", "approval": {"pass": pass, "warning": pass}}));
        let count = |ty: &str, data| takers(text, ty, data).len();
        assert_eq!(count("sh.keptn.event.approval.triggered", approval("manual")), 1, "{text}");
        assert_eq!(count("sh.keptn.event.approval.triggered", approval("automatic")), 0);
        let delivery = "sh.keptn.event.production.delivery.finished";
        assert_eq!(count(delivery, of(&json!({"result": "fail"}))), 1);
        assert_eq!(count(delivery, of(&json!({"result": "pass"}))), 0);
        assert_eq!(count("sh.keptn.event.production.rollback.finished", of(&json!({"result": "fail"}))), 0);
    }
}

/// The YAML blocks of a page.
fn blocks(page: &str) -> impl Iterator<Item = &str> {
    page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next())
}

fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
}

#[test]
fn every_manifest_of_the_documentation_is_accepted_without_a_finding() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = vec![root.join("README.md")];
    pages(&root.join("docs"), &mut found);
    pages(&root.join("examples"), &mut found);
    let mut checked = 0;
    // The recipes show files of other tools.
    for page in found.into_iter().filter(|page| !page.ends_with("recipes.md")) {
        let text = std::fs::read_to_string(&page).unwrap();
        // Rights in a cluster are a manifest for the cluster.
        for block in blocks(&text).filter(|block| !block.starts_with("apiVersion: rbac.authorization.k8s.io/")) {
            assert_eq!(manifest::parse(block, "block").findings, [], "{}:\n{block}", page.display());
            checked += 1;
        }
    }
    assert!(checked >= 2, "the shipyard and the project of docs/shipyard.md, at least");
}

#[test]
fn the_finding_the_manual_shows_is_the_one_its_author_would_see() {
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/shipyard.md");
    let manual = std::fs::read_to_string(manual).unwrap();
    let mistyped =
        manual.replace("          triggeredOn:\n            - event: dev", "          triggers:\n            - event: dev");
    let told = manifest::parse(blocks(&mistyped).next().unwrap(), "shipyard.yaml").findings[0].to_string();
    assert!(manual.contains(&told.replace('\n', "\n    ")), "{told}");
}
