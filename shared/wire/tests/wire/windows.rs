//! Windows of a stage: what is read, and what the author of a broken one reads.

use crate::common::{findings, read, shipyard};
use keelway_domain::time::{Span, Timestamp};
use keelway_domain::windows::{Kind, When, Window};

fn stage(windows: &str) -> String {
    shipyard(&format!("  - name: dev\n    windows:\n{windows}    sequences: [{{name: delivery, tasks: [{{name: deployment}}]}}]\n"))
}

#[test]
fn windows_recur_or_are_open_once() {
    let text = stage(
        "    - {kind: allow, schedule: '0 9 * * MON-THU', duration: 8h, zone: Europe/Berlin}\n    - {kind: deny, from: 2026-12-23T18:00, until: \
         2027-01-02T08:00:00+02:00, zone: Europe/Berlin, reason: holidays}\n",
    );
    let at = |text| Timestamp::parse(text).unwrap();
    let berlin = Some("Europe/Berlin".to_owned());
    let recurring = When::Recurring { schedule: "0 9 * * MON-THU".into(), duration: Span::minutes(8 * 60) };
    let once = When::Once { from: at("2026-12-23T17:00:00Z"), until: at("2027-01-02T06:00:00Z") };
    let expected = [
        Window { kind: Kind::Allow, when: recurring, zone: berlin.clone(), reason: None },
        Window { kind: Kind::Deny, when: once, zone: berlin, reason: Some("holidays".into()) },
    ];
    assert_eq!(read(&text).shipyard.stages[0].windows, expected);
    assert_eq!(findings(&text), "");
}

#[test]
fn a_sequence_says_whether_windows_hold_it_back() {
    let of = |said: &str| {
        let text = shipyard(&format!("  - name: dev\n    sequences: [{{name: delivery, {said}tasks: [{{name: deployment}}]}}]\n"));
        read(&text).shipyard.stages[0].sequences[0].ignore_windows
    };
    assert_eq!((of(""), of("ignoreWindows: true, "), of("ignoreWindows: false, ")), (None, Some(true), Some(false)));
}

#[test]
fn everything_wrong_is_told_with_its_remedy() {
    for (window, path, says) in [
        ("{kind: freeze, from: 2026-12-23, until: 2026-12-24}", "kind", "is neither `allow` nor `deny`"),
        ("{kind: deny, duration: 1h}", "schedule", "write when the window opens"),
        ("{kind: deny, schedule: 'daily', duration: 1h}", "schedule", "no cron expression"),
        ("{kind: deny, schedule: '0 9 * * *'}", "duration", "must be longer than 0s"),
        ("{kind: deny, schedule: '0 9 * * *', duration: 1h, zone: Mars}", "zone", "no IANA time zone"),
        ("{kind: deny, from: 2026-12-23}", "until", "is missing"),
        ("{kind: deny, from: tomorrow, until: 2026-12-24}", "from", "is no time"),
        ("{kind: deny, from: 2026-12-24, until: 2026-12-24}", "until", "is not after `from`"),
        ("{kind: deny, from: 2026-03-29T02:30, until: 2026-12-24, zone: Europe/Berlin}", "from", "does not exist in Europe/Berlin"),
        ("{kind: deny, from: 2026-12-23, until: 2026-12-24, duration: 1h}", "duration", "a window recurs, or is open once"),
        ("{kind: deny, from: 2026-12-23, until: 2026-12-24, timezone: UTC}", "timezone", "zone"),
    ] {
        let found = findings(&stage(&format!("    - {window}\n")));
        let place = format!("spec.stages[0].windows[0].{path}: ");
        let lines: Vec<&str> = found.lines().filter(|line| line.starts_with("error")).collect();
        assert!(lines.len() == 1 && lines[0].contains(&place) && found.contains(says), "{window}:\n{found}");
        assert!(lines[0].contains("shipyard.yaml:7:"), "{found}");
    }
    let many = "    - {kind: deny, from: 2026-12-23, until: 2026-12-24}\n".repeat(51);
    assert!(findings(&stage(&many)).contains("at most 50 are allowed"));
    let odd = shipyard("  - name: dev\n    sequences: [{name: delivery, ignoreWindows: maybe, tasks: [{name: deployment}]}]\n");
    assert!(findings(&odd).contains("ignoreWindows: is a text: write `true` or `false`"), "{}", findings(&odd));
}

#[test]
fn windows_that_never_open_are_refused() {
    for never in [
        "    - {kind: allow, schedule: '0 9 * * *', duration: 1h}\n    - {kind: deny, schedule: '0 9 * * *', duration: 1h}\n",
        "    - {kind: deny, schedule: '0 0 * * *', duration: 24h}\n",
    ] {
        let found = findings(&stage(never));
        assert!(
            found.contains("error: shipyard.yaml:7:") && found.contains("spec.stages[0].windows: never open"),
            "{never}{found}"
        );
    }
    // One hour is left.
    let found = findings(&stage("    - {kind: deny, schedule: '0 0 * * *', duration: 23h}\n"));
    assert_eq!(found, "");
}
