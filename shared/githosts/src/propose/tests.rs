use super::*;
use crate::repository::Form;
use crate::settle::{Closed, close};
use crate::twin::{Fault, Twin};

const BRANCH: &str = "promotion/staging/01";
const MARKED: &str = "tag: v1 # {\"$promotion\": \"shop:carts:staging\"}\n";

fn change() -> Change {
    Change {
        repository: Repository::parse(Form::GitHub, "https://git.test/acme/shop").unwrap(),
        base: "main".to_owned(),
        head: BRANCH.to_owned(),
        marker: "shop:carts:staging".to_owned(),
        version: "v2".to_owned(),
        title: "Promote".to_owned(),
        body: String::new(),
        message: "Promote".to_owned(),
        first: false,
    }
}

fn twin() -> Twin {
    let twin = Twin::default();
    twin.lock().push("a.yaml", MARKED);
    twin.lock().push("b/c.yaml", MARKED);
    twin
}

/// What must hold after the pull request was opened: there is one, its branch starts at the base of that time, and it has the
/// wanted files.
fn check(twin: &Twin, parent: &str) {
    let world = twin.lock();
    let open: Vec<&Request> = world.requests.iter().filter(|request| request.state == State::Open).collect();
    assert_eq!(open.len(), 1);
    assert_eq!(world.requests.len(), 1, "none was opened and lost");
    assert_eq!(world.branches.get(BRANCH), Some(&open[0].head));
    let commit = &world.commits[&open[0].head];
    assert_eq!(commit.parent.as_deref(), Some(parent));
    for path in ["a.yaml", "b/c.yaml"] {
        assert_eq!(commit.files[path], MARKED.replace("v1", "v2"));
    }
}

/// Each request in turn is lost, or its answer is; the next attempt succeeds. The base may change in between.
#[tokio::test]
async fn an_attempt_that_stops_anywhere_is_finished_by_the_next() {
    for first in [false, true] {
        let whole = twin();
        propose(&whole, &change(), first, &mut None).await.unwrap();
        let calls = whole.lock().calls;
        assert_eq!(calls, if first { 7 } else { 10 }, "nothing is looked for that cannot be there");
        stops_anywhere(calls, first).await;
    }
}

async fn stops_anywhere(calls: usize, first: bool) {
    for call in 1..=calls {
        for fault in [Fault::Request, Fault::Answer] {
            for base_moves in [false, true] {
                let twin = twin();
                twin.lock().fault = Some((call, fault));
                let error = propose(&twin, &change(), first, &mut None).await.unwrap_err();
                assert_eq!(error.kind, Kind::Transient);
                let opened = !twin.lock().requests.is_empty();
                let mut parent = twin.lock().branches["main"].clone();
                if base_moves {
                    twin.lock().push("z.yaml", "z: 1\n");
                    // A pull request that is open already stays as it is.
                    parent = if opened { parent } else { twin.lock().branches["main"].clone() };
                }
                let again = propose(&twin, &change(), false, &mut None).await.unwrap();
                assert_eq!(matches!(again, Proposed::Found(_)), opened, "call {call} {fault:?}");
                check(&twin, &parent);
                let writes = twin.lock().writes.len();
                assert!(matches!(propose(&twin, &change(), false, &mut None).await.unwrap(), Proposed::Found(_)));
                assert_eq!(twin.lock().writes.len(), writes, "what is there is only read");
            }
        }
    }
}

#[tokio::test]
async fn a_closed_one_is_never_opened_again() {
    let twin = twin();
    propose(&twin, &change(), false, &mut None).await.unwrap();
    twin.lock().requests[0].state = State::Closed;
    let writes = twin.lock().writes.len();
    assert!(matches!(
        propose(&twin, &change(), false, &mut None).await.unwrap(),
        Proposed::Found(Request { state: State::Closed, .. })
    ));
    assert_eq!(twin.lock().writes.len(), writes);
}

#[tokio::test]
async fn closing_that_stops_anywhere_is_finished_by_the_next() {
    for number in [None, Some(1)] {
        for call in 1..=6 {
            for fault in [Fault::Request, Fault::Answer] {
                let twin = twin();
                propose(&twin, &change(), false, &mut None).await.unwrap();
                twin.lock().calls = 0;
                twin.lock().fault = Some((call, fault));
                let of = change().repository;
                let first = close(&twin, &of, (BRANCH, number), "superseded by v3").await;
                assert_eq!(first.is_err(), call <= 5, "five requests");
                twin.lock().fault = None;
                assert_eq!(close(&twin, &of, (BRANCH, number), "superseded by v3").await, Ok(Closed::Closed));
                let world = twin.lock();
                assert_eq!(world.requests[0].state, State::Closed);
                assert_eq!(world.comments, [(1, "superseded by v3".to_owned())]);
                assert!(!world.branches.contains_key(BRANCH));
            }
        }
    }
}

/// A merge at the moment of closing is reported as a merge.
#[tokio::test]
async fn one_that_is_merged_in_the_moment_it_is_closed_is_told_as_merged() {
    let (mut merged, mut closed) = (0, 0);
    for call in 1..=6 {
        let twin = twin();
        propose(&twin, &change(), false, &mut None).await.unwrap();
        twin.lock().calls = 0;
        twin.lock().merge = Some(call);
        let how = close(&twin, &change().repository, (BRANCH, Some(1)), "x").await.unwrap();
        match (&twin.lock().requests[0].state, how) {
            (State::Merged { commit }, Closed::Merged(told)) if *commit == told => merged += 1,
            (State::Closed, Closed::Closed) => closed += 1,
            (state, how) => panic!("it is {state:?} and was told as {how:?}"),
        }
    }
    assert!(merged >= 3 && closed >= 2, "{merged} merged, {closed} closed");
}

#[tokio::test]
async fn what_came_about_in_another_way_needs_no_branch() {
    let twin = twin();
    twin.lock().fault = Some((9, Fault::Answer));
    assert!(propose(&twin, &change(), false, &mut None).await.is_err());
    assert!(twin.lock().branches.contains_key(BRANCH), "the first attempt left a branch");
    for path in ["a.yaml", "b/c.yaml"] {
        twin.lock().push(path, &MARKED.replace("v1", "v2"));
    }
    assert_eq!(propose(&twin, &change(), false, &mut None).await, Ok(Proposed::Nothing));
    assert!(!twin.lock().branches.contains_key(BRANCH));
}

/// A first attempt treats what exists like any other attempt.
#[tokio::test]
async fn a_first_attempt_takes_over_what_is_there_all_the_same() {
    let twin = twin();
    propose(&twin, &change(), true, &mut None).await.unwrap();
    for state in [State::Open, State::Closed] {
        twin.lock().requests[0].state = state.clone();
        let found = propose(&twin, &change(), true, &mut None).await.unwrap();
        assert!(matches!(found, Proposed::Found(request) if request.state == state));
        assert_eq!(twin.lock().requests.len(), 1);
    }
    twin.lock().requests.clear();
    assert!(matches!(propose(&twin, &change(), true, &mut None).await, Ok(Proposed::Opened(_))), "a branch alone is used");
}

/// Marked values are promoted together or not at all, and the error names those that cannot be edited.
#[tokio::test]
async fn a_marked_file_that_cannot_be_edited_fails_the_attempt_by_its_name() {
    for (path, content, why) in [
        ("broken.yaml", format!("a: [\n{MARKED}"), "not valid YAML"),
        ("large.yaml", format!("{MARKED}# {}\n", "x".repeat(2 << 20)), "larger than 1 MiB"),
        ("late.yaml", format!("# {}\n{MARKED}", "x".repeat(2 << 20)), "larger than 1 MiB"),
        ("list.yaml", "tags: # {\"$promotion\": \"shop:carts:staging\"}\n  - v1\n".to_owned(), "does not stand beside a scalar"),
    ] {
        let twin = twin();
        twin.lock().push(path, &content);
        let error = propose(&twin, &change(), false, &mut None).await.unwrap_err();
        assert_eq!(error.kind, Kind::Unusable, "{error}");
        assert!(error.message.contains(path) && error.message.contains(why), "{error}");
        assert_eq!(twin.lock().writes, Vec::<String>::new(), "{path}");
    }
    // The files of other environments are left alone.
    for (path, content) in [
        ("broken.yaml", "a: [\ntag: v1 # {\"$promotion\": \"shop:carts:staging-eu\"}\n".to_owned()),
        ("large.yaml", format!("{}# {}\n", MARKED.replace("staging", "prod"), "x".repeat(2 << 20))),
    ] {
        let twin = twin();
        twin.lock().push(path, &content);
        assert!(matches!(propose(&twin, &change(), false, &mut None).await, Ok(Proposed::Opened(_))), "{path}");
    }
}
