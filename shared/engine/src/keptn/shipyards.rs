//! Applying a shipyard. Stages may be added at any time, and removed only when nothing in them is open.

use crate::item::{Attr, Attrs, Name};
use crate::ports::{Condition, Ports, Write};
use crate::projects::{FORMAT, NewShipyard, Replaced, in_force, keys};
use crate::protocol::{COMMIT_TRIES, check_format, contended};
use crate::refusal::Refusal;
use crate::sequences::{MOST_OPEN, Sequences};
use keelway_domain::names::ProjectName;
use keelway_domain::shipyard::Shipyard;
use std::collections::BTreeSet;

impl<P: Ports> Sequences<P> {
    /// Applies a shipyard: first the revision's item and its entry in the history, then one conditional write of the project.
    ///
    /// # Errors
    /// An unknown project, a text that is too large, another revision in force than required, or a removed stage in which something
    /// is open (409; the check is made once, before the write).
    pub async fn apply_shipyard(&self, project: &ProjectName, new: NewShipyard<'_>) -> Result<Replaced, Refusal> {
        let projects = self.projects();
        let item = projects.revision_item(project, new)?;
        let key = keys::project(project);
        for n in 0..COMMIT_TRIES {
            let present = projects.item(project).await?;
            check_format(&present, FORMAT)?;
            let before = in_force(&present).map(str::to_owned);
            if new.is_in_force(project, &present)? {
                return Ok(Replaced { changed: false, before });
            }
            self.check_removals(project, new.shipyard).await?;
            if n == 0 {
                // Immutable: an existing item has the same content.
                drop(self.ports.write(&Write::Put(item.clone(), Condition::Absent)).await?);
            }
            let number = present.number("n").unwrap_or(0) + 1;
            let (place, entry) = projects.entry(project, (number, new), present.text("h").unwrap_or_default());
            let set = Attrs::from([
                (Name::Borrowed("rev"), Attr::S(new.revision.to_owned())),
                (Name::Borrowed("n"), Attr::N(number)),
                (Name::Borrowed("h"), Attr::S(place)),
            ]);
            drop(self.ports.write(&Write::Put(entry, Condition::Always)).await?);
            if projects.change(&key, Some(&present), set, vec![]).await? {
                self.tell_of_windows(project, before.as_deref()).await?;
                return Ok(Replaced { changed: true, before });
            }
        }
        Err(contended(format_args!("project {project}")).into())
    }

    /// Checks whether a shipyard can be applied to the present project, as [`Sequences::apply_shipyard`] does, but writes nothing.
    ///
    /// # Errors
    /// The errors of [`Sequences::apply_shipyard`]; a project that `will_exist` need not exist yet.
    pub async fn check_shipyard(
        &self,
        (project, will_exist): (&ProjectName, bool),
        new: NewShipyard<'_>,
    ) -> Result<Replaced, Refusal> {
        let projects = self.projects();
        projects.revision_item(project, new)?;
        match projects.item(project).await {
            Ok(present) => {
                let before = in_force(&present).map(str::to_owned);
                let changed = !new.is_in_force(project, &present)?;
                if changed {
                    self.check_removals(project, new.shipyard).await?;
                }
                Ok(Replaced { changed, before })
            }
            Err(Refusal::Unknown { .. }) if will_exist && new.replaces.is_none() => Ok(Replaced { changed: true, before: None }),
            Err(refusal) => Err(refusal),
        }
    }

    /// Refuses to remove stages in which something is open.
    async fn check_removals(&self, project: &ProjectName, shipyard: &Shipyard) -> Result<(), Refusal> {
        let item = self.projects().item(project).await?;
        let in_force = self.projects().shipyard(project, item.text("rev").unwrap_or_default()).await?;
        let removed: BTreeSet<&str> =
            in_force.stages.iter().map(|stage| stage.name.as_str()).filter(|name| shipyard.stage(name).is_none()).collect();
        if removed.is_empty() {
            return Ok(());
        }
        let listed = removed.iter().copied().collect::<Vec<_>>().join(", ");
        let (open, more) = self.open_of(project).await?;
        if more {
            return Err(Refusal::Conflict(format!(
                "the shipyard leaves out {listed}, and more than {MOST_OPEN} sequences are open in project {project}, too many to look \
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
}
