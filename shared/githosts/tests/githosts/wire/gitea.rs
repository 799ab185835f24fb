//! Gitea and Forgejo.

use super::double::*;
use crate::here;
use keelway_githosts::{Closed, Form, Kind, Merge, Proposed, State};
use serde_json::{Value, json};

const REPO: &str = "/repos/acme/shop";
/// Gitea writes times in its own zone.
const UPDATED: &str = "2026-11-23T11:00:00+01:00";

fn pull(number: u64, state: &str) -> Value {
    let merged = state == "merged";
    // Once the branch is deleted, its name is only in the label.
    let reference = if state == "open" { BRANCH.to_owned() } else { format!("refs/pull/{number}/head") };
    json!({
        "number": number, "html_url": format!("https://git.test/acme/shop/pulls/{number}"),
        "state": if state == "open" { "open" } else { "closed" },
        "merged": merged, "updated_at": UPDATED, "merge_commit_sha": if merged { json!(OTHER) } else { Value::Null }, "mergeable": state == "open",
        "head": {"label": BRANCH, "ref": reference, "sha": HEAD, "repo_id": 5},
        "base": {"label": "main", "ref": "main", "sha": BASE, "repo_id": 5},
    })
}

fn list(state: &str, page: u32, answer: Value) -> Step {
    on(format!("GET {REPO}/pulls?state={state}&sort=recentupdate&limit=50&page={page}")).gives(200, answer)
}

fn by_branches(answer: Option<Value>) -> Step {
    let step = on(format!("GET {REPO}/pulls/main/{BRANCH}"));
    match answer {
        Some(answer) => step.gives(200, answer),
        None => step.gives(404, json!({"message": "pull request does not exist"})),
    }
}

fn tip(branch: &str, commit: Option<&str>) -> Step {
    let step = on(format!("GET {REPO}/branches/{branch}"));
    match commit {
        Some(commit) => step.gives(200, json!({"name": branch, "commit": {"id": commit}})),
        None => step.gives(404, json!({"message": "branch does not exist"})),
    }
}

fn file(at: &str, content: &str) -> Step {
    let body = json!({"type": "file", "encoding": "base64", "content": base64(content), "sha": "oldblob"});
    on(format!("GET {REPO}/contents/apps/staging.yaml?ref={at}")).gives(200, body)
}

fn read(content: &str) -> Vec<Step> {
    vec![
        by_branches(None),
        tip(BRANCH, None),
        on(format!("GET {REPO}")).gives(200, json!({"permissions": {"admin": false, "push": true, "pull": true}})),
        tip("main", Some(BASE)),
        on(format!("GET {REPO}/archive/{BASE}.tar.gz")).gives_bytes(archive(&[("shop/apps/staging.yaml", content)])),
        file(BASE, content),
    ]
}

/// The same where an earlier attempt has left its branch.
fn left(content: &str) -> Vec<Step> {
    let found = [by_branches(None), tip(BRANCH, Some(OTHER)), list("open", 1, json!([]))];
    found.into_iter().chain(read(content).into_iter().skip(2)).collect()
}

fn create() -> Step {
    on(format!("POST {REPO}/contents")).with(json!({"branch": "main", "new_branch": BRANCH, "message": "Promote",
        "files": [{"operation": "update", "path": "apps/staging.yaml", "content": base64(NEW), "sha": "oldblob"}]}))
}

fn created() -> Step {
    create().gives(201, json!({"files": [], "commit": {"sha": HEAD}}))
}

fn open() -> Step {
    on(format!("POST {REPO}/pulls")).with(json!({"title": "Promote shop/carts in staging to v2", "head": BRANCH, "base": "main",
        "body": "!!! DO NOT EDIT !!!"}))
}

#[tokio::test]
async fn a_pull_request_is_opened_with_one_request_for_branch_and_commit() {
    let mut steps = read(OLD);
    steps[0] = by_branches(None).header("authorization", &format!("token {TOKEN}"));
    steps.extend([tip(BRANCH, None), created(), open().gives(201, pull(7, "open"))]);
    let scene = scene(Form::Gitea, steps).await;
    let proposed = scene.host.propose(&scene.change()).await.unwrap();
    scene.double.done();
    let Proposed::Opened(request) = proposed else { panic!("{proposed:?}") };
    assert_eq!((request.number, request.head.as_str(), request.mergeable), (7, HEAD, Some(true)));
}

#[tokio::test]
async fn a_user_and_a_password_are_credentials_too() {
    let double = Double::start(
        "/api/v1",
        [on("GET /repos/acme/shop/pulls/7").header("authorization", "Basic bWU6aHVudGVyMg==").status(404)],
    )
    .await;
    let repository = keelway_githosts::Repository::parse(Form::Gitea, &format!("{}/acme/shop", double.address())).unwrap();
    let credentials = keelway_githosts::Credentials::parse(r#"{"username": "me", "password": "hunter2"}"#).unwrap();
    let host = keelway_githosts::Host::new(&keelway_githosts::Api::of(&repository), &credentials, &here()).unwrap();
    assert_eq!(host.get(&repository, 7).await, Ok(None));
    double.done();
}

#[tokio::test]
async fn it_is_found_among_many_open_ones_or_by_its_branches() {
    let next = "<https://git.test/x?page=2>; rel=\"next\"";
    let mut fork = pull(3, "open");
    fork["head"]["repo_id"] = json!(6);
    let list = [list("open", 1, json!([fork])).answer_header("link", next), list("open", 2, json!([pull(7, "open")]))];
    // It has another base by now.
    let moved = [by_branches(None), tip(BRANCH, Some(HEAD))];
    let found = scene(Form::Gitea, moved.into_iter().chain(list)).await;
    assert!(matches!(found.host.propose(&found.change()).await.unwrap(), Proposed::Found(request) if request.number == 7));
    found.double.done();
    for (state, expected) in
        [("open", State::Open), ("merged", State::Merged { commit: OTHER.to_owned() }), ("closed", State::Closed)]
    {
        let mut steps = vec![by_branches(Some(pull(7, state)))];
        if state != "open" {
            steps.push(tip(BRANCH, None));
        }
        let scene = scene(Form::Gitea, steps).await;
        let proposed = scene.host.propose(&scene.change()).await.unwrap();
        scene.double.done();
        let Proposed::Found(request) = proposed else { panic!("{proposed:?}") };
        assert_eq!((request.state, request.branch.as_str()), (expected, BRANCH));
    }
}

#[tokio::test]
async fn one_that_exists_already_is_adopted() {
    let mut steps = read(OLD);
    let exists = open().gives(409, json!({"message": "pull request already exists for these targets"}));
    steps.extend([tip(BRANCH, None), created(), exists, by_branches(Some(pull(7, "open")))]);
    let scene = scene(Form::Gitea, steps).await;
    assert!(matches!(scene.host.propose(&scene.change()).await.unwrap(), Proposed::Found(request) if request.number == 7));
    scene.double.done();
}

#[tokio::test]
async fn a_branch_of_a_crashed_attempt_is_used_or_made_again() {
    let commit = |parent: &str| on(format!("GET {REPO}/git/commits/{OTHER}")).gives(200, json!({"parents": [{"sha": parent}]}));
    let mut steps = left(OLD);
    steps.extend([tip(BRANCH, Some(OTHER)), commit(BASE), file(OTHER, NEW), open().gives(201, pull(7, "open"))]);
    let reused = scene(Form::Gitea, steps).await;
    assert!(matches!(reused.host.propose(&reused.change()).await.unwrap(), Proposed::Opened(_)));
    reused.double.done();

    let delete = || on(format!("DELETE {REPO}/branches/{BRANCH}")).status(204);
    let mut steps = left(OLD);
    steps.extend([
        tip(BRANCH, Some(OTHER)),
        commit("older"),
        by_branches(None),
        tip(BRANCH, Some(OTHER)),
        list("open", 1, json!([])),
    ]);
    steps.extend([delete(), created(), open().gives(201, pull(7, "open"))]);
    let replaced = scene(Form::Gitea, steps).await;
    assert!(matches!(replaced.host.propose(&replaced.change()).await.unwrap(), Proposed::Opened(_)));
    replaced.double.done();

    // It appeared between looking and writing; its pull request is there.
    let mut steps = read(OLD);
    let exists = create().gives(422, json!({"message": "branch already exists [name: x]"}));
    steps.extend([tip(BRANCH, None), exists, by_branches(Some(pull(7, "open")))]);
    let raced = scene(Form::Gitea, steps).await;
    assert!(matches!(raced.host.propose(&raced.change()).await.unwrap(), Proposed::Found(_)));
    raced.double.done();

    let mut steps = left(NEW);
    steps.extend([tip(BRANCH, Some(OTHER)), delete()]);
    let nothing = scene(Form::Gitea, steps).await;
    assert_eq!(nothing.host.propose(&nothing.change()).await, Ok(Proposed::Nothing));
    nothing.double.done();
}

#[tokio::test]
async fn a_base_that_moves_meanwhile_is_tried_again_later() {
    let mut steps = read(OLD);
    let moved = create().gives(422, json!({"message": "sha does not match [given: oldblob, expected: newer]"}));
    steps.extend([tip(BRANCH, None), moved]);
    let scene = scene(Form::Gitea, steps).await;
    let error = scene.host.propose(&scene.change()).await.unwrap_err();
    scene.double.done();
    told(&error);
    assert_eq!(error.kind, Kind::Transient);
}

#[tokio::test]
async fn a_token_that_may_not_write_is_told_first() {
    let mut steps = read(OLD);
    steps.truncate(2);
    steps.push(on(format!("GET {REPO}")).gives(200, json!({"permissions": {"push": false}})));
    let scene = scene(Form::Gitea, steps).await;
    let error = scene.host.propose(&scene.change()).await.unwrap_err();
    scene.double.done();
    told(&error);
    assert!(error.kind == Kind::Forbidden && error.message.contains("write:repository"), "{error}");
}

fn get(state: &str) -> Step {
    on(format!("GET {REPO}/pulls/7")).gives(200, pull(7, state))
}

async fn close(number: Option<u64>, steps: Vec<Step>) -> Closed {
    let scene = scene(Form::Gitea, steps).await;
    let closed = scene.host.close(&scene.repository, BRANCH, number, "superseded by v3").await.unwrap();
    scene.double.done();
    closed
}

#[tokio::test]
async fn closing_comments_once_and_deletes_the_branch() {
    let comments = |body: &str| on(format!("GET {REPO}/issues/7/comments")).gives(200, json!([{"body": body}]));
    let comment = || on(format!("POST {REPO}/issues/7/comments")).with(json!({"body": "superseded by v3"})).gives(201, json!({}));
    let patch = || on(format!("PATCH {REPO}/pulls/7")).with(json!({"state": "closed"}));
    let delete = || on(format!("DELETE {REPO}/branches/{BRANCH}"));
    let closed = || patch().gives(201, pull(7, "closed"));
    let all = vec![get("open"), comments("x"), comment(), closed(), get("closed"), delete().status(204)];
    assert_eq!(close(Some(7), all).await, Closed::Closed);
    let again = vec![get("open"), comments("superseded by v3"), closed(), get("closed"), delete().status(404)];
    assert_eq!(close(Some(7), again).await, Closed::Closed);
    assert_eq!(close(Some(7), vec![get("merged")]).await, Closed::Merged(OTHER.to_owned()));
    let refused = patch().gives(412, json!({"message": "cannot change state of this pull request, it was already merged"}));
    let raced = vec![get("open"), comments("x"), comment(), refused, get("merged")];
    assert_eq!(close(Some(7), raced).await, Closed::Merged(OTHER.to_owned()));
    let unknown = vec![list("open", 1, json!([])), list("closed", 1, json!([])), delete().status(204)];
    assert_eq!(close(None, unknown).await, Closed::Absent);
    // Without the scope for issues, it is closed all the same.
    let mute = on(format!("POST {REPO}/issues/7/comments")).with(json!({"body": "superseded by v3"})).status(403);
    let all = vec![get("open"), comments("x"), mute, closed(), get("closed"), delete().status(204)];
    assert_eq!(close(Some(7), all).await, Closed::Closed);
    let found = vec![list("open", 1, json!([])), list("closed", 1, json!([pull(7, "closed")])), delete().status(404)];
    assert_eq!(close(None, found).await, Closed::Closed);
}

#[tokio::test]
async fn a_look_has_ours_and_the_time_of_the_last_change() {
    let mut foreign = pull(8, "open");
    foreign["head"]["ref"] = json!("feature/x");
    let scene = scene(Form::Gitea, [list("all", 1, json!([pull(7, "open"), foreign]))]).await;
    let look = scene.host.list(&scene.repository, &[7], None).await.unwrap();
    scene.double.done();
    let at = keelway_domain::time::Timestamp::parse(UPDATED).unwrap();
    assert_eq!(look.mark, Some(at.0.to_string()));
    assert_eq!(look.requests.unwrap().iter().map(|request| request.number).collect::<Vec<_>>(), [7]);
}

async fn merge(steps: Vec<Step>) -> Merge {
    let scene = scene(Form::Gitea, steps).await;
    let merge = scene.merge(HEAD).await.unwrap();
    scene.double.done();
    merge
}

#[tokio::test]
async fn merging_is_pinned_to_the_head_and_its_refusals_are_told_apart() {
    let post = || on(format!("POST {REPO}/pulls/7/merge")).with(json!({"Do": "merge", "head_commit_id": HEAD}));
    let refused = |status: u16, message: &str| post().gives(status, json!({"message": message}));
    assert_eq!(merge(vec![get("open"), post(), get("merged")]).await, Merge::Merged(OTHER.to_owned()));
    let later = merge(vec![get("open"), refused(405, "Please try again later")]).await;
    assert_eq!(later, Merge::NotYet("Please try again later".to_owned()));
    assert_eq!(merge(vec![get("open"), refused(409, "head out of date")]).await, Merge::HeadMoved);
    assert!(matches!(merge(vec![get("open"), refused(409, "merge push out of date")]).await, Merge::NotYet(_)));
    let style = "merge is not allowed an allowed merge style for this repository";
    assert!(matches!(merge(vec![get("open"), refused(405, style)]).await, Merge::Refused(why) if why.contains("no merge commits")));
    let conflict = post().gives(409, json!({"Style": "merge", "StdOut": "CONFLICT (content)"}));
    assert!(matches!(merge(vec![get("open"), conflict]).await, Merge::Refused(why) if why.contains("conflict")));
}
