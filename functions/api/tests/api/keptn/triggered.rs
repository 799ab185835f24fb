//! Open triggers, for executors that poll.

use crate::stand::Stand;
use keelway_domain::time::Span;
use keelway_engine::sequences::keys::TASK_SHARDS;
use serde_json::{Value, json};
use std::time::Duration;

const STAGES: &str = "
  - name: dev
    sequences:
    - name: delivery
      tasks: [{name: deployment}, {name: test}]
";

const PATH: &str = "/v1/event/triggered/deployment";

async fn stand(projects: &[&str]) -> Stand {
    let stand = Stand::new();
    for project in projects {
        stand.apply(project, STAGES).await;
    }
    stand
}

fn services(page: &Value) -> Vec<String> {
    let of = |event: &Value| event["data"]["service"].as_str().unwrap().to_owned();
    page["events"].as_array().unwrap().iter().map(of).collect()
}

/// All pages of a list, one after the other.
async fn pages(stand: &Stand, path: &str) -> Vec<String> {
    let (mut seen, mut key) = (vec![], "0".to_owned());
    while seen.len() < 100 {
        let page = stand.get(&format!("{path}&nextPageKey={key}")).await.json();
        seen.extend(services(&page));
        key = page["nextPageKey"].as_str().unwrap().to_owned();
        if key == "0" {
            break;
        }
    }
    seen
}

/// Requests so far: all, and those that were queries.
fn requests(stand: &Stand) -> (u64, u64) {
    let core = stand.world.core();
    (core.request_count(), core.requests[keelway_world::core::Method::Query as usize])
}

#[tokio::test]
async fn oldest_first_whatever_their_names() {
    let mut stand = stand(&["shop", "blog"]).await;
    // The names are in the opposite order of the times.
    for (project, service) in [("shop", "zoo"), ("shop", "web"), ("blog", "tax"), ("shop", "pay"), ("blog", "art")] {
        stand.trigger(project, "dev", "delivery", service).await;
        stand.world.pass(Span::seconds(1));
    }
    let all = ["zoo", "web", "tax", "pay", "art"];
    assert_eq!(services(&stand.get(PATH).await.json()), all);
    for size in 1..=5 {
        assert_eq!(pages(&stand, &format!("{PATH}?pageSize={size}")).await, all, "each once, with {size} on a page");
    }
    assert_eq!(pages(&stand, &format!("{PATH}?pageSize=1&project=shop")).await, ["zoo", "web", "pay"]);
    // Several tasks are one list.
    for result in ["pass", "pass"] {
        let oldest = stand.open("deployment").await;
        stand.answer_to(&oldest, "deployment", result).await;
        stand.world.pass(Span::seconds(1));
    }
    let both = stand.get("/v1/event/triggered/test,sh.keptn.event.deployment.triggered").await.json();
    assert_eq!(services(&both), ["tax", "pay", "art", "zoo", "web"]);
}

#[tokio::test]
async fn filters_and_refusals() {
    let mut stand = stand(&["shop", "blog"]).await;
    for (project, service) in [("shop", "cart"), ("shop", "api"), ("blog", "web"), ("shop", "pay")] {
        stand.trigger(project, "dev", "delivery", service).await;
        stand.world.pass(Span(1));
    }
    let found = async |query: &str| services(&stand.get(&format!("{PATH}?{query}")).await.json());
    assert_eq!(found("project=shop&service=cart").await, ["cart"]);
    assert_eq!(found("project=shop&stage=dev&service=pay").await, ["pay"]);
    assert_eq!(found("service=web").await, ["web"]);
    assert!(found("project=shop&stage=prod").await.is_empty());
    let all = stand.get("/v1/event/triggered/sh.keptn.event.deployment.triggered?project=shop").await.json();
    assert_eq!((services(&all).len(), &all["nextPageKey"]), (3, &json!("0")));
    let id = all["events"][1]["id"].as_str().unwrap();
    assert_eq!(found(&format!("project=shop&eventID={id}")).await, ["api"]);
    assert!(found("project=shop&eventID=x").await.is_empty());
    assert_eq!(stand.get("/v1/event/triggered/test?project=shop").await.json()["events"], json!([]));
    assert_eq!(stand.get(&format!("{PATH}?project=none")).await.status, 404);
    let tasks: Vec<String> = (0..11).map(|n| format!("task-{n}")).collect();
    for (path, field) in [
        ("/v1/event/triggered/sh.keptn.event.dev.delivery.triggered".to_owned(), "type: "),
        (format!("/v1/event/triggered/{}", tasks.join(",")), "type: "),
        ("/v1/event/triggered/deployment,".to_owned(), "type: "),
        (format!("{PATH}?nextPageKey=17"), "nextPageKey: "),
        (format!("{PATH}?wait=21"), "wait: "),
        (format!("{PATH}?wait=soon"), "wait: "),
        (format!("{PATH}?wait=5&nextPageKey=1795000000000~shop"), "wait: "),
    ] {
        let answer = stand.get(&path).await;
        assert!(answer.status == 400 && answer.problem().starts_with(field), "{path}: {answer:?}");
    }

    // An index that lags shows nothing that is over.
    stand.world.core().table.stale_indexes = true;
    let open = stand.get(&format!("{PATH}?project=blog")).await.json()["events"][0].clone();
    stand.answer_to(&open, "deployment", "fail").await;
    assert_eq!(stand.get(&format!("{PATH}?project=blog")).await.json()["events"], json!([]));
}

#[tokio::test]
async fn a_look_at_all_projects_costs_the_same_however_many_there_are() {
    let names: Vec<String> = (0..60).map(|n| format!("project-{n}")).collect();
    let mut stand = stand(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let cost = async |stand: &Stand, path: &str| {
        let before = requests(stand);
        assert_eq!(stand.get(path).await.status, 200);
        let after = requests(stand);
        (after.0 - before.0, after.1 - before.1)
    };
    let shards = u64::from(TASK_SHARDS);
    assert_eq!(cost(&stand, PATH).await, (shards, shards));
    for name in &names {
        stand.trigger(name, "dev", "delivery", "cart").await;
    }
    // The executions and their records: one request each.
    assert_eq!(cost(&stand, &format!("{PATH}?pageSize=100")).await, (shards + 2, shards));
    // A project: that it exists, one query, what is open.
    assert_eq!(cost(&stand, &format!("{PATH}?project=project-7")).await, (4, 1));
    assert_eq!(stand.get(&format!("{PATH}?pageSize=100")).await.json()["totalCount"], 60);
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_answered_when_something_else_is_open() {
    let mut stand = stand(&["shop"]).await;
    let page = stand.get(&format!("{PATH}?project=shop")).await.json();
    let nothing = page["fingerprint"].as_str().unwrap().to_owned();

    // Nothing comes: an empty answer, after as long as was asked for, from queries of the index alone.
    let (began, before) = (tokio::time::Instant::now(), requests(&stand));
    let page = stand.get(&format!("{PATH}?project=shop&wait=20")).await.json();
    assert_eq!((&page["events"], &page["fingerprint"]), (&json!([]), &json!(nothing)));
    assert_eq!(began.elapsed().as_secs(), 20);
    let after = requests(&stand);
    let (all, queries) = (after.0 - before.0, after.1 - before.1);
    assert!(queries <= 50 && all == queries, "{queries} queries, {all} requests: the project is known for a minute");

    // A trigger comes while somebody waits.
    let app = stand.app();
    let waiting = tokio::spawn(async move { Stand::get_from(app, &format!("{PATH}?project=shop&wait=20")).await });
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!waiting.is_finished());
    let began = tokio::time::Instant::now();
    stand.trigger("shop", "dev", "delivery", "cart").await;
    let page = waiting.await.unwrap().json();
    assert_eq!(services(&page), ["cart"]);
    assert!(began.elapsed() < Duration::from_secs(1));
    let one = page["fingerprint"].as_str().unwrap().to_owned();

    // What is known is no news; another trigger is, and so is the end of one.
    let path = format!("{PATH}?project=shop&unless={one}");
    assert_eq!(stand.get(&path).await.json()["events"], json!([]));
    assert_eq!(stand.get(&format!("{path}&wait=3")).await.json()["fingerprint"], json!(one));
    // Triggers of one millisecond are in no order of names.
    stand.world.pass(Span(1));
    stand.trigger("shop", "dev", "delivery", "pay").await;
    let page = stand.get(&format!("{path}&wait=3")).await.json();
    assert_eq!(services(&page), ["cart", "pay"]);
    let open = page["events"][0].clone();
    stand.answer_to(&open, "deployment", "pass").await;
    let path = format!("{PATH}?project=shop&wait=3&unless={}", page["fingerprint"].as_str().unwrap());
    assert_eq!(services(&stand.get(&path).await.json()), ["pay"]);
}

/// What belongs to others neither comes between two pages nor is told by their keys, nor is it news.
#[tokio::test]
async fn a_limited_token_pages_and_waits_as_if_it_were_alone() {
    let mut stand = stand(&["shop", "hidden"]).await;
    stand.token("tester", &["execute:deployment"], &["shop"]).await;
    let trigger = async |stand: &mut Stand, project: &str, n: usize| {
        stand.like("");
        stand.trigger(project, "dev", "delivery", &format!("{project}-{n}")).await;
        stand.world.pass(Span(1));
        stand.like("tester");
    };
    for n in 0..3 {
        trigger(&mut stand, "hidden", 2 * n).await;
        trigger(&mut stand, "shop", n).await;
        trigger(&mut stand, "hidden", 2 * n + 1).await;
    }
    let (mut key, mut seen) = ("0".to_owned(), vec![]);
    loop {
        let page = stand.get(&format!("{PATH}?pageSize=1&nextPageKey={key}")).await;
        assert!(!page.text.contains("hidden"), "{}", page.text);
        let page = page.json();
        assert_eq!(services(&page).len(), 1, "no page is empty");
        seen.extend(services(&page));
        key = page["nextPageKey"].as_str().unwrap().to_owned();
        if key == "0" {
            break;
        }
        let (time, hash) = key.split_once('~').unwrap();
        assert_eq!((time.len(), hash.len()), (13, 13), "{key}");
    }
    assert_eq!(seen, ["shop-0", "shop-1", "shop-2"]);

    let print = async |stand: &Stand| stand.get(PATH).await.json()["fingerprint"].clone();
    let known = print(&stand).await;
    trigger(&mut stand, "hidden", 9).await;
    assert_eq!(print(&stand).await, known, "others' work is no news");
    trigger(&mut stand, "shop", 9).await;
    assert_ne!(print(&stand).await, known);
}
