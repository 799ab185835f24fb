//! Which source of metrics a project evaluates by.

use super::{Evaluations, keys, sources};
use crate::item::Item;
use crate::metrics::Metrics;
use crate::ports::{PortError, Ports, Write};
use crate::protocol::change::{Step, as_read, change, next_version};
use keelway_domain::evaluations::Found;
use keelway_domain::time::Timestamp;

/// The longest name of a source, in characters.
const LONGEST: usize = 100;

/// Whether a text can be the name of a source: one of the project's, or that of a service on the bus.
pub fn is_name(text: &str) -> bool {
    let odd = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    !text.is_empty() && text.len() <= LONGEST && !text.contains(odd)
}

impl<P: Ports, M: Metrics> Evaluations<P, M> {
    /// The source that was chosen for a project.
    ///
    /// # Errors
    /// A port fails.
    pub async fn chosen(&self, project: &str) -> Result<Option<String>, PortError> {
        Ok(self.ports.get(&keys::chosen(project)).await?.and_then(|item| item.text("n").map(str::to_owned)))
    }

    /// Chooses a source for a project; the latest choice counts, however late it arrives. The answer is the one that counts.
    ///
    /// # Errors
    /// A port fails.
    pub async fn choose(&self, project: &str, source: &str, at: Timestamp) -> Result<String, PortError> {
        let key = keys::chosen(project);
        change(&self.ports, &key, |found| {
            let later = found.filter(|item| item.number("at").unwrap_or_default() >= at.0);
            if let Some(name) = later.and_then(|item| item.text("n")) {
                return Ok::<_, PortError>(Step::Leave(name.to_owned()));
            }
            let item = Item::new(key.clone()).with("n", source).with("at", at.0).with("v", next_version(found));
            Ok(Step::Write(Write::Put(item, as_read(found)), source.to_owned()))
        })
        .await
    }

    /// Where the values of a project come from: the source that was chosen, or the only one that it has.
    pub(super) async fn found(&self, project: &str) -> Result<Found, PortError> {
        let name = match self.chosen(project).await? {
            Some(name) => name,
            None => match &sources::all(&self.ports, project).await?[..] {
                [(only, source)] => return Ok(Found::Source(only.clone(), source.delay())),
                _ => return Ok(Found::Nothing),
            },
        };
        Ok(match sources::find(&self.ports, project, &name).await? {
            Some(source) => Found::Source(name, source.delay()),
            None => Found::Service(name),
        })
    }
}
