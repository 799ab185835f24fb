//! Checks of the installation: an event that passes through every part (API, bus, rule, queue, function, table), and the state of
//! the stack's rules.

use crate::item::Item;
use crate::keys;
use crate::ports::{Bus, Clock, PortError, Store};
use crate::protocol::{Handled, invalid};
use crate::table;
use keelway_domain::cause::Cause;
use keelway_domain::event::{CloudEvent, Object};
use keelway_domain::names::Context;
use keelway_domain::time::{Span, Timestamp};
use std::future::Future;
use uuid::Uuid;

/// The type of the event that goes around. The rule of the sequences engine takes it, as it takes all of `sh.keptn.`.
pub const CHECK: &str = "sh.keptn.check";
const SOURCE: &str = "keelway-check";
/// How long the arrival of an event is stored.
const KEPT: Span = Span::minutes(60);

/// The rules of the stack: the end of the name (after the stack's name and `-`), and whether the rule is on the stack's own bus.
/// The others are on the account's default bus. Rules that a parameter can switch off are not listed. A test compares the list with
/// the template.
pub const RULES: [(&str, bool); 10] = [
    ("sequences", true),
    ("observations", true),
    ("promotions", true),
    ("deployments", true),
    ("evaluations", true),
    ("services", false),
    ("tasks", false),
    ("builds", false),
    ("sweep", false),
    ("observe", false),
];

/// Reads the state of rules, and switches them.
pub trait Rules: Send + Sync {
    /// Whether a rule is enabled; `None`: there is no such rule.
    ///
    /// # Errors
    /// [`PortError::Retry`] if the state cannot be read now, [`PortError::Refused`] if it must not be read.
    fn enabled(&self, name: &str, on_bus: bool) -> impl Future<Output = Result<Option<bool>, PortError>> + Send;
    /// Enables or disables a rule on the stack's own bus. One that is as wanted stays so.
    ///
    /// # Errors
    /// [`PortError::Retry`] if it cannot be switched now, [`PortError::Refused`] if it must not be, or is not there.
    fn switch(&self, name: &str, on: bool) -> impl Future<Output = Result<(), PortError>> + Send;
}

/// Sends an event around.
///
/// # Errors
/// A port fails.
pub async fn send(ports: &(impl Bus + Clock), id: Uuid) -> Result<(), PortError> {
    let event = CloudEvent {
        id: id.to_string(),
        source: SOURCE.into(),
        ty: CHECK.into(),
        time: ports.now(),
        context: Context::of(&id.to_string()),
        authors: vec![],
        triggered_id: None,
        git_commit_id: None,
        data: Object::new(),
    };
    table::publish(ports, &[event]).await
}

/// Records the arrival of a check event. Any sender may send one, because it has no other effect.
///
/// # Errors
/// A port fails.
pub async fn record(ports: &(impl Store + Clock), event: &CloudEvent, cause: Cause) -> Result<Handled, PortError> {
    let Ok(id) = Uuid::parse_str(&event.id) else {
        return invalid::record(ports, KEPT, cause.sent, "the id of a check is a UUID", &event.to_bytes()).await;
    };
    let now = ports.now();
    let item = Item::new(keys::check(&id)).with("at", now.0).with("ttl", (now + KEPT).0 / 1000);
    table::record(ports, vec![item], vec![]).await?;
    Ok(Handled::Recorded)
}

/// When a check event arrived, if it did.
///
/// # Errors
/// A port fails.
pub async fn arrived(store: &impl Store, id: &Uuid) -> Result<Option<Timestamp>, PortError> {
    Ok(store.get(&keys::check(id)).await?.and_then(|item| item.number("at")).map(Timestamp))
}
