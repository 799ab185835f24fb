//! What the strict host's tests do, where a client of the API can see it.

use super::place::{FILE, ODD, Place, SECOND, host};
use keelway_githosts::{Closed, Kind, Merge, Proposed, Request, State};
use serde_json::json;

#[tokio::test]
async fn a_promotion_is_opened_found_listed_and_merged() {
    let Some(place) = Place::new("merged").await else { return };
    let main = place.tip("main").await.unwrap();
    let request = place.opened(1).await;
    assert_eq!(place.tip("promotion/prod/0001").await.as_ref(), Some(&request.head));
    assert_eq!(place.parents(&request.head).await, [main.as_str()], "one commit on the base");
    assert_eq!(place.text(&request.head, "prod/carts.yaml").await, FILE.replace("carts:1.4.0", "carts:2.1"));
    assert_eq!(place.text(&request.head, ODD).await, SECOND.replace("v1", "carts:2.1"));
    assert_eq!(place.text(&request.head, "README.md").await, FILE);
    let pull = place.get(&format!("pulls/{}", request.number)).await;
    assert_eq!((&pull["title"], &pull["body"]), (&json!("Promote shop/carts in prod to carts:2.1"), &json!("!!! DO NOT EDIT !!!")));
    assert_eq!(pull["html_url"], json!(request.url));

    let Proposed::Found(found) = place.client.propose(&place.change(1)).await.unwrap() else { panic!("not found") };
    assert_eq!((found.number, &found.head, &found.state), (request.number, &request.head, &State::Open));
    let look = place.client.list(&place.repository, &[request.number], None).await.unwrap();
    assert_eq!(look.requests.unwrap().iter().map(|request| request.number).collect::<Vec<_>>(), [request.number]);

    place.mergeable(request.number, true).await;
    assert_eq!(place.merge(request.number, &main).await, Ok(Merge::HeadMoved));
    let commit = place
        .until("merged", async || match place.merge(request.number, &request.head).await.unwrap() {
            Merge::Merged(commit) => Some(commit),
            Merge::NotYet(_) => None,
            other => panic!("{other:?}"),
        })
        .await;
    assert_eq!(place.tip("main").await.as_ref(), Some(&commit));
    let now = place.client.get(&place.repository, request.number).await.unwrap().unwrap();
    assert_eq!(now.state, State::Merged { commit: commit.clone() });
    let closed = place.client.close(&place.repository, "promotion/prod/0001", None, "x").await;
    assert_eq!(closed, Ok(Closed::Merged(commit)));
    let mut same = place.change(1);
    same.head = "promotion/prod/other".into();
    assert_eq!(place.client.propose(&same).await, Ok(Proposed::Nothing));
    assert_eq!(place.tip("promotion/prod/other").await, None);
    place.remove().await;
}

#[tokio::test]
async fn closing_says_why_once_and_a_conflict_is_told() {
    let Some(place) = Place::new("closed").await else { return };
    let request = place.opened(1).await;
    for number in [Some(request.number), None, Some(request.number)] {
        let closed = place.client.close(&place.repository, "promotion/prod/0001", number, "superseded by carts:2.2").await;
        assert_eq!(closed, Ok(Closed::Closed));
    }
    assert_eq!(place.comments(request.number).await, ["superseded by carts:2.2"]);
    assert_eq!(place.tip("promotion/prod/0001").await, None);
    assert_eq!(place.client.close(&place.repository, "promotion/prod/9999", None, "x").await, Ok(Closed::Absent));
    // Closed is closed, also without its branch.
    let found = place.client.propose(&place.change(1)).await.unwrap();
    assert!(matches!(found, Proposed::Found(Request { state: State::Closed, .. })), "{found:?}");

    let request = place.opened(2).await;
    place.mergeable(request.number, true).await;
    place.commit("main", "prod/carts.yaml", &FILE.replace("1.4.0", "1.5.0")).await;
    place.mergeable(request.number, false).await;
    let merge = place.merge(request.number, &request.head).await.unwrap();
    assert!(matches!(merge, Merge::Refused(_) | Merge::NotYet(_)), "{merge:?}");
    place.remove().await;
}

#[tokio::test]
async fn squash_merges_and_disabled_methods() {
    let Some(place) = Place::new("squash").await else { return };
    let first = place.opened(1).await;
    place.mergeable(first.number, true).await;
    place.post(&format!("pulls/{}/merge", first.number), json!({"Do": "squash"})).await;
    // The next one begins at the base as it is now: no conflict.
    let second = place.opened(2).await;
    assert_eq!(place.parents(&second.head).await, [place.tip("main").await.unwrap()]);
    place.mergeable(second.number, true).await;
    place.settings(json!({"has_pull_requests": true, "allow_merge_commits": false})).await;
    let merge = place.merge(second.number, &second.head).await.unwrap();
    assert!(matches!(merge, Merge::Refused(_)), "{merge:?}");
    place.remove().await;
}

#[tokio::test]
async fn a_base_with_a_slash_and_a_branch_that_was_left() {
    let Some(place) = Place::new("branches").await else { return };
    place.post("branches", json!({"new_branch_name": "release/1.0", "old_branch_name": "main"})).await;
    // The branch of an attempt that stopped, at what the base was then.
    place.post("branches", json!({"new_branch_name": "promotion/prod/0001", "old_branch_name": "main"})).await;
    place.commit("promotion/prod/0001", "README.md", "else").await;
    let mut change = place.change(1);
    change.base = "release/1.0".into();
    let Proposed::Opened(request) = place.client.propose(&change).await.unwrap() else { panic!("not opened") };
    assert_eq!(place.parents(&request.head).await, [place.tip("release/1.0").await.unwrap()]);
    // The one that has everything already is used.
    place.shut(request.number).await;
    let found = place.client.propose(&change).await.unwrap();
    assert!(matches!(&found, Proposed::Found(found) if found.number == request.number), "{found:?}");
    let closed = place.client.close(&place.repository, &change.head, None, "").await;
    assert_eq!(closed, Ok(Closed::Closed));
    assert_eq!(place.tip(&change.head).await, None);
    let found = place.client.propose(&change).await.unwrap();
    assert!(
        matches!(&found, Proposed::Found(Request { state: State::Closed, number, .. }) if *number == request.number),
        "{found:?}"
    );
    place.remove().await;
}

#[tokio::test]
async fn a_branch_without_its_pull_request_is_used() {
    let Some(place) = Place::new("half").await else { return };
    let request = place.opened(1).await;
    // The same branch for another base has no pull request yet.
    place.post("branches", json!({"new_branch_name": "release", "old_branch_name": "main"})).await;
    let mut change = place.change(1);
    change.base = "release".into();
    place.shut(request.number).await;
    let Proposed::Opened(other) = place.client.propose(&change).await.unwrap() else { panic!("not opened") };
    assert_eq!((&other.head, other.number == request.number), (&request.head, false));
    place.remove().await;
}

#[tokio::test]
async fn it_is_found_on_the_second_page() {
    let Some(place) = Place::new("pages").await else { return };
    let request = place.opened(1).await;
    // The list is ordered by the last change, and ours was changed first.
    for n in 0..50 {
        let branch = format!("feature/{n}");
        let file = json!({"operation": "create", "path": "n.txt", "content": "bg=="});
        place.post("contents", json!({"branch": "main", "new_branch": branch, "message": "work", "files": [file]})).await;
        place.post("pulls", json!({"title": "work", "head": branch, "base": "main"})).await;
    }
    let found = place.client.propose(&place.change(1)).await.unwrap();
    assert!(matches!(&found, Proposed::Found(found) if found.number == request.number), "{found:?}");
    let look = place.client.list(&place.repository, &[request.number], None).await.unwrap();
    assert_eq!(look.requests.unwrap().len(), 1);
    place.remove().await;
}

#[tokio::test]
async fn what_cannot_be_done_leaves_no_branch() {
    let Some(place) = Place::new("refused").await else { return };
    let unknown = "0123456789abcdef0123456789abcdef01234567";
    let error = host(&place.repository, unknown).propose(&place.change(1)).await.unwrap_err();
    assert_eq!((error.kind, error.message.contains(unknown)), (Kind::Credentials, false), "{error}");
    let gone = place.sibling("keelway-was-never-here");
    for (repository, base, marker, expected) in [
        (&place.repository, "none", "shop:carts:prod", Kind::BaseMissing),
        (&place.repository, "main", "shop:carts:nowhere", Kind::NoMarker),
        (&gone, "main", "shop:carts:prod", Kind::NotFound),
    ] {
        let mut change = place.change(1);
        change.repository = repository.clone();
        change.base = base.into();
        change.marker = marker.into();
        let error = place.client.propose(&change).await.unwrap_err();
        assert_eq!(error.kind, expected, "{repository} {base}: {error}");
    }
    place.settings(json!({"archived": true})).await;
    let error = place.client.propose(&place.change(1)).await.unwrap_err();
    assert_eq!((error.kind, error.message.contains("is archived")), (Kind::Refused, true), "{error}");
    assert_eq!(place.get("branches").await.as_array().unwrap().len(), 1);
    place.remove().await;
}
