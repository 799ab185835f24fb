//! Events of AWS services.

use super::{CloudEventError, refused};
use keelway_domain::event::CloudEvent;
use keelway_domain::ids::context_of;
use keelway_domain::names::Context;
use keelway_domain::time::Timestamp;
use serde_json::Value;

/// An event of an AWS service, which is no CloudEvent: only AWS may use a source that begins with `aws.`. Its detail is the data,
/// with `account` and `region` of the envelope.
pub(super) fn event(envelope: &Value, service: &str, detail: &Value, now: Timestamp) -> Result<CloudEvent, CloudEventError> {
    let text = |name: &str| envelope.get(name).and_then(Value::as_str);
    let (Some(id), Some(ty)) = (text("id"), text("detail-type")) else {
        return refused("id", "is missing, or `detail-type`: an event of AWS has both");
    };
    let Some(mut data) = detail.as_object().cloned() else { return refused("detail", "is not a JSON object") };
    for name in ["account", "region"] {
        if let Some(value) = text(name) {
            data.entry(name).or_insert_with(|| value.into());
        }
    }
    Ok(CloudEvent {
        id: id.to_owned(),
        source: service.to_owned(),
        ty: ty.to_owned(),
        time: text("time").and_then(Timestamp::parse).unwrap_or(now),
        context: Context::of(&context_of(service, id).to_string()),
        authors: vec![],
        triggered_id: None,
        git_commit_id: None,
        data,
    })
}
