//! Whether a sequence still waits for a task: what other engines ask before they have it carried out.

use super::message::Address;
use super::{Loaded, keys};
use crate::ports::{PortError, Store};
use keelway_domain::ids::RecordId;
use keelway_domain::names::{Context, ProjectName};
use keelway_domain::sequences::{Standing, standing};
use serde_json::Value;

/// Whether the task that this event triggered is over. An event that no sequence sent has none that could be over.
///
/// # Errors
/// The store fails.
pub async fn is_over(store: &impl Store, event: &Value) -> Result<bool, PortError> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let project = ProjectName::new(text(event.get("data").and_then(|data| data.get("project")))).ok();
    let (Some(project), Ok(context)) = (project, Context::new(text(event.get("shkeptncontext")))) else { return Ok(false) };
    let Some(trigger) = RecordId::from_uuid(&text(event.get("id"))) else { return Ok(false) };
    let to = Address { project, context, execution: trigger.subject };
    match store.get(&keys::execution(&to)).await? {
        Some(item) => Ok(standing(&Loaded::read(&item)?.x, trigger) == Standing::Late),
        // It has expired, or there never was one.
        None => Ok(store.get(&keys::tombstone(&to.project, to.execution)).await?.is_some()),
    }
}
