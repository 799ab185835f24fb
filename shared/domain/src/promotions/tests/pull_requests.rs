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

/// Five that Keelway merges and one other are read in each look.
#[test]
fn one_that_others_merge_takes_nobodys_turn() {
    let made: Vec<Made> = (1..=7).map(made).collect();
    let of = |(n, made)| Awaited { made: Some(made), branch: String::new(), merges: n > 0 };
    let awaited: Vec<Awaited<'_>> = made.iter().enumerate().map(of).collect();
    let none = changed(&[]);
    let (steps, next) = Mark::default().steps(&awaited, &none);
    let read: Vec<bool> = steps.iter().map(|step| matches!(step, Step::Read(_))).collect();
    assert_eq!((read, next), (vec![true; 7], Some(6)), "the seventh is new, and read for that");
}

/// Some have ended since, so there are fewer than the place of the next one.
#[test]
fn a_turn_goes_on_where_the_last_one_stopped_though_there_are_fewer() {
    let made: Vec<Made> = (1..=3).map(made).collect();
    let awaited: Vec<Awaited<'_>> =
        made.iter().map(|made| Awaited { made: Some(made), branch: String::new(), merges: true }).collect();
    let mark = Mark::after(&awaited, &[None, None, None], SAME, Some(7));
    assert_eq!(mark.steps(&awaited, &SAME).1, Some(1));
}

#[test]
fn a_list_is_asked_for_with_the_mark_of_the_last_one() {
    let host = |mark: Option<&str>| Mark::after(&[], &[], Look { mark: mark.map(str::to_owned), ..SAME }, None);
    assert_eq!(host(Some("etag")).host(), Some("etag"));
    assert_eq!((host(None).host(), Mark::default().host()), (None, None));
}

#[test]
fn one_is_found_by_its_number_or_by_its_branch_before_the_number_is_known() {
    let list = changed(&[listed(1, State::Open, Some(false)), listed(2, State::Open, Some(false))]);
    let [one, two] = [0, 1].map(|n| &list.requests.as_ref().unwrap()[n]);
    let made = made(2);
    for (made, branch, expected) in [
        (Some(&made), "promotion/1", Step::Report(two)),
        (None, "promotion/1", Step::Report(one)),
        (None, "promotion/3", Step::Read(None)),
    ] {
        let awaited = [Awaited { made, branch: branch.into(), merges: false }];
        assert_eq!(Mark::default().steps(&awaited, &list).0, [expected], "{made:?} {branch}");
    }
}

#[test]
fn one_that_keelway_merges_is_read_unless_the_list_says_that_it_can_be() {
    let made = made(1);
    let awaited = [Awaited { made: Some(&made), branch: String::new(), merges: true }];
    for mergeable in [None, Some(false), Some(true)] {
        let list = changed(&[listed(1, State::Open, mergeable)]);
        let request = list.requests.as_ref().and_then(|requests| requests.first()).filter(|_| mergeable == Some(true));
        assert_eq!(Mark::default().steps(&awaited, &list).0, [Step::Read(request)], "{mergeable:?}");
    }
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
        (&known, &changed(&[]), Step::Read(None)),
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
    let able = Made::PullRequest { number: 1, url: "u".into(), branch: "b".into(), head: "h".into(), mergeable: Some(true) };
    let awaited_able = Awaited { made: Some(&able), ..awaited.clone() };
    for (mergeable, is_news) in [(None, false), (Some(true), false), (Some(false), true)] {
        assert_eq!(awaited_able.news(Some(&listed(1, State::Open, mergeable))).is_some(), is_news, "{mergeable:?}");
    }
    for (request, expected) in [
        (Some(listed(1, State::Merged { commit: "c".into() }, None)), Seen::Succeeded("it was merged as c".into())),
        (Some(listed(1, State::Closed, None)), Seen::Closed("the pull request was closed without being merged".into())),
        (None, Seen::Closed("the pull request does not exist any more".into())),
    ] {
        assert_eq!(awaited.news(request.as_ref()), Some(expected));
    }
}
