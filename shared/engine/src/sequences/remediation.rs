//! Remediations: the resource `remediation.yaml` of a service in a stage, of a stage, or of the project. If it exists, the engine
//! answers `get-action` itself.

use super::Sequences;
use crate::ports::{PortError, Ports};
use crate::resources::{self, Forms};
use keelway_domain::sequences::{Execution, GET_ACTION, Remediation};
use keelway_domain::shipyard::Sequence;
use keelway_domain::stored::Stored;

/// The resource's name.
pub const REMEDIATION: &str = "remediation.yaml";

/// Whether a resource is a `remediation.yaml`; in a stage, those of its services lie in folders.
pub fn is_remediation(uri: &str) -> bool {
    uri.rsplit('/').next() == Some(REMEDIATION)
}

/// The parsed form of a `remediation.yaml`, which is stored in its entry, so that decisions need not parse YAML.
pub fn form(uri: &str, remediation: &Remediation) -> Forms {
    Forms::from([(uri.to_owned(), remediation.to_json())])
}

impl<P: Ports> Sequences<P> {
    /// The remediations that an execution's next `get-action` is answered from: those of its service, else of its stage, else of
    /// its project. Nothing is read if none of its tasks to come has that name.
    pub(super) async fn remediation_of(&self, x: &Execution, sequence: &Sequence) -> Result<Option<Remediation>, PortError> {
        let to_come = sequence.tasks.iter().skip(usize::from(x.task));
        if x.outcome.is_some() || !to_come.into_iter().any(|task| task.name.as_str() == GET_ACTION) {
            return Ok(None);
        }
        let own = format!("{}/{REMEDIATION}", x.service);
        let places = [(x.stage.as_str(), own.as_str()), (x.stage.as_str(), REMEDIATION), ("", REMEDIATION)];
        let keys = places.map(|(stage, path)| resources::keys::resource(&x.project, stage, path));
        let items = self.read(&keys).await?;
        let Some((key, form)) = keys.iter().find_map(|key| Some((key, items.get(key)?.text("j")?))) else { return Ok(None) };
        let unusable =
            |error| PortError::Refused { request: "GetItem", reason: format!("the remediations {key} cannot be read: {error}") };
        Remediation::from_json(form).map(Some).map_err(unusable)
    }
}
