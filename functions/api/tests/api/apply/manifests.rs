//! `POST /v1/apply`, and projects as they are read back.

use crate::stand::{Stand, TOKEN};
use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

const ONE: &str = "
    - name: dev
      sequences: [{name: delivery, tasks: [{name: deployment}]}]
";
const TWO: &str = "
    - name: dev
      sequences: [{name: delivery, tasks: [{name: deployment}]}]
    - name: prod
      sequences: [{name: delivery, triggeredOn: [{event: dev.delivery.finished}], tasks: [{name: deployment}]}]
";

pub fn shipyard(name: &str, stages: &str) -> String {
    format!("apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nmetadata:\n  name: {name}\nspec:\n  stages:\n{stages}")
}

async fn apply(stand: &Stand, query: &str, text: &str) -> crate::stand::Answer {
    stand.post_text(&format!("/v1/apply{query}"), "application/yaml", text.into()).await
}

#[tokio::test]
async fn what_is_applied_is_read_back() {
    let stand = Stand::new();
    let first = stand.apply("shop", TWO).await.json();
    assert_eq!(first["applied"][0], json!({"kind": "Project", "name": "shop", "project": "shop", "changed": true}));
    let revision = first["applied"][1]["revision"].as_str().unwrap().to_owned();
    assert_eq!(first["applied"][1]["project"], "shop");
    assert_eq!(revision.len(), 40);

    let again = stand.apply("shop", TWO).await.json();
    assert_eq!((&again["applied"][0]["changed"], &again["applied"][1]["changed"]), (&json!(false), &json!(false)));

    let project = stand.get("/v1/project/shop").await.json();
    assert_eq!((&project["projectName"], &project["shipyardVersion"]), (&json!("shop"), &json!(revision)));
    assert_eq!(project["stages"], json!([{"stageName": "dev", "services": []}, {"stageName": "prod", "services": []}]));
    let text = stand.get("/v1/project/shop/shipyard").await;
    assert_eq!((text.content_type.as_str(), text.status), ("text/yaml; charset=utf-8", 200));
    assert_eq!(json!(text.text), project["shipyard"]);
    assert!(text.text.contains("kind: Shipyard") && !text.text.contains("kind: Project"));

    let changed = apply(&stand, "?project=shop", &shipyard("anything", ONE)).await;
    assert_eq!((changed.status, &changed.json()["applied"][0]["changed"]), (200, &json!(true)));
    assert_eq!(stand.get("/v1/project/shop/stage").await.json()["totalCount"], 1);
    let unknown = stand.get("/v1/project/shop/stage/prod").await;
    assert_eq!((unknown.status, unknown.problem()), (404, "stage \"prod\" does not exist: there is dev".into()));
}

#[tokio::test]
async fn all_findings_at_once_and_nothing_stored() {
    let stand = Stand::new();
    let text = "apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {name: fine}\n---\n\
                apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nmetadata: {name: shipyard-fine}\nspec:\n  stages:\n\
                \x20   - name: Dev\n      sequences:\n        - name: delivery\n          tasks: []\n";
    let answer = apply(&stand, "", text).await;
    assert_eq!(answer.status, 400);
    assert!(answer.problem().contains("nothing was stored"));
    let findings = answer.json()["findings"].as_array().unwrap().clone();
    assert!(findings.len() >= 2, "{findings:?}");
    assert!(findings.iter().all(|finding| finding["line"].is_u64() && finding["message"].is_string()));
    assert_eq!(stand.get("/v1/project/fine").await.status, 404);
    assert_eq!(stand.get("/v1/project").await.json()["projects"], json!([]));
    assert_eq!(apply(&stand, "", "a: \u{7}").await.status, 400);
}

#[tokio::test]
async fn whose_shipyard_it_is() {
    let stand = Stand::new();
    let nobody = apply(&stand, "", &shipyard("shipyard-shop", ONE)).await;
    assert_eq!((nobody.status, nobody.problem().contains("there is none yet")), (404, true), "{nobody:?}");
    stand.apply("shop", ONE).await;
    stand.apply("other", ONE).await;
    for (query, name, expected) in [
        ("", "shipyard-shop", Ok("shop")),
        ("", "shop", Ok("shop")),
        ("?project=other", "shipyard-shop", Ok("other")),
        ("?project=shoq", "shipyard-shop", Err("did you mean \"shop\"? there are other, shop")),
        ("", "shipyard-sockshop", Err("of projects, there are other, shop")),
    ] {
        let answer = apply(&stand, query, &shipyard(name, TWO)).await;
        match expected {
            Ok(project) => assert_eq!(answer.json()["applied"][0]["project"], project, "{query} {name}: {answer:?}"),
            Err(says) => assert!(answer.status == 404 && answer.problem().contains(says), "{query} {name}: {answer:?}"),
        }
    }
    let annotated = shipyard("x\n  annotations: {keelway.dev/project: other}", ONE);
    assert_eq!(apply(&stand, "", &annotated).await.json()["applied"][0]["project"], "other");
    let twice = format!("{}---\n{}", shipyard("shop", ONE), shipyard("shipyard-shop", TWO));
    let twice = apply(&stand, "", &twice).await;
    assert_eq!((twice.status, twice.problem().contains("two documents of kind Shipyard")), (400, true));
}

#[tokio::test]
async fn a_stage_goes_only_when_nothing_in_it_is_open() {
    let mut stand = Stand::new();
    stand.apply("shop", TWO).await;
    stand.trigger("shop", "dev", "delivery", "cart").await;
    assert_eq!(apply(&stand, "?project=shop", &shipyard("s", ONE)).await.status, 200, "prod is empty");
    assert_eq!(apply(&stand, "?project=shop", &shipyard("s", TWO)).await.status, 200);
    let without_dev = TWO.split_once("    - name: prod").map(|(_, prod)| format!("    - name: prod{prod}")).unwrap();
    let refused =
        apply(&stand, "?project=shop", &shipyard("s", &without_dev.replace("triggeredOn: [{event: dev.delivery.finished}], ", "")))
            .await;
    assert_eq!(refused.status, 409, "{refused:?}");
    assert!(refused.problem().contains("delivery in dev"), "{}", refused.problem());
    stand.execute("deployment", "fail").await;
    let done =
        apply(&stand, "?project=shop", &shipyard("s", &without_dev.replace("triggeredOn: [{event: dev.delivery.finished}], ", "")))
            .await;
    assert_eq!(done.status, 200, "{done:?}");
}

#[tokio::test]
async fn projects_and_services_page_by_page() {
    let mut stand = Stand::new();
    for name in ["c", "a", "b"] {
        stand.apply(name, ONE).await;
    }
    let names = |page: &Value| {
        page["projects"].as_array().unwrap().iter().map(|p| p["projectName"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let first = stand.get("/v1/project?pageSize=2").await.json();
    assert_eq!((names(&first), first["nextPageKey"].clone()), (vec!["a".into(), "b".into()], json!("b")));
    let second = stand.get("/v1/project?pageSize=2&nextPageKey=b").await.json();
    assert_eq!((names(&second), second["nextPageKey"].clone()), (vec!["c".to_owned()], json!("0")));

    for service in ["cart", "api", "web"] {
        stand.trigger("a", "dev", "delivery", service).await;
    }
    let page = stand.get("/v1/project/a/service?pageSize=2").await.json();
    assert_eq!((&page["services"][0]["serviceName"], &page["nextPageKey"]), (&json!("api"), &json!("cart")));
    let rest = stand.get("/v1/project/a/stage/dev/service?nextPageKey=cart").await.json();
    assert_eq!((&rest["services"][0]["serviceName"], &rest["totalCount"]), (&json!("web"), &json!(1)));
    assert_eq!(stand.get("/v1/project/a/stage/dev/service/web").await.status, 200);
    let unknown = stand.get("/v1/project/a/stage/dev/service/carts").await;
    assert!(unknown.status == 404 && unknown.problem().contains("did you mean \"cart\"?"), "{unknown:?}");
}

#[tokio::test]
async fn a_shipyard_replaces_the_one_that_its_author_saw() {
    let stand = Stand::new();
    let seen = stand.apply("shop", ONE).await.json()["applied"][1]["revision"].as_str().unwrap().to_owned();
    let apply = async |revision: &str, text: String| {
        let request = Request::post("/v1/apply?project=shop").header("x-token", TOKEN).header("if-match", revision);
        stand.request(request.body(Body::from(text)).unwrap()).await
    };
    let etag = stand.get("/v1/project/shop/shipyard").await.headers["etag"].to_str().unwrap().to_owned();
    assert_eq!(etag, format!("\"{seen}\""));
    let first = apply(&etag, shipyard("s", TWO)).await;
    assert_eq!((first.status, &first.json()["applied"][0]["changed"]), (200, &json!(true)), "{first:?}");
    let in_force = first.json()["applied"][0]["revision"].as_str().unwrap().to_owned();
    // The same request again: it has done its work.
    let again = apply(&etag, shipyard("s", TWO)).await;
    assert_eq!((again.status, &again.json()["applied"][0]["changed"]), (200, &json!(false)), "{again:?}");
    // Somebody else saw the same one.
    let late = apply(&seen, shipyard("t", TWO)).await;
    assert_eq!(late.status, 412, "{late:?}");
    assert!(late.problem().contains(&seen) && late.problem().contains(&in_force), "{late:?}");
    assert_eq!(stand.get("/v1/project/shop").await.json()["shipyardVersion"], json!(in_force));

    for wrong in ["*", "W/\"1\"", "\"7f3a\"", ""] {
        let answer = apply(wrong, shipyard("t", TWO)).await;
        assert_eq!(answer.status, 400, "{wrong}");
        assert!(answer.problem().starts_with("If-Match: is no revision: send the ETag"), "{wrong}: {answer:?}");
    }
    let none = apply(&seen, "apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {name: shop}\n".into()).await;
    assert_eq!((none.status, none.problem().contains("the body has 0")), (400, true), "{none:?}");
    stand
        .post_text("/v1/apply", "application/yaml", "apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {name: empty}\n".into())
        .await;
    let request = Request::post("/v1/apply?project=empty").header("x-token", TOKEN).header("if-match", &seen);
    let empty = stand.request(request.body(Body::from(shipyard("s", ONE))).unwrap()).await;
    assert_eq!((empty.status, empty.problem().contains("no shipyard in force")), (412, true), "{empty:?}");
}
