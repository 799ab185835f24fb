//! What projects may have a limited number of. It is counted when something new is applied, never when something changes: what is
//! there may always be mended. Two requests at the same moment may exceed a quota by what one of them applies; the next one is
//! refused.

use super::Planned;
use crate::Api;
use crate::deployments;
use crate::fence::problem::{Answer, Refused};
use crate::webhooks::subscriptions;
use axum::http::StatusCode;
use keelway_domain::border::{Counted, Exceeded};
use keelway_domain::names::ProjectName;
use keelway_engine::border::Border;
use keelway_engine::ports::Ports;
use std::collections::BTreeMap;

/// So many definitions are read at once.
const PAGE: u32 = 100;

/// What it is counted as, and in which namespace; `None`: there may be any number.
fn counted(document: &Planned) -> Option<(Counted, &str)> {
    match document {
        Planned::Webhook(of) => Some((Counted::Webhooks, of.namespace.as_str())),
        Planned::Pipeline(of, _) => Some((Counted::Pipelines, &of.namespace)),
        Planned::DeploymentConfig(of) => Some((Counted::DeploymentConfigs, of.namespace.as_str())),
        Planned::Schedule(of) => Some((Counted::Schedules, of.project.as_str())),
        Planned::Project(_)
        | Planned::Shipyard { .. }
        | Planned::Remediation(..)
        | Planned::Cluster(_)
        | Planned::GitHost(_)
        | Planned::ArtifactSource(_) => None,
    }
}

/// Whether there is none of its name yet.
async fn is_new<P: Ports>(api: &Api<P>, document: &Planned) -> Answer<bool> {
    Ok(match document {
        Planned::Webhook(of) => api.webhooks().subscription(&subscriptions::address(of)).await?.is_none(),
        Planned::Pipeline(of, _) => api.promotions().definition(of).await?.is_none(),
        Planned::DeploymentConfig(of) => deployments::in_force(api, of.namespace.as_str(), &of.name).await?.is_none(),
        Planned::Schedule(of) => api.engine().schedules().get(&of.project, &of.name).await?.is_none(),
        _ => false,
    })
}

/// How many of them a namespace has: at least `most`, if there are that many.
async fn count<P: Ports>(api: &Api<P>, (of, namespace): (Counted, &str), most: usize) -> Answer<usize> {
    if of == Counted::Webhooks {
        return Ok(api.webhooks().subscriptions().await?.within(namespace).count());
    }
    let (mut found, mut after) = (0, None);
    loop {
        let from = after.as_deref();
        let (page, next) = match of {
            Counted::Pipelines => {
                let (page, next) = api.promotions().pipelines().page(namespace, from, PAGE).await?;
                (page.len(), next)
            }
            Counted::DeploymentConfigs => {
                let (page, next) = api.deployments().configs().page(namespace, from, PAGE).await?;
                (page.len(), next)
            }
            _ => {
                let project = ProjectName::new(namespace).map_err(|error| Refused::field("project", error))?;
                let page = api.engine().schedules().page(&project, from, PAGE).await?;
                (page.schedules.len(), page.next)
            }
        };
        found += page;
        after = next;
        if found >= most || after.is_none() {
            return Ok(found);
        }
    }
}

/// The refusal of what would be too much.
fn refused(exceeded: &Exceeded) -> Refused {
    Refused::new(StatusCode::CONFLICT, "quota exceeded", exceeded.to_string())
}

/// Refuses what is new and more than its project may have, as it may when the documents are in force.
pub(super) async fn check<P: Ports>(api: &Api<P>, planned: &[Planned]) -> Answer<()> {
    let mut new: BTreeMap<(&str, Counted), usize> = BTreeMap::new();
    for document in planned {
        if let Some((of, namespace)) = counted(document)
            && is_new(api, document).await?
        {
            *new.entry((namespace, of)).or_default() += 1;
        }
    }
    let mut known: Option<(&str, Border)> = None;
    for ((namespace, of), more) in new {
        if known.as_ref().is_none_or(|(known, _)| *known != namespace) {
            known = Some((namespace, super::border::planned(api, planned, namespace).await?));
        }
        let Some((_, border)) = &known else { return Err(Refused::internal()) };
        let quotas = border.quotas();
        let has = count(api, (of, namespace), quotas.most(of)).await?;
        quotas.check(namespace, of, (has, more)).map_err(|exceeded| refused(&exceeded))?;
    }
    Ok(())
}
