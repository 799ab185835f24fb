//! `keptn configure monitoring`: it chooses the source that a project evaluates by. Keelway has no monitoring of its own, so any
//! further answer depends on the shipyards.

use crate::Api;
use crate::fence::problem::Answer;
use keelway_domain::event::SOURCE;
use keelway_domain::names::Context;
use keelway_domain::time::Timestamp;
use serde_json::{Value, json};

/// The answer that `keptn configure monitoring` waits for, asking for it ten times, 3 s apart.
pub const CONFIGURED: &str = "sh.keptn.event.configure-monitoring.finished";
/// The event that the command sends.
const CONFIGURE: &str = "monitoring.configure";
/// The most projects whose shipyards are searched for sequences that are triggered by it.
const LOOKED_THROUGH: u32 = 100;

/// Whether any sequence of any project is triggered by this event.
pub(crate) async fn configures(api: &Api) -> Answer<bool> {
    let (projects, more) = api.engine().projects().list(None, LOOKED_THROUGH).await?;
    let mut sequences = projects.iter().flat_map(|project| &project.shipyard.stages).flat_map(|stage| &stage.sequences);
    Ok(more || sequences.any(|sequence| sequence.triggered_on.iter().any(|on| on.event.ends_with(CONFIGURE))))
}

/// The answer if no sequence is triggered, so that the command need not wait. It is not stored.
pub fn nothing_configured(of: &Context, now: Timestamp) -> Value {
    let message = format!(
        "nothing was configured but the source of evaluations: no sequence of any project is triggered by sh.keptn.event.{CONFIGURE}"
    );
    json!({
        "type": CONFIGURED, "specversion": "1.0", "id": format!("nobody-listens-{of}"), "source": SOURCE, "time": now.rfc3339(),
        "shkeptncontext": of.as_str(), "contenttype": "application/json",
        "data": {"status": "succeeded", "result": "pass", "message": message}
    })
}
