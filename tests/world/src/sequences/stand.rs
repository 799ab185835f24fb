//! What the cases of sequences ask of a stand besides what all cases do.

use super::{Evaluate, Listed};
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
    /// The control of a context; an empty word is left out.
    fn control(&mut self, project: &str, context: &str, stage: Option<&str>, control: &str) -> Answer;
    /// Somebody lets a context begin in a closed stage, for this reason.
    fn override_windows(&mut self, project: &str, context: &str, stage: Option<&str>, reason: &str) -> Answer;
    /// Applies a schedule's text to a project.
    fn schedule(&mut self, project: &str, schedule: &str) -> Answer;
    /// Deletes a schedule.
    fn unschedule(&mut self, project: &str, name: &str) -> Answer;
    /// A retry of an ended sequence of a context.
    fn retry(&mut self, project: &str, context: &str, stage: Option<&str>, from: Option<&str>) -> Answer;
    /// A request for an evaluation of (project, stage, service), whose trigger gets this id and context.
    fn evaluate(&mut self, place: (&str, &str, &str), event: (&str, &str), wanted: &Evaluate) -> Answer;
    /// The engine stops handling messages, or handles all that came in meanwhile.
    fn outage(&mut self, begins: bool);
    /// The contexts that a list of a project's sequences shows; `contexts`: only these. `None`: this stand cannot say.
    fn listed(&mut self, project: &str, wanted: &Listed, contexts: &[String]) -> Option<Vec<String>>;
    /// The image that runs in a stage; `None`: this stand cannot say.
    fn runs(&mut self, project: &str, stage: &str, service: &str) -> Option<Option<String>>;
    /// The context's entry in the list of the project's sequences, if it has one; `None`: this stand cannot say.
    fn sequence(&mut self, project: &str, context: &str) -> Option<Option<Value>>;
    /// All open triggers of the project of these types, as events; `None`: this stand cannot say.
    fn open(&mut self, project: &str, types: &[String]) -> Option<Vec<Value>>;
    /// Who is on a lane; `None`: this stand cannot say.
    fn lane(&mut self, project: &str, stage: &str, service: &str) -> Option<LaneView>;
}
