//! `GET /v1/wait`: one list of what waits, in the order in which people want to know it.

use crate::deployments::versions::{SOURCE, deploy, manifest as config, push, settle};
use crate::pipelines::applied::{begin, manual};
use crate::stand::{Answer, Stand};
use crate::webhooks::subscriptions::{SLACK, deliver_to};
use axum::body::Body;
use axum::http::Request;
use keelway_domain::time::Span;
use keelway_engine::item::Key;
use keelway_engine::ports::{Condition, Store, Write, Written};
use keelway_engine::protocol::dead_letter;
use keelway_wire::http::WaitPage;
use serde_json::{Value, json};

const STAGES: &str = "
    - name: dev
      sequences:
        - name: delivery
          tasks: [{name: deployment}]
    - name: prod
      sequences:
        - name: delivery
          tasks: [{name: approval, properties: {pass: manual}}, {name: deployment}]
    - name: late
      windows:
        - {kind: deny, from: 2026-11-20T12:00, until: 2026-11-20T18:00, zone: Europe/Berlin, reason: quarter end}
      sequences:
        - name: delivery
          tasks: [{name: deployment}]
";

async fn page(stand: &Stand, query: &str) -> Value {
    let answer = stand.get(&format!("/v1/wait{query}")).await;
    assert_eq!(answer.status, 200, "{query}: {answer:?}");
    let page = answer.json();
    let typed: WaitPage = serde_json::from_value(page.clone()).unwrap();
    assert_eq!(serde_json::to_value(&typed).unwrap(), page, "what clients are told to read is what is there");
    page
}

/// `group engine reason where`, a line each.
fn lines(page: &Value) -> Vec<String> {
    let line = |item: &Value| {
        let text = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
        let name = if item["engine"] == "message" { String::new() } else { text("name") };
        let place = [name, text("service"), text("stage"), text("environment")].into_iter().filter(|text| !text.is_empty());
        let place: Vec<String> = place.collect();
        format!("{} {} {} {}", text("group"), text("engine"), text("reason"), place.join("/"))
    };
    page["items"].as_array().unwrap().iter().map(line).collect()
}

async fn told(stand: &Stand, query: &str) -> Vec<String> {
    lines(&page(stand, query).await)
}

async fn with(stand: &Stand, path: &str, token: &str) -> Answer {
    stand.request(Request::get(path).header("x-token", token).body(Body::empty()).unwrap()).await
}

async fn letter(stand: &Stand) {
    let letter = dead_letter::DeadLetter {
        engine: "promotions".into(),
        queue: "q".into(),
        message_id: "m-1".into(),
        sent: stand.world.now(),
        body: "{}".into(),
        receives: 10,
        reason: None,
    };
    dead_letter::store(&stand.world.worker(7), &letter).await.unwrap();
}

/// Something that waits in every engine.
async fn everything() -> Stand {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    stand.deliver("prod", "cart", "cart:1").await;
    stand.decide("approve", "ann").await;
    stand.execute("deployment", "pass").await;
    // The time tells what has waited longer.
    let later = |stand: &Stand| stand.world.pass(Span::seconds(1));
    stand.deliver("prod", "cart", "cart:2").await;
    later(&stand);
    let paused = stand.deliver("dev", "mail", "mail:1").await;
    assert_eq!(stand.post(&format!("/v1/sequence/shop/{paused}/control"), &json!({"state": "pause"})).await.status, 200);
    stand.work().await;
    later(&stand);
    stand.deliver("late", "cart", "cart:1").await;
    later(&stand);
    stand.deliver("dev", "web", "web:1").await;
    stand.deliver("dev", "web", "web:2").await;
    later(&stand);
    begin(&mut stand, &manual("")).await;
    stand.manifests(&format!("{SOURCE}---\n{}---\n{}", config("cart", "x", true), config("idle", "x", true))).await;
    push(&mut stand, 1).await;
    later(&stand);
    deploy(&mut stand, 1, 1).await;
    later(&stand);
    let suspend = stand.post_while_working("/v1/deploymentConfigs/shop:idle/triggers/suspend", &json!({"by": "bob"})).await;
    assert_eq!(suspend.status, 202, "{suspend:?}");
    settle(&mut stand).await;
    stand.manifests(SLACK).await;
    deliver_to(&stand, "slack", "e", 410).await;
    later(&stand);
    letter(&stand).await;
    stand.world.pass(Span::seconds(20));
    settle(&mut stand).await;
    stand
}

#[tokio::test(start_paused = true)]
async fn persons_come_first_then_what_fails_then_what_waits() {
    let stand = everything().await;
    let expected = [
        "person sequence approval cart/prod",
        "person sequence resume mail/dev",
        "person pipeline ApprovalNeeded carts/staging",
        "person deployment TriggersSuspended idle",
        "failing sequence executor web/dev",
        "failing deployment Unclaimed idle",
        "failing deployment DeployerFailed cart",
        "failing webhook gone slack",
        "failing message deadLetter ",
        "waiting sequence window cart/late",
        "waiting sequence lane web/dev",
    ];
    assert_eq!(told(&stand, "").await, expected);
    let page = page(&stand, "").await;
    assert_eq!((&page["cut"], &page["nextPageKey"]), (&json!([]), &json!("0")));
    let approval = &page["items"][0];
    let seen = ["version", "from", "needs", "project", "sequence", "task"].map(|name| approval[name].as_str().unwrap_or("-"));
    assert_eq!(seen, ["cart:2", "cart:1", "approve:prod", "shop", "delivery", "approval"]);
    assert_eq!(approval["id"], stand.open("approval").await["id"]);
    let promotion = &page["items"][2];
    let seen = ["version", "from", "needs"].map(|name| promotion[name].as_str().unwrap_or("-"));
    assert_eq!((seen, &promotion["approval"]["needed"]), (["v2", "v1", "approve:staging"], &json!(1)));
    assert_eq!((&page["items"][3]["by"], &page["items"][3]["needs"]), (&json!("administrator (bob)"), &json!("trigger")));
    assert_eq!(page["items"][10]["behind"]["image"], "web:1");
    assert_eq!(page["items"][9]["window"], "quarter end");
}

/// Newer code may have written it, or it may be damaged.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_hides_nothing_else_and_is_told() {
    let damaged = [
        ("P#shop#carts", "!", "pipelines", "person pipeline ApprovalNeeded carts/staging"),
        ("PD#shop", "carts", "pipelines", "person pipeline ApprovalNeeded carts/staging"),
        ("D#shop#idle", "!", "deployments", "person deployment TriggersSuspended idle"),
    ];
    for (partition, sort, cut, missing) in damaged {
        let stand = everything().await;
        let before = told(&stand, "").await;
        let (ports, key) = (stand.world.worker(3), Key::new(partition, sort));
        let item = ports.get(&key).await.unwrap().unwrap_or_else(|| panic!("no {partition} {sort}"));
        let version = Condition::Version(item.version());
        assert_eq!(ports.write(&Write::Put(item.with("f", 99i64), version)).await.unwrap(), Written::Done);
        let after = page(&stand, "").await;
        let gone: Vec<&String> = before.iter().filter(|line| !lines(&after).contains(line)).collect();
        assert!(gone.iter().any(|line| *line == missing), "{gone:?}");
        let name = missing.rsplit(' ').next().unwrap().split('/').next().unwrap();
        assert!(gone.iter().all(|line| line.contains(name)), "{partition}: {gone:?}");
        assert_eq!(after["cut"], json!([cut]));
    }
}

#[tokio::test(start_paused = true)]
async fn each_item_is_on_one_page() {
    let stand = everything().await;
    let (mut all, mut key) = (vec![], String::new());
    while key != "0" {
        let page = page(&stand, &format!("?pageSize=2&nextPageKey={key}")).await;
        all.extend(lines(&page));
        key = page["nextPageKey"].as_str().unwrap().to_owned();
    }
    assert_eq!(all, told(&stand, "").await);
    for key in ["1", "x", "0000000000000000000000000#"] {
        assert_eq!(stand.get(&format!("/v1/wait?nextPageKey={}", key.replace('#', "%23"))).await.status, 400, "{key}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_is_shown_what_is_in_its_projects() {
    let mut stand = everything().await;
    stand.apply("blog", STAGES).await;
    let blog = stand.token("blog", &["read"], &["blog"]).await;
    let shop = stand.token("shop", &["read"], &["shop", "blog"]).await;
    let decides = stand.token("decides", &["approve:prod"], &[]).await;
    assert_eq!(lines(&with(&stand, "/v1/wait", &blog).await.json()), [""; 0]);
    // Dead letters belong to the installation.
    let mut all = told(&stand, "").await;
    all.retain(|line| !line.contains("deadLetter"));
    assert_eq!(lines(&with(&stand, "/v1/wait", &shop).await.json()), all);
    assert_eq!(told(&stand, "?project=shop").await, all);
    assert_eq!(told(&stand, "?project=blog").await, [""; 0]);
    assert_eq!(with(&stand, "/v1/wait?project=shop", &blog).await.status, 403);
    assert_eq!(with(&stand, "/v1/wait", &decides).await.status, 403);
    let unknown = stand.get("/v1/wait?project=shp").await;
    assert_eq!((unknown.status, unknown.problem().contains("did you mean \"shop\"")), (404, true), "{unknown:?}");
}

#[tokio::test(start_paused = true)]
async fn what_somebody_may_be_about_to_take_up_is_not_told() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    assert_eq!(told(&stand, "").await, [""; 0]);
    stand.deliver("dev", "web", "web:1").await;
    stand.world.pass(Span::seconds(14));
    assert_eq!(told(&stand, "").await, [""; 0]);
    stand.world.pass(Span::seconds(1));
    assert_eq!(told(&stand, "").await, ["failing sequence executor web/dev"]);
    let open = stand.open("deployment").await;
    let answer = |kind: &str| {
        json!({
            "type": format!("sh.keptn.event.deployment.{kind}"), "source": "e", "shkeptncontext": open["shkeptncontext"],
            "triggeredid": open["id"], "data": {"project": "shop", "stage": "dev", "service": "web"}
        })
    };
    assert_eq!(stand.post("/v1/event", &answer("started")).await.status, 200);
    stand.work().await;
    assert_eq!(told(&stand, "").await, [""; 0], "somebody is at work");
    stand.world.pass(Span::minutes(59));
    assert_eq!(told(&stand, "").await, [""; 0], "a long test is no fault");
    stand.world.pass(Span::minutes(1));
    assert_eq!(told(&stand, "").await, ["failing sequence answer web/dev"]);
    assert_eq!(page(&stand, "").await["items"][0]["by"], "e");
}

#[tokio::test(start_paused = true)]
async fn a_look_reads_what_is_open_and_no_history() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    let reads = async |stand: &Stand| {
        let requests = |stand: &Stand| stand.world.core().requests;
        let before = requests(stand);
        assert_eq!(stand.get("/v1/wait?project=shop").await.status, 200);
        let after = requests(stand);
        after.iter().sum::<u64>() - before.iter().sum::<u64>()
    };
    let first = reads(&stand).await;
    for n in 0..30 {
        stand.deliver("dev", "web", &format!("web:{n}")).await;
        stand.execute("deployment", "pass").await;
    }
    assert!(reads(&stand).await <= first, "nothing waits, whatever has ended");
    for n in 0..30 {
        stand.deliver("prod", &format!("s{n}"), "s:1").await;
    }
    let many = reads(&stand).await;
    assert!(many <= first + 4, "{many} and {first}: all are read together");
}

#[tokio::test(start_paused = true)]
async fn open_executions_are_listed_alone() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    for n in 0..5 {
        stand.deliver("dev", "web", &format!("web:{n}")).await;
        stand.execute("deployment", "pass").await;
    }
    let mut open = vec![];
    for service in ["a", "b", "c"] {
        open.push(stand.deliver("prod", service, "x:1").await);
    }
    let path = "/v1/sequence-execution?project=shop&open=true";
    let (mut seen, mut key) = (vec![], json!(0));
    loop {
        let page = stand.get(&format!("{path}&pageSize=2&nextPageKey={key}")).await.json();
        seen.extend(page["sequenceExecutions"].as_array().unwrap().iter().map(|x| x["shkeptncontext"].clone()));
        assert!(page["now"].is_string() && page["truncated"].is_null(), "{page}");
        key = page["nextPageKey"].clone();
        if key == json!(0) {
            break;
        }
    }
    let sorted = |mut all: Vec<String>| {
        all.sort();
        all
    };
    assert_eq!(sorted(seen.iter().map(|one| one.as_str().unwrap().to_owned()).collect()), sorted(open));
    let of = async |query: &str| stand.get(&format!("{path}&{query}")).await.json()["totalCount"].clone();
    assert_eq!(
        (of("service=a").await, of("stage=dev").await, of("status=waitingForApproval").await),
        (json!(1), json!(0), json!(3))
    );
    for query in ["open=1", "open=true&keptnContext=x"] {
        assert_eq!(stand.get(&format!("/v1/sequence-execution?project=shop&{query}")).await.status, 400, "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_open_approval_says_what_runs_there_now() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    stand.deliver("prod", "cart", "cart:1").await;
    assert_eq!(stand.open("approval").await["from"], Value::Null, "nothing runs there");
    stand.decide("approve", "ann").await;
    // The one that has deployed still holds the lane.
    let open = stand.open("deployment").await;
    stand.deliver("prod", "cart", "cart:2").await;
    stand.answer_to(&open, "deployment", "pass").await;
    assert_eq!(stand.open("approval").await["from"], "cart:1");
}
