//! GitHub: proposing.

use super::double::*;
use keelway_githosts::{Form, HostError, Kind, Proposed, State};
use serde_json::{Value, json};

const REPO: &str = "/repos/acme/shop";

pub fn pull(number: u64, state: &str) -> Value {
    let repo = json!({"full_name": "acme/shop"});
    json!({
        "number": number, "html_url": format!("https://git.test/acme/shop/pull/{number}"),
        "state": if state == "open" { "open" } else { "closed" },
        "merged_at": if state == "merged" { json!("2026-11-22T10:00:00Z") } else { Value::Null },
        "merge_commit_sha": OTHER, "mergeable": null,
        "head": {"ref": BRANCH, "sha": HEAD, "repo": repo}, "base": {"ref": "main", "sha": BASE, "repo": repo},
    })
}

pub fn find(answer: Value) -> Step {
    on(format!("GET {REPO}/pulls?head=acme:{BRANCH}&state=all&per_page=100&page=1")).gives(200, answer)
}

fn access() -> Step {
    on(format!("GET {REPO}")).gives(200, json!({"permissions": {"push": true}, "private": true}))
}

fn tip(branch: &str, commit: Option<&str>) -> Step {
    let step = on(format!("GET {REPO}/git/ref/heads/{branch}"));
    match commit {
        Some(commit) => step.gives(200, json!({"ref": format!("refs/heads/{branch}"), "object": {"sha": commit}})),
        None => step.gives(404, json!({"message": "Not Found"})),
    }
}

fn tarball(files: &[(&str, &str)]) -> Step {
    on(format!("GET {REPO}/tarball/{BASE}")).gives_bytes(archive(files))
}

fn file(path: &str, at: &str, content: &str) -> Step {
    let body = json!({"type": "file", "encoding": "base64", "content": base64(content), "sha": "blob"});
    on(format!("GET {REPO}/contents/{path}?ref={at}")).gives(200, body)
}

/// Up to where the file's new text is known.
fn read() -> Vec<Step> {
    let files =
        [("acme-shop-b0/apps/staging.yaml", OLD), ("acme-shop-b0/apps/other.yaml", "a: 1\n"), ("acme-shop-b0/README.md", OLD)];
    vec![find(json!([])), access(), tip("main", Some(BASE)), tarball(&files), file("apps/staging.yaml", BASE, OLD)]
}

/// The new commit.
fn commit() -> Vec<Step> {
    vec![
        on(format!("GET {REPO}/git/commits/{BASE}")).gives(200, json!({"tree": {"sha": "basetree"}, "parents": []})),
        on(format!("POST {REPO}/git/blobs"))
            .with(json!({"content": base64(NEW), "encoding": "base64"}))
            .gives(201, json!({"sha": "newblob"})),
        on(format!("POST {REPO}/git/trees"))
            .with(json!({"base_tree": "basetree",
                "tree": [{"path": "apps/staging.yaml", "mode": "100644", "type": "blob", "sha": "newblob"}]}))
            .gives(201, json!({"sha": "newtree"})),
        on(format!("POST {REPO}/git/commits"))
            .with(json!({"message": "Promote", "tree": "newtree", "parents": [BASE]}))
            .gives(201, json!({"sha": HEAD})),
    ]
}

fn create() -> Step {
    on(format!("POST {REPO}/git/refs")).with(json!({"ref": format!("refs/heads/{BRANCH}"), "sha": HEAD}))
}

fn open() -> Step {
    on(format!("POST {REPO}/pulls")).with(json!({"title": "Promote shop/carts in staging to v2", "head": BRANCH, "base": "main",
        "body": "!!! DO NOT EDIT !!!"}))
}

#[tokio::test]
async fn a_pull_request_is_opened_from_the_base_as_it_is_now() {
    let mut steps = read();
    steps[0] = find(json!([]))
        .header("authorization", &format!("Bearer {TOKEN}"))
        .header("accept", "application/vnd.github+json")
        .header("x-github-api-version", "2022-11-28")
        .header("user-agent", concat!("keelway/", env!("CARGO_PKG_VERSION")));
    steps.push(tip(BRANCH, None));
    steps.extend(commit());
    steps.extend([create().gives(201, json!({})), open().gives(201, pull(7, "open"))]);
    let scene = scene(Form::GitHub, steps).await;
    let proposed = scene.host.propose(&scene.change()).await.unwrap();
    scene.double.done();
    let Proposed::Opened(request) = proposed else { panic!("{proposed:?}") };
    assert_eq!((request.number, request.url.as_str()), (7, "https://git.test/acme/shop/pull/7"));
    assert_eq!((request.head.as_str(), request.branch.as_str()), (HEAD, BRANCH));
    assert_eq!((request.state, request.mergeable), (State::Open, None));
}

#[tokio::test]
async fn a_long_title_is_shortened_to_what_hosts_take() {
    let mut steps = read();
    steps.push(tip(BRANCH, None));
    steps.extend(commit());
    let title = format!("{}…", "é".repeat(254));
    let open = on(format!("POST {REPO}/pulls"))
        .with(json!({"title": title, "head": BRANCH, "base": "main", "body": "!!! DO NOT EDIT !!!"}));
    steps.extend([create().gives(201, json!({})), open.gives(201, pull(7, "open"))]);
    let scene = scene(Form::GitHub, steps).await;
    let mut change = scene.change();
    change.title = "é".repeat(300);
    scene.host.propose(&change).await.unwrap();
    scene.double.done();
}

#[tokio::test]
async fn several_files_are_one_commit_and_stay_executable() {
    let files = [("r/a.yaml", OLD), ("r/ü b/run.yaml", OLD)];
    let steps = [find(json!([])), access(), tip("main", Some(BASE)), tarball(&files), file("a.yaml", BASE, OLD)];
    let mut steps = Vec::from(steps);
    steps.extend([file("%C3%BC%20b/run.yaml", BASE, OLD), tip(BRANCH, None)]);
    let blob =
        |n: u32| on(format!("POST {REPO}/git/blobs")).containing(&base64(NEW)).gives(201, json!({"sha": format!("blob{n}")}));
    let mut made = commit().into_iter();
    steps.extend([made.next().unwrap(), blob(1), blob(2)]);
    let entry = |path: &str, mode: &str, sha: &str| json!({"path": path, "mode": mode, "type": "blob", "sha": sha});
    let tree = [entry("a.yaml", "100644", "blob1"), entry("ü b/run.yaml", "100755", "blob2")];
    steps.push(
        on(format!("POST {REPO}/git/trees"))
            .with(json!({"base_tree": "basetree", "tree": tree}))
            .gives(201, json!({"sha": "newtree"})),
    );
    steps.extend(made.skip(2));
    steps.extend([create().gives(201, json!({})), open().gives(201, pull(7, "open"))]);
    let scene = scene(Form::GitHub, steps).await;
    scene.host.propose(&scene.change()).await.unwrap();
    scene.double.done();
}

#[tokio::test]
async fn what_is_there_is_found_before_anything_is_written() {
    let closed = pull(9, "closed");
    for (answer, number, state) in [
        (json!([pull(7, "closed"), pull(5, "open"), pull(6, "merged")]), 5, State::Open),
        (json!([pull(7, "closed"), pull(5, "merged"), pull(4, "closed")]), 5, State::Merged { commit: OTHER.to_owned() }),
        (json!([pull(7, "closed"), closed.clone(), pull(8, "closed")]), 9, State::Closed),
    ] {
        let scene = scene(Form::GitHub, [find(answer)]).await;
        let proposed = scene.host.propose(&scene.change()).await.unwrap();
        scene.double.done();
        let Proposed::Found(request) = proposed else { panic!("{proposed:?}") };
        assert_eq!((request.number, request.state), (number, state));
    }
}

#[tokio::test]
async fn it_is_found_on_a_later_page_and_never_in_a_fork() {
    let mut fork = pull(3, "open");
    fork["head"]["repo"] = json!({"full_name": "mallory/shop"});
    let mut gone = pull(4, "open");
    gone["head"]["repo"] = Value::Null;
    let next = "<https://git.test/x?page=2>; rel=\"next\", <https://git.test/x?page=2>; rel=\"last\"";
    let second =
        on(format!("GET {REPO}/pulls?head=acme:{BRANCH}&state=all&per_page=100&page=2")).gives(200, json!([pull(2, "open")]));
    let scene = scene(Form::GitHub, [find(json!([fork, gone])).answer_header("link", next), second]).await;
    let proposed = scene.host.propose(&scene.change()).await.unwrap();
    scene.double.done();
    assert!(matches!(proposed, Proposed::Found(request) if request.number == 2));
}

#[tokio::test]
async fn a_pull_request_whose_answer_was_lost_is_adopted() {
    let mut steps = read();
    steps.push(tip(BRANCH, None));
    steps.extend(commit());
    let exists = json!({"message": "Validation Failed", "errors": [{"message": "A pull request already exists for acme:x."}]});
    steps.extend([create().gives(201, json!({})), open().gives(422, exists), find(json!([pull(7, "open")]))]);
    let scene = scene(Form::GitHub, steps).await;
    let proposed = scene.host.propose(&scene.change()).await.unwrap();
    scene.double.done();
    assert!(matches!(proposed, Proposed::Found(request) if request.number == 7));
}

#[tokio::test]
async fn another_refusal_is_told_as_the_host_says_it() {
    let mut steps = read();
    steps.push(tip(BRANCH, None));
    steps.extend(commit());
    let refusal = json!({"message": "Validation Failed", "errors": [{"message": "head is protected"}]});
    steps.extend([create().gives(201, json!({})), open().gives(422, refusal), find(json!([]))]);
    let scene = scene(Form::GitHub, steps).await;
    let error = scene.host.propose(&scene.change()).await.unwrap_err();
    scene.double.done();
    told(&error);
    assert_eq!(error.kind, Kind::Refused);
    assert!(error.message.contains("head is protected"), "{error}");
}

#[tokio::test]
async fn a_branch_of_a_crashed_attempt_is_used_if_it_is_as_wanted() {
    let mut steps = read();
    steps.push(tip(BRANCH, Some(HEAD)));
    steps.push(on(format!("GET {REPO}/git/commits/{HEAD}")).gives(200, json!({"tree": {"sha": "t"}, "parents": [{"sha": BASE}]})));
    steps.extend([file("apps/staging.yaml", HEAD, NEW), open().gives(201, pull(7, "open"))]);
    let scene = scene(Form::GitHub, steps).await;
    assert!(matches!(scene.host.propose(&scene.change()).await.unwrap(), Proposed::Opened(_)));
    scene.double.done();
}

#[tokio::test]
async fn a_stale_branch_is_replaced_without_its_commits() {
    let parents = |commit: &str, parents: &[&str]| {
        let parents: Vec<Value> = parents.iter().map(|parent| json!({"sha": parent})).collect();
        on(format!("GET {REPO}/git/commits/{commit}")).gives(200, json!({"tree": {"sha": "t"}, "parents": parents}))
    };
    // On an older base; with other content; with a commit of somebody else; with a merge.
    let stale = [
        vec![parents(OTHER, &["older"])],
        vec![parents(OTHER, &[BASE]), file("apps/staging.yaml", OTHER, OLD)],
        vec![parents(OTHER, &["own"])],
        vec![parents(OTHER, &[BASE, "merged"])],
    ];
    for stale in stale {
        let mut steps = read();
        steps.push(tip(BRANCH, Some(OTHER)));
        steps.extend(stale);
        steps.push(find(json!([])));
        steps.extend(commit());
        let update = on(format!("PATCH {REPO}/git/refs/heads/{BRANCH}")).with(json!({"sha": HEAD, "force": true}));
        steps.extend([update.gives(200, json!({})), open().gives(201, pull(7, "open"))]);
        let scene = scene(Form::GitHub, steps).await;
        assert!(matches!(scene.host.propose(&scene.change()).await.unwrap(), Proposed::Opened(_)));
        scene.double.done();
    }
}

#[tokio::test]
async fn a_branch_that_appears_meanwhile_is_not_taken_from_under_its_pull_request() {
    let mut steps = read();
    steps.push(tip(BRANCH, None));
    steps.extend(commit());
    steps.push(create().gives(422, json!({"message": "Reference already exists"})));
    steps.push(find(json!([pull(7, "open")])));
    let scene = scene(Form::GitHub, steps).await;
    assert!(matches!(scene.host.propose(&scene.change()).await.unwrap(), Proposed::Found(request) if request.number == 7));
    scene.double.done();
}

#[tokio::test]
async fn nothing_to_change_leaves_no_branch() {
    for tip_of_branch in [None, Some(OTHER)] {
        let files = [("r/apps/staging.yaml", NEW)];
        let mut steps =
            vec![find(json!([])), access(), tip("main", Some(BASE)), tarball(&files), file("apps/staging.yaml", BASE, NEW)];
        steps.push(tip(BRANCH, tip_of_branch));
        if tip_of_branch.is_some() {
            steps.push(on(format!("DELETE {REPO}/git/refs/heads/{BRANCH}")).status(204));
        }
        let scene = scene(Form::GitHub, steps).await;
        assert_eq!(scene.host.propose(&scene.change()).await, Ok(Proposed::Nothing));
        scene.double.done();
    }
}

#[tokio::test]
async fn no_marker_is_told_with_the_marker_and_what_was_passed_over() {
    let other = OLD.replace("staging", "production");
    let large = format!("{OLD}{}", " ".repeat(1 << 20));
    let files = [
        ("r/a.yaml", other.as_str()),
        ("r/large.yaml", &large),
        ("r/block.yaml", "a: | # {\"$promotion\": \"shop:carts:staging\"}\n  v1\n"),
    ];
    let block = file("block.yaml", BASE, files[2].1);
    let scene = scene(Form::GitHub, [find(json!([])), access(), tip("main", Some(BASE)), tarball(&files), block]).await;
    let error = scene.host.propose(&scene.change()).await.unwrap_err();
    scene.double.done();
    told(&error);
    assert_eq!(error.kind, Kind::NoMarker);
    for expected in
        ["# {\"$promotion\": \"shop:carts:staging\"}", "large.yaml is larger than 1 MiB", "block.yaml: the marker in line 1"]
    {
        assert!(error.message.contains(expected), "{expected}: {error}");
    }
}

#[tokio::test]
async fn the_archive_only_tells_where_the_marker_is() {
    // The archive has other line ends, as `eol=crlf` makes them: the content that is written comes from the repository.
    let packed = OLD.replace('\n', "\r\n");
    let mut steps = read();
    steps[3] = tarball(&[("acme-shop-b0/apps/staging.yaml", &packed)]);
    steps.push(tip(BRANCH, None));
    steps.extend(commit());
    steps.extend([create().gives(201, json!({})), open().gives(201, pull(7, "open"))]);
    let scene = scene(Form::GitHub, steps).await;
    scene.host.propose(&scene.change()).await.unwrap();
    scene.double.done();
}

#[tokio::test]
async fn without_a_base_branch_nothing_is_written() {
    let scene = scene(Form::GitHub, [find(json!([])), access(), tip("main", None)]).await;
    let error = scene.host.propose(&scene.change()).await.unwrap_err();
    scene.double.done();
    told(&error);
    assert_eq!(error.kind, Kind::BaseMissing);
    assert!(error.message.contains("\"main\"") && error.message.contains("baseBranch"), "{error}");
}

#[tokio::test]
async fn credentials_that_may_not_write_are_told_before_anything_is_written() {
    let answers = [
        (on(format!("GET {REPO}")).gives(200, json!({"permissions": {"push": false}})), "read and write access"),
        (access().answer_header("x-oauth-scopes", "gist, public_repo"), "public_repo, but acme/shop takes repo"),
        (on(format!("GET {REPO}")).gives(401, json!({"message": "Bad credentials"})), "valid token"),
        (on(format!("GET {REPO}")).gives(200, json!({"archived": true})), "archived"),
    ];
    for (answer, expected) in answers {
        let scene = scene(Form::GitHub, [find(json!([])), answer]).await;
        let error = scene.host.propose(&scene.change()).await.unwrap_err();
        scene.double.done();
        told(&error);
        assert!(error.message.contains(expected), "{expected}: {error}");
    }
}

#[tokio::test]
async fn only_branches_of_promotions_are_written() {
    let scene = scene(Form::GitHub, []).await;
    for head in [
        "main",
        "promotion/",
        "promotion",
        "promotion/../main",
        "promotion/a b",
        "promotion/a?x",
        "promotion/.a",
        "promotion/a.lock",
    ] {
        let mut change = scene.change();
        change.head = head.to_owned();
        assert_eq!(scene.host.propose(&change).await.unwrap_err().kind, Kind::Refused, "{head}");
        assert_eq!(scene.host.close(&scene.repository, head, None, "x").await.unwrap_err().kind, Kind::Refused, "{head}");
    }
    scene.double.done();
}

/// The id of a blob with the old text, as git has it.
const BLOB: &str = "e098771ce3de11d355d4fe9316ad3152d51fe2cf";

fn first(packed: &str) -> Vec<Step> {
    vec![tip("main", Some(BASE)), tarball(&[("acme-shop-b0/apps/staging.yaml", packed)])]
}

fn begin() -> Step {
    on(format!("POST {REPO}/git/refs")).with(json!({"ref": format!("refs/heads/{BRANCH}"), "sha": BASE}))
}

async fn first_attempt(steps: Vec<Step>) -> Result<Proposed, HostError> {
    let scene = scene(Form::GitHub, steps).await;
    let proposed = scene.host.propose(&keelway_githosts::Change { first: true, ..scene.change() }).await;
    scene.double.done();
    proposed
}

#[tokio::test]
async fn a_first_attempt_looks_for_nothing_and_lets_the_host_compare_what_it_replaces() {
    let mut steps = first(OLD);
    let put = on(format!("PUT {REPO}/contents/apps/staging.yaml"))
        .with(json!({"message": "Promote", "content": base64(NEW), "sha": BLOB, "branch": BRANCH}));
    steps.extend([begin().gives(201, json!({})), put.gives(200, json!({"content": {}, "commit": {"sha": HEAD}}))]);
    steps.push(open().gives(201, pull(7, "open")));
    assert!(matches!(first_attempt(steps).await, Ok(Proposed::Opened(request)) if request.number == 7));
}

#[tokio::test]
async fn a_first_attempt_whose_archive_has_other_bytes_reads_the_files() {
    // As `eol=crlf` makes them.
    let packed = OLD.replace('\n', "\r\n");
    let mut steps = first(&packed);
    let put = on(format!("PUT {REPO}/contents/apps/staging.yaml")).containing(BRANCH);
    let differs = json!({"message": "apps/staging.yaml does not match 0123"});
    steps.extend([begin().gives(201, json!({})), put.gives(409, differs)]);
    let mut careful = read();
    careful[3] = tarball(&[("acme-shop-b0/apps/staging.yaml", &packed)]);
    steps.extend(careful);
    steps.extend([tip(BRANCH, Some(BASE)), file("apps/staging.yaml", BASE, OLD), find(json!([]))]);
    steps.extend(commit());
    let update = on(format!("PATCH {REPO}/git/refs/heads/{BRANCH}")).with(json!({"sha": HEAD, "force": true}));
    steps.extend([update.gives(200, json!({})), open().gives(201, pull(7, "open"))]);
    assert!(matches!(first_attempt(steps).await, Ok(Proposed::Opened(request)) if request.number == 7));
}

#[tokio::test]
async fn a_first_attempt_that_is_refused_says_what_is_missing() {
    // GitHub answers 404 to a token that may read only.
    let mut steps = first(OLD);
    steps.push(begin().gives(404, json!({"message": "Not Found"})));
    steps.extend([find(json!([])), on(format!("GET {REPO}")).gives(200, json!({"permissions": {"push": false}}))]);
    let error = first_attempt(steps).await.unwrap_err();
    assert!(error.kind == Kind::Forbidden && error.message.contains("read and write access"), "{error}");
    let steps = vec![tip("main", None), find(json!([])), access(), tip("main", None)];
    assert_eq!(first_attempt(steps).await.unwrap_err().kind, Kind::BaseMissing);
}
