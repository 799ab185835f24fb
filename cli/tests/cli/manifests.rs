//! Manifests: checking and applying them, what is sent, what a person sees.

use crate::support::{Api, Ran, keelway, write};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

const SHIPYARD: &str = "apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nmetadata:\n  name: shipyard-shop\nspec:\n  stages:\n    - name: dev\n      sequences:\n        - name: delivery\n          tasks:\n            - name: deployment\n";
const PROJECT: &str = "apiVersion: keelway.dev/v1\nkind: Project\nmetadata:\n  name: shop\n";

fn run(words: &[&str]) -> Ran {
    Ran::of(keelway(words).output().unwrap())
}

#[test]
fn validate_tells_everything_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().display().to_string();
    let file = |name: &str, text: &str| {
        write(&dir.path().join(name), text);
        format!("{place}/{name}")
    };
    let good = file("good.yaml", &format!("{PROJECT}---\n{SHIPYARD}"));
    let bad = file("bad.yaml", &SHIPYARD.replace("name: dev", "name: Dev").replace("tasks:", "triggers: []\n          tasks:"));
    let fine = run(&["shipyard", "validate", &good]);
    assert_eq!((fine.code, fine.err.as_str()), (0, ""));
    let refused = run(&["shipyard", "validate", &good, &bad]);
    assert_eq!(refused.code, 1);
    let any = run(&["validate", &good, &bad]);
    assert_eq!((any.code, any.out, any.err), (1, refused.out.clone(), refused.err.clone()), "one command under both names");
    let config = "apiVersion: apps.openshift.io/v1\nkind: DeploymentConfig\nmetadata: {name: cart}\nspec: {template: {metadata: {labels: {name: cart}}, spec: {containers: [{name: web, image: 'web:1'}]}}}\n";
    let config = file("config.yaml", config);
    assert_eq!(run(&["validate", &config]).out, format!("{config}: fine: deployment config default/cart\n"));
    insta::assert_snapshot!(refused.shown(&[(&place, "<DIR>")]));
    let ascii = run(&["validate", "--ascii", &bad]);
    assert!(ascii.code == 1 && ascii.err.is_ascii() && ascii.err.contains("name: Dev") && !refused.err.is_ascii(), "{}", ascii.err);
    let unreadable = run(&["shipyard", "validate", "/nowhere.yaml", &bad]);
    assert_eq!(unreadable.code, 2);
    assert!(unreadable.err.contains("cannot read /nowhere.yaml: No such file"), "{}", unreadable.err);
    let json = run(&["shipyard", "validate", "-o", "json", &good, &bad]);
    let told: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json.code, 1);
    assert_eq!((&told["files"][0]["refused"], &told["files"][1]["refused"]), (&json!(false), &json!(true)));
    assert_eq!(told["findings"][0]["line"], 7);
}

#[test]
fn a_shipyard_of_the_older_form_is_migrated_and_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().display().to_string();
    let old = format!("{place}/old.yaml");
    write(Path::new(&old), "stages:\n- {name: dev, test_strategy: functional, next: prod}\n- name: prod\n");
    let refused = run(&["shipyard", "validate", &old]);
    assert!(refused.code == 1 && refused.err.contains("run `keelway shipyard migrate"), "{}", refused.err);
    let migrated = run(&["shipyard", "migrate", &old]);
    assert_eq!((migrated.code, migrated.err.contains("stages[0].next")), (0, true), "{}", migrated.err);
    let new = format!("{place}/new.yaml");
    write(Path::new(&new), &migrated.out);
    let fine = run(&["shipyard", "validate", &new]);
    assert_eq!((fine.code, fine.err.as_str()), (0, ""));
    let drawn = run(&["shipyard", "show", &new]);
    let text = "dev\n  delivery\n    on dev.delivery.triggered\n    1 deployment\n    2 test        teststrategy: functional\n    \
                3 evaluation  timeframe: 5m\n    4 release\nprod\n  delivery\n    on dev.delivery.finished, if result: pass\n    \
                1 deployment\n    2 release\n";
    assert_eq!((drawn.code, drawn.out.as_str()), (0, text), "{}", drawn.err);

    let again = run(&["shipyard", "migrate", &new]);
    let text = std::fs::read_to_string(&new).unwrap();
    assert_eq!((again.code, again.out.trim(), again.err.contains("0.2 already")), (0, text.trim(), true), "{}", again.err);
    let unreadable = run(&["shipyard", "migrate", "/nowhere.yaml"]);
    assert_eq!((unreadable.code, unreadable.err.contains("cannot read /nowhere.yaml")), (2, true));
    let refused = run(&["shipyard", "show", &old]);
    assert_eq!((refused.code, refused.out.as_str()), (1, ""));
    let project = format!("{place}/project.yaml");
    write(Path::new(&project), PROJECT);
    let none = run(&["shipyard", "show", &project]);
    assert_eq!((none.code, none.err.contains("holds no shipyard")), (1, true), "{}", none.err);
}

#[test]
fn schemas_are_printed_by_kind() {
    for (words, title) in [
        (&["schema"][..], "A manifest of Keelway"),
        (&["schema", "Shipyard"], "Shipyard"),
        (&["schema", "githost"], "GitHost"),
        (&["schema", "slo"], "Objectives of evaluations (slo.yaml)"),
    ] {
        let printed: Value = serde_json::from_str(&run(words).out).unwrap();
        assert_eq!(
            (&printed["title"], &printed["$schema"]),
            (&json!(title), &json!("https://json-schema.org/draft/2020-12/schema"))
        );
    }
    let unknown = run(&["schema", "Deployment"]);
    assert_eq!((unknown.code, unknown.err.contains("write one of Shipyard, Project,")), (2, true), "{}", unknown.err);
}

#[test]
fn the_shipyard_of_a_project_is_drawn() {
    let api = Api::start();
    api.world().canned.insert("GET /v1/project/shop/shipyard".into(), (200, json!(SHIPYARD)));
    let drawn = api.run(&["shipyard", "show", "-p", "shop", "-o", "mermaid"]);
    let chart = "flowchart LR\n  subgraph stage0[\"dev\"]\n    s0_0[\"<b>delivery</b><br/>deployment\"]\n  end\n";
    assert_eq!((drawn.code, drawn.out.as_str()), (0, chart), "{}", drawn.err);
    for words in [&["shipyard", "show"][..], &["shipyard", "show", "x.yaml", "-p", "shop"]] {
        assert_eq!(api.run(words).code, 2, "{words:?}");
    }
}

#[test]
fn apply_checks_everything_then_sends_projects_first() {
    let api = Api::start();
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().display().to_string();
    write(&dir.path().join("a-shipyard.yaml"), SHIPYARD);
    write(&dir.path().join("b-project.yaml"), PROJECT);
    write(&dir.path().join("notes.txt"), "not a manifest");
    let applied = json!({"applied": [{"kind": "Shipyard", "name": "shipyard-shop", "project": "shop", "revision": "5", "changed": true}], "warnings": []});
    api.can("POST /v1/apply", applied);
    let dry = run(&["apply", "--dry-run", "-f", &place]);
    assert_eq!((dry.code, dry.err.contains("not compared with what is in force")), (0, true), "{}", dry.err);
    assert!(dry.out.contains("a-shipyard.yaml: fine, not sent: shipyard shipyard-shop"), "{}", dry.out);
    assert!(api.lines().is_empty());
    let ran = api.run(&["apply", "-f", &place, "--project", "shop"]);
    assert_eq!((ran.code, ran.out.lines().next()), (0, Some("shipyard of project shop: applied revision 5")));
    let sent: Vec<(String, String)> = api.world().asked.iter().map(|asked| (asked.line.clone(), asked.body.clone())).collect();
    let line = "POST /v1/apply?project=shop".to_owned();
    assert_eq!(sent, [(line.clone(), PROJECT.into()), (format!("{line}&by=ada"), SHIPYARD.into())]);

    write(&dir.path().join("c.yaml"), "kind: Shipyard\nspec: {}\n");
    let refused = api.run(&["apply", "-f", &place]);
    assert_eq!((refused.code, api.world().asked.len()), (1, 2));
    assert!(refused.err.contains("nothing was sent"), "{}", refused.err);
}

#[test]
fn apply_replaces_the_revision_that_was_seen() {
    let api = Api::start();
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().display().to_string();
    write(&dir.path().join("project.yaml"), PROJECT);
    write(&dir.path().join("shipyard.yaml"), SHIPYARD);
    api.can("POST /v1/apply", json!({"applied": [], "warnings": []}));
    let revision = "ce013625030ba8dba906f756967f9e9ca394464a";
    let ran = api.run(&["apply", "-f", &place, "--if-match", revision]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let sent: Vec<Option<String>> = api.world().asked.iter().map(|asked| asked.if_match.clone()).collect();
    assert_eq!(sent, [None, Some(format!("\"{revision}\""))], "the project's file replaces nothing");
    let problem = json!({"title": "precondition failed", "status": 412, "detail": "project shop has revision 7f3a in force"});
    api.world().canned.insert("POST /v1/apply".into(), (412, problem));
    let refused = api.run(&["apply", "-f", &format!("{place}/shipyard.yaml"), "--if-match", revision]);
    assert_eq!((refused.code, refused.err.contains("revision 7f3a in force")), (1, true), "{}", refused.err);
    write(&dir.path().join("other.yaml"), SHIPYARD);
    for (words, says) in [
        (&["apply", "-f", &place, "--if-match", revision][..], "the files have 2: apply one at a time"),
        (&["apply", "-f", &place, "--if-match", "7f3a"], "`keelway get shipyard PROJECT --revisions -o wide` lists"),
    ] {
        let ran = api.run(words);
        assert_eq!((ran.code, ran.err.contains(says)), (2, true), "{words:?}: {}", ran.err);
    }
}

#[test]
fn apply_from_standard_input_shows_the_apis_findings() {
    let api = Api::start();
    let finding = json!({"severity": "error", "file": "-", "line": 4, "column": 9, "path": "metadata.name", "message": "no such project: shop"});
    let problem = json!({"title": "unknown project", "status": 404, "detail": "the project is not known", "findings": [finding]});
    api.world().canned.insert("POST /v1/apply".into(), (404, problem));
    let mut child = api.keelway(&["apply", "-f", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(SHIPYARD.as_bytes()).unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap());
    insta::assert_snapshot!(ran.shown(&[]));
}

const TEMPLATE: &str = "apiVersion: template.openshift.io/v1
kind: Template
metadata: {name: web}
parameters:
- {name: TAG, required: true}
- {name: REPLICAS, value: '2'}
- {name: KEY, generate: expression, from: '[a-z]{8}'}
objects:
- apiVersion: apps.openshift.io/v1
  kind: DeploymentConfig
  metadata: {name: web, namespace: shop}
  spec:
    replicas: ${{REPLICAS}}
    template:
      metadata: {labels: {app: web}}
      spec: {containers: [{name: web, image: 'r/web:${TAG}', env: [{name: KEY, value: '${KEY}'}]}]}
- {apiVersion: v1, kind: Service, metadata: {name: web}}
";

#[test]
fn parameters_fill_templates_in_before_they_are_sent() {
    let api = Api::start();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("template.yaml").display().to_string();
    write(dir.path().join("template.yaml").as_path(), TEMPLATE);
    write(dir.path().join("project.yaml").as_path(), PROJECT);
    api.can("POST /v1/apply", json!({"applied": [], "warnings": []}));
    let place = dir.path().display().to_string();
    let ran = api.run(&["apply", "-f", &place, "--param", "TAG=1.4", "--param", "REPLICAS=3", "--param", "KEY=a=b"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let sent: Vec<String> = api.world().asked.iter().map(|asked| asked.body.clone()).collect();
    assert_eq!((sent.len(), sent[0].as_str()), (2, PROJECT), "a file without a Template is sent as it is");
    let config: Value = serde_saphyr::from_str(&sent[1]).unwrap();
    assert_eq!((&config["kind"], &config["spec"]["replicas"]), (&json!("DeploymentConfig"), &json!(3)));
    let container = json!({"name": "web", "image": "r/web:1.4", "env": [{"name": "KEY", "value": "a=b"}]});
    assert_eq!(config["spec"]["template"]["spec"]["containers"], json!([container]));

    let none = write_shipyard(dir.path());
    for (code, words, says) in [
        (1, &["-f", &file][..], "is required and has no value: give it one with `--param TAG=…`"),
        (1, &["-f", &file, "--param", "TAG="], "is required and has no value"),
        (1, &["-f", &file, "--param", "TAG=1"], "would be generated, and each time it is applied, another value would be deployed"),
        (
            1,
            &["-f", &file, "--param", "TAGS=1"],
            "the parameter \"TAGS\" is given, but the template does not declare it: it has `KEY`, `REPLICAS`, `TAG`",
        ),
        (2, &["-f", &none, "--param", "TAG=1"], "--param TAG: the files hold no Template that has parameters: leave it out"),
        (2, &["-f", &file, "--param", "TAG=1", "--param", "TAG=2"], "--param TAG is given twice: give it once"),
        (2, &["-f", &file, "--param", "TAG"], "write it as key=value"),
    ] {
        let ran = api.run(&[&["apply"], words].concat());
        assert_eq!((ran.code, ran.err.contains(says)), (code, true), "{words:?}: {}", ran.err);
    }
    assert_eq!(api.world().asked.len(), 2, "nothing of it was sent");
}

fn write_shipyard(dir: &std::path::Path) -> String {
    let file = dir.join("shipyard.yml");
    write(&file, SHIPYARD);
    file.display().to_string()
}
