//! GitLab.

use super::double::*;
use keelway_githosts::{Closed, Form, Kind, Merge, Proposed, State};
use serde_json::{Value, json};

const PROJECT: &str = "/projects/acme%2Fsub%2Fshop";
const LIST: &str = "state=all&order_by=updated_at&sort=desc";
const ENCODED: &str = "promotion%2Fstaging%2F0123456789abcdef";

fn pull(number: u64, state: &str) -> Value {
    json!({
        "iid": number, "id": 1000 + number, "web_url": format!("https://git.test/acme/sub/shop/-/merge_requests/{number}"),
        "state": state, "sha": HEAD, "updated_at": "2026-11-23T10:00:00.123Z", "source_branch": BRANCH, "target_branch": "main",
        "source_project_id": 5, "target_project_id": 5, "has_conflicts": false,
        "merge_commit_sha": if state == "merged" { json!(OTHER) } else { Value::Null }, "squash_commit_sha": null,
        "merge_status": "can_be_merged", "detailed_merge_status": if state == "opened" { "mergeable" } else { "not_open" },
    })
}

fn find(answer: Value) -> Step {
    on(format!("GET {PROJECT}/merge_requests?source_branch={BRANCH}&state=all&per_page=100&page=1")).gives(200, answer)
}

fn tip(encoded: &str, commit: Option<&str>) -> Step {
    let step = on(format!("GET {PROJECT}/repository/branches/{encoded}"));
    match commit {
        Some(commit) => step.gives(200, json!({"name": "x", "commit": {"id": commit}})),
        None => step.gives(404, json!({"message": "404 Branch Not Found"})),
    }
}

fn file(at: &str, content: &str) -> Step {
    let body = json!({"file_path": "apps/staging.yaml", "encoding": "base64", "content": base64(content), "blob_id": "blob"});
    on(format!("GET {PROJECT}/repository/files/apps%2Fstaging.yaml?ref={at}")).gives(200, body)
}

fn access(level: u32) -> Step {
    let permissions = json!({"project_access": null, "group_access": {"access_level": level, "notification_level": 3}});
    on(format!("GET {PROJECT}")).gives(200, json!({"id": 5, "permissions": permissions}))
}

fn read(content: &str) -> Vec<Step> {
    let packed = archive(&[("shop-b0-b0/apps/staging.yaml", content)]);
    vec![
        find(json!([])),
        access(30),
        tip("main", Some(BASE)),
        on(format!("GET {PROJECT}/repository/archive.tar.gz?sha={BASE}")).gives_bytes(packed),
        file(BASE, content),
    ]
}

fn create(force: bool) -> Step {
    on(format!("POST {PROJECT}/repository/commits")).with(json!({"branch": BRANCH, "start_sha": BASE, "commit_message": "Promote",
        "force": force, "actions": [{"action": "update", "file_path": "apps/staging.yaml", "content": base64(NEW), "encoding": "base64"}]}))
}

fn open() -> Step {
    on(format!("POST {PROJECT}/merge_requests"))
        .with(json!({"title": "Promote shop/carts in staging to v2", "source_branch": BRANCH,
        "target_branch": "main", "description": "!!! DO NOT EDIT !!!"}))
}

#[tokio::test]
async fn a_merge_request_is_opened() {
    let mut steps = read(OLD);
    steps[0] = find(json!([])).header("authorization", &format!("Bearer {TOKEN}"));
    steps.extend([tip(ENCODED, None), create(false).gives(201, json!({"id": HEAD})), open().gives(201, pull(7, "opened"))]);
    let scene = scene(Form::GitLab, steps).await;
    let proposed = scene.host.propose(&scene.change()).await.unwrap();
    scene.double.done();
    let Proposed::Opened(request) = proposed else { panic!("{proposed:?}") };
    assert_eq!((request.number, request.head.as_str(), request.mergeable), (7, HEAD, Some(true)));
}

#[tokio::test]
async fn what_is_there_is_found() {
    let mut fork = pull(9, "opened");
    fork["source_project_id"] = json!(6);
    let found = scene(Form::GitLab, [find(json!([fork, pull(7, "closed"), pull(6, "merged")]))]).await;
    let proposed = found.host.propose(&found.change()).await.unwrap();
    found.double.done();
    assert!(
        matches!(proposed, Proposed::Found(request) if request.number == 6 && request.state == State::Merged { commit: OTHER.to_owned() })
    );

    let mut steps = read(OLD);
    let exists = open().gives(409, json!({"message": ["Another open merge request already exists for this source branch: !7"]}));
    steps.extend([tip(ENCODED, None), create(false).gives(201, json!({"id": HEAD})), exists, find(json!([pull(7, "opened")]))]);
    let adopted = scene(Form::GitLab, steps).await;
    assert!(matches!(adopted.host.propose(&adopted.change()).await.unwrap(), Proposed::Found(request) if request.number == 7));
    adopted.double.done();
}

#[tokio::test]
async fn a_branch_of_a_crashed_attempt_is_used_or_overwritten() {
    let commit = |parent: &str| on(format!("GET {PROJECT}/repository/commits/{OTHER}")).gives(200, json!({"parent_ids": [parent]}));
    let mut steps = read(OLD);
    steps.extend([tip(ENCODED, Some(OTHER)), commit(BASE), file(OTHER, NEW), open().gives(201, pull(7, "opened"))]);
    let reused = scene(Form::GitLab, steps).await;
    assert!(matches!(reused.host.propose(&reused.change()).await.unwrap(), Proposed::Opened(_)));
    reused.double.done();

    let exists = create(false)
        .gives(400, json!({"message": "A branch called 'x' already exists. Switch to that branch in order to make changes"}));
    for stale in [vec![tip(ENCODED, Some(OTHER)), commit("older")], vec![tip(ENCODED, None), exists]] {
        let mut steps = read(OLD);
        steps.extend(stale);
        steps.extend([find(json!([])), create(true).gives(201, json!({"id": HEAD})), open().gives(201, pull(7, "opened"))]);
        let replaced = scene(Form::GitLab, steps).await;
        assert!(matches!(replaced.host.propose(&replaced.change()).await.unwrap(), Proposed::Opened(_)));
        replaced.double.done();
    }
}

#[tokio::test]
async fn a_reporter_may_not_write() {
    let scene = scene(Form::GitLab, [find(json!([])), access(20)]).await;
    let error = scene.host.propose(&scene.change()).await.unwrap_err();
    scene.double.done();
    told(&error);
    assert!(error.kind == Kind::Forbidden && error.message.contains("Developer"), "{error}");
}

fn get(state: &str) -> Step {
    on(format!("GET {PROJECT}/merge_requests/7")).gives(200, pull(7, state))
}

#[tokio::test]
async fn closing_comments_once_and_deletes_the_branch() {
    let notes =
        |body: &str| on(format!("GET {PROJECT}/merge_requests/7/notes?per_page=100&page=1")).gives(200, json!([{"body": body}]));
    let note =
        || on(format!("POST {PROJECT}/merge_requests/7/notes")).with(json!({"body": "superseded by v3"})).gives(201, json!({}));
    let put = || on(format!("PUT {PROJECT}/merge_requests/7")).with(json!({"state_event": "close"})).gives(200, json!({}));
    let delete = || on(format!("DELETE {PROJECT}/repository/branches/{ENCODED}"));
    let cases = [
        (vec![get("opened"), notes("x"), note(), put(), get("closed"), delete().status(204)], Closed::Closed),
        (vec![get("opened"), notes("superseded by v3"), put(), get("closed"), delete().status(404)], Closed::Closed),
        (vec![get("merged")], Closed::Merged(OTHER.to_owned())),
        (vec![get("opened"), notes("x"), note(), put(), get("merged")], Closed::Merged(OTHER.to_owned())),
    ];
    for (steps, expected) in cases {
        let scene = scene(Form::GitLab, steps).await;
        let closed = scene.host.close(&scene.repository, BRANCH, Some(7), "superseded by v3").await;
        scene.double.done();
        assert_eq!(closed, Ok(expected));
    }
    let scene = scene(Form::GitLab, [find(json!([])), delete().status(204)]).await;
    assert_eq!(scene.host.close(&scene.repository, BRANCH, None, "x").await, Ok(Closed::Absent));
    scene.double.done();
}

#[tokio::test]
async fn looks_are_conditional() {
    let list = |known: &str| on(format!("GET {PROJECT}/merge_requests?{LIST}&per_page=100&page=1")).header("if-none-match", known);
    let mut conflict = pull(8, "opened");
    conflict["has_conflicts"] = json!(true);
    let first = list("").gives(200, json!([pull(7, "opened"), conflict])).answer_header("etag", "W/\"a\"");
    let scene = scene(Form::GitLab, [first, list("W/\"a\"").status(304)]).await;
    let look = scene.host.list(&scene.repository, &[7, 8], None).await.unwrap();
    let mergeable =
        |requests: &Vec<keelway_githosts::Request>| requests.iter().map(|request| request.mergeable).collect::<Vec<_>>();
    assert_eq!(look.requests.as_ref().map(mergeable), Some(vec![Some(true), Some(false)]));
    let again = scene.host.list(&scene.repository, &[7, 8], look.mark.as_deref()).await.unwrap();
    scene.double.done();
    assert_eq!((again.requests, again.mark), (None, look.mark));
}

#[tokio::test]
async fn merging_is_pinned_to_the_head_and_its_refusals_are_told_apart() {
    let put = || on(format!("PUT {PROJECT}/merge_requests/7/merge")).with(json!({"sha": HEAD}));
    let refused = |status: u16, message: &str| put().gives(status, json!({"message": message}));
    let mut conflict = pull(7, "opened");
    conflict["has_conflicts"] = json!(true);
    let conflict = on(format!("GET {PROJECT}/merge_requests/7")).gives(200, conflict);
    let words = "Branch cannot be merged".to_owned();
    let waits = |old: &str, detailed: Option<&str>| {
        let mut waits = pull(7, "opened");
        (waits["merge_status"], waits["detailed_merge_status"]) = (json!(old), json!(detailed));
        let not_yet = Merge::NotYet("GitLab does not report it as mergeable yet".to_owned());
        (vec![on(format!("GET {PROJECT}/merge_requests/7")).gives(200, waits)], not_yet)
    };
    let cases = [
        // It is asked to merge what it has looked at, and nothing else.
        waits("unchecked", Some("unchecked")),
        waits("checking", Some("checking")),
        waits("checking", Some("preparing")),
        waits("cannot_be_merged_recheck", None),
        waits("can_be_merged", Some("ci_must_pass")),
        (vec![get("opened"), put().gives(200, pull(7, "merged"))], Merge::Merged(OTHER.to_owned())),
        (vec![get("opened"), refused(409, "SHA does not match HEAD of source branch")], Merge::HeadMoved),
        (vec![get("opened"), refused(405, "405 Method Not Allowed")], Merge::NotYet("405 Method Not Allowed".to_owned())),
        (vec![get("opened"), refused(422, &words)], Merge::NotYet(words)),
        (vec![conflict], Merge::Refused("it conflicts with the base branch".to_owned())),
    ];
    for (steps, expected) in cases {
        let scene = scene(Form::GitLab, steps).await;
        let merge = scene.merge(HEAD).await;
        scene.double.done();
        assert_eq!(merge, Ok(expected));
    }
    let scene = scene(Form::GitLab, [get("opened"), refused(401, "401 Unauthorized")]).await;
    assert_eq!(scene.merge(HEAD).await.unwrap_err().kind, Kind::Forbidden);
    scene.double.done();
}
