//! What the cases of deployments ask of a stand besides what all cases do.

use crate::case::{Answer, Entrance, Stand};
use keelway_domain::deployments::definition::Definition;
use keelway_domain::deployments::registry::ArtifactSource;
use keelway_domain::deployments::{Call, Command};
use keelway_domain::note::Note;
use keelway_domain::time::Timestamp;
use keelway_engine::item::Item;
use keelway_engine::registry::Tagged;
use serde_json::Value;

/// Something that happened to an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Happened {
    /// Which tag; none: the image was deleted.
    pub tag: Option<String>,
    /// The digest.
    pub digest: String,
    /// When.
    pub at: Timestamp,
}

/// A control plane whose configs are deployed.
pub trait DeploymentsStand: Stand {
    /// Applies an artifact source.
    fn bind(&mut self, namespace: &str, name: &str, source: &ArtifactSource);
    /// Applies a config, and asks for the version of this number with it.
    fn apply(&mut self, namespace: &str, name: &str, definition: &Definition, asks: Option<u64>) -> Answer;
    /// Deletes a config.
    fn delete(&mut self, namespace: &str, name: &str) -> Answer;
    /// Tells what happened to an image of the repository: the registry on the bus, or somebody at the API about a source of this
    /// namespace.
    fn image(&mut self, namespace: &str, what: &Happened, at: Entrance) -> Answer;
    /// Asks the registry, which has these tags.
    fn registry(&mut self, tags: &[Tagged]) -> Answer;
    /// Asks something of a config. A refusal is answered as [`keelway_engine::protocol::Handled::Invalid`], with its reason.
    fn ask(&mut self, namespace: &str, name: &str, command: &Command, note: &Note) -> Answer;
    /// A deployer says something of a version: the answer, and what it is to do.
    fn say(&mut self, namespace: &str, name: &str, n: u64, call: &Call) -> (Answer, Option<String>);
    /// An alarm goes on or off.
    fn alarm(&mut self, alarm: &str, on: bool);
    /// Puts an item of another engine into the table.
    fn keep(&mut self, item: Item);
    /// Has a config evaluated so many times.
    fn evaluate(&mut self, namespace: &str, name: &str, times: u32);
    /// Delivers everything again; `false`: this stand cannot.
    fn replay(&mut self) -> bool;
    /// A config as it is shown, see [`super::view`]; `None`: this stand cannot say, `Some(None)`: there is none.
    fn config(&mut self, namespace: &str, name: &str) -> Option<Option<Value>>;
    /// The deployers that were started, as `<config>-<version>-<attempt>`; `None`: this stand cannot say.
    fn started(&mut self) -> Option<Vec<String>>;
}
