//! What the cases of sequences ask of a stand besides what all cases do.

use super::format::Control;
use crate::case::{Answer, Stand};
use serde_json::Value;

/// Who is on a lane, by context.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LaneView {
    /// The holder's.
    pub holder: Option<String>,
    /// The queue's, in the order of service.
    pub queue: Vec<String>,
}

/// A control plane whose sequences run.
pub trait SequencesStand: Stand {
    /// Applies a shipyard's text to a project, creating it if need be.
    fn apply(&mut self, project: &str, shipyard: &str) -> Answer;
    /// A person's decision on an approval, by its `.triggered` event.
    fn decide(&mut self, approval: &Value, approve: bool) -> Answer;
    /// The control of a context.
    fn control(&mut self, project: &str, context: &str, stage: Option<&str>, control: Control) -> Answer;
    /// The context's entry in the list of the project's sequences, if it has one; `None`: this stand cannot say.
    fn sequence(&mut self, project: &str, context: &str) -> Option<Option<Value>>;
    /// All open triggers of the project of these types, as events; `None`: this stand cannot say.
    fn open(&mut self, project: &str, types: &[String]) -> Option<Vec<Value>>;
    /// Who is on a lane; `None`: this stand cannot say.
    fn lane(&mut self, project: &str, stage: &str, service: &str) -> Option<LaneView>;
}
