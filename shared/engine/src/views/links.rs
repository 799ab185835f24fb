//! What the executions of a context name of the other engines: the configs that carry their tasks out, and the promotion that began
//! them.

use super::Views;
use super::contexts::{EXECUTIONS, READ_BYTES};
use super::execution;
use crate::item::Key;
use crate::ports::{PortError, Ports};
use crate::sequences::keys;
use crate::sequences::load::payload;
use keelway_domain::address::Address;
use keelway_domain::event::{Object, PROMOTION};
use keelway_domain::names::{Context, ProjectName};
use keelway_domain::shipyard::DEPLOYMENT_CONFIG;

/// Triggers from outside of which the payload is read.
const ROOTS: usize = 10;

/// What a context names.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Links {
    /// The configs of its tasks, as the shipyards say that it was accepted with; without repetition, in the order of the tasks.
    pub configs: Vec<Address>,
    /// What its triggers say about the promotions that they carry out. Whoever triggers may say this: the pipeline knows.
    pub promotions: Vec<Object>,
}

impl<P: Ports> Views<'_, P> {
    /// What the first 500 executions of a context name.
    ///
    /// # Errors
    /// A port fails.
    pub async fn links(&self, project: &ProjectName, context: &Context) -> Result<Links, PortError> {
        let (shown, _) = self.executions(project, context, EXECUTIONS, READ_BYTES).await?;
        let mut links = Links::default();
        for one in &shown {
            let shipyard = self.accepted_with(&one.x).await?;
            let Some(sequence) = shipyard.as_deref().and_then(|shipyard| execution::definition(&one.x, shipyard)) else { continue };
            for task in sequence.tasks.iter().take(one.x.results.len() + 1) {
                let Some(named) = task.properties.get(DEPLOYMENT_CONFIG).and_then(|named| named.as_str()) else { continue };
                let (namespace, name) = named.split_once(':').unwrap_or((project.as_str(), named));
                let config = Address::new(namespace, name);
                if !links.configs.contains(&config) {
                    links.configs.push(config);
                }
            }
        }
        let partition = keys::context_partition(project, context);
        let roots = shown.iter().filter(|one| one.x.parent.is_none() && one.x.payload.starts_with(keys::EVENT));
        let wanted: Vec<Key> = roots.map(|one| Key::new(partition.clone(), &*one.x.payload)).take(ROOTS).collect();
        if !wanted.is_empty() {
            let items = self.engine.read(&wanted).await?;
            let data = wanted.iter().filter_map(|key| payload(items.get(key)?));
            links.promotions = data.filter_map(|data| data.get(PROMOTION)?.as_object().cloned()).collect();
        }
        Ok(links)
    }
}
