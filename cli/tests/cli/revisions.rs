//! Revisions of a shipyard: what is asked, and what a person sees.

use crate::support::{Api, write};
use serde_json::{Value, json};

const OLD: &str = "1f0c9d82be44a1c0ffee00000000000000000001";
const NEW: &str = "7f3a0b11be44a1c0ffee00000000000000000002";
const LIST: &str = "GET /v1/project/shop/shipyard/revisions";

/// An API whose project `shop` had two revisions.
fn api() -> Api {
    let api = Api::start();
    let one = |number, revision: &str, by, in_force| json!({"number": number, "revision": revision, "applied": "2026-11-21T08:00:00.000Z", "by": by, "inForce": in_force});
    let revisions = [one(3, OLD, "", true), one(2, NEW, "grace", false), one(1, OLD, "ada", false)];
    api.can(LIST, json!({"items": revisions, "nextPageKey": "0", "pageSize": 50, "totalCount": 3}));
    api.can(&format!("{LIST}/{NEW}"), json!("kind: Shipyard # new\n"));
    api.can("GET /v1/project/shop/shipyard", json!("kind: Shipyard # old\n"));
    api
}

fn changes() -> Value {
    json!([
        {"field": "spec.stages[dev].sequences[delivery].tasks[test].timeout", "was": "1h", "becomes": "2h"},
        {"field": "spec.stages[prod]", "becomes": {"name": "prod"}}
    ])
}

#[test]
fn revisions_are_listed_and_shown() {
    let api = api();
    let list = api.run(&["get", "shipyard", "shop", "--revisions"]);
    insta::assert_snapshot!(list.shown(&[]));
    let data = api.run(&["get", "shipyard", "shop", "--revisions", "--limit", "1", "-o", "json"]);
    let data: Value = serde_json::from_str(&data.out).unwrap();
    assert_eq!((&data["items"][0]["revision"], data["items"].as_array().unwrap().len()), (&json!(OLD), 1));
    for (words, says) in [
        (&[][..], "# old"),
        (&["--revision", "2"], "# new"),
        (&["--revision", "7f3a0b1"], "# new"),
        (&["--revision", NEW], "# new"),
    ] {
        let shown = api.run(&[&["get", "shipyard", "shop"], words].concat());
        assert_eq!((shown.code, shown.out.as_str()), (0, format!("kind: Shipyard {says}\n").as_str()), "{words:?}: {}", shown.err);
    }
    let json = api.run(&["get", "shipyard", "shop", "-o", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&json.out).unwrap(), json!({"kind": "Shipyard"}));
    for (words, code, says) in [
        (&["--revision", "4"][..], 1, "project shop has no revision number 4: keelway get shipyard shop --revisions"),
        (&["--revision", "0000000"], 1, "project shop has no revision 0000000"),
        (&["--revision", "7f3"], 2, "give at least 7 of its 40 hexadecimal digits"),
        (&["--revision", "2", "--revisions"], 2, "cannot be used with"),
    ] {
        let ran = api.run(&[&["get", "shipyard", "shop"], words].concat());
        assert_eq!((ran.code, ran.err.contains(says)), (code, true), "{words:?}: {}", ran.err);
    }
}

#[test]
fn revisions_are_compared() {
    let api = api();
    api.can("GET /v1/project/shop/shipyard/diff", json!({"from": NEW, "to": OLD, "changes": changes()}));
    let ran = api.run(&["diff", "shipyard", "shop", "2"]);
    insta::assert_snapshot!(ran.shown(&[]));
    assert_eq!(api.lines().last().unwrap(), &format!("GET /v1/project/shop/shipyard/diff?from={NEW}"));
    let ran = api.run(&["diff", "shipyard", "shop", "2", OLD, "--exit-code", "-o", "json"]);
    assert_eq!((ran.code, serde_json::from_str::<Value>(&ran.out).unwrap()["changes"].clone()), (1, changes()));
    assert_eq!(api.lines().last().unwrap(), &format!("GET /v1/project/shop/shipyard/diff?from={NEW}&to={OLD}"));
    api.can("GET /v1/project/shop/shipyard/diff", json!({"from": NEW, "to": OLD, "changes": []}));
    assert_eq!(api.run(&["diff", "shipyard", "shop", "2"]).err, "only comments and spelling differ\n");
    api.can("GET /v1/project/shop/shipyard/diff", json!({"from": OLD, "to": OLD, "changes": []}));
    let same = api.run(&["diff", "shipyard", "shop", "3", "--exit-code"]);
    assert_eq!((same.code, same.err.as_str()), (0, "they are the same\n"));
}

#[test]
fn a_revision_is_brought_back() {
    let api = api();
    let path = "POST /v1/project/shop/shipyard/rollback";
    let done = json!({"kind": "Shipyard", "name": "s", "project": "shop", "revision": NEW, "changed": true, "replaces": OLD, "changes": changes()});
    api.can(path, done);
    let ran = api.run(&["rollback", "shipyard", "shop", "--to", "2", "--if-match", OLD]);
    insta::assert_snapshot!(ran.shown(&[]));
    let asked = api.world().asked.last().unwrap().clone();
    assert_eq!(serde_json::from_str::<Value>(&asked.body).unwrap(), json!({"revision": NEW, "by": "ada"}));
    assert_eq!(asked.if_match, Some(format!("\"{OLD}\"")));
    let dry = api.run(&["rollback", "shipyard", "shop", "--to", NEW, "--dry-run"]);
    assert!(
        dry.out.starts_with(&format!("shipyard of project shop would go back to revision {NEW}:\n  spec.stages[dev]")),
        "{}",
        dry.out
    );
    assert_eq!(serde_json::from_str::<Value>(&api.world().asked.last().unwrap().body).unwrap()["dryRun"], true);
    api.can(path, json!({"kind": "Shipyard", "project": "shop", "revision": NEW, "changed": false}));
    let same = api.run(&["rollback", "shipyard", "shop", "--to", NEW]);
    assert_eq!((same.code, same.out), (0, format!("shipyard of project shop: revision {NEW} is in force already\n")));
    for words in
        [&["rollback", "shipyard", "shop"][..], &["rollback"], &["diff"], &["diff", "carts-3"], &["diff", "shipyard", "shop"]]
    {
        assert_eq!(api.run(words).code, 2, "{words:?}");
    }
    // The namespace from the environment does not stand in the way.
    let mut command = api.keelway(&["rollback", "shipyard", "shop", "--to", NEW]);
    assert!(command.env("KEELWAY_PROJECT", "elsewhere").output().unwrap().status.success());
}

#[test]
fn apply_tells_the_difference() {
    let api = api();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("shipyard.yaml");
    write(
        &file,
        "apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nmetadata: {name: shipyard-shop}\nspec: {stages: [{name: dev}]}\n",
    );
    let file = file.display().to_string();
    let one = |changes: Value| json!({"kind": "Shipyard", "name": "s", "project": "shop", "revision": NEW, "changed": true, "replaces": OLD, "changes": changes});
    api.can("POST /v1/apply", json!({"applied": [one(changes())], "warnings": [], "dryRun": true}));
    let dry = api.run(&["apply", "-f", &file, "--dry-run"]);
    insta::assert_snapshot!(dry.shown(&[]));
    assert_eq!(api.lines().last().unwrap(), "POST /v1/apply?by=ada&dryRun=true");
    api.can("POST /v1/apply", json!({"applied": [one(json!([]))], "warnings": []}));
    let done = api.run(&["apply", "-f", &file]);
    let said = format!("shipyard of project shop: applied revision {NEW}\n  only comments and spelling differ\n");
    assert_eq!((done.code, done.out, api.lines().pop().unwrap()), (0, said, "POST /v1/apply?by=ada".to_owned()));

    // A project that the same files declare is not there yet.
    let project = dir.path().join("project.yaml");
    write(&project, "apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {name: shop}\n");
    api.world().canned.insert("POST /v1/apply".into(), (404, json!({"title": "unknown project", "status": 404, "detail": "x"})));
    let dry = api.run(&["apply", "-f", &file, &project.display().to_string(), "--dry-run"]);
    assert_eq!((dry.code, dry.out.contains("shipyard.yaml: fine, not sent: shipyard shipyard-shop")), (0, true), "{}", dry.err);
    let alone = api.run(&["apply", "-f", &file, "--dry-run"]);
    assert_eq!((alone.code, alone.err.contains("unknown project")), (1, true), "{}", alone.err);
}
