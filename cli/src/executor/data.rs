//! What a command's standard output becomes: data, if all of it is one JSON object. Output that was probably meant as one, and is
//! not, gets a warning: data that is missing shows only tasks later.

use keelway_domain::event::Object;
use serde_json::Value;

/// The object, or else what is wrong with an output that looks like one.
pub fn read(stdout: &[u8]) -> Result<Object, Option<String>> {
    let error = match serde_json::from_slice::<Object>(stdout) {
        Ok(object) => return Ok(object),
        Err(error) => error,
    };
    Err(why(stdout, &error).map(|why| format!("standard output is not used as data: {why}")))
}

fn why(stdout: &[u8], error: &serde_json::Error) -> Option<String> {
    let lossy = String::from_utf8_lossy(stdout);
    let text = lossy.trim();
    if let Some(rest) = text.strip_prefix('\u{feff}') {
        return looks_like_json(rest).then(|| "it begins with a byte order mark (U+FEFF): write UTF-8 without one".into());
    }
    if text.starts_with('[') && serde_json::from_str::<Value>(text).is_ok() {
        return Some("it is a JSON array: write one object, {…}".into());
    }
    if text.starts_with(['{', '[']) && text.contains('\u{fffd}') && std::str::from_utf8(stdout).is_err() {
        return Some("it is not UTF-8".into());
    }
    if text.starts_with('{') && !text.starts_with("{{") {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        return Some(match values.next() {
            Some(Ok(_)) => "there is more after the JSON object: write one object and nothing else".into(),
            _ => format!("it is not valid JSON: {error}"),
        });
    }
    let is_object = |line: &str| serde_json::from_str::<Object>(line).is_ok_and(|object| !object.is_empty());
    let ends_with_one = text.ends_with('}') && text.lines().any(|line| looks_like_json(line.trim_start()));
    let object = ends_with_one || text.lines().any(is_object);
    object.then(|| "there is text before the JSON object: write messages to standard error".into())
}

/// Braces alone are no sign: many texts have some.
fn looks_like_json(text: &str) -> bool {
    let inside = text.strip_prefix('{').map(str::trim_start);
    inside.is_some_and(|inside| inside.is_empty() || inside.starts_with(['"', '}']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearly_json_is_told_and_plain_text_is_not() {
        let cases: Vec<(&str, &[u8])> = vec![
            ("an object", b" {\"score\": 7}\n"),
            ("nothing", b"\n"),
            ("text", b"deployed carts {1.2}\n"),
            ("a number", b"7\n"),
            ("a template", b"{{ .Values.image }}"),
            ("a set of words", b"found {a, b}"),
            ("a log line before it", b"deploying...\n{\"score\": 7}\n"),
            ("a log line before a long one", b"deploying...\n{\n  \"score\": 7\n}\n"),
            ("log lines on both sides", b"deploying...\n{\"score\": 7}\ndone\n"),
            ("a log line after it", b"{\"score\": 7}\ndone\n"),
            ("two objects", b"{\"score\": 7}\n{\"score\": 8}\n"),
            ("a byte order mark", b"\xef\xbb\xbf{\"score\": 7}"),
            ("a number out of range", b"{\"score\": 1e999}"),
            ("a lone surrogate", b"{\"name\": \"\\ud800\"}"),
            ("not UTF-8", b"{\"name\": \"\xff\"}"),
            ("half an object", b"{\"score\": "),
            ("single quotes", b"{'score': 7}"),
            ("NaN", b"{\"score\": NaN}"),
            ("an array", b"[{\"score\": 7}]"),
            ("log lines in brackets", b"[info] deploying\n"),
        ];
        let told = |(name, bytes): (&str, &[u8])| match read(bytes) {
            Ok(object) => format!("{name}: data {}", Value::Object(object)),
            Err(None) => format!("{name}: no data"),
            Err(Some(warning)) => format!("{name}: {warning}"),
        };
        insta::assert_snapshot!(cases.into_iter().map(told).collect::<Vec<_>>().join("\n"));
    }
}
