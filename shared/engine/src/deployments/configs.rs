//! Configs as they are applied. Definitions have no effects of their own, so the API writes them itself, and then wakes the config.

use super::Deployments;
use super::message::{Address, Message};
use crate::entries;
use crate::item::Item;
use crate::kinds::{ArtifactSources, DeploymentConfigs};
use crate::ports::{PortError, Ports, Write};
use crate::protocol::declare::{self, Declarations, Declared, Kind as _, Outcome};
use crate::table;
use keelway_domain::border::Vouched;
use keelway_domain::deployments::definition::Definition;
use keelway_domain::deployments::{Applied, Request};

/// What is to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted<'a> {
    /// What it says.
    pub definition: &'a Definition,
    /// The text as it was written.
    pub source: &'a str,
    /// Who writes it.
    pub by: &'a str,
    /// The version that is asked for with it, as the generator does.
    pub request: Option<Request>,
    /// What it replaces; `None`: whatever is in force.
    pub over: Option<Over>,
}

/// The version of a definition that a request replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Over {
    /// The version; 0: there must be none.
    pub version: i64,
    /// Identifies the request: sent again, it finds its own definition in force, and that is no conflict. Not 0.
    pub asked: u64,
}

/// Reads a definition and its text; `None` for one that was deleted. A rollback leaves no text.
///
/// # Errors
/// [`PortError::Retry`] for a newer format, [`PortError::Refused`] for an item that cannot be read.
pub fn read(item: &Item) -> Result<Option<(Applied, Option<String>)>, PortError> {
    let declared = declare::read::<DeploymentConfigs>(item)?;
    Ok(declared.map(|one| (Applied { version: one.version, ..one.spec }, item.text("src").map(str::to_owned))))
}

impl<P: Ports> Deployments<P> {
    /// The deployment configs as they are applied. What they say has no version of its own: [`Declared::version`] is it.
    pub fn configs(&self) -> Declarations<'_, P, DeploymentConfigs> {
        Declarations { ports: &self.ports, kind: DeploymentConfigs, retention: self.limits.retention }
    }

    /// The artifact sources.
    pub fn sources(&self) -> Declarations<'_, P, ArtifactSources> {
        Declarations { ports: &self.ports, kind: ArtifactSources(self.home()), retention: self.limits.retention }
    }

    /// Puts a definition in force, and wakes its config. Whoever applies what is in force already does not take a vouch away.
    ///
    /// # Errors
    /// Of the ports. Applying it again completes what was begun.
    pub async fn apply(&self, to: &Address, wanted: &Wanted<'_>) -> Result<Outcome, PortError> {
        let decide = |old: Option<&Declared<Applied>>, version| {
            let in_force = old.map_or(0, |old| old.version);
            let definition = wanted.definition.in_place_of(old.map(|old| &old.spec.definition));
            // An earlier try may have written it, whose answer was lost. The version that it asked for may have been cut since.
            let own = |old: &Applied| wanted.over.is_some_and(|over| over.asked == old.asked);
            let same = |old: &&Declared<Applied>| {
                let requested = old.spec.request == wanted.request || own(&old.spec);
                requested && old.spec.definition == definition && old.source == wanted.source
            };
            let in_force_already = old.filter(same);
            // Whoever wrote the same first was faster all the same: two people who ask for a version each ask for one.
            let expected =
                wanted.over.is_none_or(|over| over.version == in_force) || in_force_already.is_some_and(|old| own(&old.spec));
            if !expected {
                return declare::Wanted::Refuse(Outcome::Conflict(in_force));
            }
            let (by, request) = (wanted.by.to_owned(), wanted.request.clone());
            let asked = wanted.over.map_or(0, |over| over.asked);
            match in_force_already {
                Some(old) => declare::Wanted::Keep(old.spec.clone()),
                None => declare::Wanted::Put(Applied { definition, version, by, request, asked }, wanted.source),
            }
        };
        self.configs().put(to, decide).await
    }

    /// Deletes a definition: its config cancels what runs, and ends. `false`: there is none.
    ///
    /// # Errors
    /// Of the ports. Deleting it again completes what was begun.
    pub async fn delete(&self, to: &Address) -> Result<bool, PortError> {
        self.configs().delete(to).await
    }

    /// What a rollback makes of the definition that an item says, and what leads to it. The next one who applies or deletes it
    /// deletes the entries it leaves.
    pub(super) fn rewritten(&self, to: &Address, found: &Item, applied: &Applied) -> Result<(Write, Vec<Item>), PortError> {
        let configs = self.configs();
        let gone = configs.leaving(to, Some(found), Some(applied))?;
        // The text that was applied is no longer what is in force.
        let item = configs.item(to, applied, None, applied.version);
        let write = Write::Put(entries::note(item, &gone), entries::as_read(Some(found)));
        Ok((write, configs.kind.entries(to, applied)))
    }

    /// Sends a config a message to look at everything again. `because` tells what caused it.
    pub(super) async fn wake(&self, to: &Address, because: String) -> Result<(), PortError> {
        table::send_all(&self.ports, &[Message::Evaluate { to: to.clone(), because }.letter()]).await
    }
}
