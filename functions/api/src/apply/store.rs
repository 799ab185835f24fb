//! The second half of `apply`: what is stored, and how it differs from what was in force.

use super::Planned;
use super::compare::compared;
use crate::Api;
use crate::deployments;
use crate::fence::manifests::fits;
use crate::fence::problem::Answer;
use crate::keptn::revisions;
use crate::webhooks::subscriptions;
use keelway_domain::address::Address;
use keelway_engine::ports::Ports;
use keelway_engine::projects::NewShipyard;
use keelway_engine::protocol::declare::Outcome;
use keelway_engine::sequences::remediation::{REMEDIATION, form};
use keelway_wire::http::AppliedDocument;
use keelway_wire::manifest::{ClusterManifest, GitHostManifest, ShipyardManifest};

/// How something is applied.
#[derive(Clone, Copy)]
pub struct How<'a> {
    /// Only if this revision of the shipyard is in force.
    pub replaces: Option<&'a str>,
    /// Who applies it; may be empty.
    pub by: &'a str,
    /// Only say what would change.
    pub dry_run: bool,
}

/// What others need comes first: projects before shipyards, clusters and hosts before pipelines, sources before configs. The answer
/// is in the order of the text.
pub async fn store<P: Ports>(api: &Api<P>, planned: &[Planned], how: How<'_>) -> Answer<Vec<AppliedDocument>> {
    let order = |planned: &Planned| match planned {
        Planned::Project(_) | Planned::Cluster(_) | Planned::GitHost(_) | Planned::ArtifactSource(_) | Planned::Webhook(_) => 0,
        Planned::Schedule(_) => 2,
        Planned::Shipyard { .. } | Planned::Remediation(..) | Planned::Pipeline(..) | Planned::DeploymentConfig(_) => 1,
    };
    let mut places: Vec<(usize, &Planned)> = planned.iter().enumerate().collect();
    places.sort_by_key(|(place, planned)| (order(planned), *place));
    let mut applied: Vec<(usize, AppliedDocument)> = vec![];
    for (place, document) in places {
        applied.push((place, store_one(api, document, how).await?));
    }
    applied.sort_by_key(|(place, _)| *place);
    Ok(applied.into_iter().map(|(_, applied)| applied).collect())
}

async fn store_one<P: Ports>(api: &Api<P>, document: &Planned, how: How<'_>) -> Answer<AppliedDocument> {
    if let Planned::Shipyard { project, revision, manifest } = document {
        let ShipyardManifest { source, shipyard, .. } = manifest;
        let new = NewShipyard { revision, source, shipyard, replaces: how.replaces, by: how.by };
        let name = manifest.metadata_name.clone().unwrap_or_else(|| project.to_string());
        return revisions::put_in_force(api, project, (new, name), how.dry_run).await;
    }
    let (before, after) = compared(api, document).await?;
    let mut done = match how.dry_run {
        true => AppliedDocument { changed: before.as_ref() != Some(&after), ..named(document) },
        false => put_in_force(api, document, how.by).await?,
    };
    if let Some(before) = before.filter(|_| done.changed) {
        done.changes = after.unlike(&before);
    }
    Ok(done)
}

/// What a document is called in the answer.
fn named(document: &Planned) -> AppliedDocument {
    let (kind, name, project) = document.named();
    let name = match document {
        Planned::Remediation(.., manifest) => manifest.metadata_name.as_deref().unwrap_or_default(),
        _ => name,
    };
    let project = if let Planned::Webhook(manifest) = document { Some(manifest.namespace.as_str()) } else { project };
    AppliedDocument {
        kind: kind.into(),
        name: name.into(),
        project: project.unwrap_or_default().into(),
        ..AppliedDocument::default()
    }
}

async fn put_in_force<P: Ports>(api: &Api<P>, document: &Planned, by: &str) -> Answer<AppliedDocument> {
    let outcome = match document {
        Planned::Project(settings) => {
            let changed = api.engine().projects().apply(settings).await?;
            return Ok(AppliedDocument { changed, ..named(document) });
        }
        Planned::Remediation(_, scope, manifest) => {
            let files = vec![(REMEDIATION.to_owned(), manifest.source.clone().into_bytes())];
            let forms = form(REMEDIATION, &manifest.remediation);
            let changed = api.engine().resources().write_read(scope, files, &forms).await?.changed;
            return Ok(AppliedDocument { changed, ..named(document) });
        }
        Planned::Schedule(manifest) => {
            let changed =
                api.engine().schedules().apply((&manifest.project, &manifest.name), &manifest.spec, &manifest.source).await?;
            return Ok(AppliedDocument { changed, ..named(document) });
        }
        Planned::DeploymentConfig(manifest) => return deployments::store(api, manifest, by).await,
        Planned::ArtifactSource(manifest) => return deployments::store_source(api, manifest).await,
        Planned::Webhook(manifest) => return subscriptions::store(api, manifest).await,
        Planned::Shipyard { .. } => Outcome::Unchanged(0),
        Planned::Pipeline(of, manifest) => api.promotions().apply(of, &manifest.definition, &manifest.source).await?,
        Planned::Cluster(ClusterManifest { namespace, name, cluster, source }) => {
            api.promotions().clusters().apply(&Address::new(namespace.as_str(), name), cluster, source).await?
        }
        Planned::GitHost(GitHostManifest { name, host, source }) => {
            api.promotions().git_hosts().apply(&Address::new("", name), host, source).await?
        }
    };
    let named = named(document);
    fits(outcome != Outcome::TooLarge, &named.kind, &named.name)?;
    Ok(AppliedDocument { changed: outcome.is_change(), ..named })
}
