//! Git hosts. They belong to the installation, and are found by the host in the URL of a repository.

use super::shared;
use crate::promotions::keys;
use crate::protocol::declare::{Kind, Shelf};
use keelway_domain::promotions::registry::GitHost;

/// The git hosts.
#[derive(Debug, Clone, Copy)]
pub struct GitHosts;

impl Kind for GitHosts {
    const KIND: &'static str = "GitHost";
    type Spec = GitHost;

    fn shelf(&self, _: &str) -> Shelf {
        shared(keys::GIT_HOSTS, "")
    }
}
