//! API tokens: one item each, which holds the hash of its secret.
//!
//! A token is looked up by its name, and cached for [`REMEMBERED`], so that clients that poll do not cause a read with each
//! request. For a secret that does not match the cache, the token is read again, at most once in [`RETRY`] for each name: a new or
//! rotated token is known at once, and guesses do not cause a flood of reads.

use super::{Access, TOKENS, token};
use crate::item::{Attrs, Item};
use crate::json::{json, member};
use crate::ports::{Condition, Cursor, PortError, Ports, Query, Write, Written};
use crate::protocol::change::{Step, change};
use keelway_domain::access::{Token, secret_of};
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

/// A cached name: when it was read, and its token, if it exists.
#[derive(Debug, Clone)]
pub(super) struct Remembered {
    read: Timestamp,
    held: Option<Held>,
}

/// A stored token.
#[derive(Debug, Clone, PartialEq)]
pub struct Held {
    /// The token.
    pub token: Token,
    /// The hour of its last use.
    pub used: Option<Timestamp>,
    version: i64,
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
        Ok(token.map(|token| Self { token, used: item.number("u").map(Timestamp), version: item.version() }))
    }

    fn item(&self, retention: Span) -> Item {
        let expires = self.token.expires.map(|at| (at + retention).0 / 1000);
        Item::new(token(&self.token.name))
            .with("v", self.version)
            .with("j", json(&self.token))
            .with_some("u", self.used.map(|at| at.0))
            .with_some("ttl", expires)
    }
}

/// The token in an item, if it is valid in nothing but these projects.
fn held_within(found: Option<&Item>, within: Option<&[ProjectName]>) -> Result<Option<Held>, PortError> {
    let held = found.map(Held::read).transpose()?.flatten();
    Ok(held.filter(|held| held.token.grant.is_within(within)))
}

impl<P: Ports> Access<P> {
    /// The token with this text, if it is valid now. Records the hour of its use.
    ///
    /// # Errors
    /// The store fails.
    pub async fn accept(&self, text: &str) -> Result<Option<Token>, PortError> {
        let Some((name, hash)) = secret_of(text) else { return Ok(None) };
        let now = self.ports.now();
        let fits = |held: &Held| held.token.accepts(&hash, now);
        let known = self.remembered(&name).filter(|known| known.read <= now);
        let known = match known {
            Some(known) if now - known.read < REMEMBERED && known.held.as_ref().is_some_and(fits) => known.held,
            Some(known) if now - known.read < RETRY => known.held,
            _ => self.look_up(&name, now).await?,
        };
        let Some(held) = known.filter(fits) else { return Ok(None) };
        self.note_use(&held, now).await;
        Ok(Some(held.token))
    }

    /// Makes a token.
    ///
    /// # Errors
    /// A port fails.
    pub async fn create(&self, token: &Token) -> Result<Result<(), Refused>, PortError> {
        let held = Held { token: token.clone(), used: None, version: 1 };
        let put = Write::Put(held.item(self.retention), Condition::Absent);
        match self.ports.write(&put).await? {
            Written::Done => {
                self.remember(&token.name, Some(held));
                Ok(Ok(()))
            }
            Written::Conflict(_) => Ok(Err(Refused::Exists)),
        }
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
            let token = held.token.rotate(hash.to_owned(), overlap, self.ports.now());
            let next = Held { token, used: held.used, version: held.version + 1 };
            Ok(Step::Write(Write::Put(next.item(self.retention), Condition::Version(held.version)), Some(next)))
        });
        let Some(next) = rotated.await? else { return Ok(Err(Refused::Unknown)) };
        self.remember(name, Some(next.clone()));
        Ok(Ok(next.token))
    }

    /// Deletes a token that is valid in nothing but these projects, and returns it. `None`: there is none. This instance refuses it
    /// at once, others after [`REMEMBERED`] at the latest.
    ///
    /// # Errors
    /// A port fails.
    pub async fn revoke(&self, name: &TokenName, within: Option<&[ProjectName]>) -> Result<Option<Token>, PortError> {
        let key = token(name);
        let revoked = change(&self.ports, &key, |found| {
            let Some(held) = held_within(found, within)? else { return Ok(Step::Leave(None)) };
            Ok(Step::Write(Write::Delete(token(name), Condition::Version(held.version)), Some(held.token)))
        });
        let revoked: Option<Token> = revoked.await?;
        if revoked.is_some() {
            self.remember(name, None);
        }
        Ok(revoked)
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
            let (write, left) = match next.token.grant.projects.is_empty() {
                true => (Write::Delete(token(name), Condition::Version(held.version)), None),
                false => (Write::Put(next.item(self.retention), Condition::Version(held.version)), Some(next)),
            };
            Ok(Step::Write(write, Some(left)))
        });
        if let Some(left) = taken.await? {
            self.remember(name, left);
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

    /// A page of tokens by name, and the name with which the next one begins.
    ///
    /// # Errors
    /// A port fails.
    pub async fn tokens(&self, after: Option<&TokenName>, limit: u32) -> Result<(Vec<Held>, Option<String>), PortError> {
        let cursor = after.map(|name| Cursor { key: token(name), index_sort: None });
        let page = self.ports.query(&Query::table(TOKENS, limit).after(cursor)).await?;
        let mut all = vec![];
        for item in &page.items {
            all.extend(Held::read(item)?);
        }
        Ok((all, page.next.map(|next| next.key.sk)))
    }

    /// The same of the tokens that are valid in nothing but these projects. Pages are full, and the name is that of such a token.
    /// Tokens are few, so all are read for this.
    ///
    /// # Errors
    /// A port fails.
    pub async fn tokens_within(
        &self,
        within: Option<&[ProjectName]>,
        after: Option<&TokenName>,
        limit: u32,
    ) -> Result<(Vec<Held>, Option<String>), PortError> {
        if within.is_none() {
            return self.tokens(after, limit).await;
        }
        let (mut found, mut after): (Vec<Held>, _) = (vec![], after.cloned());
        loop {
            let (page, next) = self.tokens(after.as_ref(), PAGE).await?;
            for held in page.into_iter().filter(|held| held.token.grant.is_within(within)) {
                if found.len() as u64 >= u64::from(limit) {
                    let last = found.last().map(|held| held.token.name.to_string());
                    return Ok((found, last));
                }
                found.push(held);
            }
            match next.and_then(|next| TokenName::new(&next).ok()) {
                Some(next) => after = Some(next),
                None => return Ok((found, None)),
            }
        }
    }

    /// The time by which tokens expire.
    pub fn now(&self) -> Timestamp {
        self.ports.now()
    }

    async fn look_up(&self, name: &TokenName, now: Timestamp) -> Result<Option<Held>, PortError> {
        let held = self.token(name).await?;
        self.keep(name, Remembered { read: now, held: held.clone() });
        Ok(held)
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

    fn remember(&self, name: &TokenName, held: Option<Held>) {
        self.keep(name, Remembered { read: self.ports.now(), held });
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
