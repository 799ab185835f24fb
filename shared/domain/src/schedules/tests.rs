use super::*;
use crate::ids::RecordHash;
use crate::record::NUMBERS;
use serde_json::json;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn service(name: &str) -> ServiceName {
    ServiceName::new(name).unwrap()
}

fn nightly() -> Spec {
    Spec {
        stage: StageName::new("dev").unwrap(),
        sequence: SequenceName::new("smoke").unwrap(),
        services: vec![service("carts"), service("payments")],
        when: When::Cron("30 2 * * *".into()),
        zone: Some("Europe/Berlin".into()),
        start: None,
        end: None,
        suspended: false,
        concurrency: Concurrency::Skip,
        data: json!({"suite": "all"}).as_object().unwrap().clone(),
    }
}

const APPLIED: &str = "2026-11-20T12:00:00Z";

fn schedule(spec: Spec) -> Schedule {
    Schedule::new(ProjectName::new("shop").unwrap(), "nightly".into(), spec, String::new(), at(APPLIED))
}

fn commit(x: &Schedule, input: Input, now: &str, open: &[&str]) -> (Schedule, Option<Record>) {
    let open = open.iter().map(|name| service(name)).collect();
    let cause = Cause { id: 7, ..Cause::default() };
    match decide(x, input, &Facts { now: at(now), cause, open: &open }) {
        Decision::Commit(both) => *both,
        Decision::Settle => panic!("nothing was decided"),
    }
}

fn settles(x: &Schedule, input: Input, now: &str) -> bool {
    decide(x, input, &Facts { now: at(now), cause: Cause::default(), open: &BTreeSet::new() }) == Decision::Settle
}

/// Applied, and looked at.
fn planned(spec: Spec) -> Schedule {
    commit(&schedule(spec), Input::Look, APPLIED, &[]).0
}

#[test]
fn it_triggers_every_service_and_plans_the_next_time() {
    let x = planned(nightly());
    let due = at("2026-11-21T01:30:00Z");
    assert_eq!((x.next, x.planned, x.armed_by), (Some(due), true, 7));
    assert!(settles(&x, Input::Look, APPLIED) && settles(&x, Input::Due(due), "2026-11-21T01:29:59Z"));
    let (next, record) = commit(&x, Input::Due(due), "2026-11-21T01:30:02Z", &[]);
    assert_eq!(next.next, Some(at("2026-11-22T01:30:00Z")));
    assert_eq!(next.last, Some(Last { at: due, fired: at("2026-11-21T01:30:02Z"), skipped: vec![], late: false }));
    let sends = record.unwrap().sends;
    assert_eq!(sends.iter().map(|made| made.service.as_str()).collect::<Vec<_>>(), ["carts", "payments"]);
    assert!(sends[0].execution != sends[1].execution && sends[0].context != sends[1].context);
    assert_eq!((&next.runs[&service("carts")].context, sends[0].data["suite"].as_str()), (&sends[0].context, Some("all")));
    // A copy of the wake-up, whenever it comes, makes the same triggers or none.
    let (_, again) = commit(&x, Input::Due(due), "2026-11-21T01:31:00Z", &[]);
    assert_eq!(again.unwrap().sends, sends);
    assert!(settles(&next, Input::Due(due), "2026-11-21T01:31:00Z"));
}

#[test]
fn a_run_that_is_open_is_skipped_or_queued_behind() {
    let x = planned(nightly());
    let due = x.next.unwrap();
    let (next, record) = commit(&x, Input::Due(due), "2026-11-21T01:30:02Z", &["carts"]);
    assert_eq!(next.last.as_ref().unwrap().skipped, [service("carts")]);
    assert_eq!(record.unwrap().sends.iter().map(|made| made.service.as_str()).collect::<Vec<_>>(), ["payments"]);
    let both = planned(Spec { concurrency: Concurrency::Queue, ..nightly() });
    let (next, record) = commit(&both, Input::Due(due), "2026-11-21T01:30:02Z", &["carts"]);
    assert!(next.last.unwrap().skipped.is_empty() && record.unwrap().sends.len() == 2);
}

#[test]
fn after_an_outage_it_triggers_once() {
    let x = planned(Spec { when: When::Cron("0 * * * *".into()), zone: None, ..nightly() });
    let due = at("2026-11-20T13:00:00Z");
    assert_eq!(x.next, Some(due));
    let (next, record) = commit(&x, Input::Due(due), "2026-11-21T09:10:00Z", &[]);
    assert_eq!((next.next, record.unwrap().sends[0].at), (Some(at("2026-11-21T10:00:00Z")), due));
    assert!(next.last.unwrap().late);
}

#[test]
fn it_begins_ends_and_is_suspended_as_it_says() {
    let spec = |change: fn(&mut Spec)| {
        let mut spec = nightly();
        change(&mut spec);
        planned(spec).next
    };
    assert_eq!(spec(|spec| spec.start = Some(at("2026-12-01T00:00:00Z"))), Some(at("2026-12-01T01:30:00Z")));
    assert_eq!(spec(|spec| spec.start = Some(at("2026-12-01T01:30:00Z"))), Some(at("2026-12-01T01:30:00Z")), "inclusive");
    assert_eq!(spec(|spec| spec.end = Some(at("2026-11-21T01:30:00Z"))), None, "exclusive");
    assert_eq!(spec(|spec| spec.suspended = true), None);
    assert_eq!(spec(|spec| spec.when = When::Cron("0 0 31 2 *".into())), None, "never");
    // What was planned before it was suspended or changed does nothing.
    let x = planned(nightly());
    let due = x.next.unwrap();
    let changed = x.replaced(Spec { suspended: true, ..nightly() }, String::new(), at(APPLIED));
    assert!(settles(&changed, Input::Due(due), "2026-11-21T01:30:02Z"));
    assert_eq!(commit(&changed, Input::Look, APPLIED, &[]).0.next, None);
}

#[test]
fn once_is_once() {
    let due = at("2026-11-20T12:00:05Z");
    let once = Spec { when: When::At(due), ..nightly() };
    // The message comes when the time has passed already.
    let (x, _) = commit(&schedule(once.clone()), Input::Look, "2026-11-20T12:00:07Z", &[]);
    assert_eq!(x.next, Some(due));
    let (x, _) = commit(&x, Input::Due(due), "2026-11-20T12:00:07Z", &[]);
    assert_eq!(x.next, None);
    let again = x.replaced(once, "# a comment".into(), at("2026-11-20T12:00:08Z"));
    assert_eq!(commit(&again, Input::Look, "2026-11-20T12:00:08Z", &[]).0.next, None, "not when it is applied again");
}

#[test]
fn clocks_that_change() {
    let next = |after: &str| nightly().next(at(after)).map(Timestamp::rfc3339);
    // 02:30 does not exist on 2026-03-29, and exists twice on 2026-10-25.
    assert_eq!(next("2026-03-28T12:00:00Z").as_deref(), Some("2026-03-29T01:00:00.000Z"), "when they have gone on");
    assert_eq!(next("2026-03-29T01:30:00Z").as_deref(), Some("2026-03-30T00:30:00.000Z"));
    assert_eq!(next("2026-10-24T12:00:00Z").as_deref(), Some("2026-10-25T00:30:00.000Z"), "the first");
    assert_eq!(next("2026-10-25T00:30:00Z").as_deref(), Some("2026-10-26T01:30:00.000Z"), "and not the second");
}

#[test]
fn numbers_of_records_go_round() {
    let mut x = planned(nightly());
    x.record = Some(RecordId { subject: x.id(), number: NUMBERS - 1, hash: RecordHash::of(b"") });
    let (next, record) = commit(&x, Input::Due(x.next.unwrap()), "2026-11-21T01:30:02Z", &[]);
    assert_eq!((next.record.unwrap().number, record.unwrap().previous.unwrap().0), (0, NUMBERS - 1));
}

#[test]
fn a_time_that_has_come_is_not_the_next_one() {
    let (before, begin, end) = (at("2026-11-20T12:00:00Z"), at("2026-11-20T13:00:00Z"), at("2026-11-20T14:00:00Z"));
    let once = Spec { when: When::At(begin), ..nightly() };
    assert_eq!((once.next(before), once.next(begin)), (Some(begin), None));
    let ends = |end| Spec { end: Some(end), ..once.clone() }.next(before);
    assert_eq!((ends(end), ends(begin), ends(before)), (Some(begin), None, None));
}
