//! API tokens: one item each, which holds the hash of its secret.
//!
//! A token is looked up by its name, and cached for [`REMEMBERED`], so that clients that poll do not cause a read with each
//! request. For a secret that does not match the cache, the token is read again, at most once in [`RETRY`] for each name: a new or
//! rotated token is known at once, and guesses do not cause a flood of reads.
//!
//! The item also has the hashes of the last secrets that are no longer valid, and when a token is revoked, only these remain:
//! whoever still has such a secret is told what became of it, and nobody else is.

use super::{Access, TOKENS, token};
use crate::item::{Attrs, Item};
use crate::json::{json, member};
use crate::ports::{Condition, Cursor, PortError, Ports, Query, Write};
use crate::protocol::change::{Step, as_read, change, next_version};
use keelway_domain::access::{Spent, SpentSecrets, Token, secret_of};
use keelway_domain::names::{ProjectName, TokenName};
use keelway_domain::time::{Span, Timestamp};
use std::borrow::Cow;
use std::sync::PoisonError;

/// How long a cached token is used. Other instances of the function may accept a revoked token for this long.
pub const REMEMBERED: Span = Span::minutes(1);
/// The shortest interval between reads of one name for secrets that do not match.
pub const RETRY: Span = Span::seconds(1);
/// The most names in the cache. When it is full, names without a token are dropped, and if that does not suffice, all.
const MOST: usize = 1000;
/// So many tokens are read at once.
const PAGE: u32 = 100;
/// The precision of the time of last use, in milliseconds.
const HOUR: i64 = 3_600_000;

/// A cached name: when it was read, its token, if it exists, and its spent secrets.
#[derive(Debug, Clone)]
pub(super) struct Remembered {
    read: Timestamp,
    held: Option<Held>,
    spent: SpentSecrets,
}

/// What became of a secret.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It is valid.
    Valid(Box<Token>),
    /// It was valid, of a token of this name.
    Spent(TokenName, Spent),
    /// It was never valid, or that was too long ago.
    Unknown,
}

/// A stored token.
#[derive(Debug, Clone, PartialEq)]
pub struct Held {
    /// The token.
    pub token: Token,
    /// The hour of its last use.
    pub used: Option<Timestamp>,
    version: i64,
    spent: SpentSecrets,
}

/// Why a token was not created or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// The name exists already.
    Exists,
    /// The name does not exist.
    Unknown,
}

impl Held {
    fn read(item: &Item) -> Result<Option<Self>, PortError> {
        let token = member::<Option<Token>>(item, "j")?;
        let spent = spent(Some(item))?;
        Ok(token.map(|token| Self { token, used: item.number("u").map(Timestamp), version: item.version(), spent }))
    }

    /// What remains of it when it is revoked: its spent secrets.
    fn left(&self, now: Timestamp, retention: Span) -> (Write, SpentSecrets) {
        let spent = self.spent.clone().and(self.token.revoked(now));
        let item = Item::new(token(&self.token.name))
            .with("v", self.version + 1)
            .with("sp", json(&spent))
            .with("ttl", (now + retention).0 / 1000);
        (Write::Put(item, Condition::Version(self.version)), spent)
    }

    fn item(&self, retention: Span) -> Item {
        let expires = self.token.expires.map(|at| (at + retention).0 / 1000);
        Item::new(token(&self.token.name))
            .with("v", self.version)
            .with("j", json(&self.token))
            .with_some("sp", (!self.spent.is_empty()).then(|| json(&self.spent)))
            .with_some("u", self.used.map(|at| at.0))
            .with_some("ttl", expires)
    }
}

/// The spent secrets of a name.
fn spent(found: Option<&Item>) -> Result<SpentSecrets, PortError> {
    Ok(found.map(|item| member::<Option<SpentSecrets>>(item, "sp")).transpose()?.flatten().unwrap_or_default())
}

/// The token in an item, if it is valid in nothing but these projects.
fn held_within(found: Option<&Item>, within: Option<&[ProjectName]>) -> Result<Option<Held>, PortError> {
    let held = found.map(Held::read).transpose()?.flatten();
    Ok(held.filter(|held| held.token.grant.is_within(within)))
}

impl<P: Ports> Access<P> {
    /// The token with this text, if it is valid now, and what became of it, if it was. Records the hour of its use.
    ///
    /// # Errors
    /// The store fails.
    pub async fn accept(&self, text: &str) -> Result<Verdict, PortError> {
        let Some((name, hash)) = secret_of(text) else { return Ok(Verdict::Unknown) };
        let now = self.ports.now();
        let fits = |held: &Held| held.token.accepts(&hash, now);
        let known = self.remembered(&name).filter(|known| known.read <= now);
        let known = match known {
            Some(known) if now - known.read < REMEMBERED && known.held.as_ref().is_some_and(fits) => known,
            Some(known) if now - known.read < RETRY => known,
            _ => self.look_up(&name, now).await?,
        };
        if let Some(held) = known.held.as_ref().filter(|held| fits(held)) {
            self.note_use(held, now).await;
            return Ok(Verdict::Valid(Box::new(held.token.clone())));
        }
        let of_token = known.held.as_ref().and_then(|held| held.token.spent(&hash, now));
        let spent = of_token.or_else(|| known.spent.find(&hash).cloned());
        Ok(spent.map_or(Verdict::Unknown, |spent| Verdict::Spent(name, spent)))
    }

    /// Makes a token.
    ///
    /// # Errors
    /// A port fails.
    pub async fn create(&self, token: &Token) -> Result<Result<(), Refused>, PortError> {
        let key = self::token(&token.name);
        let created = change(&self.ports, &key, |found| {
            if found.map(Held::read).transpose()?.flatten().is_some() {
                return Ok(Step::Leave(None));
            }
            let held = Held { token: token.clone(), used: None, version: next_version(found), spent: spent(found)? };
            Ok(Step::Write(Write::Put(held.item(self.retention), as_read(found)), Some(held)))
        });
        let created: Option<Held> = created.await?;
        let Some(held) = created else { return Ok(Err(Refused::Exists)) };
        self.remember(&token.name, Some(held), None);
        Ok(Ok(()))
    }

    /// Replaces the secret of a token that is valid in nothing but these projects; others are unknown. The present secret stays
    /// valid for the overlap. What the token allows is looked at in the same step: between two steps, another token could get the
    /// name.
    ///
    /// # Errors
    /// A port fails.
    pub async fn rotate(
        &self,
        name: &TokenName,
        (hash, overlap): (&str, Span),
        within: Option<&[ProjectName]>,
    ) -> Result<Result<Token, Refused>, PortError> {
        let key = token(name);
        let rotated = change(&self.ports, &key, |found| {
            let Some(held) = held_within(found, within)? else { return Ok(Step::Leave(None)) };
            let now = self.ports.now();
            let spent = held.spent.and(held.token.replaced(overlap, now));
            let token = held.token.rotate(hash.to_owned(), overlap, now);
            let next = Held { token, used: held.used, version: held.version + 1, spent };
            Ok(Step::Write(Write::Put(next.item(self.retention), Condition::Version(held.version)), Some(next)))
        });
        let Some(next) = rotated.await? else { return Ok(Err(Refused::Unknown)) };
        self.remember(name, Some(next.clone()), None);
        Ok(Ok(next.token))
    }

    /// Revokes a token that is valid in nothing but these projects, and returns it. `None`: there is none. This instance refuses it
    /// at once, others after [`REMEMBERED`] at the latest.
    ///
    /// # Errors
    /// A port fails.
    pub async fn revoke(&self, name: &TokenName, within: Option<&[ProjectName]>) -> Result<Option<Token>, PortError> {
        let key = token(name);
        let revoked = change(&self.ports, &key, |found| {
            let Some(held) = held_within(found, within)? else { return Ok(Step::Leave(None)) };
            let (write, left) = held.left(self.ports.now(), self.retention);
            Ok(Step::Write(write, Some((held.token, left))))
        });
        let revoked: Option<(Token, SpentSecrets)> = revoked.await?;
        Ok(revoked.map(|(token, left)| {
            self.remember(name, None, Some(left));
            token
        }))
    }

    /// Removes a project from every token, and deletes tokens that are valid nowhere else. Returns the names of the changed tokens.
    /// Other instances learn of this within [`REMEMBERED`]. The token `last` comes last, so that a caller with this token can
    /// repeat an interrupted request.
    ///
    /// # Errors
    /// A port fails.
    pub async fn take_project(&self, project: &ProjectName, last: Option<&TokenName>) -> Result<Vec<TokenName>, PortError> {
        let (mut found, mut after) = (vec![], None);
        loop {
            let (page, next) = self.tokens(after.as_ref(), PAGE).await?;
            found.extend(page.into_iter().filter(|held| held.token.grant.projects.contains(project)).map(|held| held.token.name));
            match next.and_then(|next| TokenName::new(&next).ok()) {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        found.sort_by_key(|name| Some(name) == last);
        for name in &found {
            self.take_project_from(project, name).await?;
        }
        Ok(found)
    }

    async fn take_project_from(&self, project: &ProjectName, name: &TokenName) -> Result<(), PortError> {
        let key = token(name);
        let taken = change(&self.ports, &key, |found| {
            let held = found.map(Held::read).transpose()?.flatten();
            let Some(held) = held.filter(|held| held.token.grant.projects.contains(project)) else { return Ok(Step::Leave(None)) };
            let mut next = Held { version: held.version + 1, ..held.clone() };
            next.token.grant.projects.retain(|of| of != project);
            // A token without projects would be valid in all of them.
            if next.token.grant.projects.is_empty() {
                let (write, left) = held.left(self.ports.now(), self.retention);
                return Ok(Step::Write(write, Some((None, Some(left)))));
            }
            Ok(Step::Write(Write::Put(next.item(self.retention), Condition::Version(held.version)), Some((Some(next), None))))
        });
        if let Some((next, left)) = taken.await? {
            self.remember(name, next, left);
        }
        Ok(())
    }

    /// A token, read now.
    ///
    /// # Errors
    /// A port fails.
    pub async fn token(&self, name: &TokenName) -> Result<Option<Held>, PortError> {
        let item = self.ports.get(&token(name)).await?;
        item.as_ref().map(Held::read).transpose().map(Option::flatten)
    }

    /// A page of tokens by name, and the name after which the next one begins.
    ///
    /// # Errors
    /// A port fails.
    pub async fn tokens(&self, after: Option<&TokenName>, limit: u32) -> Result<(Vec<Held>, Option<String>), PortError> {
        self.tokens_within(None, after, limit).await
    }

    /// The same of the tokens that are valid in nothing but these projects. Pages are full, and the name is that of such a token.
    /// Many are read at once, however few are asked for: the tokens of others, and what remains of revoked ones, are passed over.
    ///
    /// # Errors
    /// A port fails.
    pub async fn tokens_within(
        &self,
        within: Option<&[ProjectName]>,
        after: Option<&TokenName>,
        limit: u32,
    ) -> Result<(Vec<Held>, Option<String>), PortError> {
        let mut cursor = after.map(|name| Cursor { key: token(name), index_sort: None });
        let mut found: Vec<Held> = vec![];
        loop {
            let page = self.ports.query(&Query::table(TOKENS, PAGE).after(cursor)).await?;
            for item in &page.items {
                let Some(held) = held_within(Some(item), within)? else { continue };
                if found.len() as u64 >= u64::from(limit) {
                    let last = found.last().map(|held| held.token.name.to_string());
                    return Ok((found, last));
                }
                found.push(held);
            }
            if page.next.is_none() {
                return Ok((found, None));
            }
            cursor = page.next;
        }
    }

    /// The time by which tokens expire.
    pub fn now(&self) -> Timestamp {
        self.ports.now()
    }

    async fn look_up(&self, name: &TokenName, now: Timestamp) -> Result<Remembered, PortError> {
        let item = self.ports.get(&token(name)).await?;
        let held = item.as_ref().map(Held::read).transpose()?.flatten();
        let known = Remembered { read: now, held, spent: spent(item.as_ref())? };
        self.keep(name, known.clone());
        Ok(known)
    }

    /// Records the use of a token, at most once an hour. A failed write must not refuse the request, so it is only logged.
    async fn note_use(&self, held: &Held, now: Timestamp) {
        let hour = Timestamp(now.0.div_euclid(HOUR) * HOUR);
        if held.used.is_some_and(|used| used >= hour) {
            return;
        }
        let name = &held.token.name;
        let mut equal = Attrs::from([(Cow::Borrowed("v"), held.version.into())]);
        equal.extend(held.used.map(|used| (Cow::Borrowed("u"), used.0.into())));
        let absent = if held.used.is_none() { vec![Cow::Borrowed("u")] } else { vec![] };
        let write = Write::Update {
            key: token(name),
            condition: Condition::Match { equal, absent },
            set: Attrs::from([(Cow::Borrowed("u"), hour.0.into())]),
            remove: vec![],
            raise: false,
        };
        // Another instance may have written it. In any case it is not written again within the hour.
        if let Err(error) = self.ports.write(&write).await {
            tracing::warn!(token = name.as_str(), %error, "that a token was used could not be noted");
        }
        let mut all = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get_mut(name).and_then(|known| known.held.as_mut()) {
            known.used = Some(hour);
        }
    }

    fn remembered(&self, name: &TokenName) -> Option<Remembered> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Keeps what was just written: a token with its spent secrets, or these alone.
    fn remember(&self, name: &TokenName, held: Option<Held>, left: Option<SpentSecrets>) {
        let spent = left.or_else(|| held.as_ref().map(|held| held.spent.clone())).unwrap_or_default();
        self.keep(name, Remembered { read: self.ports.now(), held, spent });
    }

    fn keep(&self, name: &TokenName, what: Remembered) {
        let mut all = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST && !all.contains_key(name) {
            // Invented names are dropped first, so that they do not cause reads for holders of valid tokens.
            all.retain(|_, known| known.held.is_some());
            if all.len() >= MOST {
                all.clear();
            }
        }
        all.insert(name.clone(), what);
    }
}
