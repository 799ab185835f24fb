//! What sources say, as far as people should read it.

/// The most characters of a source's message that are repeated.
const SAID: usize = 300;

/// A message of a source on one line, shortened, and without these secrets.
pub fn said(text: &str, secrets: &[String]) -> String {
    let mut text = text.to_owned();
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        text = text.replace(secret.as_str(), "***");
    }
    let text =
        text.split(|c: char| c.is_control() || c.is_whitespace()).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(SAID) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::said;

    #[test]
    fn a_message_is_short_and_has_no_secret() {
        assert_eq!(
            said("parse\terror:\n  s3cret is no number", &["s3cret".into(), String::new()]),
            "parse error: *** is no number"
        );
        assert_eq!(said(&"ä".repeat(400), &[]).chars().count(), 301);
    }
}
