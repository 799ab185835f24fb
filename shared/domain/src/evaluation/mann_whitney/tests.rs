//! Series whose bounds R computed, or that were computed a second way, by going through the differences of all pairs; and those
//! that are special.

use super::*;
use proptest::prelude::*;

/// Latencies of twenty minutes.
const BASELINE: [f64; 20] = [
    109.39, 109.67, 126.03, 99.35, 118.71, 99.7, 129.91, 121.83, 132.21, 115.46, 123.58, 117.43, 113.36, 121.31, 108.69, 116.81,
    126.27, 120.52, 116.31, 139.71,
];
/// Of something slower.
const SLOW: [f64; 18] = [
    141.64, 134.54, 142.76, 135.25, 136.76, 137.15, 163.28, 141.25, 142.93, 148.42, 163.19, 138.54, 134.14, 168.22, 124.94, 136.96,
    148.34, 166.12,
];
/// Of something that is as fast.
const ALIKE: [f64; 22] = [
    112.45, 99.15, 126.95, 116.31, 117.51, 125.15, 123.01, 123.62, 117.12, 132.6, 134.54, 121.29, 116.93, 127.6, 125.3, 111.64,
    116.86, 130.44, 120.13, 118.04, 122.91, 120.7,
];

#[test]
fn bounds_are_where_the_statistic_is_a_quantile() {
    for (canary, lower, upper, estimate, verdict) in
        [(&SLOW[..], 16.49, 35.19, 24.76, Verdict::High), (&ALIKE[..], -3.82, 8.99, 2.58, Verdict::Pass)]
    {
        let found = compare(&BASELINE, canary, &Settings::default());
        let shift = found.shift.unwrap();
        assert_eq!(found.verdict, verdict);
        assert!((shift.lower - lower).abs() < 1e-4 && (shift.upper - upper).abs() < 1e-4, "{shift:?}");
        let [x, y] = [canary, &BASELINE].map(|values| Sample::new(values, None));
        let is_between_steps = statistic(&x, &y, shift.estimate) == 0.0;
        assert!(is_between_steps || (shift.estimate - estimate).abs() < 1e-4, "{shift:?}");
    }
    // So few points are never sure enough: the bounds are the least and the greatest difference.
    let few = compare(&[1.0, 2.0, 3.0, 4.0], &[10.0, 20.0, 30.0, 40.0], &Settings { confidence: 0.95, ..Settings::default() });
    let shift = few.shift.unwrap();
    assert!(
        (shift.lower - 6.0).abs() < 1e-6 && (shift.upper - 39.0).abs() < 1e-6 && (shift.estimate - 22.5).abs() < 1e-6,
        "{shift:?}"
    );
    // They are these exactly, also where the statistic next to them is the same.
    for (baseline, canary, lower, upper) in [([0.0, 1.0, 1.0], 1.0, 0.0, 1.0), ([0.0, 0.0, 1.0], 0.0, -1.0, 0.0)] {
        let shift = compare(&baseline, &[canary], &Settings::default()).shift.unwrap();
        assert_eq!((shift.lower, shift.upper), (lower, upper), "{baseline:?} {canary}");
    }
}

/// What R's `wilcox.test` says of two series, whose algorithm Kayenta has: `wilcoxon.R` writes the file.
#[derive(serde::Deserialize)]
struct Said {
    confidence: f64,
    baseline: Vec<f64>,
    canary: Vec<f64>,
    lower: f64,
    upper: f64,
    estimate: f64,
}

/// R looks for a root until it is this near.
const NEAR: f64 = 1.5e-4;

#[test]
fn r_says_the_same() {
    let all: Vec<Said> = serde_json::from_str(include_str!("wilcoxon.json")).unwrap();
    assert_eq!(all.len(), 40);
    for (at, said) in all.iter().enumerate() {
        let found = compare(&said.baseline, &said.canary, &Settings { confidence: said.confidence, ..Settings::default() });
        let shift = found.shift.unwrap();
        let near = |found: f64, said: f64| (found - said).abs() < NEAR;
        assert!(
            near(shift.lower, said.lower) && near(shift.upper, said.upper),
            "{at}: {shift:?}, not {} to {}",
            said.lower,
            said.upper
        );
        // Between two steps, every shift is the median.
        let [x, y] = [&said.canary, &said.baseline].map(|values| Sample::new(values, None));
        let is_between_steps = statistic(&x, &y, shift.estimate) == 0.0;
        assert!(is_between_steps || near(shift.estimate, said.estimate), "{at}: {shift:?}, not {}", said.estimate);
    }
}

#[test]
fn the_statistic_corrects_for_ties_and_continuity() {
    let of = |x: &[f64], y: &[f64], shift: f64| statistic(&Sample::new(x, None), &Sample::new(y, None), shift);
    for (found, expected) in [
        (of(&SLOW, &BASELINE, 0.0), 4.896_907_274_464_246),
        (of(&SLOW, &BASELINE, 21.5), 0.803_969_851_031_443_4),
        (of(&[1.0, 1.0, 2.0, 3.0, 3.0], &[1.0, 2.0, 2.0, 2.0], 0.0), 0.261_861_468_283_190_85),
        (of(&[1.0, 1.0, 2.0, 3.0, 3.0], &[1.0, 2.0, 2.0, 2.0], 1.0), -1.084_209_483_486_301_3),
        (of(&[2.0, 2.0], &[1.0, 1.0], 1.0), 0.0),
    ] {
        assert!((found - expected).abs() < 1e-12, "{found}");
    }
}

#[test]
fn a_change_counts_if_it_is_in_the_direction_sure_and_large_enough() {
    let of = |settings: Settings| compare(&BASELINE, &SLOW, &settings).verdict;
    let default = Settings::default();
    assert_eq!(of(Settings { direction: Direction::Increase, ..default }), Verdict::High);
    assert_eq!(of(Settings { direction: Direction::Decrease, ..default }), Verdict::Pass);
    assert_eq!(compare(&SLOW, &BASELINE, &default).verdict, Verdict::Low);
    assert_eq!(compare(&SLOW, &BASELINE, &Settings { direction: Direction::Increase, ..default }).verdict, Verdict::Pass);
    // The lower bound is two thirds of the estimate, and the means are 1.22 to one.
    assert_eq!(of(Settings { tolerance: 0.6, ..default }), Verdict::High);
    assert_eq!(of(Settings { tolerance: 0.7, ..default }), Verdict::Pass);
    assert_eq!(of(Settings { allowed_increase: 1.2, ..default }), Verdict::High);
    assert_eq!(of(Settings { allowed_increase: 1.25, ..default }), Verdict::Pass);
    let errors = compare(&[0.0; 10], &[0.05, 0.05, 0.02, 0.02, 0.02, 0.05, 0.03, 0.05, 0.05, 0.13], &default);
    assert_eq!((errors.verdict, errors.shift.unwrap().ratio), (Verdict::High, None), "no ratio, so it is not asked for");
    assert_eq!(verdict_of(&[1.0; 5], &[1.0, 1.0, 1.0, 1.0, 10.0]), Verdict::Pass, "one of five");
}

/// Series of one value each, so that the bounds are what they are apart by.
#[test]
fn a_change_is_judged_exactly_at_its_limits() {
    let default = Settings::default();
    let (whole, less) = (Settings { tolerance: 1.0, ..default }, Settings { tolerance: 0.99, ..default });
    let increase = |allowed_increase| Settings { allowed_increase, ..default };
    let decrease = |allowed_decrease| Settings { allowed_decrease, ..default };
    for (baseline, canary, settings, expected) in [
        (4.0, 6.0, whole, Verdict::Pass),
        (4.0, 6.0, less, Verdict::High),
        (6.0, 4.0, whole, Verdict::Pass),
        (6.0, 4.0, less, Verdict::Low),
        (4.0, 6.0, increase(1.5), Verdict::High),
        (4.0, 6.0, increase(1.51), Verdict::Pass),
        (4.0, 2.0, decrease(0.5), Verdict::Low),
        (4.0, 2.0, decrease(0.49), Verdict::Pass),
    ] {
        assert_eq!(compare(&[baseline; 3], &[canary; 3], &settings).verdict, expected, "{baseline} to {canary}: {settings:?}");
    }
}

#[test]
fn a_decrease_counts_if_an_increase_as_large_does() {
    let default = Settings::default();
    let of = |baseline: &[f64], settings: Settings| compare(baseline, &BASELINE, &settings).verdict;
    assert_eq!(of(&ALIKE, default), Verdict::Pass, "the mean is lower, but that is not sure");
    assert_eq!(of(&SLOW, Settings { direction: Direction::Decrease, ..default }), Verdict::Low);
    assert_eq!(of(&SLOW, Settings { tolerance: 0.6, ..default }), Verdict::Low);
    assert_eq!(of(&SLOW, Settings { tolerance: 0.7, ..default }), Verdict::Pass);
}

#[test]
fn only_series_of_the_same_values_are_not_looked_at() {
    let shift = |baseline: &[f64], canary: &[f64]| compare(baseline, canary, &Settings::default()).shift;
    assert_eq!(shift(&[1.0, 2.0, 3.0], &[3.0, 1.0, 2.0]), None);
    assert_eq!(shift(&[2.0; 3], &[2.0; 5]), None);
    for (baseline, canary) in [(&[1.0, 2.0][..], &[1.0][..]), (&[1.0], &[1.0, 2.0]), (&[1.0, 2.0], &[1.0, 3.0])] {
        assert!(shift(baseline, canary).is_some(), "{baseline:?} {canary:?}");
    }
}

/// A sum of tenths is no multiple of a tenth, and that of large numbers has no end.
#[test]
fn the_ratio_is_that_of_the_exact_means() {
    let ratio = |baseline: &[f64], canary: &[f64]| compare(baseline, canary, &Settings::default()).shift.unwrap().ratio;
    assert_eq!(ratio(&[0.1; 3], &[0.25; 2]), Some(2.5));
    assert_eq!(ratio(&[0.25; 2], &[0.1; 3]), Some(0.4));
    assert_eq!(ratio(&[0.7; 10], &[1.4; 2]), Some(2.0));
    assert_eq!(ratio(&[1.0, 2.0, 6.0], &[7.0, 8.0, 12.0]), Some(3.0));
    assert_eq!(ratio(&[2.0], &[0.0]), None);
    assert_eq!(ratio(&[1.0], &[f64::MAX / 5.0; 6]), None);
}

#[test]
fn a_zero_is_a_zero_whatever_its_sign() {
    let values = [0.0, 0.0, 1.0, 2.0, 2.0];
    let negative = values.map(|value: f64| if value == 0.0 { -value } else { value });
    for canary in [&[0.0, 1.0, 3.0][..], &[0.0, 0.0, -1.0, 4.0]] {
        let of = |baseline: &[f64]| compare(baseline, canary, &Settings::default());
        assert_eq!(of(&negative), of(&values), "{canary:?}");
    }
    let statistic_of = |y: &[f64]| statistic(&Sample::new(&[0.0, 1.0], None), &Sample::new(y, None), 0.0);
    assert_eq!(statistic_of(&negative), statistic_of(&values));
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
    let few = [5.0, 6.0, 7.0, 6.0, 40.0, 5.5, 6.5];
    assert_eq!(Sample::new(&few, Some(1.5)).0, [5.0, 5.5, 6.0, 6.0, 6.5, 7.0]);
    assert!(Sample::new(&[], Some(3.0)).0.is_empty());
    // On the fence, and beyond the percentile on the other side.
    assert_eq!(Sample::new(&[0.0, 10.0, 11.0, 12.0, 15.0], Some(1.5)).0, [10.0, 11.0, 12.0, 15.0]);
    assert_eq!(Sample::new(&[0.0, 3.0, 4.0, 5.0, 15.0], Some(1.5)).0, [0.0, 3.0, 4.0, 5.0]);
}

/// The percentiles are those of R's `quantile`.
#[test]
fn fences_are_so_many_interquartile_ranges_or_a_percentile_away() {
    let sample = Sample::new(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0], None);
    for (factor, low, high) in [(0.0, 1.05, 31.2), (1.0, -9.0, 31.2), (2.0, -20.5, 37.0)] {
        let (from, to) = sample.fences(factor).unwrap();
        assert!((from - low).abs() < 1e-9 && (to - high).abs() < 1e-9, "{factor}: {from} to {to}");
    }
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
