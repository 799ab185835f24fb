//! The JSON Schemas of the manifests: as published, and agreeing with the parser.

use boon::{Compiler, SchemaIndex, Schemas};
use keelway_wire::manifest::{self, Parameters, Resource};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The name of the file of a kind's schema, or of a file's; of manifests of any kind without one.
fn file(kind: &str) -> String {
    format!("{}.json", if kind.is_empty() { "manifest".into() } else { kind.to_lowercase() })
}

/// Every kind and file that has a schema, and that of all kinds.
fn every_kind() -> impl Iterator<Item = &'static str> {
    manifest::schema_kinds().iter().copied().chain(manifest::schema_files()).chain([""])
}

struct Checks {
    schemas: Schemas,
    indices: Vec<(&'static str, SchemaIndex)>,
}

impl Checks {
    fn new() -> Self {
        let (mut schemas, mut compiler, mut indices) = (Schemas::new(), Compiler::new(), vec![]);
        for kind in every_kind() {
            let name = format!("https://schemas.invalid/{}", file(kind));
            compiler.add_resource(&name, manifest::schema(kind).unwrap()).unwrap();
            indices.push((kind, compiler.compile(&name, &mut schemas).unwrap()));
        }
        Self { schemas, indices }
    }

    /// What is wrong with a value by the schema of that kind.
    fn wrong(&self, kind: &str, value: &Value) -> Option<String> {
        let (_, index) = self.indices.iter().find(|(known, _)| *known == kind).unwrap();
        self.schemas.validate(value, *index).err().map(|error| error.to_string())
    }

    /// What is wrong with a document by the schema of its kind, and by the one of all kinds: both say the same.
    fn of_document(&self, document: &Value) -> Option<String> {
        let own = self.wrong(document["kind"].as_str().unwrap(), document);
        let any = self.wrong("", document);
        assert_eq!(own.is_some(), any.is_some(), "{document:#}\n{own:?}\n{any:?}");
        own
    }
}

fn values(text: &str) -> Vec<Value> {
    let parsed = manifest::parse_with(text, "x", &Parameters::new());
    parsed.sources.iter().map(|source| manifest::value_of(source)).collect()
}

#[test]
fn the_files_are_current() {
    let folder = root().join("docs/schemas");
    let update = std::env::var("INSTA_UPDATE").is_ok_and(|how| how == "always");
    for kind in every_kind() {
        let text = format!("{:#}\n", manifest::schema(kind).unwrap());
        let path = folder.join(file(kind));
        if update {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let published = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(published == text, "{} is not current: keelway schema {kind} prints it", path.display());
    }
    let files = std::fs::read_dir(folder).unwrap().count();
    assert_eq!(files, every_kind().count(), "a file for each kind");
    assert!(manifest::schema("Nonsense").is_none());
}

fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "repository") {
            files(&path, ending, found);
        } else if path.extension().is_some_and(|known| known == ending) {
            found.push(path);
        }
    }
}

#[test]
fn every_example_is_valid_and_names_its_schema() {
    let (checks, mut found) = (Checks::new(), vec![]);
    files(&root().join("examples"), "yaml", &mut found);
    assert!(found.len() > 15, "{found:?}");
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap();
        if let Some(resource) = Resource::of(&text, &path.display().to_string()) {
            let wrong = checks.wrong(schema_of(resource), &serde_saphyr::from_str(&text).unwrap());
            assert_eq!(wrong, None, "{}", path.display());
            continue;
        }
        let documents = values(&text);
        for document in &documents {
            assert_eq!(checks.of_document(document), None, "{}", path.display());
        }
        let mut kinds: Vec<&str> = documents.iter().map(|document| document["kind"].as_str().unwrap()).collect();
        kinds.dedup();
        let wanted = file(if let [kind] = kinds[..] { kind } else { "" });
        let line = text.lines().next().unwrap();
        let named = line.strip_prefix("# yaml-language-server: $schema=").unwrap_or_else(|| panic!("{}: {line}", path.display()));
        let folders = path.strip_prefix(root()).unwrap().components().count() - 1;
        assert_eq!(named, format!("{}docs/schemas/{wanted}", "../".repeat(folders)), "{}", path.display());
        assert!(path.parent().unwrap().join(named).exists(), "{}: {named}", path.display());
    }
}

#[test]
fn every_manifest_of_the_documentation_is_valid() {
    let (checks, mut found, mut seen) = (Checks::new(), vec![], 0);
    files(&root().join("docs"), "md", &mut found);
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap();
        for block in text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
            for document in values(block) {
                assert_eq!(checks.of_document(&document), None, "{}:\n{block}", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 5, "{seen}");
}

/// The schema of a file of evaluations.
fn schema_of(resource: Resource) -> &'static str {
    match resource {
        Resource::Objectives => "slo",
        Resource::Indicators => "sli",
    }
}

#[test]
fn files_of_evaluations_are_as_the_check_has_them() {
    let checks = Checks::new();
    let score = json!({"pass": "90%", "warning": 75});
    let objectives = |of: Value| json!({"objectives": [of], "total_score": score});
    let criteria = |of: Value| objectives(json!({"sli": "a", "pass": [{"criteria": of}]}));
    for (value, is_sound) in [
        (criteria(json!(["<600", "<=+10%"])), true),
        (objectives(json!({"sli": "a", "displayName": "A", "key_sli": true, "weight": 2, "pass": null, "warning": []})), true),
        (
            json!({"spec_version": "1.0", "filter": {"handler": "Items"}, "objectives": [{"sli": "a"}], "total_score": score, "comparison": {
                "compare_with": "several_results", "number_of_comparison_results": 3, "include_result_with_score": "pass_or_warn",
                "aggregate_function": "p95"
            }}),
            true,
        ),
        (json!({"spec_version": "1.0", "indicators": {"a": "sum(x)", "b": "1"}}), true),
        (json!({"objectives": [{"sli": "a"}]}), false),
        (json!({"objectives": [], "total_score": score}), false),
        (json!({"objectives": [{"sli": "a"}], "total_score": {"warning": "75%"}}), false),
        (json!({"objectives": [{"sli": "a"}], "total_score": score, "comparison": {"compare_with": "all"}}), false),
        (json!({"objectives": [{"sli": "a"}], "total_score": score, "comparison": {"aggregate_function": "p99"}}), false),
        (objectives(json!({"weight": 1})), false),
        (objectives(json!({"sli": "a", "weight": 1.5})), false),
        (objectives(json!({"sli": "a", "key_sli": "always"})), false),
        (objectives(json!({"sli": "a", "keySli": true})), false),
        (objectives(json!({"sli": "a", "pass": [{"criteria": "<1"}]})), false),
        (criteria(json!([])), false),
        (json!({"spec_version": "1.0", "indicators": ["a"]}), false),
        (json!({"indicators": {"a": ["sum(x)"]}}), false),
    ] {
        let text = value.to_string();
        let resource = Resource::of(&text, "x.json").unwrap();
        assert_eq!(checks.wrong(schema_of(resource), &value).is_none(), is_sound, "{value:#}");
        assert_eq!(!manifest::check(&text, "x.json", None).refused(), is_sound, "{value:#}");
    }
}

fn shipyard(sequence: &Value) -> Value {
    json!({
        "apiVersion": "spec.keptn.sh/0.2.3", "kind": "Shipyard",
        "spec": {"stages": [{"name": "dev", "sequences": [sequence]}]}
    })
}

fn config(spec: &Value) -> Value {
    let mut whole = json!({"template": {"spec": {"containers": [{"name": "web", "image": "web:1"}]}}});
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    json!({"apiVersion": "apps.openshift.io/v1", "kind": "DeploymentConfig", "metadata": {"name": "web"}, "spec": whole})
}

/// What is fine as it is.
fn sound() -> Vec<Value> {
    let tasks = json!([{"name": "deployment", "triggeredAfter": "1h30m", "timeout": 0, "properties": {"any": [1]}}]);
    let on = json!(["dev.delivery.finished", {"event": "x.y", "selector": {"match": {"result": "fail", "test.result": "pass"}}}]);
    vec![
        shipyard(&json!({"name": "delivery", "tasks": tasks, "triggeredOn": on})),
        shipyard(&json!({"name": "delivery", "tasks": [{"name": "approval", "properties": null}], "triggeredOn": null})),
        json!({"version": 0.2, "kind": "Shipyard", "metadata": null, "spec": {"stages": [{"name": "dev", "sequences": null}]}}),
        config(
            &json!({"replicas": "3", "strategy": {"type": "Canary", "canaryParams": {"steps": [{"weight": 10, "bake": "5m"}]}}}),
        ),
        config(&json!({"triggers": [{"type": "ImageChange", "imageChangeParams": {
            "automatic": true, "containerNames": ["web"], "from": {"kind": "ImageStreamTag", "name": "web:latest"}
        }}]})),
        json!({"kind": "DeploymentConfig", "id": "shop:web", "template": {
            "controllerTemplate": {"podTemplate": {"spec": {"containers": []}}}
        }}),
        json!({"apiVersion": "keelway.dev/v1", "kind": "GitHost", "metadata": {"name": "g"}, "spec": {
            "host": "git.example", "type": "gitea", "api": "https://git.example/api/v1"
        }}),
        json!({"apiVersion": "keelway.dev/v1", "kind": "Cluster", "metadata": {"name": "eu"}, "spec": {
            "server": "https://k8s.example", "secretRef": {"name": "token"}, "interval": "1m"
        }}),
        json!({"apiVersion": "keelway.dev/v1", "kind": "Project", "metadata": {"name": "b"}, "spec": {
            "consents": [{"to": ["team-a", "shop-*"], "may": ["deploy", "observe"], "names": ["api"]}],
            "policy": {"allows": {"functions": ["b-*", {"name": "e-*", "region": "eu-*", "account": 123_456_789_012_u64}]}, "quotas": {"webhooks": 20}}
        }}),
        json!({"apiVersion": "keelway.dev/v1", "kind": "Project", "metadata": {"name": "b"}, "spec": {"consents": null, "policy": null}}),
        json!({"apiVersion": "spec.keptn.sh/0.1.4", "kind": "Remediation", "metadata": {"name": "r"}, "spec": {"remediations": [
            {"problemType": "default", "actionsOnOpen": [{"action": "scale", "value": {"by": 1}}]}
        ]}}),
        json!({"apiVersion": "keelway.dev/v1", "kind": "Schedule", "metadata": {"name": "nightly"}, "spec": {
            "project": "shop", "stage": "dev", "services": ["carts"], "sequence": "smoke", "cron": "30 2 * * *", "zone": "Europe/Berlin",
            "concurrency": "queue", "labels": {"by": "clock"}, "data": {"suite": {"all": true}}
        }}),
        json!({"apiVersion": "0.2.0", "kind": "Shipyard", "spec": {"stages": [{"name": "dev", "windows": [
            {"kind": "deny", "from": "2026-12-23", "until": "2027-01-02T08:00", "reason": "holidays"},
            {"kind": "allow", "schedule": "0 9 * * MON-THU", "duration": "8h", "zone": "Europe/Berlin"}
        ], "sequences": [{"name": "delivery", "supersede": true, "ignoreWindows": false, "tasks": [{"name": "test"}]}]}]}}),
        json!({"apiVersion": "v1", "kind": "List", "items": [{"kind": "Service"}]}),
        json!({"apiVersion": "v1", "kind": "Template", "objects": [{"kind": "Route"}], "parameters": [{"name": "A", "value": 1}]}),
    ]
}

#[test]
fn what_is_sound_is_valid() {
    let checks = Checks::new();
    for document in sound() {
        assert_eq!(checks.of_document(&document), None, "{document:#}");
    }
}

#[test]
fn what_is_broken_is_not_valid() {
    let checks = Checks::new();
    let task = |task: Value| shipyard(&json!({"name": "delivery", "tasks": [task]}));
    let on = |on: Value| shipyard(&json!({"name": "delivery", "tasks": [{"name": "test"}], "triggeredOn": [on]}));
    let strategy = |strategy: Value| config(&json!({"strategy": strategy}));
    for broken in [
        json!({"apiVersion": "spec.keptn.sh/0.1.7", "kind": "Shipyard", "spec": {"stages": [{"name": "dev"}]}}),
        json!({"kind": "Shipyard", "spec": {"stages": [{"name": "dev"}]}}),
        json!({"apiVersion": "0.2.0", "kind": "Shipyard", "spec": {"stages": []}}),
        json!({"apiVersion": "0.2.0", "kind": "Shipyard", "spec": {"stages": [{"name": "Dev"}]}}),
        json!({"apiVersion": "0.2.0", "kind": "Shipyard", "spec": {"stages": [{"name": "dev", "test_strategy": "load"}]}}),
        shipyard(&json!({"name": "delivery"})),
        shipyard(&json!({"name": "delivery", "tasks": []})),
        shipyard(&json!({"name": "delivery", "tasks": [{"name": "test"}], "triggers": []})),
        task(json!({"name": "test", "propereties": {}})),
        task(json!({"name": "test", "triggeredAfter": "5 minutes"})),
        task(json!({"name": "test", "timeout": 30})),
        task(json!({"name": "approval", "properties": {"pass": "maybe"}})),
        on(json!({"event": "dev.delivery.finished", "result": "fail"})),
        on(json!({"event": "a", "selector": {"match": {}}})),
        on(json!({"event": "a", "selector": {"match": {"result": "bad"}}})),
        on(json!({"event": "a", "selector": {"match": {"status": "fail"}}})),
        json!({"apiVersion": "keelway.dev/v1", "kind": "Project", "metadata": {"name": "Shop"}}),
        json!({"apiVersion": "keelway.dev/v2", "kind": "Project", "metadata": {"name": "shop"}}),
        json!({"apiVersion": "keelway.dev/v1", "kind": "Project", "metadata": {"name": "shop"}, "spec": {"taskTimeout": "1 day"}}),
        json!({"apiVersion": "keelway.dev/v1", "kind": "Project", "metadata": {"name": "b"}, "spec": {"consents": [{"to": ["a"], "may": ["destroy"]}]}}),
        json!({"apiVersion": "keelway.dev/v1", "kind": "Project", "metadata": {"name": "b"}, "spec": {"consents": [{"to": [], "may": ["tag"]}]}}),
        json!({"apiVersion": "keelway.dev/v1", "kind": "Project", "metadata": {"name": "b"}, "spec": {"policy": {"allows": {"lambdas": ["a"]}}}}),
        json!({"apiVersion": "keelway.dev/v1", "kind": "Project", "metadata": {"name": "b"}, "spec": {"policy": {"quotas": {"webhooks": 0}}}}),
        json!({"apiVersion": "0.1.4", "kind": "Remediation", "spec": {"remediations": [{"problemType": "default", "actions": []}]}}),
        json!({"apiVersion": "0.2.0", "kind": "Shipyard", "spec": {"stages": [{"name": "dev", "windows": [{"kind": "deny", "from": "2026-12-23"}]}]}}),
        json!({"apiVersion": "0.2.0", "kind": "Shipyard", "spec": {"stages": [{"name": "dev", "windows": [{"kind": "deny"}]}]}}),
        shipyard(&json!({"name": "delivery", "tasks": [{"name": "test"}], "supersede": "5m"})),
        json!({"apiVersion": "keelway.dev/v1", "kind": "Schedule", "metadata": {"name": "nightly"}, "spec": {
            "project": "shop", "stage": "dev", "services": ["carts"], "sequence": "smoke"
        }}),
        json!({"apiVersion": "keelway.dev/v1", "kind": "Schedule", "metadata": {"name": "nightly"}, "spec": {
            "project": "shop", "stage": "dev", "services": [], "sequence": "smoke", "cron": "30 2 * * *"
        }}),
        config(&json!({"replica": 1})),
        config(&json!({"replicas": -1})),
        strategy(json!({"type": "Replace"})),
        strategy(json!({"rollingParams": {"maxSurge": "many"}})),
        strategy(json!({"rollingParams": {"pre": {"execNewPod": {"containerName": "web", "command": ["a"]}}}})),
        strategy(json!({"rollingParams": {"pre": {"failurePolicy": "Abort", "invoke": "f", "tagImages": []}}})),
        strategy(json!({"type": "Canary", "canaryParams": {"steps": [{"weight": 101}]}})),
        json!({"kind": "DeploymentConfig", "id": "web", "template": {}}),
        json!({"apiVersion": "keelway.dev/v1", "kind": "ArtifactSource", "metadata": {"name": "a"}, "spec": {}}),
        json!({"apiVersion": "keelway.dev/v1", "kind": "MetricsSource", "metadata": {"name": "m"}, "spec": {"delay": "1m"}}),
        json!({"apiVersion": "keelway.dev/v1", "kind": "MetricsSource", "metadata": {"name": "m"}, "spec": {"cloudwatch": {"role": "a"}}}),
        json!({"apiVersion": "keelway.dev/v1", "kind": "GitHost", "metadata": {"name": "g"}, "spec": {"host": "h", "type": "cvs", "api": "https://h"}}),
        json!({"apiVersion": "pipelines.weave.works/v1alpha1", "kind": "Pipeline", "metadata": {"name": "p"}, "spec": {"environments": []}}),
    ] {
        assert!(checks.of_document(&broken).is_some(), "{broken:#}");
        assert!(manifest::parse(&broken.to_string(), "x").refused(), "the parser takes it: {broken:#}");
    }
    assert!(checks.wrong("", &json!({"kind": "Deployment"})).is_some());
    assert!(checks.wrong("", &json!({})).is_some());
}

/// What the parser takes without a finding, the schemas take as well.
#[test]
fn what_others_wrote() {
    let Ok(folders) = std::env::var("KEELWAY_REAL_MANIFESTS") else {
        eprintln!("not run: manifests of other projects (KEELWAY_REAL_MANIFESTS names no folders)");
        return;
    };
    let (checks, mut seen) = (Checks::new(), 0);
    for folder in folders.split(':') {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            if manifest::parse(&text, "x").findings.is_empty() {
                for document in values(&text) {
                    assert_eq!(checks.of_document(&document), None, "{}", path.display());
                    seen += 1;
                }
            }
        }
    }
    println!("{folders}: {seen} documents");
}
