//! The effects of a rollback on other configs with the same label `app`: warnings, never a refusal.

use super::prepare::Prepared;
use crate::Api;
use crate::fence::problem::Answer;
use keelway_domain::deployments::Config;
use keelway_domain::deployments::definition::Definition;
use keelway_domain::deployments::template::with_images;
use keelway_domain::deployments::together::{APP, Side, one_sided};
use keelway_engine::deployments::Address;

/// The most configs of a namespace that are compared.
const COMPARED: u32 = 200;

/// The warnings for each of the rollbacks.
pub(crate) async fn warnings(api: &Api, all: &[Prepared]) -> Answer<Vec<Vec<String>>> {
    let mut told = vec![];
    for prepared in all {
        told.push(match prepared.present.labels.get(APP) {
            Some(app) => about(api, all, prepared, app).await?,
            None => vec![],
        });
    }
    Ok(told)
}

async fn about(api: &Api, all: &[Prepared], prepared: &Prepared, app: &str) -> Answer<Vec<String>> {
    let Prepared { of, present, candidate, .. } = prepared;
    let changes = Side { name: &of.name, before: present, after: candidate };
    let (found, more) = api.deployments().configs().page(&of.namespace, None, COMPARED).await?;
    let same = |(there, definition): &(Address, Definition)| there != of && definition.labels.get(APP).is_some_and(|of| of == app);
    let others: Vec<(Address, Definition)> =
        found.into_iter().map(|(there, applied)| (there, applied.spec.definition)).filter(same).collect();
    let addresses: Vec<Address> = others.iter().map(|(there, _)| there.clone()).collect();
    let states = api.deployments().states(&addresses).await?;
    let mut told = vec![];
    for ((there, definition), state) in others.into_iter().zip(states) {
        let together = all.iter().find(|other| other.of == there);
        let deployed = deployed(definition, state.as_ref());
        let (before, after) = together.map_or((&deployed, &deployed), |other| (&other.present, &other.candidate));
        told.extend(one_sided(changes, Side { name: &there.name, before, after }));
    }
    if more.is_some() {
        told.push(format!("only the first {COMPARED} configs of {} were compared", of.namespace));
    }
    Ok(told)
}

/// A definition with the deployed images.
fn deployed(definition: Definition, state: Option<&Config>) -> Definition {
    match state.and_then(|state| state.last.as_ref()) {
        Some(last) => Definition { template: with_images(&definition.template, &last.content.images), ..definition },
        None => definition,
    }
}
