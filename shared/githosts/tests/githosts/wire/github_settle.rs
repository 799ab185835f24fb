//! GitHub: closing, looking, merging.

use super::double::*;
use super::github::{find, pull};
use keelway_githosts::{Closed, Form, Kind, Look, Merge, State};
use serde_json::{Value, json};

const REPO: &str = "/repos/acme/shop";

fn get(number: u64, state: &str) -> Step {
    on(format!("GET {REPO}/pulls/{number}")).gives(200, pull(number, state))
}

fn comments(texts: &[&str]) -> Step {
    let comments: Vec<Value> = texts.iter().map(|text| json!({"body": text})).collect();
    on(format!("GET {REPO}/issues/7/comments?per_page=100&page=1")).gives(200, json!(comments))
}

fn comment() -> Step {
    on(format!("POST {REPO}/issues/7/comments")).with(json!({"body": "superseded by v3"})).gives(201, json!({}))
}

fn patch() -> Step {
    on(format!("PATCH {REPO}/pulls/7")).with(json!({"state": "closed"}))
}

fn delete() -> Step {
    on(format!("DELETE {REPO}/git/refs/heads/{BRANCH}"))
}

async fn close(number: Option<u64>, steps: Vec<Step>) -> Result<Closed, keelway_githosts::HostError> {
    let scene = scene(Form::GitHub, steps).await;
    let closed = scene.host.close(&scene.repository, BRANCH, number, "superseded by v3").await;
    scene.double.done();
    closed
}

#[tokio::test]
async fn a_pull_request_is_closed_with_one_comment_and_its_branch_deleted() {
    let all = |first: Step| {
        vec![first, comments(&["other"]), comment(), patch().gives(200, pull(7, "closed")), get(7, "closed"), delete().status(204)]
    };
    assert_eq!(close(Some(7), all(get(7, "open"))).await, Ok(Closed::Closed));
    assert_eq!(close(None, all(find(json!([pull(7, "open")])))).await, Ok(Closed::Closed));
    // Again after a crash: it has the comment, and perhaps no branch.
    let gone = delete().gives(422, json!({"message": "Reference does not exist"}));
    let again =
        vec![get(7, "open"), comments(&["superseded by v3\n"]), patch().gives(200, pull(7, "closed")), get(7, "closed"), gone];
    assert_eq!(close(Some(7), again).await, Ok(Closed::Closed));
    assert_eq!(close(Some(7), vec![get(7, "closed"), delete().status(404)]).await, Ok(Closed::Closed));
}

#[tokio::test]
async fn a_merged_one_is_told_and_left_alone() {
    let merged = Ok(Closed::Merged(OTHER.to_owned()));
    assert_eq!(close(Some(7), vec![get(7, "merged")]).await, merged);
    assert_eq!(close(None, vec![find(json!([pull(7, "merged")]))]).await, merged);
    // In the same moment.
    let refused = patch().gives(422, json!({"message": "Validation Failed"}));
    assert_eq!(close(Some(7), vec![get(7, "open"), comments(&[]), comment(), refused, get(7, "merged")]).await, merged);
}

#[tokio::test]
async fn a_branch_without_a_pull_request_is_deleted() {
    assert_eq!(close(None, vec![find(json!([])), delete().status(204)]).await, Ok(Closed::Absent));
    let missing = on(format!("GET {REPO}/pulls/7")).gives(404, json!({"message": "Not Found"}));
    assert_eq!(close(Some(7), vec![missing, find(json!([])), delete().status(404)]).await, Ok(Closed::Absent));
    // The number belongs to another branch.
    let mut other = pull(7, "open");
    other["head"]["ref"] = json!("promotion/other");
    let get = on(format!("GET {REPO}/pulls/7")).gives(200, other);
    assert_eq!(close(Some(7), vec![get, find(json!([])), delete().status(204)]).await, Ok(Closed::Absent));
}

#[tokio::test]
async fn a_failure_while_closing_is_told_and_the_branch_stays() {
    let steps = vec![get(7, "open"), comments(&[]), comment(), patch().status(502)];
    assert_eq!(close(Some(7), steps).await.unwrap_err().kind, Kind::Transient);
    let steps = vec![get(7, "open"), comments(&[]), comment(), patch().status(422), get(7, "open")];
    assert_eq!(close(Some(7), steps).await.unwrap_err().kind, Kind::Refused);
}

fn list(page: u32, known: &str) -> Step {
    on(format!("GET {REPO}/pulls?state=open&per_page=100&page={page}")).header("if-none-match", known)
}

const NEXT: &str = "<https://git.test/x?page=9>; rel=\"next\"";

fn numbers(look: &Look) -> Option<Vec<u64>> {
    look.requests.as_ref().map(|requests| requests.iter().map(|request| request.number).collect())
}

#[tokio::test]
async fn a_look_has_all_pages_and_the_next_one_is_conditional() {
    let mut foreign = pull(2, "open");
    foreign["head"]["ref"] = json!("feature/x");
    let first =
        list(1, "").gives(200, json!([pull(1, "open"), foreign])).answer_header("link", NEXT).answer_header("etag", "W/\"a\"");
    let second = list(2, "").gives(200, json!([pull(3, "open")])).answer_header("etag", "\"b\"");
    let scene = scene(Form::GitHub, [first, second]).await;
    let look = scene.host.list(&scene.repository, None).await.unwrap();
    scene.double.done();
    assert_eq!(numbers(&look), Some(vec![1, 3]));
    let mark = look.mark.unwrap();
    let again = async |steps: Vec<Step>| {
        scene.double.then(steps);
        let look = scene.host.list(&scene.repository, Some(&mark)).await.unwrap();
        scene.double.done();
        look
    };

    let look = again(vec![list(1, "W/\"a\"").status(304), list(2, "\"b\"").status(304)]).await;
    assert_eq!((look.requests, look.mark.as_ref()), (None, Some(&mark)));

    // Only the second page has changed: both are read.
    let changed = vec![
        list(1, "W/\"a\"").status(304),
        list(2, "\"b\"").gives(200, json!([])).answer_header("etag", "\"c\""),
        list(1, "").gives(200, json!([pull(1, "open")])).answer_header("link", NEXT).answer_header("etag", "W/\"a\""),
        list(2, "").gives(200, json!([])).answer_header("etag", "\"c\""),
    ];
    let look = again(changed).await;
    assert_eq!((numbers(&look), look.mark.as_deref()), (Some(vec![1]), Some("W/\"a\" \"c\"")));

    // The first has, and there is one page less; without a tag there is no mark.
    let look = again(vec![list(1, "W/\"a\"").gives(200, json!([pull(3, "open")]))]).await;
    assert_eq!((numbers(&look), look.mark), (Some(vec![3]), None));
}

#[tokio::test]
async fn one_is_read_with_its_state() {
    let scene = scene(Form::GitHub, [get(7, "merged"), on(format!("GET {REPO}/pulls/8")).status(404)]).await;
    let request = scene.host.get(&scene.repository, 7).await.unwrap().unwrap();
    assert_eq!(request.state, State::Merged { commit: OTHER.to_owned() });
    assert_eq!(scene.host.get(&scene.repository, 8).await, Ok(None));
    scene.double.done();
}

fn mergeable(mergeable: Value) -> Step {
    let mut body = pull(7, "open");
    body["mergeable"] = mergeable;
    on(format!("GET {REPO}/pulls/7")).gives(200, body)
}

fn put() -> Step {
    on(format!("PUT {REPO}/pulls/7/merge")).with(json!({"sha": HEAD}))
}

async fn merge(head: &str, steps: Vec<Step>) -> Result<Merge, keelway_githosts::HostError> {
    let scene = scene(Form::GitHub, steps).await;
    let merge = scene.host.merge(&scene.repository, 7, head).await;
    scene.double.done();
    merge
}

#[tokio::test]
async fn merging_is_pinned_to_the_head() {
    let ready = || mergeable(json!(true));
    let merged = Ok(Merge::Merged(OTHER.to_owned()));
    assert_eq!(merge(HEAD, vec![ready(), put().gives(200, json!({"sha": OTHER, "merged": true}))]).await, merged);
    assert_eq!(merge(HEAD, vec![get(7, "merged")]).await, merged);
    assert_eq!(merge(OTHER, vec![ready()]).await, Ok(Merge::HeadMoved));
    let moved = put().gives(409, json!({"message": "Head branch was modified. Review and try the merge again."}));
    assert_eq!(merge(HEAD, vec![ready(), moved]).await, Ok(Merge::HeadMoved));
}

#[tokio::test]
async fn what_waiting_can_change_is_told_from_what_it_cannot() {
    let put = |message: &str| put().gives(405, json!({"message": message}));
    let ready = || mergeable(json!(true));
    for message in [
        "Base branch was modified. Review and try the merge again.",
        "Pull Request is not mergeable",
        "Required status check \"ci\" is expected.",
        "Pull Request is still a draft",
    ] {
        assert_eq!(merge(HEAD, vec![ready(), put(message)]).await, Ok(Merge::NotYet(message.to_owned())));
    }
    for message in ["Merge commits are not allowed on this repository.", "Merge commits are not allowed on this branch."] {
        assert!(matches!(merge(HEAD, vec![ready(), put(message)]).await, Ok(Merge::Refused(_))), "{message}");
    }
    assert!(matches!(merge(HEAD, vec![mergeable(Value::Null)]).await, Ok(Merge::NotYet(_))));
    assert!(matches!(merge(HEAD, vec![mergeable(json!(false))]).await, Ok(Merge::Refused(why)) if why.contains("conflict")));
    assert!(matches!(merge(HEAD, vec![get(7, "closed")]).await, Ok(Merge::Refused(why)) if why.contains("closed")));
    assert!(matches!(merge(HEAD, vec![on(format!("GET {REPO}/pulls/7")).status(404)]).await, Ok(Merge::Refused(_))));
}
