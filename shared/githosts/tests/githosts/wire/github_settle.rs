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
    on(format!("GET {REPO}/pulls?state=all&sort=updated&direction=desc&per_page=100&page={page}")).header("if-none-match", known)
}

const NEXT: &str = "<https://git.test/x?page=9>; rel=\"next\"";

fn numbers(look: &Look) -> Option<Vec<u64>> {
    look.requests.as_ref().map(|requests| requests.iter().map(|request| request.number).collect())
}

/// A pull request whose last change was in this minute.
fn changed(number: u64, minute: u32) -> Value {
    let mut pull = pull(number, "open");
    pull["updated_at"] = json!(format!("2026-11-23T10:{minute:02}:00Z"));
    pull
}

#[tokio::test]
async fn a_look_reads_the_last_changes_as_far_as_it_needs_them() {
    let mut foreign = changed(2, 30);
    foreign["head"]["ref"] = json!("feature/x");
    let first = |known: &str| list(1, known).gives(200, json!([changed(1, 50), foreign])).answer_header("link", NEXT);
    let second = || list(2, "").gives(200, json!([changed(3, 20), changed(4, 10)])).answer_header("link", NEXT);
    // Without a mark: until those that are wanted were seen.
    let scene = scene(Form::GitHub, [first("").answer_header("etag", "W/\"a\""), second()]).await;
    let look = scene.host.list(&scene.repository, &[1, 3], None).await.unwrap();
    scene.double.done();
    assert_eq!((numbers(&look), look.every), (Some(vec![1, 3, 4]), false));
    let mark = look.mark.unwrap();
    let again = async |wanted: &[u64], steps: Vec<Step>| {
        scene.double.then(steps);
        let look = scene.host.list(&scene.repository, wanted, Some(&mark)).await.unwrap();
        scene.double.done();
        look
    };

    // Nothing has changed: whatever does comes to the first page.
    let look = again(&[1, 3], vec![list(1, "W/\"a\"").status(304)]).await;
    assert_eq!((look.requests, look.mark.as_ref()), (None, Some(&mark)));

    // What follows has not changed since: it is not read.
    let newer = json!([changed(5, 59), changed(1, 50), changed(6, 40)]);
    let look =
        again(&[1, 3], vec![list(1, "W/\"a\"").gives(200, newer).answer_header("link", NEXT).answer_header("etag", "\"b\"")]).await;
    let at = keelway_domain::time::Timestamp::parse("2026-11-23T10:59:00Z").unwrap();
    assert_eq!((numbers(&look), look.mark), (Some(vec![5, 1, 6]), Some(format!("{} \"b\"", at.0))));

    // A change may become visible after a newer one: two minutes before the last look are read once more.
    let busy = json!([changed(5, 59), changed(6, 49)]);
    let steps = vec![list(1, "W/\"a\"").gives(200, busy).answer_header("link", NEXT), second()];
    assert_eq!(numbers(&again(&[1, 3], steps).await), Some(vec![5, 6, 3, 4]));

    // More than that is read only as long as something is wanted.
    let all = json!([changed(3, 59), changed(1, 58)]);
    let steps = vec![list(1, "W/\"a\"").gives(200, all).answer_header("link", NEXT)];
    assert_eq!(numbers(&again(&[1, 3], steps).await), Some(vec![3, 1]));
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
    let merge = scene.merge(head).await;
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
}
