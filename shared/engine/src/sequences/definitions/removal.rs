//! Stages may be added at any time, and removed only when nothing in them is open.

use super::Refusal;
use crate::item::Key;
use crate::ports::{Index, PortError, Ports, Query};
use crate::sequences::{Loaded, Sequences, keys};
use crate::table;
use keelway_domain::names::ProjectName;
use keelway_domain::sequences::Execution;
use keelway_domain::shipyard::Shipyard;
use std::collections::BTreeSet;

/// Open sequences looked at before a stage is removed.
const LOOKED_AT: u32 = 1000;

impl<P: Ports> Sequences<P> {
    /// Refuses to take away stages in which something is open.
    pub(super) async fn check_removals(&self, project: &ProjectName, shipyard: &Shipyard) -> Result<(), Refusal> {
        let item = self.project_item(project).await?;
        let in_force = self.shipyard(project, item.text("rev").unwrap_or_default()).await?;
        let removed: BTreeSet<&str> =
            in_force.stages.iter().map(|stage| stage.name.as_str()).filter(|name| shipyard.stage(name).is_none()).collect();
        if removed.is_empty() {
            return Ok(());
        }
        let listed = removed.iter().copied().collect::<Vec<_>>().join(", ");
        let (open, more) = self.open_of(project).await?;
        if more {
            return Err(Refusal::Conflict(format!(
                "the shipyard leaves out {listed}, and more than {LOOKED_AT} sequences are open in project {project}, too many to look \
                 through: keep the stages until fewer are open"
            )));
        }
        let in_use = open.iter().filter(|x| removed.contains(x.stage.as_str()));
        let in_use: BTreeSet<String> = in_use.map(|x| format!("{} in {} (context {})", x.sequence, x.stage, x.context)).collect();
        match in_use.len() {
            0 => Ok(()),
            n => {
                let some = in_use.into_iter().take(3).collect::<Vec<_>>().join("; ");
                let more = if n > 3 { format!(" and {} more", n - 3) } else { String::new() };
                Err(Refusal::Conflict(format!(
                    "the shipyard leaves out {listed}, but {some}{more} is still open: wait for the end or abort it, then apply again"
                )))
            }
        }
    }

    /// What is open in a project, of at most 1,000 sequences; and whether there may be more. The index they are found by lags.
    pub(in crate::sequences) async fn open_of(&self, project: &ProjectName) -> Result<(Vec<Execution>, bool), PortError> {
        let open = Query::index(Index::ByAge, keys::open_executions(project), LOOKED_AT).prefix(&keys::open_in(project));
        let (entries, more) = table::all(&self.ports, open, LOOKED_AT as usize).await?;
        let wanted: Vec<Key> = entries.into_iter().map(|entry| entry.key).collect();
        let items = if wanted.is_empty() { Default::default() } else { self.read(&wanted).await? };
        let mut open = vec![];
        // Oldest first.
        for item in wanted.iter().filter_map(|key| items.get(key)) {
            open.extend(Some(Loaded::read(item)?.x).filter(|x| x.outcome.is_none()));
        }
        Ok((open, more))
    }
}
