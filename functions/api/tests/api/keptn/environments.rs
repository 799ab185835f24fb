//! `GET /v1/project/{project}/environment`: which version runs where, since when, and what is on its way.

use crate::stand::Stand;
use keelway_domain::time::Span;
use keelway_wire::http::EnvironmentPage;
use serde_json::{Value, json};

const STAGES: &str = "
    - name: dev
      sequences:
        - name: delivery
          tasks: [{name: deployment}, {name: test}]
        - name: rollback
          triggeredOn: [{event: dev.delivery.finished, selector: {match: {result: fail}}}]
          tasks: [{name: rollback}]
    - name: prod
      sequences:
        - name: delivery
          triggeredOn: [{event: dev.delivery.finished}]
          tasks: [{name: approval, properties: {pass: manual}}, {name: deployment}]
";

async fn page(stand: &Stand, query: &str) -> Value {
    let answer = stand.get(&format!("/v1/project/shop/environment{query}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let page = answer.json();
    let typed: EnvironmentPage = serde_json::from_value(page.clone()).unwrap();
    assert_eq!(serde_json::to_value(&typed).unwrap(), page, "what clients are told to read is what is there");
    page
}

/// `stage service image last coming…`, a line each.
async fn told(stand: &Stand, query: &str) -> Vec<String> {
    let page = page(stand, query).await;
    let line = |one: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let coming =
            one["coming"].as_array().unwrap().iter().map(|x| format!(" {}:{}", text(&x["image"]), text(&x["waits"]["reason"])));
        let last = format!("{}:{}", text(&one["last"]["sequence"]), text(&one["last"]["result"]));
        format!("{} {} {} {last}{}", text(&one["stage"]), text(&one["service"]), text(&one["image"]), coming.collect::<String>())
    };
    page["items"].as_array().unwrap().iter().map(line).collect()
}

#[tokio::test]
async fn a_version_runs_from_its_deployment_until_the_next() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    assert!(told(&stand, "").await.is_empty());
    let first = stand.deliver("dev", "cart", "cart:1").await;
    assert_eq!(told(&stand, "").await, ["dev cart - -:- cart:1:executor"]);
    stand.execute("deployment", "pass").await;
    assert_eq!(told(&stand, "").await, ["dev cart cart:1 -:- cart:1:executor"], "it runs while its tests do");
    stand.execute("test", "pass").await;
    assert_eq!(told(&stand, "").await, ["dev cart cart:1 delivery:pass", "prod cart - -:- cart:1:approval"]);
    stand.decide("approve", "ann").await;
    stand.execute("deployment", "warning").await;
    let all = page(&stand, "").await;
    let prod = all["items"][1].clone();
    assert_eq!((&prod["image"], &prod["shkeptncontext"]), (&json!("cart:1"), &json!(first)));
    assert_eq!(
        (&prod["since"], &prod["deliveryAcceptedAt"]),
        (&json!("2026-11-20T12:00:05.000Z"), &json!("2026-11-20T12:00:00.000Z"))
    );
    assert_eq!((&prod["last"]["result"], &prod["last"]["finishedAt"]), (&json!("warning"), &prod["since"]));
    assert_eq!((&all["now"], &all["totalCount"]), (&json!("2026-11-20T12:00:06.000Z"), &json!(2)));

    // A deployment that fails changes nothing; while others wait, the lane goes from one to the next.
    stand.deliver("dev", "cart", "cart:2").await;
    stand.world.pass(Span::seconds(1));
    stand.deliver("dev", "cart", "cart:3").await;
    stand.execute("deployment", "fail").await;
    let lines = told(&stand, "?stage=dev").await;
    assert_eq!(lines, ["dev cart cart:1 delivery:fail cart:3:lane cart:2:executor"], "the rollback is ahead of the next");
}

#[tokio::test]
async fn a_rollback_says_what_runs_or_it_is_not_known() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    for (image, says, runs) in [("cart:1", json!({"image": "cart:0"}), "cart:0"), ("cart:2", json!({}), "-")] {
        stand.deliver("dev", "cart", image).await;
        stand.execute("deployment", "pass").await;
        stand.execute("test", "fail").await;
        let lines = told(&stand, "").await;
        assert_eq!(lines, [format!("dev cart {image} delivery:fail {image}:executor")], "until the rollback is done");
        stand.execute_with("rollback", "pass", &json!({"rollback": says})).await;
        assert_eq!(told(&stand, "").await, [format!("dev cart {runs} rollback:pass")]);
    }
}

#[tokio::test]
async fn pages_filters_and_what_does_not_exist() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    for service in ["cart", "api", "pay"] {
        stand.deliver("dev", service, "x:1").await;
    }
    let first = page(&stand, "?pageSize=2").await;
    assert_eq!((&first["totalCount"], &first["nextPageKey"]), (&json!(2), &json!("cart")));
    let second = page(&stand, "?pageSize=2&nextPageKey=cart").await;
    assert_eq!((&second["items"][0]["service"], &second["nextPageKey"]), (&json!("pay"), &json!("0")));
    assert_eq!(told(&stand, "?service=pay&stage=dev").await, ["dev pay - -:- x:1:executor"]);
    assert!(told(&stand, &format!("?service={}", "x".repeat(3000))).await.is_empty());
    for (query, status, says) in [
        ("/v1/project/shop/environment?stage=dex", 404, "did you mean \"dev\"?"),
        ("/v1/project/shoop/environment", 404, "did you mean \"shop\"?"),
        ("/v1/project/shop/environment?nextPageKey=No%20Good", 400, "nextPageKey"),
        ("/v1/project/shop/environment?pageSize=x", 400, "pageSize"),
        ("/v1/project/shop/environment?color=red", 400, "color"),
    ] {
        let answer = stand.get(query).await;
        assert_eq!((answer.status, answer.problem().contains(says)), (status, true), "{query}: {}", answer.problem());
    }
}

/// The requests of an answer do not depend on how much has happened.
#[tokio::test]
async fn history_costs_nothing() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    let mut needed = vec![];
    for n in 0..12 {
        stand.deliver("dev", "cart", &format!("cart:{n}")).await;
        stand.execute("deployment", "pass").await;
        stand.execute("test", "warning").await;
        let before = stand.world.core().request_count();
        assert_eq!(told(&stand, "").await, [format!("dev cart cart:{n} delivery:warning")]);
        needed.push(stand.world.core().request_count() - before);
    }
    assert_eq!(needed[1], needed[11], "{needed:?}");
    assert!(needed[11] <= 6, "{needed:?}");
}

#[tokio::test]
async fn a_sequence_that_ends_with_an_approval_is_the_last_one_there() {
    let mut stand = Stand::new();
    let stages = "
    - name: dev
      sequences:
        - name: delivery
          tasks: [{name: deployment}, {name: approval, properties: {pass: manual}}]
";
    stand.apply("shop", stages).await;
    stand.deliver("dev", "cart", "cart:1").await;
    stand.execute("deployment", "pass").await;
    assert_eq!(told(&stand, "").await, ["dev cart cart:1 -:- cart:1:approval"]);
    stand.decide("approve", "ann").await;
    assert_eq!(told(&stand, "").await, ["dev cart cart:1 delivery:pass"]);
    stand.deliver("dev", "cart", "cart:2").await;
    stand.execute("deployment", "pass").await;
    stand.decide("decline", "ann").await;
    assert_eq!(told(&stand, "").await, ["dev cart cart:2 delivery:fail"]);

    // What an older one deployed before it waited does not run any more when it ends.
    stand.deliver("dev", "cart", "cart:3").await;
    stand.execute("deployment", "pass").await;
    let older = stand.open("approval").await;
    stand.deliver("dev", "cart", "cart:4").await;
    stand.execute("deployment", "pass").await;
    let path = format!("/v1/project/shop/approval/{}/{}", older["shkeptncontext"].as_str().unwrap(), older["id"].as_str().unwrap());
    assert!(stand.post(&path, &json!({"decision": "approve"})).await.status < 300);
    stand.work().await;
    assert_eq!(told(&stand, "").await, ["dev cart cart:4 delivery:pass cart:4:approval"]);
}
