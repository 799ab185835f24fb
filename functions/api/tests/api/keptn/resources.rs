//! Resources as Keptn's clients write and read them.

use crate::stand::{Answer, Stand};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use keelway_domain::time::Span;
use keelway_engine::item::Key;
use keelway_engine::resources::{MAX_AT_ONCE, MAX_CONTENT_BYTES};
use serde_json::{Value, json};

const STAGES: &str = "
    - name: dev
      sequences: [{name: delivery, tasks: [{name: deployment}]}]
    - name: prod
      sequences: [{name: delivery, tasks: [{name: deployment}]}]
";
/// Where the files of a service are.
const CARTS: &str = "/v1/project/shop/stage/dev/service/carts/resource";

fn body(files: &[(&str, &str)]) -> Value {
    let resource =
        |(uri, text): &(&str, &str)| json!({"resourceURI": uri, "resourceContent": STANDARD.encode(text), "metadata": null});
    json!({"resources": files.iter().map(resource).collect::<Vec<_>>()})
}

fn uris(answer: &Answer) -> Vec<String> {
    let json = answer.json();
    json["resources"].as_array().unwrap().iter().map(|one| one["resourceURI"].as_str().unwrap().to_owned()).collect()
}

/// The content of a resource, and its version.
async fn read(stand: &Stand, path: &str) -> (String, String) {
    let answer = stand.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    let json = answer.json();
    let bytes = STANDARD.decode(json["resourceContent"].as_str().unwrap()).unwrap();
    (String::from_utf8(bytes).unwrap(), json["metadata"]["version"].as_str().unwrap().to_owned())
}

async fn shop() -> Stand {
    let mut stand = Stand::new();
    stand.apply("shop", STAGES).await;
    stand.trigger("shop", "dev", "delivery", "carts").await;
    stand
}

#[tokio::test]
async fn what_is_written_is_read_now_and_at_its_commit() {
    let stand = shop().await;
    let first = stand.post(CARTS, &body(&[("slo.yaml", "one"), ("jmeter/load.jmx", "load")])).await;
    assert_eq!(first.status, 201, "{first:?}");
    let one = first.json()["metadata"]["version"].as_str().unwrap().to_owned();
    assert_eq!((one.len(), &first.json()["commitID"]), (40, &json!(one)));
    assert_eq!(read(&stand, &format!("{CARTS}/slo.yaml")).await, ("one".into(), one.clone()));
    for path in ["jmeter%2Fload.jmx", "jmeter/load.jmx", ".%2Fjmeter%2Fload.jmx"] {
        assert_eq!(read(&stand, &format!("{CARTS}/{path}")).await.0, "load", "{path}");
    }

    let second = stand.put(&format!("{CARTS}/slo.yaml"), &json!({"resourceContent": STANDARD.encode("two")})).await;
    assert_eq!(second.status, 200, "{second:?}");
    let two = second.json()["version"].as_str().unwrap().to_owned();
    assert_ne!(one, two);
    assert_eq!(read(&stand, &format!("{CARTS}/slo.yaml")).await, ("two".into(), two.clone()));
    let at = |uri: &str, commit: &str| format!("{CARTS}/{uri}?gitCommitID={commit}&disableUpstreamSync=true");
    assert_eq!(read(&stand, &at("slo.yaml", &one)).await.0, "one");
    assert_eq!(read(&stand, &at("slo.yaml", &two)).await.0, "two");
    assert_eq!(read(&stand, &at("jmeter%2Fload.jmx", &two)).await, ("load".into(), one.clone()), "it did not change since");
    // A commit that every event of a task names: the shipyard's revision.
    let revision = stand.get("/v1/project/shop").await.json()["shipyardVersion"].as_str().unwrap().to_owned();
    assert_eq!(read(&stand, &at("slo.yaml", &revision)).await.0, "two");
    assert_eq!(read(&stand, &at("slo.yaml", "%22%22")).await.0, "two");
    let unknown = stand.get(&at("slo.yaml", &"0".repeat(40))).await;
    assert_eq!((unknown.status, unknown.problem().contains("leave gitCommitID out")), (404, true), "{unknown:?}");

    // The same once more changes nothing.
    let same = stand.post(CARTS, &body(&[("slo.yaml", "two")])).await;
    assert_eq!((same.status, &same.json()["version"]), (201, &json!(two)));
}

#[tokio::test]
async fn a_deleted_file_is_gone_and_still_there_at_its_commit() {
    let stand = shop().await;
    let one = stand.post(CARTS, &body(&[("slo.yaml", "one")])).await.json()["version"].as_str().unwrap().to_owned();
    let path = format!("{CARTS}/slo.yaml");
    assert_eq!(stand.delete(&path).await.status, 200);
    let gone = stand.get(&path).await;
    assert_eq!((gone.status, gone.problem()), (404, "resource \"slo.yaml\" does not exist: there is none yet".into()));
    assert_eq!(uris(&stand.get(CARTS).await), Vec::<String>::new());
    assert_eq!(read(&stand, &format!("{path}?gitCommitID={one}")).await.0, "one");
    assert_eq!(stand.delete(&path).await.status, 404);
    assert_eq!(stand.post(CARTS, &body(&[("slo.yaml", "one")])).await.status, 201);
    assert_eq!(read(&stand, &path).await.0, "one");
}

#[tokio::test]
async fn what_was_replaced_expires_and_what_is_there_does_not() {
    let stand = shop().await;
    let one = stand.post(CARTS, &body(&[("slo.yaml", "one")])).await.json()["version"].as_str().unwrap().to_owned();
    stand.post(CARTS, &body(&[("slo.yaml", "two"), ("gone.yaml", "gone")])).await;
    stand.delete(&format!("{CARTS}/gone.yaml")).await;
    stand.world.pass(Span::minutes(91 * 24 * 60));
    {
        let mut core = stand.world.core();
        let now = core.now.0 / 1000;
        let gone: Vec<Key> = core
            .table
            .items()
            .filter(|item| item.number("ttl").is_some_and(|ttl| ttl < now))
            .map(|item| item.key.clone())
            .collect();
        assert!(core.table.put_batch(&[], &gone, false).unwrap().deletes.is_empty());
    }
    assert_eq!(read(&stand, &format!("{CARTS}/slo.yaml")).await.0, "two");
    assert_eq!(stand.get(&format!("{CARTS}/slo.yaml?gitCommitID={one}")).await.status, 404);
    assert_eq!(stand.get(&format!("{CARTS}/gone.yaml")).await.status, 404);
}

#[tokio::test]
async fn scopes_are_folders() {
    let stand = shop().await;
    let (project, stage) = ("/v1/project/shop/resource", "/v1/project/shop/stage/dev/resource");
    // The command line writes two slashes for a project.
    assert_eq!(stand.post("/v1/project/shop//resource", &body(&[("slo.yaml", "project")])).await.status, 201);
    assert_eq!(stand.put(stage, &body(&[("slo.yaml", "stage"), ("a b+c#d%.txt", "odd")])).await.status, 200);
    assert_eq!(stand.post(CARTS, &body(&[("slo.yaml", "service")])).await.status, 201);
    assert_eq!(read(&stand, &format!("{project}/slo.yaml")).await.0, "project");
    assert_eq!(read(&stand, &format!("{stage}/slo.yaml")).await.0, "stage");
    assert_eq!(read(&stand, &format!("{CARTS}/slo.yaml")).await.0, "service");
    assert_eq!(read(&stand, &format!("{stage}/carts%2Fslo.yaml")).await.0, "service", "a service is a folder of its stage");
    assert_eq!(read(&stand, &format!("{stage}/a+b%2Bc%23d%25.txt")).await.0, "odd");
    assert_eq!(stand.get("/v1/project/shop/stage/prod/resource/slo.yaml").await.status, 404);
    assert_eq!(uris(&stand.get(project).await), ["shipyard.yaml", "slo.yaml"]);
    assert_eq!(uris(&stand.get(stage).await), ["a b+c#d%.txt", "carts/slo.yaml", "slo.yaml"]);
    assert_eq!(uris(&stand.get(CARTS).await), ["slo.yaml"]);
}

#[tokio::test]
async fn lists_have_pages() {
    let stand = shop().await;
    let path = "/v1/project/shop/resource";
    let names = ["0", "a.yaml", "shipyard.yamk", "shipyard.yaml", "x/y.yaml", "z"];
    let files: Vec<(&str, &str)> = names.iter().filter(|name| **name != "shipyard.yaml").map(|name| (*name, "text")).collect();
    assert_eq!(stand.post(path, &body(&files)).await.status, 201);
    for size in 1..=names.len() {
        let (mut all, mut key) = (vec![], String::new());
        loop {
            let page = stand.get(&format!("{path}?pageSize={size}&nextPageKey={key}")).await;
            assert_eq!(page.status, 200, "{page:?}");
            all.extend(uris(&page));
            assert!(uris(&page).len() <= size);
            page.json()["nextPageKey"].as_str().unwrap().clone_into(&mut key);
            if key == "0" {
                break;
            }
        }
        assert_eq!(all, names, "pages of {size}");
    }
    let wrong = stand.get(&format!("{path}?nextPageKey=a.yaml")).await;
    assert_eq!((wrong.status, wrong.problem().contains("nextPageKey")), (400, true));
}

#[tokio::test]
async fn the_shipyard_is_the_applied_one() {
    let stand = shop().await;
    let path = "/v1/project/shop/resource/shipyard.yaml";
    let (text, first) = read(&stand, path).await;
    assert_eq!(text, stand.get("/v1/project/shop/shipyard").await.text);
    let file = stand.post("/v1/project/shop/resource", &body(&[("a.yaml", "text")])).await.json();

    let three = format!("{text}    - name: last\n");
    let written = stand.put("/v1/project/shop/resource", &body(&[("shipyard.yaml", &three)])).await;
    assert_eq!(written.status, 200, "{written:?}");
    assert_eq!(stand.get("/v1/project/shop/stage").await.json()["totalCount"], 3);
    let (now, second) = read(&stand, path).await;
    assert_eq!((now, &written.json()["version"]), (three.clone(), &json!(second)));
    for at in [&first, file["version"].as_str().unwrap()] {
        assert_eq!(read(&stand, &format!("{path}?gitCommitID={at}")).await, (text.clone(), first.clone()), "{at}");
    }

    let wrong = stand.put(path, &json!({"resourceContent": STANDARD.encode(format!("{text}    - name: Last\n"))})).await;
    assert_eq!((wrong.status, wrong.json()["findings"][0]["message"].is_string()), (400, true), "{wrong:?}");
    let both = stand.post("/v1/project/shop/resource", &body(&[("b.yaml", "b"), ("shipyard.yaml", "no")])).await;
    assert_eq!((both.status, stand.get("/v1/project/shop/resource/b.yaml").await.status), (400, 404), "all or nothing");
    let kept = stand.delete(path).await;
    assert_eq!((kept.status, kept.problem().contains("is the applied shipyard")), (409, true));
    // In a stage, it is a file like any other.
    assert_eq!(stand.post("/v1/project/shop/stage/dev/resource", &body(&[("shipyard.yaml", "text")])).await.status, 201);
}

#[tokio::test]
async fn what_cannot_be_stored_is_refused() {
    let stand = shop().await;
    let path = "/v1/project/shop/resource";
    let large = "x".repeat(MAX_CONTENT_BYTES + 1);
    let many: Vec<String> = (0..=MAX_AT_ONCE).map(|n| format!("{n}.yaml")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "x")).collect();
    for (files, status, told) in [
        (&[("../x.yaml", "x")][..], 400, "`..`"),
        (&[("~/x.yaml", "x")], 400, "`~`"),
        (&[("", "x")], 400, "resourceURI: is missing"),
        (&[("a\u{7}", "x")], 400, "control character"),
        (&[("a", "x"), ("./a", "y")], 400, "more than once"),
        (&[("a", &large)], 413, "at most 307200"),
        (&many, 413, "at most 30"),
        (&[], 400, "is empty"),
    ] {
        let answer = stand.post(path, &body(files)).await;
        assert_eq!((answer.status, answer.problem().contains(told)), (status, true), "{told}: {answer:?}");
    }
    let odd = stand.put(&format!("{path}/a"), &json!({"resourceContent": "no base64!"})).await;
    assert_eq!((odd.status, odd.problem().contains("send the content of a in base64")), (400, true), "{odd:?}");
    for (path, told) in [
        ("/v1/project/shap/resource", "did you mean \"shop\"?"),
        ("/v1/project/shop/stage/dav/resource", "did you mean \"dev\"?"),
        ("/v1/project/shop/stage/dev/service/cart/resource", "did you mean \"carts\"?"),
    ] {
        let answer = stand.post(path, &body(&[("a", "x")])).await;
        assert_eq!((answer.status, answer.problem().contains(told)), (404, true), "{path}: {answer:?}");
    }
    assert_eq!(stand.get(&format!("{path}/%ff")).await.status, 400);
    assert_eq!(stand.post(path, &body(&[("a", &"x".repeat(MAX_CONTENT_BYTES))])).await.status, 201, "as large as allowed");
}

#[tokio::test]
async fn writers_at_the_same_time_lose_nothing() {
    let stand = shop().await;
    let write = |name: &'static str| {
        let stand = &stand;
        async move { stand.post(CARTS, &body(&[(name, "x")])).await.status }
    };
    let statuses = tokio::join!(write("a"), write("b"), write("c"));
    assert_eq!(statuses, (201, 201, 201));
    assert_eq!(uris(&stand.get(CARTS).await), ["a", "b", "c"]);
}
