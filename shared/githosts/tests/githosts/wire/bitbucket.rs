//! Bitbucket Server.

use super::double::*;
use keelway_githosts::{Closed, Form, Merge, Proposed, State};
use serde_json::{Value, json};

const REPO: &str = "/projects/ACME/repos/shop";

fn pull(number: u64, state: &str) -> Value {
    let repository = json!({"slug": "shop", "project": {"key": "ACME"}});
    json!({
        "id": number, "version": 3, "state": state,
        "fromRef": {"id": format!("refs/heads/{BRANCH}"), "displayId": BRANCH, "latestCommit": HEAD, "repository": repository},
        "toRef": {"id": "refs/heads/main", "displayId": "main", "latestCommit": BASE, "repository": repository},
        "links": {"self": [{"href": format!("https://git.test/projects/ACME/repos/shop/pull-requests/{number}")}]},
        "properties": {"mergeResult": {"outcome": "CLEAN", "current": true}, "mergeCommit": {"id": OTHER}},
    })
}

fn page(values: Value) -> Value {
    json!({"values": values, "isLastPage": true, "start": 0, "limit": 100, "size": 1})
}

fn find(start: u32, answer: Value) -> Step {
    let query = format!("at=refs/heads/{BRANCH}&direction=OUTGOING&state=ALL&limit=100&start={start}");
    on(format!("GET {REPO}/pull-requests?{query}")).gives(200, answer)
}

fn tip(branch: &str, commit: Option<&str>) -> Step {
    let similar = json!({"id": format!("refs/heads/{branch}-2"), "displayId": "x", "latestCommit": "another"});
    let found = commit.map(|commit| json!({"id": format!("refs/heads/{branch}"), "displayId": branch, "latestCommit": commit}));
    let values: Vec<Value> = [Some(similar), found].into_iter().flatten().collect();
    on(format!("GET {REPO}/branches?filterText={branch}&limit=100&start=0")).gives(200, page(json!(values)))
}

fn raw(path: &str, at: &str, content: &str) -> Step {
    on(format!("GET {REPO}/raw/{path}?at={at}")).gives_bytes(content)
}

fn read(content: &str) -> Vec<Step> {
    let files = [("a.yaml", content), ("apps/staging.yaml", content)];
    vec![
        find(0, page(json!([]))),
        on(format!("GET {REPO}")).gives(200, json!({"slug": "shop", "archived": false})),
        tip("main", Some(BASE)),
        on(format!("GET {REPO}/archive?at={BASE}&format=tar.gz")).gives_bytes(archive(&files)),
        raw("a.yaml", BASE, content),
        raw("apps/staging.yaml", BASE, content),
    ]
}

fn create() -> Step {
    on(format!("POST {REPO}/branches")).with(json!({"name": BRANCH, "startPoint": BASE}))
}

fn write(path: &str, commit: &str) -> Step {
    let mut step = on(format!("PUT {REPO}/browse/{path}")).header("x-atlassian-token", "no-check");
    for (name, value) in [("branch", BRANCH), ("message", "Promote"), ("sourceCommitId", BASE), ("content", NEW)] {
        step = step.containing(&format!("content-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n--"));
    }
    step.gives(200, json!({"id": commit}))
}

fn open() -> Step {
    let side =
        |branch: &str| json!({"id": format!("refs/heads/{branch}"), "repository": {"slug": "shop", "project": {"key": "ACME"}}});
    on(format!("POST {REPO}/pull-requests")).with(json!({"title": "Promote shop/carts in staging to v2",
        "description": "!!! DO NOT EDIT !!!", "fromRef": side(BRANCH), "toRef": side("main")}))
}

/// Below another root than the other requests.
fn delete() -> Step {
    on(format!("DELETE /rest/branch-utils/1.0{REPO}/branches"))
        .with(json!({"name": format!("refs/heads/{BRANCH}"), "dryRun": false}))
}

#[tokio::test]
async fn a_pull_request_is_opened_with_a_commit_for_each_file() {
    let mut steps = read(OLD);
    steps[0] = find(0, page(json!([]))).header("authorization", &format!("Bearer {TOKEN}"));
    steps.extend([
        tip(BRANCH, None),
        create().gives(201, json!({"id": "x"})),
        write("a.yaml", "first"),
        write("apps/staging.yaml", HEAD),
    ]);
    steps.push(open().gives(201, pull(7, "OPEN")));
    let scene = scene(Form::BitbucketServer, steps).await;
    let proposed = scene.host.propose(&scene.change()).await.unwrap();
    scene.double.done();
    let Proposed::Opened(request) = proposed else { panic!("{proposed:?}") };
    assert_eq!((request.number, request.head.as_str(), request.branch.as_str(), request.mergeable), (7, HEAD, BRANCH, Some(true)));
    assert!(request.url.ends_with("/pull-requests/7"));
}

#[tokio::test]
async fn what_is_there_is_found_on_any_page_and_never_in_a_fork() {
    let mut fork = pull(9, "OPEN");
    fork["fromRef"]["repository"]["project"]["key"] = json!("~MALLORY");
    let first = json!({"values": [fork, pull(5, "DECLINED")], "isLastPage": false, "nextPageStart": 100});
    let found = scene(Form::BitbucketServer, [find(0, first), find(100, page(json!([pull(7, "MERGED")])))]).await;
    let proposed = found.host.propose(&found.change()).await.unwrap();
    found.double.done();
    assert!(
        matches!(proposed, Proposed::Found(request) if request.number == 7 && request.state == State::Merged { commit: OTHER.to_owned() })
    );

    let mut steps = read(OLD);
    steps.extend([tip(BRANCH, None), create().gives(201, json!({})), write("a.yaml", "first"), write("apps/staging.yaml", HEAD)]);
    let exists = json!({"errors": [{"message": "Only one pull request may be open for a given source and target branch"}]});
    steps.extend([open().gives(409, exists), find(0, page(json!([pull(7, "OPEN")])))]);
    let adopted = scene(Form::BitbucketServer, steps).await;
    assert!(matches!(adopted.host.propose(&adopted.change()).await.unwrap(), Proposed::Found(request) if request.number == 7));
    adopted.double.done();
}

#[tokio::test]
async fn a_branch_of_a_crashed_attempt_is_used_if_it_is_complete() {
    let commit =
        |id: &str, parent: &str| on(format!("GET {REPO}/commits/{id}")).gives(200, json!({"id": id, "parents": [{"id": parent}]}));
    let mut steps = read(OLD);
    steps.extend([tip(BRANCH, Some(HEAD)), commit(HEAD, "first"), commit("first", BASE)]);
    steps.extend([raw("a.yaml", HEAD, NEW), raw("apps/staging.yaml", HEAD, NEW), open().gives(201, pull(7, "OPEN"))]);
    let reused = scene(Form::BitbucketServer, steps).await;
    assert!(matches!(reused.host.propose(&reused.change()).await.unwrap(), Proposed::Opened(_)));
    reused.double.done();

    // It stopped after the first file; or after the branch.
    let half = vec![
        tip(BRANCH, Some("first")),
        commit("first", BASE),
        raw("a.yaml", "first", NEW),
        raw("apps/staging.yaml", "first", OLD),
    ];
    let empty = vec![tip(BRANCH, Some(BASE)), raw("a.yaml", BASE, OLD)];
    let raced = vec![tip(BRANCH, None), create().gives(409, json!({"errors": [{"message": "exists"}]}))];
    for stale in [half, empty, raced] {
        let mut steps = read(OLD);
        steps.extend(stale);
        steps.extend([find(0, page(json!([]))), delete().status(204), create().gives(201, json!({}))]);
        steps.extend([write("a.yaml", "first"), write("apps/staging.yaml", HEAD), open().gives(201, pull(7, "OPEN"))]);
        let replaced = scene(Form::BitbucketServer, steps).await;
        assert!(matches!(replaced.host.propose(&replaced.change()).await.unwrap(), Proposed::Opened(_)));
        replaced.double.done();
    }
}

fn get(state: &str) -> Step {
    on(format!("GET {REPO}/pull-requests/7")).gives(200, pull(7, state))
}

#[tokio::test]
async fn closing_comments_once_and_deletes_the_branch() {
    let said = |text: &str| {
        let activity = json!([{"id": 1, "action": "OPENED"}, {"id": 2, "action": "COMMENTED", "comment": {"id": 5, "text": text}}]);
        on(format!("GET {REPO}/pull-requests/7/activities?limit=100&start=0")).gives(200, page(activity))
    };
    let say =
        || on(format!("POST {REPO}/pull-requests/7/comments")).with(json!({"text": "superseded by v3"})).gives(201, json!({}));
    let decline = || {
        on(format!("POST {REPO}/pull-requests/7/decline?version=3")).header("x-atlassian-token", "no-check").gives(200, json!({}))
    };
    let gone = || delete().gives(404, json!({"errors": [{"message": "No such branch"}]}));
    let cases = [
        (vec![get("OPEN"), said("x"), say(), get("OPEN"), decline(), get("DECLINED"), delete().status(204)], Closed::Closed),
        (vec![get("OPEN"), said("superseded by v3"), get("OPEN"), decline(), get("DECLINED"), gone()], Closed::Closed),
        (vec![get("MERGED")], Closed::Merged(OTHER.to_owned())),
        (
            vec![get("OPEN"), said("x"), say(), get("OPEN"), decline().status(409), get("MERGED"), get("MERGED")],
            Closed::Merged(OTHER.to_owned()),
        ),
    ];
    for (steps, expected) in cases {
        let scene = scene(Form::BitbucketServer, steps).await;
        let closed = scene.host.close(&scene.repository, BRANCH, Some(7), "superseded by v3").await;
        scene.double.done();
        assert_eq!(closed, Ok(expected));
    }
}

#[tokio::test]
async fn one_that_changes_while_it_is_closed_is_tried_again_later() {
    let mut newer = pull(7, "OPEN");
    newer["version"] = json!(4);
    let newer = on(format!("GET {REPO}/pull-requests/7")).gives(200, newer);
    let decline = on(format!("POST {REPO}/pull-requests/7/decline?version=3")).status(409);
    let scene = scene(Form::BitbucketServer, [get("OPEN"), get("OPEN"), decline, newer]).await;
    let error = scene.host.close(&scene.repository, BRANCH, Some(7), "").await.unwrap_err();
    scene.double.done();
    told(&error);
    assert_eq!(error.kind, keelway_githosts::Kind::Transient);
}

#[tokio::test]
async fn a_look_has_ours() {
    let mut conflicted = pull(8, "OPEN");
    conflicted["properties"]["mergeResult"]["outcome"] = json!("CONFLICTED");
    let mut foreign = pull(9, "OPEN");
    foreign["fromRef"]["id"] = json!("refs/heads/feature/x");
    let list = on(format!("GET {REPO}/pull-requests?state=OPEN&limit=100&start=0"));
    let scene = scene(Form::BitbucketServer, [list.gives(200, page(json!([pull(7, "OPEN"), conflicted, foreign])))]).await;
    let look = scene.host.list(&scene.repository, &[], None).await.unwrap();
    scene.double.done();
    let seen: Vec<_> = look.requests.unwrap().iter().map(|request| (request.number, request.mergeable)).collect();
    assert_eq!((seen, look.mark), (vec![(7, Some(true)), (8, Some(false))], None));
}

#[tokio::test]
async fn merging_is_pinned_to_the_version_that_has_the_head() {
    let test = |can: bool, conflicted: bool| {
        let vetoes = if can { json!([]) } else { json!([{"summaryMessage": "Not enough approvals", "detailedMessage": "x"}]) };
        on(format!("GET {REPO}/pull-requests/7/merge"))
            .gives(200, json!({"canMerge": can, "conflicted": conflicted, "vetoes": vetoes}))
    };
    let post = || on(format!("POST {REPO}/pull-requests/7/merge?version=3"));
    let mut moved = pull(7, "OPEN");
    moved["fromRef"]["latestCommit"] = json!(OTHER);
    let moved = on(format!("GET {REPO}/pull-requests/7")).gives(200, moved);
    let disabled = json!({"errors": [{"message": "The merge strategy no-ff is not enabled"}]});
    let why = "the repository allows no merge commits (The merge strategy no-ff is not enabled)".to_owned();
    let veto = json!({"errors": [{"message": "A veto"}]});
    let cases = [
        (vec![get("OPEN"), test(true, false), get("OPEN"), post().gives(200, pull(7, "MERGED"))], Merge::Merged(OTHER.to_owned())),
        (vec![get("OPEN"), test(false, false)], Merge::NotYet("Not enough approvals".to_owned())),
        (vec![get("OPEN"), test(false, true)], Merge::Refused("it conflicts with the base branch".to_owned())),
        (vec![get("OPEN"), test(true, false), moved], Merge::HeadMoved),
        (vec![get("OPEN"), test(true, false), get("OPEN"), post().gives(400, disabled)], Merge::Refused(why)),
        (vec![get("OPEN"), test(true, false), get("OPEN"), post().gives(409, veto)], Merge::NotYet("A veto".to_owned())),
    ];
    for (steps, expected) in cases {
        let scene = scene(Form::BitbucketServer, steps).await;
        let merge = scene.merge(HEAD).await;
        scene.double.done();
        assert_eq!(merge, Ok(expected));
    }
}

#[tokio::test]
async fn a_conflict_is_asked_for_if_it_is_not_told() {
    let mut unknown = pull(7, "OPEN");
    unknown["properties"] = json!({});
    let get = on(format!("GET {REPO}/pull-requests/7")).gives(200, unknown);
    let test =
        on(format!("GET {REPO}/pull-requests/7/merge")).gives(200, json!({"canMerge": false, "conflicted": true, "vetoes": []}));
    let scene = scene(Form::BitbucketServer, [get, test]).await;
    let request = scene.host.get(&scene.repository, 7).await.unwrap().unwrap();
    scene.double.done();
    assert_eq!(request.mergeable, Some(false));
}

#[tokio::test]
async fn a_file_that_something_else_answers_is_no_file() {
    let page = on(format!("GET {REPO}/raw/apps/staging.yaml?at={BASE}")).gives_bytes("<html>welcome</html>");
    let gone = on(format!("GET {REPO}/raw/apps/staging.yaml?at={BASE}")).status(404);
    for wrong in [page, gone] {
        let mut steps = read(OLD);
        steps[5] = wrong;
        let scene = scene(Form::BitbucketServer, steps).await;
        let error = scene.host.propose(&scene.change()).await.unwrap_err();
        scene.double.done();
        told(&error);
        assert_eq!(error.kind, keelway_githosts::Kind::Nonsense);
    }
}
