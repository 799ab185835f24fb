//! Numerical methods that comparisons of series need: quantiles of the normal distribution, and roots of a function.

/// The root is found this exactly, as in R's `wilcox.test` (`tol.root`) and in Kayenta.
const TOLERANCE: f64 = 1e-4;
/// After so many steps the last guess is taken. A root between finite numbers takes far fewer.
const STEPS: usize = 1001;

/// Where the standard normal distribution has this share of its values below: 0 for 0.5, -2.326 for 0.01.
///
/// Algorithm AS 241 (PPND16) of M. J. Wichura, *The Percentage Points of the Normal Distribution*, Applied Statistics 37 (1988):
/// about 16 digits.
pub fn normal_quantile(share: f64) -> f64 {
    let q = share - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * ratio(&CENTRE, r);
    }
    let tail = share.min(1.0 - share);
    if tail <= 0.0 {
        return f64::INFINITY.copysign(q);
    }
    let r = (-tail.ln()).sqrt();
    let size = if r <= 5.0 { ratio(&TAIL, r - 1.6) } else { ratio(&FAR, r - 5.0) };
    size.copysign(q)
}

/// A numerator and a denominator, beginning with the constant.
type Coefficients = [[f64; 8]; 2];

const CENTRE: Coefficients = [
    [
        3.387_132_872_796_366_6,
        133.141_667_891_784_38,
        1_971.590_950_306_551_4,
        13_731.693_765_509_46,
        45_921.953_931_549_87,
        67_265.770_927_008_7,
        33_430.575_583_588_13,
        2_509.080_928_730_122_7,
    ],
    [
        1.0,
        42.313_330_701_600_91,
        687.187_007_492_057_9,
        5_394.196_021_424_751,
        21_213.794_301_586_597,
        39_307.895_800_092_71,
        28_729.085_735_721_943,
        5_226.495_278_852_854,
    ],
];
const TAIL: Coefficients = [
    [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        0.241_780_725_177_450_6,
        0.022_723_844_989_269_184,
        7.745_450_142_783_414e-4,
    ],
    [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        0.689_767_334_985_1,
        0.148_103_976_427_480_08,
        0.015_198_666_563_616_457,
        5.475_938_084_995_345e-4,
        1.050_750_071_644_416_9e-9,
    ],
];
const FAR: Coefficients = [
    [
        6.657_904_643_501_103,
        5.463_784_911_164_114,
        1.784_826_539_917_291_3,
        0.296_560_571_828_504_87,
        0.026_532_189_526_576_124,
        0.001_242_660_947_388_078_4,
        2.711_555_568_743_487_6e-5,
        2.010_334_399_292_288_1e-7,
    ],
    [
        1.0,
        0.599_832_206_555_888,
        0.136_929_880_922_735_8,
        0.014_875_361_290_850_615,
        7.868_691_311_456_133e-4,
        1.846_318_317_510_054_8e-5,
        1.421_511_758_316_446e-7,
        2.044_263_103_389_939_8e-15,
    ],
];

fn ratio([numerator, denominator]: &Coefficients, at: f64) -> f64 {
    let polynomial = |coefficients: &[f64; 8]| coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * at + coefficient);
    polynomial(numerator) / polynomial(denominator)
}

/// A guess of a root, and the function there.
#[derive(Clone, Copy)]
struct Guess {
    at: f64,
    value: f64,
}

/// Where a function crosses zero between two places with values of different signs.
///
/// R. P. Brent, *Algorithms for Minimization without Derivatives* (1973), chapter 4. Each step interpolates, and halves where that
/// would not come closer. The arithmetic is that of Kayenta, which has it from R (`zeroin`), so that roots agree in every digit: a
/// function of ranks is made of steps, and which side of a step is found depends on the way there.
pub fn root(ends: (f64, f64), function: impl Fn(f64) -> f64) -> f64 {
    let guess = |at: f64| Guess { at, value: function(at) };
    let (mut before, mut best) = (guess(ends.0), guess(ends.1));
    if before.value == 0.0 {
        return before.at;
    }
    // On the other side of the root than `best`.
    let mut opposite = before;
    for _ in 0..STEPS {
        let last_step = best.at - before.at;
        if opposite.value.abs() < best.value.abs() {
            (before, best, opposite) = (best, opposite, best);
        }
        let exact = 2.0 * f64::EPSILON * best.at.abs() + TOLERANCE / 2.0;
        let half = (opposite.at - best.at) / 2.0;
        if half.abs() <= exact || best.value == 0.0 {
            return best.at;
        }
        let is_shrinking = last_step.abs() >= exact && before.value.abs() > best.value.abs();
        let step = Some(interpolated(before, best, opposite)).filter(|step| is_shrinking && step.is_trusted(last_step, exact));
        let step = step.map_or(half, |step| step.p / step.q);
        before = best;
        best = guess(best.at + step.abs().max(exact).copysign(step));
        if best.value.signum() == opposite.value.signum() {
            opposite = before;
        }
    }
    best.at
}

/// A step as a fraction.
struct Step {
    p: f64,
    q: f64,
    /// From the best guess to the other side of the root.
    width: f64,
}

impl Step {
    /// Whether it stays well within where the root is, and is less than half of the last one.
    fn is_trusted(&self, last_step: f64, exact: f64) -> bool {
        let Self { p, q, width } = *self;
        p < 0.75 * width * q - (exact * q).abs() / 2.0 && p < (last_step * q / 2.0).abs()
    }
}

/// The step to where a line or an inverse parabola through the guesses is zero.
fn interpolated(before: Guess, best: Guess, opposite: Guess) -> Step {
    let width = opposite.at - best.at;
    let by_before = best.value / before.value;
    let (p, q) = if before.at == opposite.at {
        (width * by_before, 1.0 - by_before)
    } else {
        let (of_opposite, by_opposite) = (before.value / opposite.value, best.value / opposite.value);
        let p = by_before * (width * of_opposite * (of_opposite - by_opposite) - (best.at - before.at) * (by_opposite - 1.0));
        (p, (of_opposite - 1.0) * (by_opposite - 1.0) * (by_before - 1.0))
    };
    let (p, q) = if p > 0.0 { (p, -q) } else { (-p, q) };
    Step { p, q, width }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (share, expected) in [
            (0.5, 0.0),
            (0.01, -2.326_347_874_040_841),
            (0.025, -1.959_963_984_540_054),
            (0.975, 1.959_963_984_540_054),
            (0.1, -1.281_551_565_544_600_5),
            (1e-20, -9.262_340_089_798_408),
        ] {
            let found = normal_quantile(share);
            assert!((found - expected).abs() < 1e-14 * expected.abs().max(1.0), "{share}: {found}");
        }
        assert_eq!((normal_quantile(0.0), normal_quantile(1.0)), (f64::NEG_INFINITY, f64::INFINITY));
        assert!(normal_quantile(f64::NAN).is_nan());
    }

    /// A function that begins with a value, and grows at each place by a height.
    fn stairs(x: f64, value: f64, steps: &[(f64, f64)]) -> f64 {
        value + steps.iter().filter(|(at, _)| x >= *at).map(|(_, height)| height).sum::<f64>()
    }

    /// What R 4.2's `uniroot(f, c(low, high), tol = 1e-4)` says: the place, to the last digit, and the number of guesses.
    #[test]
    fn the_way_to_a_root_is_that_of_r() {
        type Case = (&'static str, (f64, f64), fn(f64) -> f64, usize, f64);
        let cases: [Case; 14] = [
            ("square", (0.0, 2.0), |x| x * x - 2.0, 6, 1.414_213_319_995_502_5),
            ("cubic", (2.0, 3.0), |x| x * x * x - 2.0 * x - 5.0, 5, 2.094_551_266_584_139),
            ("flat", (-1.0, 1.5), |x| x * x * x * x * x * x * x * x * x - 1e-3, 12, 0.464_178_036_692_203_03),
            ("stairs down", (-7.3, 20.1), |x| 2.5 - x.floor(), 15, 3.000_059_318_542_481_5),
            ("one step", (-10.0, 30.0), |x| if x < 7.0 { -1.0 } else { 2.0 }, 21, 6.999_935_688_157_297),
            ("hyperbola", (0.0, 1e6), |x| 1.0 - 1000.0 / (x + 1.0), 16, 999.000_000_142_200_4),
            ("negative", (-100.0, 1.0), |x| (x + 3.0) * (x * x + 1.0), 18, -2.999_999_931_233_917),
            ("stairs", (0.0, 40.0), |x| stairs(x, -5.0, &[(13.0, 3.0), (25.0, 3.0), (34.0, 5.0)]), 19, 25.000_007_697_767_185),
            // Steps between which there is little more than the tolerance.
            ("narrow", (0.0, 0.004), |x| stairs(x, -3.0, &[(0.0034, 2.0), (0.0035, 50.0)]), 8, 0.003_473_557_692_307_694),
            ("narrower", (0.0, 0.004), |x| stairs(x, -3.0, &[(0.0019, 2.0), (0.002, 20.0)]), 8, 0.001_949_793_388_429_752_8),
            // The quotient of its values is too small to be a number.
            ("cliff", (0.0, 2.0), |x| if x < 1.3 { 1e300 } else { -1e-300 }, 15, 1.300_048_828_125),
            // Where neighbouring numbers are further apart than the tolerance.
            ("far", (0.0, 1e13), |x| x * x - 5e25, 7, 7_071_067_811_865.476),
            ("very far", (0.0, 1e18), |x| x * x - 5e35, 8, 7.071_067_811_865_476e17),
            ("far cubic", (-1e11, 1e13), |x| (x - 3e12) * (x + 1e12) * (x + 5e12), 10, 3e12),
        ];
        for (name, ends, function, guesses, expected) in cases {
            let asked = std::cell::Cell::new(0);
            let found = root(ends, |x| {
                asked.set(asked.get() + 1);
                function(x)
            });
            // R does not count the ends.
            assert_eq!((found, asked.get()), (expected, guesses + 2), "{name}");
        }
    }

    #[test]
    fn a_root_is_found_as_exactly_as_is_asked() {
        for (low, high, expected) in [(0.0, 2.0, 2f64.sqrt()), (-1.0, 1e6, 2f64.sqrt())] {
            let found = root((low, high), |x| if x < 0.0 { -2.0 } else { x * x - 2.0 });
            assert!((found - expected).abs() <= TOLERANCE, "{found}");
        }
        assert_eq!(root((3.0, 5.0), |x| x - 3.0), 3.0);
        assert_eq!(root((3.0, 5.0), |x| x - 5.0), 5.0);
        let step = root((-1e300, 1e300), |x| if x < 7.0 { 1.0 } else { -1.0 });
        assert!(step.is_finite());
        assert!(root((0.0, 1.0), |_| f64::NAN).is_finite(), "it ends");
    }
}
