//! Definitions of configs. They have no effects of their own, so the API writes them itself, and then wakes the config.

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

/// A definition to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted<'a> {
    /// What it says.
    pub definition: &'a Definition,
    /// The text as it was written.
    pub source: &'a str,
    /// The identity of the author.
    pub by: &'a str,
    /// The version that the definition asks for, as a generated one does.
    pub request: Option<Request>,
    /// The definition that it must replace. `None`: any.
    pub over: Option<Over>,
}

/// The definition that a request replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Over {
    /// The version. 0: there must be no definition.
    pub version: i64,
    /// The id of the request, which must not be 0. A repeated request finds its own definition in force, which is not a conflict.
    pub asked: u64,
}

/// Reads a definition and its text. `None`: it was deleted. After a rollback there is no text.
///
/// # Errors
/// [`PortError::Retry`] for a newer format, [`PortError::Refused`] for an item that cannot be read.
pub fn read(item: &Item) -> Result<Option<(Applied, Option<String>)>, PortError> {
    let declared = declare::read::<DeploymentConfigs>(item)?;
    Ok(declared.map(|one| (Applied { version: one.version, ..one.spec }, item.text("src").map(str::to_owned))))
}

impl<P: Ports> Deployments<P> {
    /// The definitions of deployment configs. Their version is [`Declared::version`].
    pub fn configs(&self) -> Declarations<'_, P, DeploymentConfigs> {
        Declarations { ports: &self.ports, kind: DeploymentConfigs, retention: self.limits.retention }
    }

    /// The artifact sources.
    pub fn sources(&self) -> Declarations<'_, P, ArtifactSources> {
        Declarations { ports: &self.ports, kind: ArtifactSources(self.home()), retention: self.limits.retention }
    }

    /// Puts a definition in force, and wakes its config. Applying what is in force already keeps a vouch.
    ///
    /// # Errors
    /// A port fails. Applying it again completes what was begun.
    pub async fn apply(&self, to: &Address, wanted: &Wanted<'_>) -> Result<Outcome, PortError> {
        let decide = |old: Option<&Declared<Applied>>, version| {
            let in_force = old.map_or(0, |old| old.version);
            let definition = wanted.definition.in_place_of(old.map(|old| &old.spec.definition));
            // An earlier try, whose answer was lost, may have written it. The version that it asks for may have been cut since.
            let own = |old: &Applied| wanted.over.is_some_and(|over| over.asked == old.asked);
            let same = |old: &&Declared<Applied>| {
                let requested = old.spec.request == wanted.request || own(&old.spec);
                requested && old.spec.definition == definition && old.source == wanted.source
            };
            let in_force_already = old.filter(same);
            // Even the same text counts as a conflict here, because two people who ask for a version each ask for one.
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
    /// A port fails. Deleting it again completes what was begun.
    pub async fn delete(&self, to: &Address) -> Result<bool, PortError> {
        self.configs().delete(to).await
    }

    /// The writes by which a rollback changes a definition and its entries. The next application or deletion removes the entries
    /// that are no longer needed.
    pub(super) fn rewritten(&self, to: &Address, found: &Item, applied: &Applied) -> Result<(Write, Vec<Item>), PortError> {
        let configs = self.configs();
        let gone = configs.leaving(to, Some(found), Some(applied))?;
        // The applied text is no longer in force.
        let item = configs.item(to, applied, None, applied.version);
        let write = Write::Put(entries::note(item, &gone), entries::as_read(Some(found)));
        Ok((write, configs.kind.entries(to, applied)))
    }

    /// Sends a config a message to evaluate everything. `because`: the reason.
    pub(super) async fn wake(&self, to: &Address, because: String) -> Result<(), PortError> {
        table::send_all(&self.ports, &[Message::Evaluate { to: to.clone(), because }.letter()]).await
    }
}
