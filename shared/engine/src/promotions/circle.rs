//! Circular pipelines: one promotes from dev to staging, another one from staging to dev. Two revisions would alternate for ever,
//! because each arrival begins a run of the other pipeline.

use super::message::Address;
use super::{Promotions, definitions, keys};
use crate::item::Key;
use crate::ports::{PortError, Ports, Query};
use crate::protocol::fact;
use crate::table;
use keelway_domain::promotions::definition::{Definition, EnvironmentSpec};
use std::collections::BTreeSet;

/// The most pipelines of one target that are checked.
const MOST: usize = 100;

/// What the other pipelines of a namespace make of one.
#[derive(Debug, Default)]
pub struct Circle {
    /// Those that promote its revisions back to its first environment.
    pub with: Vec<Address>,
    /// Those of which this is not known, because a newer version has written them, or they are damaged.
    pub unread: Vec<Address>,
}

impl<P: Ports> Promotions<P> {
    /// The pipelines of the same namespace that promote the revisions of this pipeline back to its first environment. One that
    /// cannot be read keeps nobody from applying another one.
    ///
    /// # Errors
    /// A port fails.
    pub async fn circle(&self, of: &Address, definition: &Definition) -> Result<Circle, PortError> {
        let (first, later) = split(definition);
        let mut others: BTreeSet<Address> = BTreeSet::new();
        for target in first.iter().flat_map(|environment| &environment.targets) {
            let query = Query::table(keys::target_partition(&definition.app, target), 100).prefix(keys::DEPENDS);
            let (entries, _) = table::all(&self.ports, query, MOST).await?;
            others.extend(entries.iter().filter_map(fact::entered));
        }
        others.retain(|other| other != of && other.namespace == of.namespace);
        let wanted: Vec<Key> = others.iter().map(keys::definition).collect();
        let items = table::read(&self.ports, &wanted).await?;
        let ours = [places(definition, first), places(definition, later)];
        let mut circle = Circle::default();
        for other in others {
            let Some(read) = items.get(&keys::definition(&other)).map(definitions::read) else { continue };
            let Ok(applied) = read else {
                circle.unread.push(other);
                continue;
            };
            let Some(applied) = applied else { continue };
            let (first, later) = split(&applied.spec);
            let theirs = [places(&applied.spec, first), places(&applied.spec, later)];
            if !ours[0].is_disjoint(&theirs[1]) && !ours[1].is_disjoint(&theirs[0]) {
                circle.with.push(other);
            }
        }
        Ok(circle)
    }
}

fn split(definition: &Definition) -> (&[EnvironmentSpec], &[EnvironmentSpec]) {
    definition.environments.split_at(1.min(definition.environments.len()))
}

/// The objects that these environments run.
fn places(definition: &Definition, environments: &[EnvironmentSpec]) -> BTreeSet<String> {
    let targets = environments.iter().flat_map(|environment| &environment.targets);
    targets.map(|target| keys::target_name(&definition.app, target)).collect()
}
