//! Clusters. The observer reads a cluster by its name.

use super::shared;
use crate::promotions::keys;
use crate::protocol::declare::{Kind, Shelf};
use keelway_domain::promotions::registry::Cluster;

/// The clusters.
#[derive(Debug, Clone, Copy)]
pub struct Clusters;

impl Kind for Clusters {
    const KIND: &'static str = "Cluster";
    type Spec = Cluster;

    fn shelf(&self, namespace: &str) -> Shelf {
        shared(keys::CLUSTERS, namespace)
    }
}
