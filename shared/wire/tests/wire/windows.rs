//! Windows of a stage: what is read. What is refused is in `refusals/shipyard.yaml`.

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
fn windows_have_a_limit() {
    let many = "    - {kind: deny, from: 2026-12-23, until: 2026-12-24}\n".repeat(51);
    assert!(findings(&stage(&many)).contains("at most 50 are allowed"));
}
