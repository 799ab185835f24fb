//! Masks secrets in texts that are stored or shown.

use crate::render::UNRESERVED;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use keelway_engine::secrets::SecretText;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// The replacement for a secret.
const HIDDEN: &str = "***";
/// The shortest part of a secret that is masked. Shorter parts are words, not keys.
const SHORTEST: usize = 8;
/// The shortest part of a URL that is masked. Shorter parts are names, not keys.
const SHORTEST_IN_URL: usize = 16;

/// Texts to hide, the longest first.
pub struct Mask(Vec<String>);

impl Mask {
    /// A mask for these secrets, including their forms in URLs, JSON and Base64. Each key of a secret with several keys is masked.
    /// Of a URL, everything after the host is masked, and each part that may be a key, because receivers often repeat the path of a
    /// request.
    pub fn of<'a>(secrets: impl IntoIterator<Item = &'a SecretText>) -> Self {
        let all = secrets.into_iter().map(|secret| secret.expose().trim());
        let mut all: Vec<String> = all.flat_map(parts).flat_map(spellings).filter(|text| !text.is_empty()).collect();
        all.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        all.dedup();
        Self(all)
    }

    /// Masks the secrets in a text.
    pub fn hide(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret, HIDDEN))
    }

    /// Masks the secrets in a text that was cut off, including the beginning of a secret at its end.
    pub fn hide_cut(&self, text: &str) -> String {
        let begins =
            |from: usize| self.0.iter().any(|secret| secret.len() > text.len() - from && secret.starts_with(&text[from..]));
        let end = text.char_indices().map(|(from, _)| from).find(|from| begins(*from)).unwrap_or(text.len());
        self.hide(&text[..end])
    }
}

/// A secret, and its parts that are secrets themselves.
fn parts(whole: &str) -> Vec<&str> {
    let mut all = vec![whole];
    for word in whole.split_ascii_whitespace() {
        all.extend(Some(word).filter(|word| word.len() >= SHORTEST));
        let Some((_, rest)) = word.split_once("://") else { continue };
        let behind = rest.find(['/', '?', '#']).map_or("", |at| &rest[at..]);
        all.extend(Some(behind).filter(|behind| behind.len() >= SHORTEST));
        all.extend(behind.split(['/', '?', '&', '=', '#']).filter(|part| part.len() >= SHORTEST_IN_URL));
    }
    all
}

fn spellings(text: &str) -> [String; 6] {
    let json = serde_json::Value::from(text).to_string();
    [
        text.to_owned(),
        json[1..json.len() - 1].to_owned(),
        utf8_percent_encode(text, NON_ALPHANUMERIC).to_string(),
        utf8_percent_encode(text, UNRESERVED).to_string(),
        STANDARD_NO_PAD.encode(text),
        URL_SAFE_NO_PAD.encode(text),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_in_every_spelling() {
        let mask = Mask::of(&[SecretText::new("to ken\"1\n"), SecretText::new("whsec_AAAA whsec_BBBB")]);
        let text = r#"to ken"1, to%20ken%221, to ken\"1 and whsec_BBBB; tok"#;
        assert_eq!(mask.hide(text), "***, ***, *** and ***; tok");
        assert_eq!(Mask::of(&[SecretText::new(" ")]).hide("a b"), "a b");
        let mask = Mask::of(&[SecretText::new("t-o.k/e~n")]);
        // Encoded for a form, for a URL, and in Base64.
        assert_eq!(mask.hide("t-o.k%2Fe~n t%2Do%2Ek%2Fe%7En dC1vLmsvZX5u"), "*** *** ***");
    }

    #[test]
    fn of_a_url_what_is_behind_the_host_is_hidden_too() {
        let url = "https://hooks.chat.test/services/T000/Hx7Gq1LmZ9pWc3Rt?api-version=1&sig=q2VbN8sTz4KdYw6F";
        let mask = Mask::of(&[SecretText::new(url)]);
        for (told, shown) in [
            (format!("no hook {url}"), "no hook ***"),
            ("Cannot POST /services/T000/Hx7Gq1LmZ9pWc3Rt?api-version=1&sig=q2VbN8sTz4KdYw6F".into(), "Cannot POST ***"),
            ("Cannot POST /services/T000/Hx7Gq1LmZ9pWc3Rt".into(), "Cannot POST /services/T000/***"),
            ("bad &amp;sig=q2VbN8sTz4KdYw6F".into(), "bad &amp;sig=***"),
            ("hooks.chat.test is away".into(), "hooks.chat.test is away"),
        ] {
            assert_eq!(mask.hide(&told), shown);
        }
    }

    #[test]
    fn what_is_cut_off_hides_the_beginning_of_a_secret() {
        let mask = Mask::of(&[SecretText::new("s3cret-täxt")]);
        for (told, shown) in [("a s3cret-t", "a "), ("a s3cret-täxt s3", "a *** "), ("s", ""), ("nothing", "nothing"), ("ä", "ä")]
        {
            assert_eq!(mask.hide_cut(told), shown);
        }
    }
}
