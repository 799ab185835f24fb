//! Plans looks at repositories with open pull requests. One look serves all open pull requests of a repository, whichever pipelines
//! they belong to.

use super::keys;
use super::message::{Address, Job};
use super::subject::Watch;
use crate::item::{Attr, Attrs, Item, Name};
use crate::ports::{PortError, Ports, Write, Written};
use crate::protocol::change::{Step, as_read, change, next_version};
use crate::protocol::fact;
use crate::protocol::sweep::OVERDUE;
use crate::protocol::{COMMIT_TRIES, contended};
use crate::table;
use keelway_domain::condition::Condition as Why;
use keelway_domain::ids::hash64;
use keelway_domain::promotions::Attempt;
use keelway_domain::stored::Stored;
use keelway_domain::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The pause between looks at a repository with a young pull request.
pub const YOUNG: Span = Span::seconds(30);
/// The pause before the first look at a pull request that Keelway merges itself: hosts need a moment to check whether it can be
/// merged.
const AT_ONCE: Span = Span::seconds(1);
/// How long a pull request counts as young. Afterwards, the pause doubles each time this much time has passed.
pub const YOUTH: Span = Span::minutes(10);
/// The longest pause.
pub const LONGEST: Span = Span::minutes(60);
/// How long a look belongs to the worker that began it. Afterwards, another look may begin.
pub const HELD: Span = Span::seconds(60);
/// The shortest pause between looks for webhooks: a host sends several about one change, and one look serves them all.
pub const APART: Span = Span::seconds(5);

/// How long looks may fail before the pipelines concerned are told.
pub const TOLD: Span = Span::minutes(10);
/// How long a repository may be missing before its promotions are given up.
pub const GIVEN_UP: Span = Span::minutes(24 * 60);
/// The reason that a host gives for a missing repository: [`Trouble::missing`].
const NOT_FOUND: &str = "NotFound";

/// Why a repository cannot be looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trouble {
    /// Since when.
    #[serde(rename = "s")]
    pub since: Timestamp,
    /// Since when its host has reported that it is missing.
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Timestamp>,
    /// The result of the last look.
    #[serde(rename = "w")]
    pub why: Why,
}

/// The last look at a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// When it was.
    pub at: Timestamp,
    /// Why it failed; `None`: it did not.
    pub trouble: Option<Trouble>,
}

/// The troubles of looks, by credentials ([`of`]).
pub type Troubles = BTreeMap<String, Trouble>;

/// The credentials of a look for a pipeline: a secret in a namespace.
pub fn of(namespace: &str, secret: &str) -> String {
    format!("{namespace}/{secret}")
}

/// The troubles of looks at a repository. Text that cannot be parsed counts as none, because the next look replaces it.
pub(super) fn troubles(item: Option<&Item>) -> Troubles {
    item.and_then(|item| item.text("le")).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// The last look at a repository with these credentials; `None`: there was none yet.
pub(super) fn last(item: Option<&Item>, whose: &str) -> Option<Look> {
    let at = item?.number("lt").map(Timestamp)?;
    Some(Look { at, trouble: troubles(item).remove(whose) })
}

impl Trouble {
    /// The trouble after a look that has failed now.
    pub(super) fn after(known: Option<&Self>, why: &Why, now: Timestamp) -> Self {
        let missing = known.and_then(|known| known.missing).unwrap_or(now);
        Self {
            since: known.map_or(now, |known| known.since),
            missing: (why.reason == NOT_FOUND).then_some(missing),
            why: why.clone(),
        }
    }
}

/// The pause until the next look, by the age of the youngest open pull request.
pub fn pause(age: Span) -> Span {
    let doublings = (age.0 / YOUTH.0).clamp(0, 12);
    Span((YOUNG.0 << doublings).min(LONGEST.0))
}

/// Enters an open pull request into its repository's list, and plans a look. This must come after the commit that records the pull
/// request, because a look removes others from the list.
pub(super) async fn begin(ports: &impl Ports, of: &Address, watch: &Watch) -> Result<(), PortError> {
    let Watch { repository, attempt, at_once } = watch;
    let entry = fact::entry(Item::new(keys::open_request(repository, of, attempt)), of).with("j", attempt.to_json());
    table::record(ports, vec![entry], vec![]).await?;
    plan(ports, repository, if *at_once { AT_ONCE } else { YOUNG }).await
}

/// When a repository is looked at next.
pub(super) fn next(item: Option<&Item>) -> Option<Timestamp> {
    item.and_then(|item| item.number("next")).map(Timestamp)
}

/// Plans a look at a repository soon.
async fn plan(ports: &impl Ports, repository: &str, pause: Span) -> Result<(), PortError> {
    let key = keys::repository(repository);
    let at = change(ports, &key, |found| {
        let at = (ports.now() + pause).max(earliest(found));
        // An overdue look was lost.
        Ok::<_, PortError>(match next(found).filter(|planned| *planned <= at && *planned + OVERDUE >= ports.now()) {
            Some(planned) => Step::Leave(planned),
            None => Step::Write(Write::Put(with(repository, found, Some(at), Attrs::new()), as_read(found)), at),
        })
    });
    arm(ports, repository, at.await?).await
}

/// When the next look may begin: when the host accepts requests again, and not during another look.
fn earliest(item: Option<&Item>) -> Timestamp {
    let number = |name: &str| item.and_then(|item| item.number(name)).filter(|at| *at > 0);
    let allowed = Timestamp(number("nb").unwrap_or_default());
    match number("la").and_then(|_| number("lb")) {
        Some(began) => allowed.max(Timestamp(began) + APART),
        None => allowed,
    }
}

/// Whether the look that was planned for this time has begun and has not ended.
pub(super) fn is_held(item: Option<&Item>, at: Timestamp) -> bool {
    item.and_then(|item| item.number("la")) == Some(at.0)
}

/// Begins the look that was planned for a time, so that no other worker does. Returns the new item. `None`: another worker was
/// faster.
pub(super) async fn take(
    ports: &impl Ports,
    repository: &str,
    found: Option<&Item>,
    at: Timestamp,
) -> Result<Option<Item>, PortError> {
    let now = ports.now();
    let held = Attrs::from([(Name::Borrowed("lb"), now.0.into()), (Name::Borrowed("la"), at.0.into())]);
    if let Some(item) = write(ports, repository, found, Some(now + HELD), held).await? {
        return Ok(Some(item));
    }
    // The conflict may be with this same write, whose answer was lost before the client repeated it.
    let item = ports.get(&keys::repository(repository)).await?;
    Ok(item.filter(|item| is_held(Some(item), at) && item.number("lb") == Some(now.0) && next(Some(item)) == Some(now + HELD)))
}

/// Stores the result of a look, and plans the next one. A look that was ordered meanwhile is kept.
pub(super) async fn end(ports: &impl Ports, repository: &str, held: Item, at: Timestamp, found: &Attrs) -> Result<(), PortError> {
    let (began, hold) = (held.number("lb"), next(Some(&held)));
    let allowed = match found.get("nb") {
        Some(Attr::N(allowed)) => Timestamp(*allowed),
        _ => Timestamp(0),
    };
    let mut item = held;
    for _ in 0..COMMIT_TRIES {
        let planned = next(Some(&item)).filter(|planned| Some(*planned) != hold);
        let at = planned.map_or(at, |planned| planned.max(allowed).min(at));
        if write(ports, repository, Some(&item), Some(at), found.clone()).await?.is_some() {
            return arm(ports, repository, at).await;
        }
        let Some(now) = ports.get(&keys::repository(repository)).await? else { return Ok(()) };
        // Another look has begun, or this write has succeeded and its answer was lost.
        if now.number("lb") != began || now.number("la") == Some(0) {
            return match next(Some(&now)) {
                Some(planned) => arm(ports, repository, planned).await,
                None => Ok(()),
            };
        }
        item = now;
    }
    Err(contended(keys::repository(repository)))
}

/// Plans a look at a repository now, or as soon as its host allows and the pause after the look for the last webhook is over.
/// `false`: there is nothing to look at.
pub(super) async fn now(ports: &impl Ports, repository: &str) -> Result<bool, PortError> {
    let key = keys::repository(repository);
    let at = change(ports, &key, |found| {
        let Some(planned) = next(found) else { return Ok::<_, PortError>(Step::Leave(None)) };
        let last = found.and_then(|item| item.number("aw")).map_or(Timestamp(0), |last| Timestamp(last) + APART);
        let at = ports.now().max(earliest(found)).max(last);
        if planned <= at {
            return Ok(Step::Leave(Some(planned)));
        }
        let asked = Attrs::from([(Name::Borrowed("aw"), at.0.into())]);
        Ok(Step::Write(Write::Put(with(repository, found, Some(at), asked), as_read(found)), Some(at)))
    });
    let Some(at) = at.await? else { return Ok(false) };
    arm(ports, repository, at).await?;
    Ok(true)
}

/// Stores the time of the next look, and more attributes. Returns the new item. `None`: another worker has changed it.
pub(super) async fn write(
    ports: &impl Ports,
    repository: &str,
    found: Option<&Item>,
    at: Option<Timestamp>,
    more: Attrs,
) -> Result<Option<Item>, PortError> {
    let item = with(repository, found, at, more);
    let written = ports.write(&Write::Put(item.clone(), as_read(found))).await? == Written::Done;
    Ok(written.then_some(item))
}

/// The item of a repository with the time of its next look, and more attributes.
fn with(repository: &str, found: Option<&Item>, at: Option<Timestamp>, more: Attrs) -> Item {
    // Without another look, the results of the last looks are dropped.
    let kept: &[&str] = if at.is_some() { &["etag", "nb", "lt", "le", "lb", "la", "aw"] } else { &["etag", "nb"] };
    let mut item = Item::new(keys::repository(repository))
        .with("v", next_version(found))
        .with("url", repository)
        .with_some("next", at.map(|at| at.0));
    item.attrs.extend(
        found.map(|found| found.attrs.clone()).unwrap_or_default().into_iter().filter(|(name, _)| kept.contains(&name.as_ref())),
    );
    item.attrs.extend(more);
    item
}

/// Schedules the look that is planned for a time. Scheduling it again has no further effect.
pub(super) async fn arm(ports: &impl Ports, repository: &str, at: Timestamp) -> Result<(), PortError> {
    let letter = Job::Look { repository: repository.to_owned(), at }.letter();
    let name = format!("keelway-{}-{}", crate::keys::hash(hash64(&[b"look", repository.as_bytes()])), at.0);
    ports.send_at(letter.to, &name, &letter.body, at).await
}

/// Removes a pull request from its repository's list.
pub(super) async fn forget(ports: &impl Ports, repository: &str, of: &Address, attempt: &Attempt) -> Result<(), PortError> {
    table::record(ports, vec![], vec![keys::open_request(repository, of, attempt)]).await
}

/// The attributes after a look: the host's mark of its answer, when it accepts the next look, the time of this one, and its
/// troubles.
pub(super) fn seen((mark, not_before): (Option<&str>, Option<Timestamp>), at: Timestamp, troubles: &Troubles) -> Attrs {
    let mark = mark.map(|mark| (Name::Borrowed("etag"), mark.into()));
    let not_before = (Name::Borrowed("nb"), not_before.unwrap_or_default().0.into());
    let at = (Name::Borrowed("lt"), at.0.into());
    let troubles = (Name::Borrowed("le"), crate::json::json(troubles).into());
    // It has ended.
    let held = (Name::Borrowed("la"), 0.into());
    mark.into_iter().chain([not_before, at, troubles, held]).collect()
}
