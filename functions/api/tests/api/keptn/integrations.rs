//! Executors that register themselves as Keptn's do.

use crate::stand::Stand;
use keelway_domain::time::Span;
use serde_json::{Value, json};

const PATH: &str = "/v1/uniform/registration";

/// What Keptn's Go library sends outside a cluster.
fn executor(name: &str, events: &[&str]) -> Value {
    let filter = json!({"projects": null, "stages": null, "services": null});
    let subscription = |event: &&str| json!({"id": "", "event": format!("sh.keptn.event.{event}.triggered"), "filter": filter});
    let subscriptions: Vec<Value> = events.iter().map(subscription).collect();
    json!({
        "id": "", "name": name, "subscriptions": subscriptions,
        "metadata": {
            "hostname": "", "integrationversion": "1.2", "distributorversion": "0.15.0", "location": "local",
            "kubernetesmetadata": {"namespace": "", "podname": "", "deploymentname": name}, "lastseen": "0001-01-01T00:00:00Z"
        }
    })
}

fn requests(stand: &Stand) -> u64 {
    stand.world.core().request_count()
}

async fn ping(stand: &Stand, id: &str) -> Value {
    let answer = stand.put(&format!("{PATH}/{id}/ping"), &Value::Null).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

#[tokio::test]
async fn an_executor_registers_pings_and_gets_its_subscriptions_back() {
    let stand = Stand::new();
    let new = stand.post(PATH, &executor("deployer", &["deployment", "release"])).await;
    assert_eq!(new.status, 201, "{new:?}");
    let id = new.json()["id"].as_str().unwrap().to_owned();
    // printf 'deployer--' | sha1sum
    assert_eq!(id, "9bcfb0a487d37ff4c16c068747f9bf273f2bf37b");
    let pinged = ping(&stand, &id).await;
    assert_eq!((&pinged["name"], &pinged["metadata"]["integrationversion"]), (&json!("deployer"), &json!("1.2")));
    let subscriptions = pinged["subscriptions"].as_array().unwrap().clone();
    assert_eq!(subscriptions[1]["event"], "sh.keptn.event.release.triggered");
    assert_eq!(subscriptions[1]["filter"], json!({"projects": [], "stages": [], "services": []}));
    assert!(subscriptions.iter().all(|one| !one["id"].as_str().unwrap().is_empty()), "{subscriptions:?}");
    assert_ne!(subscriptions[0]["id"], subscriptions[1]["id"]);

    // Started again, on another host and with other subscriptions, it is the same one and keeps those it has.
    let mut again = executor("deployer", &["other"]);
    again["metadata"]["hostname"] = json!("elsewhere");
    let again = stand.post(PATH, &again).await;
    assert_eq!((again.status, &again.json()["id"]), (200, &json!(id)));
    assert_eq!(ping(&stand, &id).await["subscriptions"], json!(subscriptions));
    assert_eq!(stand.post(PATH, &executor("tester", &["test"])).await.status, 201);
    let all = stand.get(PATH).await.json();
    assert_eq!(all.as_array().unwrap().len(), 2, "{all}");
    let named = stand.get(&format!("{PATH}?name=tester&project=")).await.json();
    assert_eq!((named.as_array().unwrap().len(), &named[0]["name"]), (1, &json!("tester")));

    assert_eq!(stand.delete(&format!("{PATH}/{id}")).await.status, 200);
    let gone = stand.put(&format!("{PATH}/{id}/ping"), &Value::Null).await;
    assert_eq!((gone.status, gone.problem().contains("register it (again)")), (404, true), "{gone:?}");
    assert_eq!(stand.delete(&format!("{PATH}/{id}")).await.status, 404);
    let unnamed = stand.post(PATH, &executor("", &["test"])).await;
    assert_eq!((unnamed.status, unnamed.problem()), (400, "name: is missing: say what the integration is called".into()));
}

#[tokio::test]
async fn pings_are_off_the_table_except_once_a_minute() {
    let stand = Stand::new();
    let id = stand.post(PATH, &executor("deployer", &["deployment"])).await.json()["id"].as_str().unwrap().to_owned();
    let first = ping(&stand, &id).await["metadata"]["lastseen"].clone();
    let before = requests(&stand);
    for _ in 0..11 {
        stand.world.pass(Span::seconds(5));
        assert_eq!(ping(&stand, &id).await["metadata"]["lastseen"], first);
    }
    assert_eq!(requests(&stand), before, "eleven pings in less than a minute");
    stand.world.pass(Span::seconds(5));
    let later = ping(&stand, &id).await["metadata"]["lastseen"].clone();
    assert_ne!(first, later);
    assert_eq!(requests(&stand) - before, 2, "one read and one write a minute");
    assert_eq!(stand.get(PATH).await.json()[0]["metadata"]["lastseen"], later);
    // Silent for two days, it is forgotten, and registers anew.
    stand.world.pass(Span::minutes(48 * 60 + 1));
    assert_eq!(stand.get(PATH).await.json(), json!([]));
    let again = stand.post(PATH, &executor("deployer", &["other"])).await;
    assert_eq!((again.status, again.json()["id"].as_str()), (201, Some(id.as_str())));
    assert_eq!(ping(&stand, &id).await["subscriptions"][0]["event"], "sh.keptn.event.other.triggered");
}

#[tokio::test]
async fn subscriptions_come_and_go() {
    let stand = Stand::new();
    let id = stand.post(PATH, &executor("deployer", &[])).await.json()["id"].as_str().unwrap().to_owned();
    let path = format!("{PATH}/{id}/subscription");
    let wanted = json!({"event": "sh.keptn.event.test.triggered", "filter": {"projects": ["shop"], "stages": ["dev"]}});
    let new = stand.post(&path, &wanted).await;
    assert_eq!(new.status, 201, "{new:?}");
    let one = new.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(stand.post(&path, &wanted).await.json()["id"], json!(one), "the same again is the same one");
    assert_eq!(ping(&stand, &id).await["subscriptions"][0]["filter"]["projects"], json!(["shop"]));
    let other = json!({"event": "sh.keptn.event.test.triggered", "filter": {"projects": ["blog"]}});
    assert_eq!(stand.put(&format!("{path}/{one}"), &other).await.json()["id"], json!(one));
    let shown = stand.get(&format!("{path}/{one}")).await.json();
    assert_eq!(shown["filter"], json!({"projects": ["blog"], "stages": [], "services": []}));
    assert_eq!(stand.get(&path).await.json(), json!([shown]));
    assert_eq!(stand.get(&format!("{PATH}?project=blog")).await.json().as_array().unwrap().len(), 1);
    assert_eq!(stand.get(&format!("{PATH}?project=shop")).await.json(), json!([]));
    assert_eq!(stand.delete(&format!("{path}/{one}")).await.status, 200);
    assert_eq!(ping(&stand, &id).await["subscriptions"], json!([]));
    for answer in [
        stand.delete(&format!("{path}/{one}")).await,
        stand.get(&format!("{path}/{one}")).await,
        stand.put(&format!("{path}/{one}"), &other).await,
    ] {
        assert_eq!((answer.status, answer.problem().contains("subscription")), (404, true), "{answer:?}");
    }
    let many: Vec<Value> = (0..101).map(|n| json!({"event": format!("sh.keptn.event.t{n}.triggered")})).collect();
    let mut sent = executor("many", &[]);
    sent["subscriptions"] = json!(many);
    assert_eq!(stand.post(PATH, &sent).await.status, 413);
    assert_eq!(stand.post(&path, &json!({"filter": {}})).await.status, 400);
}

#[tokio::test]
async fn what_is_logged_is_listed_by_pages_and_deleted() {
    let stand = Stand::new();
    let entry = |integration: &str, n: usize| {
        json!({
            "integrationid": integration, "message": format!("error {n}"), "time": "2026-11-20T12:00:00Z", "shkeptncontext": "c",
            "task": "test", "triggeredid": "t", "gitcommitid": ""
        })
    };
    for n in 0..3 {
        let logs = json!({"logs": [entry("a", n), entry("b", n)]});
        assert_eq!(stand.post("/v1/log", &logs).await.status, 200);
        stand.world.pass(Span::seconds(1));
    }
    let messages = |answer: &Value| -> Vec<String> {
        answer["logs"].as_array().unwrap().iter().map(|entry| entry["message"].as_str().unwrap().to_owned()).collect()
    };
    let of_a = stand.get("/v1/log?integrationId=a&pageSize=10").await.json();
    assert_eq!((messages(&of_a), &of_a["nextPageKey"]), (vec!["error 2".into(), "error 1".into(), "error 0".into()], &json!(0)));
    for size in 1..=7 {
        let (mut all, mut key) = (vec![], 0);
        loop {
            let page = stand.get(&format!("/v1/log?pageSize={size}&nextPageKey={key}")).await.json();
            all.extend(messages(&page));
            key = page["nextPageKey"].as_i64().unwrap();
            if key == 0 {
                break;
            }
        }
        assert_eq!(all.len(), 6, "pages of {size}: {all:?}");
    }
    let before = stand.get("/v1/log?beforeTime=2026-11-20T12:00:01Z").await.json();
    assert_eq!(messages(&before), ["error 0", "error 0"]);
    let deleted = stand.delete("/v1/log?integrationId=a&fromTime=2026-11-20T12:00:00.500Z").await;
    assert_eq!((deleted.status, deleted.json()), (200, json!({"deleted": 2})));
    assert_eq!(messages(&stand.get("/v1/log?integrationId=a").await.json()), ["error 0"]);
    assert_eq!(stand.delete("/v1/log").await.json(), json!({"deleted": 4}));
    let large = json!({"logs": [{"integrationid": "a", "message": "x".repeat(70_000)}]});
    assert_eq!(stand.post("/v1/log", &large).await.status, 413);
    let many = json!({"logs": vec![entry("a", 1); 101]});
    assert_eq!(stand.post("/v1/log", &many).await.status, 413);
}
