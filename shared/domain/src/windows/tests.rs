use super::*;

fn window(kind: Kind, schedule: &str, hours: i64, zone: &str) -> Window {
    Window {
        kind,
        when: When::Recurring { schedule: schedule.into(), duration: Span::minutes(hours * 60) },
        zone: Some(zone.into()),
        reason: None,
    }
}

/// In UTC, for so many minutes.
fn minutes(kind: Kind, schedule: &str, minutes: i64) -> Window {
    let when = When::Recurring { schedule: schedule.into(), duration: Span::minutes(minutes) };
    Window { when, ..window(kind, schedule, 1, "UTC") }
}

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

#[test]
fn a_window_begins_with_its_start_and_ends_before_its_end() {
    let office = [window(Kind::Allow, "0 9 * * MON-FRI", 8, "Europe/Berlin")];
    // A Monday in winter: 9:00 in Berlin is 8:00 UTC.
    assert_eq!(gate(&office, at("2026-11-23T08:00:00Z")), Gate::Open);
    assert_eq!(gate(&office, at("2026-11-23T15:59:59Z")), Gate::Open);
    assert_eq!(gate(&office, at("2026-11-23T16:00:00Z")), Gate::Closed(Some(at("2026-11-24T08:00:00Z"))));
    assert_eq!(gate(&office, at("2026-11-27T20:00:00Z")), Gate::Closed(Some(at("2026-11-30T08:00:00Z"))));
}

#[test]
fn the_zones_clock_counts_when_it_changes() {
    let office = [window(Kind::Allow, "0 9 * * *", 1, "Europe/Berlin")];
    // Summer time ends on 2026-10-25.
    assert_eq!(gate(&office, at("2026-10-24T07:30:00Z")), Gate::Open);
    assert_eq!(gate(&office, at("2026-10-25T07:30:00Z")), Gate::Closed(Some(at("2026-10-25T08:00:00Z"))));
    let two_zones = [office[0].clone(), window(Kind::Allow, "0 9 * * *", 1, "America/New_York")];
    assert_eq!(gate(&two_zones, at("2026-11-23T14:30:00Z")), Gate::Open);
}

#[test]
fn what_denies_wins() {
    let windows = [window(Kind::Allow, "0 8 * * *", 10, "UTC"), window(Kind::Deny, "0 12 * * *", 2, "UTC")];
    assert_eq!(gate(&windows, at("2026-11-23T11:00:00Z")), Gate::Open);
    assert_eq!(gate(&windows, at("2026-11-23T12:00:00Z")), Gate::Closed(Some(at("2026-11-23T14:00:00Z"))));
    assert_eq!(gate(&windows[1..], at("2026-11-23T03:00:00Z")), Gate::Open);
    let never = [window(Kind::Deny, "0 0 * * *", 24, "UTC")];
    assert_eq!(gate(&never, at("2026-11-23T03:00:00Z")), Gate::Closed(None));
}

#[test]
fn what_cannot_be_used_is_refused() {
    for (field, bad) in [
        ("schedule", window(Kind::Allow, "0 25 * * *", 1, "UTC")),
        ("schedule", window(Kind::Allow, "soon", 1, "UTC")),
        ("schedule", window(Kind::Deny, "0 0 30 2 *", 1, "UTC")),
        ("zone", window(Kind::Allow, "0 9 * * *", 1, "Mars/Olympus")),
        ("duration", window(Kind::Allow, "0 9 * * *", 0, "UTC")),
    ] {
        assert_eq!(bad.check().unwrap_err().0, field);
    }
    assert_eq!(window(Kind::Allow, "0 9 * * *", 1, "UTC").check(), Ok(()));
}

#[test]
fn a_cron_expression_has_five_fields_and_nothing_that_means_different_things() {
    for (bad, says) in [
        ("0 0 9 * * MON", "it has 6 fields"),
        ("0 0 9 * * MON 2027", "it has 7 fields"),
        ("* * * *", "it has 4 fields"),
        ("@daily", "\"@\" is not known"),
        ("0 0 ? * MON", "\"?\" is not known"),
        ("0 0 * * MON#2", "\"#\" is not known"),
        ("0 0 * * +MON", "\"+\" is not known"),
        ("0 0 L * *", "L and W are not known"),
        ("0 0 15W * *", "L and W are not known"),
        ("0 0 * * 5L", "L and W are not known"),
        ("0 0 * * L", "L and W are not known"),
        ("0 9,,10 * * *", "nothing beside a comma"),
        ("0 9, * * *", "nothing beside a comma"),
        ("0 9 * * FRI-MON", "\"FRI-MON\" as the day of the week is not within 0 to 7"),
        ("*/0 * * * *", ""),
        ("60 * * * *", "\"60\" as the minute is not within 0 to 59"),
        ("0 0 0 * *", ""),
        ("0 0 * 13 *", "\"13\" as the month"),
        ("0 0 * * 8", ""),
        ("-5 * * * *", ""),
        ("0 0 * * MONDAY", "or SUN to SAT"),
        ("", "it has 0 fields"),
    ] {
        let error = cron(bad).unwrap_err();
        assert!(error.contains("is no cron expression") && error.contains(says), "{bad}: {error}");
    }
    for good in ["*/15 9-17 1,15 JAN-MAR mon-fri", " 0  9\t* * 7 ", "0-30/10 * * * 0,6", "0 0 29 2 *"] {
        assert!(schedule(good).is_ok(), "{good}: {:?}", schedule(good));
    }
}

#[test]
fn days_of_the_month_and_of_the_week() {
    let after = |cron: &str, text: &str| next(&schedule(cron).unwrap(), Tz::UTC, at(text)).unwrap().rfc3339();
    // Both restricted: one of the two is enough. 2026-12-01 is a Tuesday.
    assert_eq!(after("0 0 15 * MON", "2026-12-01T00:00:00Z"), "2026-12-07T00:00:00.000Z");
    assert_eq!(after("0 0 15 * MON", "2026-12-14T00:00:00Z"), "2026-12-15T00:00:00.000Z");
    assert_eq!(after("0 0 29 2 *", "2026-12-01T00:00:00Z"), "2028-02-29T00:00:00.000Z");
    assert_eq!(after("0 0 31 * *", "2026-02-01T00:00:00Z"), "2026-03-31T00:00:00.000Z");
    assert_eq!(after("0 0 * * 7", "2026-12-01T00:00:00Z"), after("0 0 * * SUN", "2026-12-01T00:00:00Z"));
}

#[test]
fn windows_over_midnight_longer_than_their_period_and_by_the_millisecond() {
    let night = [window(Kind::Deny, "0 22 * * *", 4, "Europe/Berlin")];
    assert_eq!(gate(&night, at("2026-11-23T23:30:00Z")), Gate::Closed(Some(at("2026-11-24T01:00:00Z"))));
    assert_eq!(gate(&night, at("2026-11-24T00:59:59.999Z")), Gate::Closed(Some(at("2026-11-24T01:00:00Z"))));
    assert_eq!(gate(&night, at("2026-11-24T01:00:00.001Z")), Gate::Open);
    assert_eq!(gate(&night, at("2026-11-24T21:00:00.500Z")), Gate::Closed(Some(at("2026-11-25T01:00:00Z"))));
    // Ten days from the first and from the third of a month on.
    let long = [window(Kind::Deny, "0 0 1,3 * *", 240, "UTC")];
    assert_eq!(gate(&long, at("2026-12-02T00:00:00Z")), Gate::Closed(Some(at("2026-12-13T00:00:00Z"))));
    assert_eq!(gate(&long, at("2026-12-13T00:00:00Z")), Gate::Open);
}

#[test]
fn the_time_is_found_behind_thousands_of_windows() {
    let new_year = [minutes(Kind::Allow, "0 0 1 1 *", 60), minutes(Kind::Deny, "*/10 * * * *", 5)];
    assert_eq!(gate(&new_year, at("2026-11-23T00:00:00Z")), Gate::Closed(Some(at("2027-01-01T00:05:00Z"))));
    let evening = [minutes(Kind::Deny, "* 0-22 * * *", 1)];
    assert_eq!(gate(&evening, at("2026-11-23T00:00:00Z")), Gate::Closed(Some(at("2026-11-23T23:00:00Z"))));
}

/// As many windows as a stage may have: for each that allows, one denies at the same time; each pair begins at another minute.
fn fifty_that_never_open() -> Vec<Window> {
    let pair = |minute: i64| {
        let schedule = format!("{minute} 9 * * *");
        [Kind::Allow, Kind::Deny].map(|kind| window(kind, &schedule, 1, "Europe/Berlin"))
    };
    let covered = window(Kind::Deny, "0 9 * * *", 2, "Europe/Berlin");
    (0..24).flat_map(pair).chain([window(Kind::Allow, "30 9 * * *", 1, "Europe/Berlin"), covered]).collect()
}

#[test]
fn what_fifty_windows_never_open_is_given_up_after_two_years_and_a_bounded_number_of_times() {
    let mut search = gate::Search::of(&fifty_that_never_open());
    assert_eq!(search.from(at("2026-11-23T12:00:00Z")), None);
    assert!((20_000..20_050).contains(&search.computed()), "{} times were computed", search.computed());
    // Two of them end with the two years.
    let mut search = gate::Search::of(&fifty_that_never_open()[..2]);
    assert_eq!(search.from(at("2026-11-23T12:00:00Z")), None);
    assert!(search.computed() < 3_000, "{} times were computed", search.computed());
}

#[test]
fn each_time_is_computed_once_and_a_search_ends_when_it_has_computed_as_many_as_it_may() {
    let search = |windows: &[Window], now: &str, most: usize| {
        let mut search = gate::Search::of(windows);
        search.most = most;
        (search.from(at(now)), search.computed())
    };
    // When it opened last, and when it opens next: then it is open.
    let nine = [window(Kind::Allow, "0 9 * * *", 1, "UTC")];
    assert_eq!(search(&nine, "2026-11-23T12:00:00Z", 3), (Some(at("2026-11-24T09:00:00Z")), 2));
    assert_eq!(search(&nine, "2026-11-23T12:00:00Z", 2), (None, 2));
    // The day is still open when the noon has passed.
    let but_noon = [window(Kind::Allow, "0 0 * * *", 24, "UTC"), window(Kind::Deny, "0 12 * * *", 1, "UTC")];
    assert_eq!(search(&but_noon, "2026-11-23T12:30:00Z", 9), (Some(at("2026-11-23T13:00:00Z")), 3));
}

#[test]
fn an_opening_at_the_very_end_of_two_years_is_found() {
    let denied_until = |until: &str| {
        let [allow, deny] = [Kind::Allow, Kind::Deny].map(|kind| once(kind, "2026-01-01T00:00:00Z", until));
        [window(Kind::Allow, "0 0 29 2 *", 1, "UTC"), allow, deny]
    };
    let opens = |until: &str| gate(&denied_until(until), at("2026-01-01T00:00:00Z"));
    assert_eq!(opens("2026-02-27T00:00:00Z"), Gate::Closed(Some(at("2028-02-29T00:00:00Z"))));
    assert_eq!(opens("2026-02-26T23:59:59.999Z"), Gate::Closed(None));
}

#[test]
fn an_opening_is_found_within_two_years_of_the_first_that_is_denied() {
    let denied_until = |until: &str| {
        let deny = Window { reason: None, ..once(Kind::Deny, "2026-01-01T00:00:00Z", until) };
        [window(Kind::Allow, "0 9 * * *", 1, "UTC"), window(Kind::Deny, "0 9 * * MON-SAT", 1, "UTC"), deny]
    };
    // 3,000 days that are closed in a row are one.
    assert_eq!(
        gate(&denied_until("2034-03-20T00:00:00Z"), at("2026-01-01T00:00:00Z")),
        Gate::Closed(Some(at("2034-03-26T09:00:00Z")))
    );
    // On 29 February 2028, a Tuesday, it is closed; in 2032 it would be open.
    let leap = [window(Kind::Allow, "0 9 29 2 *", 1, "UTC"), window(Kind::Deny, "0 9 * * TUE", 1, "UTC")];
    assert_eq!(gate(&leap[..1], at("2026-01-01T00:00:00Z")), Gate::Closed(Some(at("2028-02-29T09:00:00Z"))));
    assert_eq!(gate(&leap, at("2026-01-01T00:00:00Z")), Gate::Closed(None));
    // 16,032 half hours, each denied by itself.
    let months = [minutes(Kind::Deny, "*/30 * * 1-11 *", 30)];
    assert_eq!(gate(&months, at("2027-01-01T00:00:00Z")), Gate::Closed(Some(at("2027-12-01T00:00:00Z"))));
}

#[test]
fn what_never_opens_is_known_without_a_clock() {
    let office = window(Kind::Allow, "0 9 * * *", 1, "UTC");
    assert!(never(&[office.clone(), window(Kind::Deny, "0 9 * * *", 1, "UTC")]));
    assert!(never(&fifty_that_never_open()));
    assert!(never(&[window(Kind::Deny, "0 0 * * *", 24, "UTC")]));
    assert!(never(&[minutes(Kind::Deny, "* * * * *", 1)]));
    assert!(never(&[
        once(Kind::Allow, "2026-12-24T00:00:00Z", "2026-12-25T00:00:00Z"),
        once(Kind::Deny, "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z")
    ]));
    assert!(!never(&[]));
    assert!(!never(std::slice::from_ref(&office)));
    assert!(!never(&[once(Kind::Deny, "2020-01-01T00:00:00Z", "2050-01-01T00:00:00Z")]), "it ends");
    assert!(!never(&[once(Kind::Allow, "2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z")]), "it was open");
    // The same hour in winter, another one in summer.
    assert!(!never(&[window(Kind::Allow, "0 9 * * *", 1, "Europe/Berlin"), window(Kind::Deny, "0 8 * * *", 1, "UTC")]));
}

#[test]
fn windows_in_words() {
    let freeze = Window { zone: Some("Europe/Berlin".into()), ..once(Kind::Deny, "2026-12-23T17:00:00Z", "2027-01-02T07:00:00Z") };
    assert_eq!(freeze.words(), "deny 2026-12-23 18:00 to 2027-01-02 08:00 Europe/Berlin: Christmas");
    assert_eq!(window(Kind::Allow, "0 9 * * MON-FRI", 8, "UTC").words(), "allow 0 9 * * MON-FRI for 8h UTC");
}

fn once(kind: Kind, from: &str, until: &str) -> Window {
    Window { kind, when: When::Once { from: at(from), until: at(until) }, zone: None, reason: Some("Christmas".into()) }
}

#[test]
fn a_window_that_is_open_once_is_the_next_one_until_it_opens() {
    let later = [once(Kind::Allow, "2027-01-02T00:00:00Z", "2027-01-03T00:00:00Z")];
    assert_eq!(gate(&later, at("2026-12-24T00:00:00Z")), Gate::Closed(Some(at("2027-01-02T00:00:00Z"))));
    assert_eq!(gate(&later, at("2027-01-03T00:00:00Z")), Gate::Closed(None));
}

#[test]
fn only_a_window_that_denies_now_is_the_reason() {
    let later = [
        once(Kind::Deny, "2026-12-24T00:00:00Z", "2026-12-27T00:00:00Z"),
        once(Kind::Allow, "2027-01-02T00:00:00Z", "2027-01-03T00:00:00Z"),
    ];
    assert_eq!(why(&later, at("2026-11-20T00:00:00Z")), "no window that allows is open");
}

#[test]
fn a_window_may_be_open_once() {
    let freeze = [once(Kind::Deny, "2026-12-23T17:00:00Z", "2027-01-02T07:00:00Z")];
    assert_eq!(gate(&freeze, at("2026-12-23T16:59:59Z")), Gate::Open);
    assert_eq!(gate(&freeze, at("2026-12-23T17:00:00Z")), Gate::Closed(Some(at("2027-01-02T07:00:00Z"))));
    assert_eq!(gate(&freeze, at("2027-01-02T07:00:00Z")), Gate::Open);
    assert_eq!(why(&freeze, at("2026-12-24T00:00:00Z")), "Christmas");
    // Two that follow each other are one.
    let longer = [freeze[0].clone(), once(Kind::Deny, "2027-01-02T07:00:00Z", "2027-01-03T00:00:00Z")];
    assert_eq!(gate(&longer, at("2026-12-24T00:00:00Z")), Gate::Closed(Some(at("2027-01-03T00:00:00Z"))));
    let allowed = [once(Kind::Allow, "2026-12-23T17:00:00Z", "2027-01-02T07:00:00Z")];
    assert_eq!(gate(&allowed, at("2027-01-03T00:00:00Z")), Gate::Closed(None), "it has been");
    assert_eq!(why(&allowed, at("2027-01-03T00:00:00Z")), "no window that allows is open");
    let backwards = once(Kind::Deny, "2027-01-02T07:00:00Z", "2026-12-23T17:00:00Z");
    assert_eq!(backwards.check().unwrap_err().0, "until");
}

#[test]
fn a_window_that_opens_while_the_clocks_skip_its_hour_opens_when_they_have_gone_on() {
    // In Berlin, 02:00 to 03:00 does not exist on 2026-03-29; 03:00 there is 01:00 UTC.
    let night = [window(Kind::Deny, "30 2 * * *", 1, "Europe/Berlin")];
    assert_eq!(gate(&night, at("2026-03-29T00:59:59Z")), Gate::Open);
    let end = at("2026-03-29T02:00:00Z");
    assert_eq!(gate(&night, at("2026-03-29T01:00:00Z")), Gate::Closed(Some(end)));
    assert_eq!(gate(&night, end), Gate::Open);
    // The next day, 02:30 in summer is 00:30 UTC.
    assert_eq!(gate(&night, at("2026-03-30T00:30:00Z")), Gate::Closed(Some(at("2026-03-30T01:30:00Z"))));
}

#[test]
fn a_window_whose_hour_comes_twice_opens_at_the_first() {
    // In Berlin, 02:00 to 03:00 happens twice on 2026-10-25: at 00:00 and at 01:00 UTC.
    let night = [window(Kind::Deny, "30 2 * * *", 1, "Europe/Berlin")];
    assert_eq!(gate(&night, at("2026-10-25T00:30:00Z")), Gate::Closed(Some(at("2026-10-25T01:30:00Z"))));
    assert_eq!(gate(&night, at("2026-10-25T01:30:00Z")), Gate::Open, "not again at the second");
    let cron = cron("30 2 * * *").unwrap();
    let berlin = zone(Some("Europe/Berlin")).unwrap();
    assert_eq!(next(&cron, berlin, at("2026-10-25T00:30:00Z")), Some(at("2026-10-26T01:30:00Z")));
}

#[test]
fn times_are_those_of_the_zone() {
    let berlin = zone(Some("Europe/Berlin")).unwrap();
    let read = |text| instant(text, berlin, Edge::From);
    assert_eq!(read("2026-12-23T18:00"), Ok(at("2026-12-23T17:00:00Z")));
    assert_eq!(read("2026-12-24"), Ok(at("2026-12-23T23:00:00Z")));
    assert_eq!(read("2026-12-23T18:00:00+02:00"), Ok(at("2026-12-23T16:00:00Z")));
    // Twice: the window is as long as it can be.
    assert_eq!(read("2026-10-25T02:30"), Ok(at("2026-10-25T00:30:00Z")));
    assert_eq!(instant("2026-10-25T02:30", berlin, Edge::Until), Ok(at("2026-10-25T01:30:00Z")));
    assert!(read("2026-03-29T02:30").unwrap_err().contains("does not exist in Europe/Berlin"));
    assert!(read("tomorrow").unwrap_err().contains("write it like"));
}

#[test]
fn windows_are_kept_as_they_were_before_there_were_reasons() {
    let kept = r#"{"kind":"allow","schedule":"0 9 * * *","duration":3600000,"zone":"UTC"}"#;
    let read: Window = serde_json::from_str(kept).unwrap();
    assert_eq!(read, window(Kind::Allow, "0 9 * * *", 1, "UTC"));
    assert_eq!(serde_json::to_value(&read).unwrap(), serde_json::from_str::<serde_json::Value>(kept).unwrap());
    let freeze = once(Kind::Deny, "2026-12-23T17:00:00Z", "2027-01-02T07:00:00Z");
    assert_eq!(serde_json::from_str::<Window>(&serde_json::to_string(&freeze).unwrap()).unwrap(), freeze);
}

/// A search computes a bounded number of times. What comes after that is not known, and nothing is said about it.
#[test]
fn closures_end_where_the_search_does() {
    let (from, decades) = (at("2026-11-24T10:00:00Z"), at("2126-11-24T10:00:00Z"));
    let found = closures(&[window(Kind::Allow, "0 9 * * *", 8, "UTC")], from, decades, usize::MAX);
    let last = found.last().unwrap();
    assert!(found.len() > 5_000 && last.from < decades, "{} {last:?}", found.len());
    assert!(last.until.is_some(), "it opens again: {last:?}");
}

#[test]
fn closures_are_what_the_gate_says_from_one_time_to_another() {
    let shown = |windows: &[Window], from: &str, until: &str, most: usize| {
        let found = closures(windows, at(from), at(until), most);
        let line = |closed: Closure| {
            let until = closed.until.map_or_else(|| "never".to_owned(), Timestamp::rfc3339);
            format!("{} {until} {}", closed.from.rfc3339(), closed.why)
        };
        found.into_iter().map(line).collect::<Vec<_>>()
    };
    // Office hours, and a freeze that begins in the middle of a day.
    let mut freeze = once(Kind::Deny, "2026-11-25T12:00:00Z", "2026-11-27T08:00:00Z");
    freeze.reason = Some("audit".into());
    let office = [window(Kind::Allow, "0 9 * * MON-FRI", 8, "UTC"), freeze];
    assert_eq!(
        shown(&office, "2026-11-24T10:00:00Z", "2026-11-30T10:00:00Z", 100),
        [
            "2026-11-24T17:00:00.000Z 2026-11-25T09:00:00.000Z no window that allows is open",
            "2026-11-25T12:00:00.000Z 2026-11-27T09:00:00.000Z audit",
            "2026-11-27T17:00:00.000Z 2026-11-30T09:00:00.000Z no window that allows is open",
        ]
    );
    assert_eq!(shown(&office, "2026-11-24T10:00:00Z", "2026-11-30T10:00:00Z", 1).len(), 1);
    assert!(shown(&office, "2026-11-24T10:00:00Z", "2026-11-24T17:00:00Z", 100).is_empty(), "it closes when the time is over");
    // Closed at the beginning, and two windows that overlap are one opening.
    let two = [window(Kind::Allow, "0 9 * * *", 4, "UTC"), window(Kind::Allow, "0 12 * * *", 4, "UTC")];
    assert_eq!(
        shown(&two, "2026-11-24T08:00:00Z", "2026-11-25T00:00:00Z", 100),
        [
            "2026-11-24T08:00:00.000Z 2026-11-24T09:00:00.000Z no window that allows is open",
            "2026-11-24T16:00:00.000Z 2026-11-25T09:00:00.000Z no window that allows is open",
        ]
    );
    let over = [once(Kind::Allow, "2026-11-23T00:00:00Z", "2026-11-24T00:00:00Z")];
    assert_eq!(shown(&over, "2026-11-25T00:00:00Z", "2026-11-26T00:00:00Z", 100).len(), 1);
    assert_eq!(
        shown(&over, "2026-11-22T00:00:00Z", "2026-11-26T00:00:00Z", 100),
        [
            "2026-11-22T00:00:00.000Z 2026-11-23T00:00:00.000Z no window that allows is open",
            "2026-11-24T00:00:00.000Z never no window that allows is open",
        ]
    );
    assert_eq!(shown(&[], "2026-11-25T00:00:00Z", "2026-11-26T00:00:00Z", 100), Vec::<String>::new());
}
