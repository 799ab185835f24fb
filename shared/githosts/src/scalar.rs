//! Writes a text as a YAML scalar on one line.

use granit_parser::ScalarStyle;

/// Writes a text in the present style. A plain scalar stays plain if every YAML parser, of version 1.1 or 1.2, parses it to the
/// same string; otherwise it is quoted.
pub(crate) fn write(text: &str, style: ScalarStyle, in_flow: bool) -> String {
    let printable = text.chars().all(is_printable);
    match style {
        ScalarStyle::Plain if is_plain(text, in_flow) => text.to_owned(),
        ScalarStyle::SingleQuoted if printable => single(text),
        _ => double(text),
    }
}

fn single(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn double(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out += "\\\"",
            '\\' => out += "\\\\",
            c if is_printable(c) => out.push(c),
            c if u32::from(c) <= 0xff => out += &format!("\\x{:02x}", u32::from(c)),
            c if u32::from(c) <= 0xffff => out += &format!("\\u{:04x}", u32::from(c)),
            c => out += &format!("\\U{:08x}", u32::from(c)),
        }
    }
    out + "\""
}

/// Whether a character is neither a control character, nor a line break or a byte order mark.
fn is_printable(c: char) -> bool {
    !(c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'))
}

fn is_plain(text: &str, in_flow: bool) -> bool {
    let begins = text.chars().next().is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '/' | '+' | '$' | '^' | '('));
    begins
        && text.chars().all(is_printable)
        && !text.ends_with([' ', ':'])
        && !(text.contains(": ") || text.contains(" #"))
        && !(in_flow && text.contains([',', '[', ']', '{', '}', ':']))
        && !is_other_type(text)
}

/// Whether some parser takes the text for null, a boolean, a number or a time.
fn is_other_type(text: &str) -> bool {
    const WORDS: [&str; 12] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n", ".inf", ".nan", "+.inf"];
    WORDS.iter().any(|word| text.eq_ignore_ascii_case(word)) || is_number(text) || is_time(text)
}

fn is_number(text: &str) -> bool {
    let digits = text.replace('_', "");
    let digits = digits.strip_prefix(['+', '-']).unwrap_or(&digits);
    let radix = |prefix: [&str; 2], radix: u32| {
        let rest = digits.strip_prefix(prefix[0]).or_else(|| digits.strip_prefix(prefix[1]));
        rest.is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_digit(radix)))
    };
    let sixtieths = || {
        let mut parts = digits.split(':');
        digits.contains(':') && parts.all(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit() || c == '.'))
    };
    digits.parse::<f64>().is_ok() || radix(["0x", "0X"], 16) || radix(["0o", "0O"], 8) || radix(["0b", "0B"], 2) || sixtieths()
}

/// Whether the text is a date, or a date with a time.
fn is_time(text: &str) -> bool {
    let end = text.find(['T', 't', ' ']).unwrap_or(text.len());
    let parts: Vec<&str> = text[..end].split('-').collect();
    let number = |part: &&str, longest: usize| (1..=longest).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
    matches!(parts.as_slice(), [year, month, day] if year.len() == 4 && number(year, 4) && number(month, 2) && number(day, 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_stays_plain_if_it_is_a_string_to_everybody() {
        for text in
            ["1.2.3", "v2", "main@sha1:abc", "nginx:1.22.0", "2024-01-01-rc1", "1.2.3+build.5", "a#b", "ref/heads/x", "sha256:0e1"]
        {
            assert_eq!(write(text, ScalarStyle::Plain, false), text);
        }
        let quoted = [
            "1.10",
            "12345678",
            "0123456",
            "1e10",
            "12e5",
            "0x1f",
            "0o7",
            "0b1",
            "1_000",
            "190:20:30",
            "true",
            "No",
            "NULL",
            "~",
            "",
            "2024-01-01",
            "2024-1-1T10:00:00Z",
            ".inf",
            "nan",
            "a: b",
            "a #b",
            "a:",
            " a",
            "a ",
            "@x",
            "*x",
            "&x",
            "!x",
            "-x",
            "- x",
            "?",
            "%x",
            "`x",
            "'x",
            "\"x",
            "#x",
            "[x",
            "{x",
            "|",
            ">",
            "=",
            "<<",
            "a\nb",
            "a\tb",
            "\u{feff}x",
        ];
        for text in quoted {
            let written = write(text, ScalarStyle::Plain, false);
            assert!(written.starts_with('"') && written.ends_with('"'), "{text:?} became {written}");
        }
        assert_eq!(write("a,b", ScalarStyle::Plain, true), "\"a,b\"");
        assert_eq!(write("a,b", ScalarStyle::Plain, false), "a,b");
    }

    #[test]
    fn quotes_are_kept() {
        assert_eq!(write("it's", ScalarStyle::SingleQuoted, false), "'it''s'");
        assert_eq!(write("a\nb", ScalarStyle::SingleQuoted, false), "\"a\\x0ab\"");
        assert_eq!(write("a\"\\\u{2028}\u{1f600}", ScalarStyle::DoubleQuoted, false), "\"a\\\"\\\\\\u2028\u{1f600}\"");
        assert_eq!(write("v2", ScalarStyle::DoubleQuoted, false), "\"v2\"");
    }
}
