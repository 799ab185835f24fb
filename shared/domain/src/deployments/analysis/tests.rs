//! What a window comes to, and how it is told.

use super::*;
use crate::evaluation::mann_whitney::Direction;
use crate::evaluation::{Measured, Objective as Wanted, Period, Slo, TotalScore};

fn objective(sli: &str, pass: &str, warning: &str) -> Wanted {
    let set = |text: &str| if text.is_empty() { vec![] } else { vec![vec![text.to_owned()]] };
    Wanted { sli: sli.into(), display_name: String::new(), pass: set(pass), warning: set(warning), weight: 1, key: false }
}

fn slo(objectives: Vec<Wanted>) -> Slo {
    Slo { objectives, total_score: TotalScore { pass: "90%".into(), warning: "50%".into() }, ..Slo::default() }
}

fn analysis() -> Analysis {
    Analysis {
        slo: OBJECTIVES.into(),
        place: None,
        source: None,
        interval: INTERVAL,
        samples: SAMPLES.into(),
        min_samples: MIN_SAMPLES,
        failure_limit: 0,
        deadline: DEADLINE,
        on_inconclusive: OnInconclusive::Pause,
        mann_whitney: vec![],
    }
}

fn seen(canary: &[(&str, f64)], baseline: &[(&str, f64)]) -> Seen {
    let values = |of: &[(&str, f64)]| of.iter().map(|(sli, value)| Measured::value(sli, *value)).collect();
    let (canary, baseline) = (values(canary), values(baseline));
    Seen { target: "main".into(), samples: None, baseline_samples: None, canary, baseline, spreads: vec![] }
}

fn window() -> Period {
    Period { start: Timestamp(0), end: Timestamp(60_000) }
}

fn concluded(slo: &Slo, seen: &Seen) -> (Verdict, Report) {
    conclude(slo, &analysis(), window(), std::slice::from_ref(seen))
}

#[test]
fn a_warning_passes_and_is_told() {
    let (verdict, report) = concluded(&slo(vec![objective("errors", "<=1", "<=2")]), &seen(&[("errors", 1.5)], &[]));
    assert_eq!((verdict, report.result.as_str()), (Verdict::Pass, "warning"));
}

#[test]
fn objectives_that_failed_come_first_and_those_for_information_last() {
    let wanted = [("info", "", ""), ("good", "<=1", ""), ("near", "<=0", "<=1"), ("bad", "<=0", "")];
    let mut slo = slo(wanted.iter().map(|(sli, pass, warning)| objective(sli, pass, warning)).collect());
    // One and a half of three are met.
    slo.total_score.warning = "60%".into();
    let (verdict, report) = concluded(&slo, &seen(&[("info", 1.0), ("good", 1.0), ("near", 1.0), ("bad", 1.0)], &[]));
    assert_eq!(report.objectives.iter().map(|one| one.sli.as_str()).collect::<Vec<_>>(), ["bad", "near", "good", "info"]);
    assert_eq!((verdict, report.message.as_str()), (Verdict::Fail, "main: bad is 1, not <=0"));
}

/// One objective is not enough for half of the score, and none of them failed.
#[test]
fn a_score_that_is_too_low_is_told_where_no_objective_failed() {
    let mut slo = slo(vec![objective("near", "<=0", "<=1")]);
    slo.total_score.warning = "60%".into();
    let (verdict, report) = concluded(&slo, &seen(&[("near", 1.0)], &[]));
    assert_eq!(verdict, Verdict::Fail);
    assert_eq!(report.message, "Evaluation failed since the calculated score of 50 is below the warning value of 60");
}

#[test]
fn only_a_count_without_a_query_will_never_tell_more() {
    let slo = slo(vec![objective("errors", "<=1", "")]);
    for (why, hopeless) in [("unsupported SLI", true), ("query did not return any values", false)] {
        let samples = Some(Measured::nothing(SAMPLES, why));
        let (verdict, _) = concluded(&slo, &Seen { samples, ..seen(&[("errors", 0.0)], &[]) });
        assert_eq!(verdict, Verdict::Inconclusive { hopeless }, "{why}");
    }
}

#[test]
fn a_value_that_stands_alone_is_told_so() {
    let slo = slo(vec![objective("errors", "<=+50%", "")]);
    let shown = |canary: &[(&str, f64)], baseline: &[(&str, f64)]| {
        let one = concluded(&slo, &seen(canary, baseline)).1.objectives.remove(0);
        (one.value, one.baseline, one.message.contains("no value for the version before"))
    };
    let (errors, other) = (("errors", 2.0), ("latency", 9.0));
    assert_eq!(shown(&[other, errors], &[other]), (Some(2.0), None, true));
    assert_eq!(shown(&[errors], &[other, ("errors", 3.0)]), (Some(2.0), Some(3.0), false));
    assert_eq!(shown(&[errors], &[]), (Some(2.0), None, false), "nothing is compared");
    assert_eq!(shown(&[other], &[other]), (None, None, false), "there is no value at all");
}

#[test]
fn a_value_that_could_not_be_measured_is_none() {
    let slo = slo(vec![objective("errors", "<=1", "")]);
    let canary = vec![Measured::nothing("errors", "no data")];
    let (_, report) = concluded(&slo, &Seen { canary, ..seen(&[], &[]) });
    assert_eq!((report.objectives[0].value, report.objectives[0].message.as_str()), (None, "no data"));
    assert_eq!(report.message, "main: errors has no value (no data)");
}

#[test]
fn values_over_time_are_told_by_their_means() {
    let analysis =
        Analysis { mann_whitney: vec![Distribution { sli: "latency".into(), direction: Direction::Increase }], ..analysis() };
    let spread = Spread { canary: Ok(vec![7.0, 8.0, 12.0]), baseline: Ok(vec![1.0, 2.0, 6.0]) };
    let seen = Seen { spreads: vec![spread], ..seen(&[("errors", 0.0)], &[]) };
    let (_, report) = conclude(&slo(vec![objective("errors", "<=1", "")]), &analysis, window(), &[seen]);
    let latency = report.objectives.iter().find(|one| one.sli == "latency").unwrap();
    assert_eq!((latency.value, latency.baseline), (Some(9.0), Some(3.0)));
}
