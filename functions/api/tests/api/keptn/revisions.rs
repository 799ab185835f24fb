//! The revisions of a shipyard: listed, shown, compared and brought back.

use crate::stand::{Answer, Stand, TOKEN};
use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

/// A shipyard with a stage for each of these names.
fn shipyard(stages: &[&str]) -> String {
    let stage = |name: &&str| format!("  - name: {name}\n    sequences: [{{name: delivery, tasks: [{{name: deployment}}]}}]\n");
    let stages: String = stages.iter().map(stage).collect();
    format!("apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nmetadata: {{name: shipyard-shop}}\nspec:\n  stages:\n{stages}")
}

async fn apply(stand: &Stand, query: &str, text: &str) -> Answer {
    stand.post_text(&format!("/v1/apply{query}"), "application/yaml", text.into()).await
}

/// Applies shipyards one after the other, and returns their revisions.
async fn applied(stand: &Stand, texts: &[&str]) -> Vec<String> {
    let mut revisions = vec![];
    for text in texts {
        stand.world.pass(keelway_domain::time::Span::seconds(1));
        let answer = apply(stand, "?by=ada", text).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        revisions.push(answer.json()["applied"][0]["revision"].as_str().unwrap().to_owned());
    }
    revisions
}

async fn project(stand: &Stand, name: &str) {
    let text = format!("apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {{name: {name}}}\n");
    assert_eq!(apply(stand, "", &text).await.status, 200);
}

async fn list(stand: &Stand) -> Vec<(i64, String, bool)> {
    let page = stand.get("/v1/project/shop/shipyard/revisions").await.json();
    let one = |one: &Value| {
        assert_eq!(one["by"], "administrator (ada)");
        (one["number"].as_i64().unwrap(), one["revision"].as_str().unwrap().to_owned(), one["inForce"] == true)
    };
    page["items"].as_array().unwrap().iter().map(one).collect()
}

#[tokio::test]
async fn revisions_are_listed_shown_compared_and_brought_back() {
    let stand = Stand::new();
    project(&stand, "shop").await;
    assert_eq!(list(&stand).await, []);
    let (one, two) = (shipyard(&["dev"]), shipyard(&["dev", "prod"]));
    let texts = [one.as_str(), &two, &two, &one];
    let ids = applied(&stand, &texts).await;
    assert_eq!((&ids[0], &ids[1]), (&ids[3], &ids[2]), "a revision is its text");
    let entry = |number, id: &String, in_force| (number, id.clone(), in_force);
    let expected = [entry(3, &ids[0], true), entry(2, &ids[1], false), entry(1, &ids[0], false)];
    assert_eq!(list(&stand).await, expected, "what is applied again is no new entry");

    let shown = stand.get(&format!("/v1/project/shop/shipyard/revisions/{}", ids[1])).await;
    assert_eq!((shown.status, shown.text.as_str()), (200, two.as_str()));
    assert_eq!(shown.headers["etag"].to_str().unwrap(), format!("\"{}\"", ids[1]));

    let diff = stand.get(&format!("/v1/project/shop/shipyard/diff?from={}", ids[1])).await.json();
    assert_eq!((&diff["from"], &diff["to"]), (&json!(ids[1]), &json!(ids[0])), "compared with the one in force");
    assert_eq!(diff["changes"][0]["field"], "spec.stages[prod]");
    assert!(diff["changes"][0].get("becomes").is_none(), "{diff}");
    let same = stand.get(&format!("/v1/project/shop/shipyard/diff?from={0}&to={0}", ids[1])).await.json();
    assert_eq!(same["changes"], json!([]));

    let rollback = json!({"revision": ids[1], "by": "ada", "dryRun": true});
    let path = "/v1/project/shop/shipyard/rollback";
    let dry = stand.post(path, &rollback).await.json();
    assert_eq!((&dry["changed"], &dry["replaces"]), (&json!(true), &json!(ids[0])));
    assert_eq!(dry["changes"][0]["field"], "spec.stages[prod]");
    assert_eq!(list(&stand).await.len(), 3, "nothing was stored");
    let back = stand.post(path, &json!({"revision": ids[1], "by": "ada"})).await.json();
    assert_eq!(back, dry);
    assert_eq!(list(&stand).await[0], entry(4, &ids[1], true));
    assert_eq!(stand.get("/v1/project/shop").await.json()["shipyardVersion"], json!(ids[1]));
    let again = stand.post(path, &json!({"revision": ids[1]})).await.json();
    assert_eq!((&again["changed"], again.get("replaces")), (&json!(false), None));
}

#[tokio::test]
async fn the_history_comes_in_pages_and_does_not_expire() {
    let stand = Stand::new();
    project(&stand, "shop").await;
    let texts: Vec<String> = (0..7).map(|n| shipyard(&[&format!("s{n}")])).collect();
    let ids = applied(&stand, &texts.iter().map(String::as_str).collect::<Vec<_>>()).await;
    stand.world.pass(keelway_domain::time::Span::minutes(3000 * 24 * 60));
    let (mut seen, mut key) = (vec![], "0".to_owned());
    loop {
        let page = stand.get(&format!("/v1/project/shop/shipyard/revisions?pageSize=3&nextPageKey={key}")).await.json();
        let found = page["items"].as_array().unwrap();
        assert_eq!((page["totalCount"].as_u64().unwrap(), &page["pageSize"]), (found.len() as u64, &json!(3)));
        seen.extend(found.iter().map(|one| one["revision"].as_str().unwrap().to_owned()));
        key = page["nextPageKey"].as_str().unwrap().to_owned();
        if key == "0" {
            break;
        }
    }
    seen.reverse();
    assert_eq!(seen, ids);
    assert_eq!(stand.get(&format!("/v1/project/shop/shipyard/revisions/{}", ids[0])).await.text, texts[0]);
    for item in stand.world.core().table.partition("P#shop") {
        assert!(!item.attrs.contains_key("ttl"), "{item:?}");
    }
}

#[tokio::test]
async fn a_dry_run_tells_every_difference_and_stores_nothing() {
    let stand = Stand::new();
    let text = |timeout: &str, stages: &[&str]| {
        format!(
            "apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {{name: shop}}\nspec: {{taskTimeout: {timeout}}}\n---\n{}---\n\
             apiVersion: keelway.dev/v1\nkind: GitHost\nmetadata: {{name: git}}\nspec: {{host: git.example, type: gitea, api: \
             'https://git.example/{timeout}'}}\n",
            shipyard(stages)
        )
    };
    let dry = apply(&stand, "?dryRun=true", &text("1h", &["dev"])).await;
    assert_eq!(dry.status, 200, "{dry:?}");
    let dry = dry.json();
    assert_eq!(dry["dryRun"], true);
    assert!(dry["applied"].as_array().unwrap().iter().all(|one| one["changed"] == true && one.get("changes").is_none()), "{dry}");
    assert_eq!(stand.get("/v1/project").await.json()["projects"], json!([]));
    let first = apply(&stand, "", &text("1h", &["dev"])).await.json();
    assert_eq!((first.get("dryRun"), first["applied"][1].get("replaces")), (None, None), "{first}");

    let unchanged = apply(&stand, "?dryRun=true", &text("1h", &["dev"])).await.json();
    assert!(unchanged["applied"].as_array().unwrap().iter().all(|one| one["changed"] == false), "{unchanged}");
    let dry = apply(&stand, "?dryRun=true", &text("2h", &["dev", "prod"])).await.json();
    let fields = |answer: &Value| {
        let fields =
            |one: &Value| one["changes"].as_array().unwrap().iter().map(|c| c["field"].as_str().unwrap().to_owned()).collect();
        answer["applied"].as_array().unwrap().iter().map(fields).collect::<Vec<Vec<String>>>()
    };
    let expected = [vec!["spec.taskTimeout".to_owned()], vec!["spec.stages[prod]".into()], vec!["spec.api".into()]];
    assert_eq!(fields(&dry), expected);
    let done = apply(&stand, "?dryRun=false", &text("2h", &["dev", "prod"])).await.json();
    assert_eq!(done["applied"], dry["applied"], "what was said is what is done");

    let wrong = apply(&stand, "?dryRun=yes", &text("2h", &["dev"])).await;
    assert_eq!((wrong.status, wrong.problem().starts_with("dryRun: is neither true nor false")), (400, true), "{wrong:?}");
}

#[tokio::test]
async fn what_cannot_be_brought_back() {
    let mut stand = Stand::new();
    project(&stand, "shop").await;
    let ids = applied(&stand, &[&shipyard(&["dev"]), &shipyard(&["dev", "prod"])]).await;
    let path = "/v1/project/shop/shipyard/rollback";
    let required = |revision: &str| {
        let request = Request::post(path).header("x-token", TOKEN).header("content-type", "application/json");
        let request = request.header("if-match", format!("\"{revision}\""));
        request.body(Body::from(json!({"revision": ids[0]}).to_string())).unwrap()
    };
    let late = stand.request(required(&ids[0])).await;
    let way_out = format!("keelway diff shipyard shop {}", ids[0]);
    assert_eq!((late.status, late.problem().contains(&way_out)), (412, true), "{late:?}");
    assert_eq!(stand.request(required(&ids[1])).await.status, 200);

    let ids = applied(&stand, &[&shipyard(&["dev", "prod"]), &shipyard(&["dev"])]).await;
    assert_eq!(stand.post(path, &json!({"revision": ids[0]})).await.status, 200);
    stand.trigger("shop", "prod", "delivery", "cart").await;
    let busy = stand.post(path, &json!({"revision": ids[1]})).await;
    assert_eq!((busy.status, busy.problem().contains("delivery in prod")), (409, true), "{busy:?}");

    for revision in ["", "7f3a", &"f".repeat(40)] {
        let unknown = stand.post(path, &json!({"revision": revision})).await;
        assert_eq!((unknown.status, unknown.problem().contains(&ids[0])), (404, true), "{unknown:?}");
    }
    for (path, status) in [
        ("/v1/project/shop/shipyard/revisions/nonsense", 404),
        ("/v1/project/nowhere/shipyard/revisions", 404),
        ("/v1/project/shop/shipyard/revisions?nextPageKey=nonsense", 400),
        ("/v1/project/shop/shipyard/diff", 400),
        ("/v1/project/shop/shipyard/diff?from=nonsense", 404),
    ] {
        assert_eq!(stand.get(path).await.status, status, "{path}");
    }
}
