//! Numbers as the lighthouse reads and writes them, that is as Go's `strconv.ParseFloat` and `%v` do.

/// A number as Go reads it: decimal, with an exponent, `_` between digits, `inf`, `nan`. One that is too large is none.
/// Hexadecimal numbers, which Go reads too, are refused.
pub fn parse(text: &str) -> Option<f64> {
    let plain = without_underscores(text)?;
    let unsigned = plain.strip_prefix(['+', '-']).unwrap_or(&plain);
    match unsigned.to_ascii_lowercase().as_str() {
        "inf" | "infinity" => return Some(if plain.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY }),
        "nan" => return (unsigned.len() == plain.len()).then_some(f64::NAN),
        _ => (),
    }
    let decimal = unsigned.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'));
    if decimal { plain.parse().ok().filter(|value: &f64| value.is_finite()) } else { None }
}

/// The text without `_`, each of which must be between two digits.
fn without_underscores(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let is_digit = |place: Option<usize>| place.and_then(|place| bytes.get(place)).is_some_and(u8::is_ascii_digit);
    let between = |place: usize| is_digit(place.checked_sub(1)) && is_digit(place.checked_add(1));
    let sound = text.match_indices('_').all(|(place, _)| between(place));
    sound.then(|| text.replace('_', ""))
}

/// A number as Go's `%v` writes it: the fewest digits that mean it, with an exponent from a million on and below 0.0001.
pub fn shown(value: f64) -> String {
    if !value.is_finite() {
        let sign = if value.is_sign_positive() { "+Inf" } else { "-Inf" };
        return if value.is_nan() { "NaN".into() } else { sign.into() };
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) || value == 0.0 {
        return format!("{value}");
    }
    let sign = if exponent.is_negative() { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_go_reads_them() {
        for (text, value) in [
            ("1_000", Some(1000.0)),
            ("1_0.0_1", Some(10.01)),
            ("_1", None),
            ("1__0", None),
            ("1_", None),
            ("inf", Some(f64::INFINITY)),
            ("+Inf", Some(f64::INFINITY)),
            ("-infinity", Some(f64::NEG_INFINITY)),
            ("infi", None),
            ("-nan", None),
            ("1e999", None),
            ("1e-999", Some(0.0)),
            ("5.", Some(5.0)),
            (".5", Some(0.5)),
            (".", None),
            ("1e", None),
            ("1E5", Some(100_000.0)),
            ("+5", Some(5.0)),
            ("--5", None),
            ("", None),
            ("10ms", None),
            ("0x10", None),
        ] {
            assert_eq!(parse(text), value, "{text}");
        }
        assert!(parse("nan").is_some_and(f64::is_nan));
    }

    #[test]
    fn numbers_are_written_as_go_writes_them() {
        for (value, text) in [
            (100.0, "100"),
            (75.3, "75.3"),
            (999_999.0, "999999"),
            (1_000_000.0, "1e+06"),
            (123_456_789.0, "1.23456789e+08"),
            (1_234_567.5, "1.2345675e+06"),
            (2.1e21, "2.1e+21"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (200.0 / 3.0, "66.66666666666667"),
            (-12.5, "-12.5"),
            (0.0, "0"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(shown(value), text);
        }
    }
}
