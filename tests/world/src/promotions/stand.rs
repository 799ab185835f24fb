//! What the cases of promotions ask of a stand besides what all cases do.

use super::host::{End, GitHost};
use crate::case::{Answer, Stand};
use keelway_domain::note::Note;
use keelway_domain::promotions::Command;
use serde_json::Value;

/// A control plane whose pipelines promote.
pub trait PromotionsStand: Stand {
    /// The host that its pipelines work with.
    type Host: GitHost;

    /// The host.
    fn host(&mut self) -> &mut Self::Host;
    /// Applies a manifest.
    fn apply(&mut self, manifest: &str) -> Answer;
    /// Deletes a pipeline.
    fn delete(&mut self, namespace: &str, name: &str) -> Answer;
    /// Asks something of a pipeline. A refusal is answered as [`keelway_engine::protocol::Handled::Invalid`], with its reason.
    fn ask(&mut self, namespace: &str, name: &str, command: &Command, note: &Note) -> Answer;
    /// Has a pipeline evaluated so many times.
    fn evaluate(&mut self, namespace: &str, name: &str, times: u32);
    /// Delivers everything again; `false`: this stand cannot.
    fn replay(&mut self) -> bool;
    /// Copies the state of a pipeline; `false`: this stand cannot.
    fn backup(&mut self, namespace: &str, name: &str) -> bool;
    /// Puts the copy back, and has the pipeline evaluated.
    fn restore(&mut self, namespace: &str, name: &str);
    /// The sequence that carries out the promotion of a pipeline into an environment ends. Unless it is heard, nothing says so to
    /// the engine.
    ///
    /// # Errors
    /// There is none, or this stand has no sequences.
    fn finish(&mut self, of: (&str, &str), environment: &str, end: End, heard: bool) -> Result<(), String>;
    /// What evaluations of an environment come to from now on.
    ///
    /// # Errors
    /// It is no such thing, or evaluations are really made here.
    fn judge(&mut self, _environment: &str, _verdict: &str) -> Result<(), String> {
        Err("this stand makes evaluations: say `only: world`".into())
    }
    /// The host says that something has changed in a repository.
    fn webhook(&mut self, repository: &str);
    /// A pipeline as it is shown, see [`super::view`]; `None`: this stand cannot say, `Some(None)`: there is none.
    fn pipeline(&mut self, namespace: &str, name: &str) -> Option<Option<Value>>;
}
