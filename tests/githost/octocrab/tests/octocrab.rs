//! GitHub's form, through a client that others wrote: what octocrab sends is accepted, and what the host answers fits octocrab's
//! types.

use keelway_githost::{Form, Host, Method, Options};
use octocrab::models::IssueState;
use octocrab::models::pulls::{MergeableState, PullRequest};
use octocrab::params::State;
use octocrab::params::pulls::MergeMethod;
use octocrab::params::repos::Reference;
use octocrab::{Error, Octocrab};
use serde_json::{Value, json};

const FILE: &str = "image: carts:1.4.0 # {\"$promotion\": \"shop:carts:prod\"}\r\n";

fn host() -> (Host, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let host = Host::start(Options { form: Form::GitHub, ..Options::new(directory.path(), "secret") }).unwrap();
    host.people().create("shop/config", &[("prod/carts.yaml", FILE)]).unwrap();
    (host, directory)
}

fn client(host: &Host, token: &str) -> Octocrab {
    Octocrab::builder().base_uri(host.api(Form::GitHub)).unwrap().personal_token(token).build().unwrap()
}

/// A commit on a new branch by way of the Git database, which octocrab has no types for.
async fn proposed(client: &Octocrab, branch: &str, text: &str) -> String {
    let git = "/repos/shop/config/git";
    let main = client.repos("shop", "config").get_ref(&Reference::Branch("main".into())).await.unwrap();
    let octocrab::models::repos::Object::Commit { sha: main, .. } = main.object else { panic!("{main:?}") };
    let base: Value = client.get(format!("{git}/commits/{main}"), None::<&()>).await.unwrap();
    let blob: Value = client.post(format!("{git}/blobs"), Some(&json!({"content": text, "encoding": "utf-8"}))).await.unwrap();
    let entry = json!([{"path": "prod/carts.yaml", "mode": "100644", "type": "blob", "sha": blob["sha"]}]);
    let tree: Value =
        client.post(format!("{git}/trees"), Some(&json!({"base_tree": base["tree"]["sha"], "tree": entry}))).await.unwrap();
    let commit = json!({"message": "carts 1.5.0", "tree": tree["sha"], "parents": [main]});
    let commit: Value = client.post(format!("{git}/commits"), Some(&commit)).await.unwrap();
    let sha = commit["sha"].as_str().unwrap();
    client.repos("shop", "config").create_ref(&Reference::Branch(branch.into()), sha).await.unwrap();
    sha.to_owned()
}

async fn opened(client: &Octocrab, branch: &str) -> Result<PullRequest, Error> {
    client.pulls("shop", "config").create("carts 1.5.0", branch, "main").body("by Keelway").send().await
}

/// The status and the words of GitHub's error.
#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, Error>) -> (u16, String) {
    let Error::GitHub { source, .. } = result.unwrap_err() else { panic!("no error of GitHub's") };
    let more = source.errors.iter().flatten().find_map(|error| error["message"].as_str()).unwrap_or_default();
    (source.status_code.as_u16(), format!("{} {more}", source.message).trim().to_owned())
}

#[tokio::test]
async fn a_promotion_from_the_user_to_the_merge() {
    let (host, _directory) = host();
    let client = client(&host, "secret");
    assert_eq!(client.current().user().await.unwrap().login, "keelway");
    let repository = client.repos("shop", "config").get().await.unwrap();
    assert_eq!((repository.default_branch.as_deref(), repository.private), (Some("main"), Some(true)));
    let text = FILE.replace("1.4.0", "1.5.0");
    let head = proposed(&client, "keelway/carts", &text).await;
    let pull = opened(&client, "keelway/carts").await.unwrap();
    assert_eq!((pull.number, pull.head.sha.as_str(), pull.state), (1, head.as_str(), Some(IssueState::Open)));
    let pulls = client.pulls("shop", "config");
    let pull = pulls.get(1).await.unwrap();
    assert_eq!((pull.mergeable, pull.mergeable_state), (Some(true), Some(MergeableState::Clean)));
    let found = pulls.list().state(State::Open).head("shop:keelway/carts").base("main").per_page(1).send().await.unwrap();
    assert_eq!(found.items.iter().map(|pull| pull.number).collect::<Vec<_>>(), [1]);
    client.issues("shop", "config").create_comment(1, "hello").await.unwrap();
    let comments = client.issues("shop", "config").list_comments(1).send().await.unwrap();
    assert_eq!(comments.items[0].body.as_deref(), Some("hello"));
    pulls.update(1).title("carts 1.5.0 to prod").send().await.unwrap();
    let merged = pulls.merge(1).sha(&head).method(MergeMethod::Squash).title("carts").message("1.5.0").send().await.unwrap();
    assert!(merged.merged);
    assert!(pulls.is_merged(1).await.unwrap());
    assert_eq!(pulls.get(1).await.unwrap().merge_commit_sha, merged.sha);
    client.repos("shop", "config").delete_ref(&Reference::Branch("keelway/carts".into())).await.unwrap();
    let content = client.repos("shop", "config").get_content().path("prod/carts.yaml").r#ref("main").send().await.unwrap();
    assert_eq!(content.items[0].decoded_content().as_deref(), Some(text.as_str()));
    assert!(host.violations().is_empty(), "{:?}", host.violations());
}

#[tokio::test]
async fn its_errors_are_githubs() {
    let (host, _directory) = host();
    let client = client(&host, "secret");
    let pulls = client.pulls("shop", "config");
    let head = proposed(&client, "one", "a: 1\n").await;
    opened(&client, "one").await.unwrap();
    assert_eq!(
        refused(opened(&client, "one").await),
        (422, "Validation Failed A pull request already exists for shop:one.".into())
    );
    let main = host.people().branches("shop/config").unwrap()[0].1.clone();
    client.repos("shop", "config").create_ref(&Reference::Branch("same".into()), main).await.unwrap();
    assert_eq!(refused(opened(&client, "same").await), (422, "Validation Failed No commits between main and same".into()));
    let again = client.repos("shop", "config").create_ref(&Reference::Branch("one".into()), &head).await;
    assert_eq!(refused(again), (422, "Reference already exists".into()));
    let other = pulls.merge(1).sha("1234567890123456789012345678901234567890").send().await;
    assert_eq!(refused(other), (409, "Head branch was modified. Review and try the merge again.".into()));
    host.people().commit("shop/config", "main", "in between", &[("prod/carts.yaml", Some(b"a: 2\n"))]).unwrap();
    assert_eq!(refused(pulls.merge(1).send().await), (405, "Pull Request is not mergeable".into()));
    host.people().allow("shop/config", &[Method::Squash]).unwrap();
    pulls.update(1).state(octocrab::params::pulls::State::Closed).send().await.unwrap();
    assert_eq!(pulls.list().state(State::Closed).send().await.unwrap().items.len(), 1);
    assert_eq!(refused(pulls.get(9).await), (404, "Not Found".into()));
    assert_eq!(refused(client.repos("shop", "other").get().await), (404, "Not Found".into()));
    assert!(host.violations().is_empty(), "{:?}", host.violations());
    let stranger = Octocrab::builder().base_uri(host.api(Form::GitHub)).unwrap().personal_token("wrong").build().unwrap();
    assert_eq!(refused(stranger.current().user().await), (401, "Bad credentials".into()));
    assert_eq!(host.violations().len(), 1);
}

#[tokio::test]
async fn its_pages_are_followed() {
    let (host, _directory) = host();
    let people = host.people();
    for number in 0..5 {
        let branch = format!("b{number}");
        people.commit("shop/config", &branch, "x", &[("x", Some(branch.as_bytes()))]).unwrap();
        people.open("shop/config", &branch, "main", &branch).unwrap();
    }
    let client = client(&host, "secret");
    let first = client.pulls("shop", "config").list().per_page(2).send().await.unwrap();
    let all: Vec<PullRequest> = client.all_pages(first).await.unwrap();
    assert_eq!(all.iter().map(|pull| pull.number).collect::<Vec<_>>(), [5, 4, 3, 2, 1]);
    assert_eq!(host.calls().len(), 3);
    assert!(host.violations().is_empty(), "{:?}", host.violations());
}
