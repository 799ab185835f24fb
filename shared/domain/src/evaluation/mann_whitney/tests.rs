//! Kayenta's own test vectors (`tests/cases/evaluation/mann_whitney.json`), and series that it has no tests for.

use super::*;
use proptest::prelude::*;
use serde_json::Value;

const VECTORS: &str = include_str!("../../../../../tests/cases/evaluation/mann_whitney.json");

/// A series of the vectors. `[value, n]` stands for n times the value.
fn series(vectors: &Value, name: &Value) -> Vec<f64> {
    let all = vectors["series"][name.as_str().unwrap()].as_array().unwrap();
    let repeated = |one: &Value| match one.as_array() {
        Some(both) => vec![both[0].as_f64().unwrap(); usize::try_from(both[1].as_u64().unwrap()).unwrap()],
        None => vec![one.as_f64().unwrap()],
    };
    all.iter().flat_map(repeated).collect()
}

fn compared(vectors: &Value, case: &Value) -> Comparison {
    let mut settings = Settings { confidence: case["confidence"].as_f64().unwrap(), ..Settings::default() };
    settings.tolerance = case["tolerance"].as_f64().unwrap_or(settings.tolerance);
    settings.direction = serde_json::from_value(case["direction"].clone()).unwrap_or_default();
    settings.allowed_decrease = case["allowed"][0].as_f64().unwrap_or(1.0);
    settings.allowed_increase = case["allowed"][1].as_f64().unwrap_or(1.0);
    compare(&series(vectors, &case["baseline"]), &series(vectors, &case["canary"]), &settings)
}

#[test]
fn verdicts_are_kayentas() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    for case in vectors["verdicts"].as_array().unwrap() {
        let found = compared(&vectors, case);
        assert_eq!(serde_json::to_value(found.verdict).unwrap(), case["verdict"], "{}: {found:?}", case["title"]);
    }
}

#[test]
fn bounds_and_estimates_are_kayentas() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    for case in vectors["shifts"].as_array().unwrap() {
        let shift = compared(&vectors, case).shift.unwrap();
        // Kayenta's tests allow as much. Some of its numbers are R's, whose estimates are a little further away.
        for (name, found, within) in
            [("lower", shift.lower, 1e-6), ("upper", shift.upper, 1e-6), ("estimate", shift.estimate, 1e-4)]
        {
            let expected = case[name].as_f64().unwrap();
            assert!((found - expected).abs() < within, "{}: {name} {found} and not {expected}", case["title"]);
        }
    }
}

#[test]
fn the_statistic_is_kayentas() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    let of = |case: &Value| ["canary", "baseline"].map(|name| Sample::new(&series(&vectors, &case[name]), None));
    let shifts = vectors["shifts"].as_array().unwrap();
    let [x, y] = of(&shifts[1]);
    for (shift, expected) in [(0.0, -1.229_416), (5.0, -35.806_06)] {
        let found = statistic(&x, &y, shift);
        assert!((found - expected).abs() < 1e-6, "{found}");
    }
    let [x, y] = of(&shifts[4]);
    let quantile = normal_quantile(0.025);
    for (shift, quantile, expected) in [
        (-3.124_999_999_999_986, -quantile, 17.090_968_923_762_254),
        (5.555_555_555_555_557, -quantile, -20.997_687_930_433_106),
        (-3.124_999_999_999_986, quantile, 21.010_896_892_842_36),
        (5.555_555_555_555_557, quantile, -17.077_759_961_353),
    ] {
        let found = statistic(&x, &y, shift) - quantile;
        assert!((found - expected).abs() < 1e-6, "{found}");
    }
}

fn verdict_of(baseline: &[f64], canary: &[f64]) -> Verdict {
    compare(baseline, canary, &Settings::default()).verdict
}

#[test]
fn what_is_no_number_counts_as_none() {
    let [nan, endless, most] = [f64::NAN, f64::INFINITY, f64::MAX];
    for none in [&[][..], &[nan], &[endless, -endless, nan], &[most, -most]] {
        let expected = Comparison { verdict: Verdict::NoData, shift: None };
        assert_eq!(compare(none, &[1.0], &Settings::default()), expected);
        assert_eq!(compare(&[1.0], none, &Settings::default()), expected);
    }
    assert_eq!(verdict_of(&[1.0, nan, 2.0], &[2.0, 1.0, endless]), Verdict::Pass, "the same numbers");
    assert_eq!(verdict_of(&[-0.0], &[0.0, 0.0]), Verdict::Pass);
}

#[test]
fn series_of_one_value_each_are_as_far_apart_as_their_values() {
    let found = compare(&[0.0; 5], &[3.0; 4], &Settings::default());
    assert_eq!(found.verdict, Verdict::High);
    assert_eq!(found.shift, Some(Shift { estimate: 3.0, lower: 3.0, upper: 3.0, ratio: None }));
    assert_eq!(verdict_of(&[100.0], &[99.0]), Verdict::Low);
}

#[test]
fn outliers_are_left_out_where_this_is_asked_for() {
    let baseline: Vec<f64> = (0..200).map(|n| f64::from(n % 10)).collect();
    let mut spiked = baseline.clone();
    spiked.extend([1000.0, -1000.0]);
    let left = |factor: f64| Sample::new(&spiked, Some(factor)).0;
    assert_eq!(left(3.0).len(), 200);
    assert_eq!(left(1000.0).len(), 202);
    // The data of Kayenta's test "IQR Detection".
    let few = [21.0, 23.0, 24.0, 25.0, 50.0, 29.0, 23.0, 21.0];
    assert_eq!(Sample::new(&few, Some(1.5)).0, [21.0, 21.0, 23.0, 23.0, 24.0, 25.0, 29.0]);
    assert!(Sample::new(&[], Some(3.0)).0.is_empty());
}

/// A number of an ordinary metric, one that repeats, or one that no metric should have.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![4 => -100.0..100.0f64, 4 => (0..4i32).prop_map(f64::from), 1 => any::<f64>()]
}

proptest! {
    #[test]
    fn every_comparison_has_a_result_that_does_not_depend_on_the_order(
        baseline in prop::collection::vec(number(), 0..40),
        canary in prop::collection::vec(number(), 0..40),
        confidence in prop_oneof![8 => 0.5..0.999f64, 1 => any::<f64>()],
        outliers in prop::option::of(0.5..4.0f64),
    ) {
        let settings = Settings { confidence, outliers, ..Settings::default() };
        let found = compare(&baseline, &canary, &settings);
        let reversed = |of: &[f64]| of.iter().rev().copied().collect::<Vec<_>>();
        prop_assert_eq!(&format!("{found:?}"), &format!("{:?}", compare(&reversed(&baseline), &reversed(&canary), &settings)));
        if let Some(shift) = found.shift {
            prop_assert!(shift.estimate.is_finite() && shift.lower.is_finite() && shift.upper.is_finite());
        }
        let one_way = |direction| compare(&baseline, &canary, &Settings { direction, ..settings }).verdict;
        let (increase, decrease) = (one_way(Direction::Increase), one_way(Direction::Decrease));
        prop_assert!(increase != Verdict::Low && decrease != Verdict::High);
        match found.verdict {
            Verdict::High => prop_assert_eq!(increase, Verdict::High),
            Verdict::Low => prop_assert_eq!((increase, decrease), (Verdict::Pass, Verdict::Low)),
            same => prop_assert_eq!((increase, decrease), (same, same)),
        }
    }
}
