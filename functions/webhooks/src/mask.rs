//! Hides secrets in texts that are kept or told.

use keelway_engine::secrets::SecretText;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// What stands in a text instead of a secret.
const HIDDEN: &str = "***";
/// Parts of a secret that are shorter are words, and no keys.
const SHORTEST: usize = 8;

/// Texts to hide, the longest first.
pub struct Mask(Vec<String>);

impl Mask {
    /// Of these secrets, also as they stand in URLs and in JSON. Of several keys in one secret, each.
    pub fn of<'a>(secrets: impl IntoIterator<Item = &'a SecretText>) -> Self {
        let mut all: Vec<String> = vec![];
        for secret in secrets {
            let whole = secret.expose().trim();
            let keys = whole.split_ascii_whitespace().filter(|key| key.len() >= SHORTEST);
            for text in std::iter::once(whole).chain(keys) {
                let json = serde_json::Value::from(text).to_string();
                all.extend([
                    text.to_owned(),
                    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string(),
                    json[1..json.len() - 1].to_owned(),
                ]);
            }
        }
        all.retain(|text| !text.is_empty());
        all.sort_by_key(|text| std::cmp::Reverse(text.len()));
        all.dedup();
        Self(all)
    }

    /// The text without them.
    pub fn hide(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret, HIDDEN))
    }
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
    }
}
