//! Looks at pull requests: what is read one by one, and what is reported.

use super::super::pull_request::{Awaited, Look, Mark, Request, State, Step};
use super::*;

fn made(number: u64) -> Made {
    let branch = format!("promotion/{number}");
    Made::PullRequest { number, url: "u".into(), branch, head: "h".into(), mergeable: None }
}

fn listed(number: u64, state: State, mergeable: Option<bool>) -> Request {
    Request { number, url: "u".into(), branch: format!("promotion/{number}"), head: "h".into(), state, mergeable }
}

fn changed(requests: &[Request]) -> Look {
    Look { requests: Some(requests.to_vec()), mark: Some("etag".into()), every: false }
}

const SAME: Look = Look { requests: None, mark: None, every: false };

/// Looks at open pull requests again and again: each look reads those of its numbers one by one.
fn looks((all, merges): (u64, bool), look: &Look, expected: &[&[u64]]) {
    let made: Vec<Made> = (1..=all).map(made).collect();
    let awaited: Vec<Awaited<'_>> = made.iter().map(|made| Awaited { made: Some(made), branch: String::new(), merges }).collect();
    let nothing = vec![None; awaited.len()];
    let mut mark = Mark::after(&awaited, &nothing, changed(&[]), None);
    for (n, numbers) in expected.iter().enumerate() {
        let (steps, next) = mark.steps(&awaited, look);
        let read = awaited.iter().zip(steps).filter(|(_, step)| matches!(step, Step::Read(_)));
        let read: Vec<u64> = read.filter_map(|(one, _)| one.number()).collect();
        assert_eq!(read, *numbers, "look {n}");
        mark = Mark::after(&awaited, &nothing, look.clone(), next);
    }
}

#[test]
fn those_that_keelway_merges_take_turns() {
    looks((3, true), &SAME, &[&[1, 2, 3], &[1, 2, 3]]);
    looks((7, true), &SAME, &[&[1, 2, 3, 4, 5], &[1, 2, 3, 6, 7], &[1, 4, 5, 6, 7]]);
}

#[test]
fn of_the_others_one_is_read_as_long_as_the_list_lacks_something() {
    looks((3, false), &SAME, &[&[], &[]]);
    let open = |mergeable| (1..=3).map(|number| listed(number, State::Open, mergeable)).collect::<Vec<_>>();
    looks((3, false), &changed(&open(None)), &[&[1], &[2], &[3], &[1]]);
    looks((3, false), &changed(&open(Some(true))), &[&[]]);
}

#[test]
fn what_the_list_does_not_contain_is_read_if_it_is_new_or_the_list_has_all_that_are_open() {
    let made = made(1);
    let awaited = [Awaited { made: Some(&made), branch: String::new(), merges: false }];
    let known = Mark::after(&awaited, &[None], SAME, None);
    let ended = Mark::after(&awaited, &[Some(Seen::Closed("it was".into()))], SAME, None);
    let every = Look { every: true, ..changed(&[]) };
    for (mark, look, expected) in [
        (&known, &SAME, Step::Nothing),
        (&known, &every, Step::Read(None)),
        (&ended, &SAME, Step::Read(None)),
        (&Mark::default(), &SAME, Step::Read(None)),
    ] {
        assert_eq!(mark.steps(&awaited, look).0, [expected], "{mark:?} {look:?}");
    }
    let merged = listed(1, State::Merged { commit: "c".into() }, None);
    assert_eq!(known.steps(&awaited, &changed(std::slice::from_ref(&merged))).0, [Step::Report(&merged)]);
}

#[test]
fn an_open_pull_request_is_news_if_the_host_says_something_new_about_merging_it() {
    let made = made(1);
    let awaited = Awaited { made: Some(&made), branch: String::new(), merges: false };
    assert_eq!(awaited.news(Some(&listed(1, State::Open, None))), None);
    let news = awaited.news(Some(&Request { head: "moved".into(), ..listed(1, State::Open, Some(false)) }));
    let Some(Seen::Open(Made::PullRequest { head, mergeable, .. })) = news else { panic!("{news:?}") };
    assert_eq!((head.as_str(), mergeable), ("h", Some(false)), "the head stays that of Keelway's commit");
    for (request, expected) in [
        (Some(listed(1, State::Merged { commit: "c".into() }, None)), Seen::Succeeded("it was merged as c".into())),
        (Some(listed(1, State::Closed, None)), Seen::Closed("the pull request was closed without being merged".into())),
        (None, Seen::Closed("the pull request does not exist any more".into())),
    ] {
        assert_eq!(awaited.news(request.as_ref()), Some(expected));
    }
}
