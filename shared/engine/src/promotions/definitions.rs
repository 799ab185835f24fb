//! Definitions of pipelines, clusters and git hosts. They have no effects of their own, so the API writes them itself, and wakes
//! the subjects concerned.

use super::Promotions;
use super::message::Address;
use crate::item::Item;
use crate::kinds::{Clusters, GitHosts, Pipelines};
use crate::ports::{PortError, Ports};
use crate::protocol::declare::{self, Declarations, Declared, Kind, Outcome};
use keelway_domain::promotions::definition::Definition;
use keelway_domain::promotions::registry::GitHost;

/// The most git hosts that are searched.
const HOSTS: u32 = 1000;

/// Reads a pipeline's definition; `None` for one that was deleted.
///
/// # Errors
/// [`PortError::Retry`] for a newer format, [`PortError::Refused`] for an item that cannot be read.
pub fn read(item: &Item) -> Result<Option<Declared<Definition>>, PortError> {
    declare::read::<Pipelines>(item)
}

impl<P: Ports> Promotions<P> {
    /// The definitions of one of the kinds that belong to this engine.
    fn declared<K: Kind>(&self, kind: K) -> Declarations<'_, P, K> {
        Declarations { ports: &self.ports, kind, retention: self.limits.retention }
    }

    /// The definitions of pipelines.
    pub fn pipelines(&self) -> Declarations<'_, P, Pipelines> {
        self.declared(Pipelines)
    }

    /// The clusters.
    pub fn clusters(&self) -> Declarations<'_, P, Clusters> {
        self.declared(Clusters)
    }

    /// The git hosts. They belong to the installation: their addresses have no namespace.
    pub fn git_hosts(&self) -> Declarations<'_, P, GitHosts> {
        self.declared(GitHosts)
    }

    /// Puts a definition in force, and wakes its pipeline.
    ///
    /// # Errors
    /// A port fails. Applying it again completes what was begun.
    pub async fn apply(&self, to: &Address, definition: &Definition, source: &str) -> Result<Outcome, PortError> {
        self.pipelines().apply(to, definition, source).await
    }

    /// Deletes a definition: its pipeline closes what it has open, and ends. `false`: there is none.
    ///
    /// # Errors
    /// A port fails. Deleting it again completes what was begun.
    pub async fn delete(&self, to: &Address) -> Result<bool, PortError> {
        self.pipelines().delete(to).await
    }

    /// A definition in force.
    ///
    /// # Errors
    /// A port fails.
    pub async fn definition(&self, to: &Address) -> Result<Option<Declared<Definition>>, PortError> {
        self.pipelines().get(to).await
    }

    /// The git host of the repositories under this host name (with its port, if it has one), and the name it is registered by.
    ///
    /// # Errors
    /// A port fails.
    pub async fn git_host_of(&self, host: &str) -> Result<Option<(String, Declared<GitHost>)>, PortError> {
        let (all, _) = self.git_hosts().everywhere(None, None, HOSTS).await?;
        Ok(all.into_iter().find(|(_, one)| one.spec.host.eq_ignore_ascii_case(host)).map(|(at, one)| (at.name, one)))
    }

    /// The observations of a pipeline's targets, as far as it may see them.
    ///
    /// # Errors
    /// A port fails.
    pub async fn observations(
        &self,
        of: &Address,
        definition: &Definition,
    ) -> Result<keelway_domain::promotions::observe::Observations, PortError> {
        super::observations::of(&self.ports, of, definition).await
    }
}
