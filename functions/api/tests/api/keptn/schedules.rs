//! Schedules: applied, listed, shown, deleted.

use crate::stand::Stand;
use crate::webhooks::subscriptions::SLACK;
use keelway_domain::time::Span;
use serde_json::{Value, json};

const STAGES: &str = "
    - name: dev
      sequences:
        - name: smoke
          tasks: [{name: check, startDeadline: 5h}]
";

/// The stand's clock begins on 2026-11-20, a Friday, at 12:00 UTC.
fn manifest(name: &str, rest: &str) -> String {
    format!(
        "apiVersion: keelway.dev/v1\nkind: Schedule\nmetadata: {{name: {name}}}\nspec:\n  project: shop\n  stage: dev\n  services: [cart]\n  sequence: \
         smoke\n  {rest}\n"
    )
}

async fn applied(stand: &Stand, text: &str) -> Value {
    let answer = stand.post_text("/v1/apply", "application/yaml", text.into()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["applied"][0].clone()
}

#[tokio::test]
async fn a_schedule_is_applied_triggers_and_shows_its_times() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    let text = manifest("hourly", "cron: '0 * * * *'");
    let dry = stand.post_text("/v1/apply?dryRun=true", "application/yaml", text.clone()).await;
    assert_eq!((dry.status, &dry.json()["applied"][0]["changed"]), (200, &json!(true)), "{dry:?}");
    assert_eq!(stand.get("/v1/schedules/shop/hourly").await.status, 404, "nothing was stored");
    let told = applied(&stand, &text).await;
    assert_eq!(json!([told["kind"], told["name"], told["project"], told["changed"]]), json!(["Schedule", "hourly", "shop", true]));
    assert_eq!(stand.get("/v1/schedules/shop/hourly").await.json()["planned"], false, "for a moment");
    stand.work().await;
    let shown = stand.get("/v1/schedules/shop/hourly").await.json();
    assert_eq!(json!([shown["next"], shown["planned"], shown["last"]]), json!(["2026-11-20T13:00:00.000Z", true, null]));
    assert_eq!(applied(&stand, &text).await["changed"], false);

    stand.world.pass(Span::minutes(60));
    stand.work().await;
    let shown = stand.get("/v1/schedules/shop/hourly").await.json();
    assert_eq!(json!([shown["next"], shown["last"]["at"]]), json!(["2026-11-20T14:00:00.000Z", "2026-11-20T13:00:00.000Z"]));
    let context = shown["runs"][0]["shkeptncontext"].as_str().unwrap();
    assert_eq!(stand.state(context).await["phase"], "started");
    // The run is open still.
    stand.world.pass(Span::minutes(60));
    stand.work().await;
    let shown = stand.get("/v1/schedules/shop/hourly").await.json();
    assert_eq!((&shown["last"]["skipped"], &shown["runs"][0]["shkeptncontext"]), (&json!(["cart"]), &json!(context)));
    assert_eq!(stand.get("/v1/schedules/shop/hourly/manifest").await.text, text);
}

#[tokio::test]
async fn lists_have_pages_and_what_is_deleted_triggers_nothing() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    for name in ["a", "b", "c"] {
        applied(&stand, &manifest(name, "cron: '0 * * * *'")).await;
    }
    stand.work().await;
    let (mut names, mut key) = (vec![], "0".to_owned());
    loop {
        let page = stand.get(&format!("/v1/schedules/shop?pageSize=2&nextPageKey={key}")).await.json();
        names.extend(page["items"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()));
        key = page["nextPageKey"].as_str().unwrap().to_owned();
        if key == "0" {
            break;
        }
    }
    assert_eq!(names, ["a", "b", "c"]);
    stand.token("ci", &["read", "trigger"], &["shop"]).await;
    assert_eq!(stand.like("ci").delete("/v1/schedules/shop/a").await.status, 403);
    for name in names {
        assert_eq!(stand.like("").delete(&format!("/v1/schedules/shop/{name}")).await.status, 204);
    }
    let gone = stand.delete("/v1/schedules/shop/a").await;
    assert_eq!(gone.status, 404, "{gone:?}");
    let listed = stand.get("/v1/schedules/shop").await.json();
    assert_eq!((&listed["items"], &listed["nextPageKey"]), (&json!([]), &json!("0")), "{listed}");
    let before = stand.published().len();
    stand.world.pass(Span::minutes(120));
    stand.work().await;
    assert_eq!(stand.published().len(), before);
    let audit = stand.get("/v1/audit?action=delete").await.json();
    let mut told: Vec<&str> = audit["items"].as_array().unwrap().iter().filter_map(|entry| entry["what"].as_str()).collect();
    told.sort_unstable();
    assert_eq!(told, ["deleted schedule a", "deleted schedule b", "deleted schedule c"]);
    applied(&stand, &manifest("a", "cron: '0 * * * *'")).await;
    stand.work().await;
    let again = stand.get("/v1/schedules/shop/a").await.json();
    assert!(again["next"].is_string() && again["last"].is_null(), "{again}");
    assert_eq!(stand.get("/v1/schedules/shop").await.json()["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn an_unknown_project_has_no_schedules_and_says_so() {
    let stand = Stand::new();
    stand.apply("shop", STAGES).await;
    for path in ["/v1/schedules/shopp", "/v1/schedules/shopp/nightly", "/v1/schedules/shopp/nightly/manifest", "/v1/schedules/S%20"]
    {
        let answer = stand.get(path).await;
        assert_eq!((answer.status, answer.problem().contains("project")), (404, true), "{path}: {answer:?}");
    }
    let answer = stand.get("/v1/schedules/shop/nightly").await;
    assert_eq!((answer.status, answer.problem().contains("schedule")), (404, true), "{answer:?}");
}

#[tokio::test]
async fn a_project_is_deleted_with_its_schedules_and_webhooks() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    stand.apply("other", STAGES).await;
    applied(&stand, &manifest("hourly", "cron: '0 * * * *'")).await;
    applied(&stand, &manifest("hourly", "cron: '0 * * * *'").replace("project: shop", "project: other")).await;
    for namespace in ["shop", "other"] {
        let cluster = "apiVersion: keelway.dev/v1\nkind: Cluster\nmetadata: {name: one, namespace: shop}\nspec: {server: https://10.0.0.1, secretRef: {name: t}}\n";
        for text in [SLACK, cluster] {
            stand.manifests(&text.replace("namespace: shop", &format!("namespace: {namespace}"))).await;
        }
    }
    stand.work().await;
    // Nothing is taken out while something is open.
    stand.trigger("shop", "dev", "smoke", "cart").await;
    assert_eq!(stand.delete("/v1/project/shop").await.status, 409);
    assert_eq!(stand.get("/v1/webhookSubscriptions/shop/slack").await.status, 200);
    assert_eq!(stand.get("/v1/schedules/shop/hourly").await.status, 200);
    stand.execute("check", "pass").await;
    // Nor while its namespace has something that the next project of its name would get.
    let refused = stand.delete("/v1/project/shop").await;
    assert!(refused.status == 409 && refused.problem().contains("cluster shop/one"), "{refused:?}");
    assert_eq!(stand.delete("/v1/clusters/shop/one").await.status, 204);
    let deleted = stand.delete("/v1/project/shop").await;
    let told = deleted.json()["message"].as_str().unwrap().to_owned();
    assert!(deleted.status == 200 && told.contains("1 schedule and 1 webhook subscription, "), "{told}");
    assert_eq!(stand.get("/v1/webhookSubscriptions/shop/slack").await.status, 404);
    assert_eq!(stand.get("/v1/schedules/shop/hourly").await.status, 404);
    // A project of the same name does not get them back, and nothing fires.
    stand.apply("shop", STAGES).await;
    assert_eq!(stand.get("/v1/schedules/shop").await.json()["totalCount"], 0);
    let fired = |stand: &Stand| stand.published().iter().filter(|event| event["data"]["project"] == "shop").count();
    let before = fired(&stand);
    stand.world.pass(Span::minutes(60));
    stand.work().await;
    assert_eq!(fired(&stand), before);
    assert_eq!(stand.get("/v1/schedules/other/hourly").await.json()["last"]["at"], "2026-11-20T13:00:00.000Z");
    assert_eq!(stand.get("/v1/webhookSubscriptions/other/slack").await.status, 200);
}

#[tokio::test]
async fn what_could_never_be_triggered_is_refused() {
    let stand = Stand::new();
    stand.apply("shop", STAGES).await;
    let cron = "cron: '0 * * * *'";
    for (text, status, says) in [
        (manifest("x", cron).replace("sequence: smoke", "sequence: smok"), 404, "smoke"),
        (manifest("x", cron).replace("stage: dev", "stage: dve"), 404, "dev"),
        (manifest("x", cron).replace("project: shop", "project: shoop"), 404, "shop"),
        (manifest("x", "at: 2026-11-20T12:00:00Z"), 400, "spec.at"),
        (manifest("x", "at: 2026-11-21T12:00:00Z\n  end: 2026-11-21T12:00:00Z"), 400, "spec.at: is not between `start` and `end`"),
        (manifest("x", "at: 2026-11-21T12:00:00Z\n  start: 2026-11-22"), 400, "spec.at: is not between `start` and `end`"),
        (manifest("x", &format!("{cron}\n  end: 2026-11-20T12:00:00Z")), 400, "spec.end: 2026-11-20T12:00:00.000Z has passed"),
        (manifest("x", &format!("{cron}\n  end: 2026-11-20T12:30:00Z")), 400, "spec.cron: does not come before `end`"),
        (manifest("x", "cron: '0 0 30 2 *'"), 400, "never comes"),
        (manifest("x", "cron: daily"), 400, "no cron expression"),
    ] {
        let answer = stand.post_text("/v1/apply", "application/yaml", text.clone()).await;
        assert_eq!((answer.status, answer.text.contains(says)), (status, true), "{text}: {answer:?}");
    }
    assert_eq!(stand.get("/v1/schedules/shop").await.json()["totalCount"], 0);
    // With the shipyard that it needs, in one text.
    let text = format!(
        "apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {{name: new}}\n---\napiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nmetadata: {{name: shipyard-new}}\nspec:\n  \
         stages:{STAGES}---\n{}",
        manifest("x", cron).replace("project: shop", "project: new")
    );
    let answer = stand.post_text("/v1/apply", "application/yaml", text).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}
