//! Tokens that are limited to projects or tasks: they reach nothing else, and learn nothing of it.

use crate::access::tokens::{STAGES, event};
use crate::stand::Stand;
use keelway_domain::time::Span;
use keelway_engine::keptn::integrations::{Integration, Subscription, Who};
use keelway_world::exec::block_on;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The project that Keptn's clients create and update stands in the body.
#[tokio::test]
async fn keptns_project_routes_look_at_the_project_in_the_body() {
    let mut stand = Stand::new();
    let other = "{name: dev, sequences: [{name: delivery, tasks: [{name: test}]}]}";
    stand.apply("other", &format!("    - {other}\n")).await;
    stand.token("team", &["administer"], &["shop"]).await;
    stand.token("reader", &["read", "trigger"], &["shop"]).await;
    let shipyard = |n: u32| {
        let text =
            format!("apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nmetadata: {{name: s}}\nspec: {{stages: [{other}]}}\n# {n}\n");
        base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text)
    };
    for (who, name, status) in [
        ("reader", "shop", 403),
        ("team", "other", 403),
        // Whether it exists is not told either.
        ("team", "othe", 403),
        ("team", "SHOP", 400),
        ("team", "shop", 201),
        ("team", "shop", 409),
    ] {
        let answer = stand.like(who).post("/v1/project", &json!({"name": name, "shipyard": shipyard(1)})).await;
        assert_eq!(answer.status, status, "{who} creates {name}: {answer:?}");
    }
    for (who, name, status) in [("reader", "shop", 403), ("team", "other", 403), ("team", "othe", 403), ("team", "shop", 200)] {
        let answer = stand.like(who).put("/v1/project", &json!({"name": name, "shipyard": shipyard(2)})).await;
        assert_eq!(answer.status, status, "{who} updates {name}: {answer:?}");
        assert!(status != 403 || who == "reader" || answer.problem().contains(&format!("in project {name:?}")), "{answer:?}");
    }
    // Without a shipyard, nothing is changed.
    assert_eq!(stand.put("/v1/project", &json!({"name": "shop"})).await.status, 200);
    stand.put("/v1/project/shop/resource/shipyard.yaml", &json!({"resourceContent": shipyard(3)})).await;
    let revisions = stand.get("/v1/project/shop/shipyard/revisions").await.json();
    let by: Vec<&str> = revisions["items"].as_array().unwrap().iter().map(|one| one["by"].as_str().unwrap_or("-")).collect();
    assert_eq!(by, ["token:team"; 3], "who applied it is known, whatever the request");
    let audit = stand.like("").get("/v1/audit?action=apply&project=shop").await.json();
    assert_eq!(audit["totalCount"], 3, "{audit}");
    assert_eq!(stand.get("/v1/audit?action=apply&project=other").await.json()["totalCount"], 1);
}

const PLACES: [&str; 6] = ["qaqa", "mine", "mmm", "hidden", "yours", "zzz"];

/// A list by pages of one entry, as `namespace/name`. No page names what belongs to others.
async fn listed(stand: &Stand, path: &str) -> Vec<String> {
    let (mut names, mut key) = (vec![], String::new());
    while key != "0" {
        let join = if path.contains('?') { '&' } else { '?' };
        let page = stand.get(&format!("{path}{join}pageSize=1&nextPageKey={key}")).await;
        assert_eq!(page.status, 200, "{path}: {page:?}");
        for place in PLACES.iter().filter(|place| !["mine", "yours"].contains(place)) {
            assert!(!page.text.contains(place), "{path} tells of {place}: {}", page.text);
        }
        let json = page.json();
        key = json["nextPageKey"].as_str().unwrap().replace('#', "%23").replace('/', "%2F");
        let member = json.as_object().unwrap().values().find_map(Value::as_array).unwrap().clone();
        let name = |one: &Value| {
            let of = [&one["projectName"], &one["namespace"], &one["data"]["project"]].into_iter().find_map(Value::as_str);
            format!("{}/{}", of.unwrap_or_default(), one["name"].as_str().unwrap_or_default())
        };
        names.extend(member.iter().map(name));
    }
    names
}

/// Neither an entry, nor the key of a page, nor a refusal names what belongs to others.
#[tokio::test(start_paused = true)]
async fn lists_tell_nothing_of_other_projects() {
    const CONFIG: &str = "apiVersion: apps.openshift.io/v1\nkind: DeploymentConfig\nmetadata: {name: NAME, namespace: shop}\nspec:\n  triggers: [{type: \
                          ConfigChange}]\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      containers: [{name: web, image: 'registry.test/web:1'}]\n";
    let mut stand = Stand::new();
    for place in PLACES {
        stand.apply(place, STAGES).await;
        stand.trigger(place, "dev", "delivery", "svc").await;
        for name in ["one", "two"] {
            let cluster = format!(
                "apiVersion: keelway.dev/v1\nkind: Cluster\nmetadata: {{name: {name}, namespace: {place}}}\nspec:\n  server: https://10.0.0.1\n  \
                 secretRef: {{name: t}}\n"
            );
            let pipeline = crate::pipelines::applied::manifest(name, crate::pipelines::applied::BY_REQUEST);
            for text in [cluster, pipeline, CONFIG.replace("NAME", name)] {
                stand.manifests(&text.replace("namespace: shop", &format!("namespace: {place}"))).await;
            }
        }
    }
    stand.work().await;
    stand.world.pass(Span::seconds(10));
    stand.work().await;
    stand.token("limited", &["read"], &["mine", "yours"]).await;
    stand.like("limited");
    assert_eq!(listed(&stand, "/v1/project").await, ["mine/", "yours/"]);
    // Those of one millisecond come in any order.
    let mut open = listed(&stand, "/v1/event/triggered/deployment").await;
    open.sort_unstable();
    assert_eq!(open, ["mine/", "yours/"]);
    for path in ["/v1/pipelines", "/v1/clusters", "/v1/deploymentConfigs"] {
        assert_eq!(listed(&stand, path).await, ["mine/one", "mine/two", "yours/one", "yours/two"], "{path}");
    }
    let versions = ["mine/one-1", "mine/two-1", "yours/one-1", "yours/two-1"];
    assert_eq!(listed(&stand, "/v1/deployments?status=New").await, versions);
    // Nobody claims them, so all of them fail, and most of them in the same millisecond.
    stand.world.pass(Span::minutes(30));
    stand.work().await;
    assert_eq!(listed(&stand, "/v1/deployments?status=New").await, [""; 0]);
    let mut ended = listed(&stand, "/v1/deployments").await;
    ended.sort();
    assert_eq!(ended, versions);
    for path in [
        "/v1/pipelines?namespace=hidden",
        "/v1/clusters?namespace=hidden",
        "/v1/deploymentConfigs?namespace=hidden",
        "/v1/event?project=hidde",
        "/v1/event/triggered/deployment?project=hidde",
        "/v1/sequence-execution?project=hidde",
    ] {
        let answer = stand.get(path).await;
        assert_eq!(answer.status, 403, "{path}: {answer:?}");
        let told = answer.problem();
        assert!(!told.contains("zzz") && (path.ends_with("hidden") || !told.contains("hidden")), "{path}: {told}");
    }
    // A page key is data from outside.
    for path in ["/v1/pipelines", "/v1/deploymentConfigs", "/v1/clusters", "/v1/project", "/v1/artifactSources"] {
        for key in ["hidden%2Fa", "hidden%2F", "hidde%2Fa", "a%2Fa"] {
            let answer = stand.get(&format!("{path}?nextPageKey={key}")).await;
            assert!(!answer.text.contains("\"hidden\""), "{path} {key}: {answer:?}");
        }
    }
    let unknown = stand.get("/v1/clusters/mine/none").await;
    assert!(
        unknown.status == 404 && unknown.text.contains("there are one, two") && !unknown.text.contains("hidden"),
        "{unknown:?}"
    );
}

/// Contexts of two projects may have the same name: each sees their own.
#[tokio::test]
async fn a_context_without_its_project_is_looked_for_where_the_token_is_valid() {
    let mut stand = Stand::new();
    for project in ["first", "second"] {
        stand.apply(project, STAGES).await;
        let data = json!({"project": project, "stage": "dev", "service": "svc"});
        let event = json!({"type": "sh.keptn.event.dev.delivery.triggered", "source": "t", "shkeptncontext": "same", "data": data});
        stand.trigger_with(event).await;
    }
    for (name, scope) in [("reader", "read"), ("worker", "execute:deployment")] {
        stand.token(name, &[scope], &["second"]).await;
        let events = stand.like(name).get("/v1/event?keptnContext=same").await.json();
        let of: BTreeSet<&str> =
            events["events"].as_array().unwrap().iter().map(|event| event["data"]["project"].as_str().unwrap()).collect();
        assert_eq!(of, BTreeSet::from(["second"]), "{name}: {events}");
        stand.like("");
    }
}

/// Executors of others are neither spoken for nor told of.
#[tokio::test]
async fn an_executor_speaks_for_itself() {
    const PATH: &str = "/v1/uniform/registration";
    let mut stand = Stand::new();
    let executor = |name: &str, task: &str, projects: &[&str]| {
        let filter = json!({"projects": projects, "stages": [], "services": []});
        json!({"name": name, "metadata": {}, "subscriptions": [{"event": format!("sh.keptn.event.{task}.triggered"), "filter": filter}]})
    };
    stand.token("tester", &["execute:test"], &["shop"]).await;
    stand.token("deployer", &["execute:deployment"], &["other"]).await;
    let refused = stand.like("tester").post(PATH, &executor("d", "deployment", &["other"])).await;
    assert!(refused.status == 403 && refused.problem().contains("execute:deployment"), "{refused:?}");
    assert_eq!(stand.post(PATH, &executor("t", "test", &["shop", "other"])).await.status, 403, "its right ends at shop");
    assert_eq!(stand.post(PATH, &executor("t", "test", &["shop"])).await.status, 201);
    let id = stand.like("deployer").post(PATH, &executor("d", "deployment", &["other"])).await.json()["id"].clone();
    let of = format!("{PATH}/{}", id.as_str().unwrap());
    let subscription = stand.get(&format!("{of}/subscription")).await.json()[0]["id"].as_str().unwrap().to_owned();

    let new = json!({"event": "sh.keptn.event.test.triggered", "filter": {"projects": [], "stages": [], "services": []}});
    let one = format!("{of}/subscription/{subscription}");
    stand.like("tester");
    let answers = [
        stand.delete(&of).await,
        stand.post(&format!("{of}/subscription"), &new).await,
        stand.put(&one, &new).await,
        stand.delete(&one).await,
    ];
    assert!(answers.iter().all(|answer| answer.status == 403), "{answers:?}");
    assert_eq!(stand.get(&one).await.status, 404);
    let listed = stand.get(PATH).await.json();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["name"]), (1, &json!("t")), "{listed}");
    assert_eq!(listed[0]["subscriptions"][0]["filter"]["projects"], json!(["shop"]), "{listed}");
    let mine = stand.post(PATH, &executor("t", "test", &["shop"])).await;
    assert_eq!(mine.status, 200, "the same one again: {mine:?}");
    let log = |id: &Value| json!({"logs": [{"integrationid": id, "message": "of a test"}]});
    assert_eq!(stand.post("/v1/log", &log(&mine.json()["id"])).await.status, 200);
    assert_eq!(stand.post("/v1/log", &log(&id)).await.status, 403, "nobody logs in the name of others");
    assert_eq!(stand.get("/v1/log").await.status, 403, "what executors of all projects log is for those who see all projects");
    assert_eq!(stand.like("").get("/v1/log").await.json()["totalCount"], 1);
    assert_eq!(stand.like("deployer").delete(&of).await.status, 200);
}

/// A registration belongs to who made it, though others may carry out the same task in the same project, and call theirs the same.
#[tokio::test]
async fn a_registration_belongs_to_who_made_it() {
    const PATH: &str = "/v1/uniform/registration";
    let mut stand = Stand::new();
    for (name, projects) in [("one", &["shop"][..]), ("two", &["shop"]), ("both", &["shop", "blog"])] {
        stand.token(name, &["execute:test"], projects).await;
    }
    stand.token("head", &["administer"], &["shop"]).await;
    let executor = |projects: &[&str]| {
        let subscription = json!({"event": "sh.keptn.event.test.triggered", "filter": {"projects": projects}});
        json!({"name": "tester", "metadata": {"hostname": "h"}, "subscriptions": [subscription]})
    };
    // A subscription needs the scope wherever it reaches.
    for (who, projects, lacks) in
        [("one", &[][..], "in all projects"), ("one", &["shop", "blog"], "in project \"blog\""), ("both", &[], "in all projects")]
    {
        let refused = stand.like(who).post(PATH, &executor(projects)).await;
        assert!(refused.status == 403 && refused.problem().contains(lacks), "{refused:?}");
    }
    let first = stand.like("one").post(PATH, &executor(&["shop"])).await.json()["id"].as_str().unwrap().to_owned();
    let second = stand.like("two").post(PATH, &executor(&["shop"])).await;
    assert_eq!(second.status, 201, "{second:?}");
    assert_ne!(second.json()["id"], json!(first));
    let again = stand.like("one").post(PATH, &executor(&["shop"])).await;
    assert_eq!((again.status, again.json()["id"].as_str()), (200, Some(first.as_str())));

    let of = format!("{PATH}/{first}");
    let everywhere = json!({"event": "sh.keptn.event.test.triggered", "filter": {"projects": ["shop"], "stages": ["dev"]}});
    let log = json!({"logs": [{"integrationid": first, "message": "m"}]});
    // Also while the function remembers a ping.
    for pinged in [false, true] {
        if pinged {
            assert_eq!(stand.like("one").put(&format!("{of}/ping"), &Value::Null).await.status, 200);
        }
        stand.like("two");
        let refused = [
            stand.put(&format!("{of}/ping"), &Value::Null).await,
            stand.post(&format!("{of}/subscription"), &everywhere).await,
            stand.post("/v1/log", &log).await,
            stand.delete(&of).await,
        ];
        assert!(refused.iter().all(|answer| answer.status == 403), "{refused:?}");
        assert!(refused[0].problem().contains("the token that registered"), "{refused:?}");
    }
    assert_eq!(stand.like("one").post(&format!("{of}/subscription"), &everywhere).await.status, 201);
    assert_eq!(stand.like("head").put(&format!("{of}/ping"), &Value::Null).await.status, 200);
    assert_eq!(stand.delete(&of).await.status, 200);
}

/// What was registered before owners were kept belongs to whoever reaches all that it names.
#[tokio::test]
async fn a_registration_without_an_owner_belongs_to_those_of_its_projects() {
    let mut stand = Stand::new();
    stand.token("one", &["execute:test"], &["shop"]).await;
    let engine = &stand.engine;
    let old = |name: &str, projects: Option<&[&str]>| {
        let projects = projects.map(|all| all.iter().map(|name| (*name).to_owned()).collect());
        let of = |projects| Subscription { event: "sh.keptn.event.test.triggered".into(), projects, ..Subscription::default() };
        let who = Who { name: name.into(), ..Who::default() };
        Integration { who, subscriptions: projects.map(of).into_iter().collect(), ..Integration::default() }
    };
    let mut ids = vec![];
    for one in [old("mine", Some(&["shop"])), old("ours", Some(&["shop", "blog"])), old("all", Some(&[])), old("none", None)] {
        ids.push(block_on(engine.integrations().register(&one, |_| true)).unwrap().0);
    }
    stand.like("one");
    let mut answers = vec![];
    for id in ids {
        answers.push(stand.put(&format!("/v1/uniform/registration/{id}/ping"), &Value::Null).await.status);
    }
    assert_eq!(answers, [200, 403, 403, 403]);
}

/// Not even those whose own project does not exist are told which others there are.
#[tokio::test]
async fn an_unknown_project_is_refused_without_the_names_of_others() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    stand.token("early", &["administer"], &["shoop"]).await;
    let manifest =
        "apiVersion: spec.keptn.sh/0.2.3\nkind: Shipyard\nmetadata: {name: shipyard-shoop}\nspec: {stages: [{name: dev}]}\n";
    let trigger = event("dev.delivery.triggered", None, "shoop", "dev");
    for who in ["", "early"] {
        stand.like(who);
        let answers = [
            stand.get("/v1/project/shoop").await,
            stand.post("/v1/event", &trigger).await,
            stand.post_text("/v1/apply", "application/yaml", manifest.into()).await,
            stand.post_text("/v1/event", "application/cloudevents-batch+json", json!([trigger]).to_string()).await,
        ];
        for answer in answers {
            let told = answer.text.replace("shoop", "");
            assert_eq!((answer.status, told.contains("shop")), (404, who.is_empty()), "{who:?}: {answer:?}");
        }
    }
}

/// Whoever waits for work that the token does not allow would wait for ever.
#[tokio::test]
async fn a_token_that_does_not_fit_is_refused_and_the_refusal_names_what_is_missing() {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    stand.token("quick", &["execute:quick"], &["shop"]).await;
    stand.token("reader", &["read"], &["shop"]).await;
    stand.like("quick");
    for (path, missing) in [
        ("/v1/event/triggered/test", "execute:test"),
        ("/v1/event/triggered/sh.keptn.event.test.triggered", "execute:test"),
        ("/v1/deployments?status=New", "execute:deployment"),
        ("/v1/deployments", "execute:deployment"),
    ] {
        let refused = stand.get(path).await;
        assert!(refused.status == 403 && refused.problem().contains(&format!("this needs {missing}, and")), "{path}: {refused:?}");
    }
    assert_eq!(stand.get("/v1/event/triggered/quick").await.status, 200);
    stand.like("reader");
    for path in ["/v1/event/triggered/test", "/v1/deployments?status=New"] {
        assert_eq!(stand.get(path).await.status, 200, "{path}");
    }
    // A token of this project alone would do.
    let refused = stand.post_text("/v1/apply", "application/yaml", "kind: Shipyard".into()).await;
    assert!(refused.status == 403 && refused.problem().contains("this needs administer, and"), "{refused:?}");
}
