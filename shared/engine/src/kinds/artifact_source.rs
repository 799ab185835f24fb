//! Artifact sources. A repository leads to the sources that it feeds, and the sweep finds those whose registry can be asked.

use crate::deployments::{ask, keys};
use crate::item::Item;
use crate::protocol::declare::{Kind, Shelf};
use crate::protocol::fact;
use keelway_domain::address::Address;
use keelway_domain::border::Home;
use keelway_domain::deployments::registry::ArtifactSource;

/// The artifact sources of an installation, whose region and account are the defaults for repositories.
#[derive(Debug, Clone)]
pub struct ArtifactSources(pub Home);

impl Kind for ArtifactSources {
    const KIND: &'static str = "ArtifactSource";
    type Spec = ArtifactSource;

    fn shelf(&self, namespace: &str) -> Shelf {
        Shelf { partition: keys::sources(namespace), prefix: String::new(), namespaces: None }
    }

    fn entries(&self, at: &Address, spec: &ArtifactSource) -> Vec<Item> {
        let Some(from) = spec.repository() else { return vec![] };
        let fed = keys::fed(from, (&self.0.account, &self.0.region), (&at.namespace, &at.name));
        vec![fact::entry(Item::new(fed), at), ask::askable(at)]
    }
}
