//! The lifecycle of a token: created, rotated with an overlap, expired. Only the hash of its secret is stored.

#![expect(missing_docs, reason = "names that say what they are need no documentation")]

use super::{ADMINISTRATOR, Grant};
use crate::ids::sha256_hex;
use crate::names::TokenName;
use crate::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

/// The prefix of every token, which scanners for leaked secrets recognise.
const PREFIX: &str = "keelway_";
/// The longest time for which a rotated secret stays valid.
pub const OVERLAP_MOST: Span = Span::minutes(7 * 24 * 60);

/// The text of a token: its name, by which it is found, and its secret.
pub fn text_of(name: &TokenName, secret: &str) -> String {
    format!("{PREFIX}{name}_{secret}")
}

/// Splits the text of a token into its name and the hash of the whole text.
pub fn secret_of(text: &str) -> Option<(TokenName, String)> {
    let (name, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
    let is_secret = secret.len() == 64 && secret.bytes().all(|byte| byte.is_ascii_hexdigit());
    Some((TokenName::new(name).ok().filter(|_| is_secret)?, sha256_hex(text.as_bytes())))
}

/// Whether a text begins as tokens do. If it names none ([`secret_of`]), it was cut off or mistyped.
pub fn has_form(text: &str) -> bool {
    text.starts_with(PREFIX)
}

/// The secret before the last rotation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Previous {
    /// The hash of the secret, in hexadecimal.
    pub hash: String,
    /// When the secret stops being valid.
    pub until: Timestamp,
}

/// How a secret stopped being valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum End {
    /// The time of its token was over.
    Expired,
    /// Its token was given another one.
    Rotated,
    /// Its token was revoked.
    Revoked,
}

/// A secret that is no longer valid. It is kept so that its holder can be told why; of others, only its hash is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// The hash of the secret, in hexadecimal.
    #[serde(rename = "h")]
    pub hash: String,
    /// How it ended.
    #[serde(rename = "e")]
    pub end: End,
    /// When it ended.
    #[serde(rename = "t")]
    pub at: Timestamp,
}

/// The spent secrets of a name, oldest first: at most [`SPENT_MOST`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SpentSecrets(Vec<Spent>);

/// So many spent secrets of a name are kept.
const SPENT_MOST: usize = 10;

impl SpentSecrets {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The spent secret with this hash.
    pub fn find(&self, hash: &str) -> Option<&Spent> {
        self.0.iter().rev().find(|spent| same(&spent.hash, hash))
    }

    /// With these as well, without the oldest if they are too many.
    #[must_use]
    pub fn and(mut self, more: impl IntoIterator<Item = Spent>) -> Self {
        self.0.extend(more);
        let surplus = self.0.len().saturating_sub(SPENT_MOST);
        self.0.drain(..surplus);
        self
    }
}

/// A request for a new token.
#[derive(Debug, Clone, PartialEq)]
pub struct NewToken {
    pub name: TokenName,
    /// What the token may do.
    pub grant: Grant,
    /// When the token stops being valid. `None`: never.
    pub expires: Option<Timestamp>,
    /// What the token is for, in words.
    pub note: String,
}

/// A stored token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    pub name: TokenName,
    /// What the token may do.
    pub grant: Grant,
    /// The hash of its secret, in hexadecimal.
    pub hash: String,
    /// The secret before the last rotation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Previous>,
    /// When the token was created.
    pub created: Timestamp,
    /// Who created the token.
    pub by: String,
    /// When the secret was last rotated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotated: Option<Timestamp>,
    /// When the token stops being valid. `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// What the token is for, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl Token {
    /// Creates a token for the secret with this hash.
    ///
    /// # Errors
    /// The field that is wrong, and why.
    pub fn new(asked: NewToken, hash: String, by: String, now: Timestamp) -> Result<Self, (&'static str, String)> {
        let NewToken { name, grant, expires, note } = asked;
        if name.as_str() == ADMINISTRATOR {
            return Err(("name", format!("{ADMINISTRATOR} is what the token of the deployment is called: choose another name")));
        }
        if grant.scopes.is_empty() {
            return Err(("scopes", "is empty: a token without scopes may do nothing; name at least one, for example read".into()));
        }
        if expires.is_some_and(|at| at <= now) {
            return Err(("expires", "is not in the future".into()));
        }
        Ok(Self { name, grant, hash, previous: None, created: now, by, rotated: None, expires, note })
    }

    /// Whether the secret with this hash is valid now. Callers must not compare hashes themselves.
    pub fn accepts(&self, hash: &str, now: Timestamp) -> bool {
        let current = same(&self.hash, hash);
        let previous = self.previous.as_ref().is_some_and(|previous| same(&previous.hash, hash) && now < previous.until);
        (current || previous) && !self.has_expired(now)
    }

    /// How and when the secret with this hash stopped being valid, if it is one of the token's two.
    pub fn spent(&self, hash: &str, now: Timestamp) -> Option<Spent> {
        let previous = self.previous.as_ref().filter(|previous| same(&previous.hash, hash));
        let rotated = previous.map(|previous| (End::Rotated, previous.until)).filter(|(_, until)| *until <= now);
        let own = previous.is_some() || same(&self.hash, hash);
        let expired = self.expires.filter(|at| own && *at <= now).map(|at| (End::Expired, at));
        let (end, at) = rotated.into_iter().chain(expired).min_by_key(|(_, at)| *at)?;
        Some(Spent { hash: hash.to_owned(), end, at })
    }

    /// What a rotation leaves behind: the secret that it replaces, unless that stays valid for a while, and the one before.
    pub fn replaced(&self, overlap: Span, now: Timestamp) -> impl Iterator<Item = Spent> {
        let before = self.previous.as_ref().map(|previous| (previous.hash.clone(), previous.until.min(now)));
        let present = (overlap.0 <= 0).then(|| (self.hash.clone(), now));
        before.into_iter().chain(present).map(|(hash, at)| Spent { hash, end: End::Rotated, at })
    }

    /// What its end leaves behind: each secret that is valid now as revoked, others as they are.
    pub fn revoked(&self, now: Timestamp) -> impl Iterator<Item = Spent> {
        let hashes = self.previous.as_ref().map(|previous| previous.hash.clone()).into_iter().chain([self.hash.clone()]);
        let spent = |hash: String| self.spent(&hash, now).unwrap_or(Spent { hash, end: End::Revoked, at: now });
        hashes.map(spent).collect::<Vec<_>>().into_iter()
    }

    /// When the secret with this hash stops being valid. `None`: it does not by itself.
    pub fn ends(&self, hash: &str) -> Option<Timestamp> {
        let rotated = self.previous.as_ref().filter(|previous| !same(&self.hash, hash) && same(&previous.hash, hash));
        rotated.map(|previous| previous.until).into_iter().chain(self.expires).min()
    }

    /// Whether the token has expired.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }

    /// Replaces the secret. The present one stays valid for the overlap; an older one does not.
    pub fn rotate(self, hash: String, overlap: Span, now: Timestamp) -> Self {
        let previous = (overlap.0 > 0).then(|| Previous { hash: self.hash.clone(), until: now + overlap });
        Self { hash, previous, rotated: Some(now), ..self }
    }
}

/// Compares in constant time.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0u8, |all, (a, b)| all | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Scope;

    const NOW: Timestamp = Timestamp(1_795_000_000_000);

    fn asked(name: &str, expires: Option<Timestamp>) -> NewToken {
        let grant = Grant { scopes: vec![Scope::Read], projects: vec![] };
        NewToken { name: TokenName::new(name).unwrap(), grant, expires, note: String::new() }
    }

    #[test]
    fn the_text_names_the_token() {
        let name = TokenName::new("ci-shop").unwrap();
        let text = text_of(&name, &"0f".repeat(32));
        assert_eq!(secret_of(&text), Some((name, sha256_hex(text.as_bytes()))));
        for other in [
            "",
            "s3cret",
            "keelway_ci",
            "keelway_ci_short",
            &text[..text.len() - 1],
            &text.replace('f', "g"),
            &format!("keelway_CI_{}", "0f".repeat(32)),
            &text[1..],
        ] {
            assert_eq!(secret_of(other), None, "{other}");
        }
        assert_eq!(["keelway_ci", "keelway_", "s3cret", "eelway_ci"].map(has_form), [true, true, false, false]);
    }

    #[test]
    fn a_rotated_secret_is_valid_for_the_overlap() {
        let token = Token::new(asked("ci", None), "a".into(), "ann".into(), NOW).unwrap();
        let token = token.rotate("b".into(), Span::minutes(10), NOW);
        let valid = |token: &Token, at: Timestamp| ["a", "b", "c", ""].map(|hash| token.accepts(hash, at));
        assert_eq!(valid(&token, NOW), [true, true, false, false]);
        assert_eq!(valid(&token, NOW + Span::minutes(10)), [false, true, false, false]);
        let again = token.clone().rotate("c".into(), Span::minutes(1), NOW);
        assert_eq!(valid(&again, NOW), [false, true, true, false]);
        let at_once = token.rotate("c".into(), Span(0), NOW);
        assert_eq!((valid(&at_once, NOW), at_once.previous), ([false, false, true, false], None));
    }

    #[test]
    fn a_token_expires_with_all_its_secrets() {
        let token = Token::new(asked("ci", Some(NOW + Span::minutes(5))), "a".into(), "ann".into(), NOW).unwrap();
        let token = token.rotate("b".into(), Span::minutes(60), NOW);
        let at = |minutes| ["a", "b"].map(|hash| token.accepts(hash, NOW + Span::minutes(minutes)));
        assert_eq!((at(4), at(5)), ([true, true], [false, false]));
    }

    #[test]
    fn a_secret_ends_with_its_overlap_or_with_its_token() {
        let at = |minutes| NOW + Span::minutes(minutes);
        let token = |expires| Token::new(asked("ci", expires), "a".into(), "ann".into(), NOW).unwrap();
        let ends = |token: &Token| ["a", "b", "c"].map(|hash| token.ends(hash));
        assert_eq!(ends(&token(None)), [None; 3]);
        let rotated = |expires| token(expires).rotate("b".into(), Span::minutes(10), NOW);
        assert_eq!(ends(&rotated(None)), [Some(at(10)), None, None]);
        assert_eq!(ends(&rotated(Some(at(60)))), [Some(at(10)), Some(at(60)), Some(at(60))]);
        assert_eq!(ends(&rotated(Some(at(5)))), [Some(at(5)); 3]);
    }

    #[test]
    fn a_spent_secret_is_told_how_it_ended_and_no_other_is() {
        let at = |minutes| NOW + Span::minutes(minutes);
        let token = Token::new(asked("ci", Some(at(60))), "a".into(), "ann".into(), NOW).unwrap();
        let told =
            |token: &Token, now: Timestamp| ["a", "b", "c"].map(|hash| token.spent(hash, now).map(|spent| (spent.end, spent.at)));
        assert_eq!(told(&token, at(59)), [None, None, None]);
        assert_eq!(told(&token, at(60)), [Some((End::Expired, at(60))), None, None]);
        let rotated = token.clone().rotate("b".into(), Span::minutes(10), NOW);
        assert_eq!(told(&rotated, at(9)), [None, None, None]);
        assert_eq!(told(&rotated, at(10)), [Some((End::Rotated, at(10))), None, None]);
        assert_eq!(told(&rotated, at(70)), [Some((End::Rotated, at(10))), Some((End::Expired, at(60))), None]);
        // Rotated once more, the first one is cut off.
        let left: Vec<Spent> = rotated.replaced(Span(0), at(5)).collect();
        let spent = |hash: &str, end, at| Spent { hash: hash.into(), end, at };
        assert_eq!(left, [spent("a", End::Rotated, at(5)), spent("b", End::Rotated, at(5))]);
        assert_eq!(token.replaced(Span::minutes(1), NOW).count(), 0, "it stays valid for a while");
        let left: Vec<Spent> = rotated.revoked(at(20)).collect();
        assert_eq!(left, [spent("a", End::Rotated, at(10)), spent("b", End::Revoked, at(20))]);
    }

    #[test]
    fn only_the_newest_spent_secrets_are_kept() {
        let spent = |n: usize| Spent { hash: format!("{n:064}"), end: End::Rotated, at: NOW };
        let kept = SpentSecrets::default().and((0..SPENT_MOST + 2).map(spent));
        let found = |n: usize| kept.find(&format!("{n:064}")).is_some();
        assert_eq!([0, 1, 2, SPENT_MOST + 1].map(found), [false, false, true, true]);
        assert_eq!((SpentSecrets::default().is_empty(), kept.is_empty()), (true, false));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let field = |asked| Token::new(asked, "a".into(), "ann".into(), NOW).map_err(|(field, _)| field);
        assert_eq!(field(asked(ADMINISTRATOR, None)), Err("name"));
        assert_eq!(field(asked("ci", Some(NOW))), Err("expires"));
        assert_eq!(field(NewToken { grant: Grant::default(), ..asked("ci", None) }), Err("scopes"));
    }

    #[test]
    fn a_hash_with_its_characters_in_another_order_is_another_one() {
        let token = Token::new(asked("ci", None), "ab".into(), "ann".into(), NOW).unwrap();
        assert_eq!(["ab", "ba", "aa"].map(|hash| token.accepts(hash, NOW)), [true, false, false]);
    }
}
