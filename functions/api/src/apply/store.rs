//! The second half of `apply`: what is stored, and how it differs from what was in force.

use super::Planned;
use crate::problem::{Answer, Refused};
use crate::{Api, deployments, revisions, subscriptions};
use keelway_domain::diff::diff;
use keelway_domain::promotions::registry::{Cluster, GitHost};
use keelway_engine::ports::Ports;
use keelway_engine::promotions::definitions::Outcome;
use keelway_engine::promotions::registry;
use keelway_engine::sequences::definitions::{NewShipyard, ProjectSettings, Refusal};
use keelway_engine::sequences::remediation::{REMEDIATION, form};
use keelway_wire::http::AppliedDocument;
use keelway_wire::manifest::{self, ClusterManifest, GitHostManifest, ShipyardManifest};
use serde_json::json;

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

/// What others need comes first: projects before shipyards, clusters and hosts before pipelines, sources before configs. The answer is in the order of the text.
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
    let (text, before) = (text(document), in_force(api, document).await?);
    let mut done = match how.dry_run {
        true => AppliedDocument { changed: before.as_ref() != Some(&text), ..named(document) },
        false => put_in_force(api, document, how.by).await?,
    };
    if let Some(before) = before.filter(|_| done.changed) {
        done.changes = diff(&manifest::value_of(&before), &manifest::value_of(&text));
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
            let changed = api.engine().apply_project(settings).await?;
            return Ok(AppliedDocument { changed, ..named(document) });
        }
        Planned::Remediation(_, scope, manifest) => {
            let files = vec![(REMEDIATION.to_owned(), manifest.source.clone().into_bytes())];
            let forms = form(REMEDIATION, &manifest.remediation);
            let changed = api.engine().write_read_resources(scope, files, &forms).await?.changed;
            return Ok(AppliedDocument { changed, ..named(document) });
        }
        Planned::Schedule(manifest) => {
            let changed =
                api.engine().apply_schedule((&manifest.project, &manifest.name), &manifest.spec, &manifest.source).await?;
            return Ok(AppliedDocument { changed, ..named(document) });
        }
        Planned::DeploymentConfig(manifest) => return deployments::store(api, manifest, by).await,
        Planned::ArtifactSource(manifest) => return deployments::store_source(api, manifest).await,
        Planned::Webhook(manifest) => return subscriptions::store(api, manifest).await,
        Planned::Shipyard { .. } => Outcome::Unchanged,
        Planned::Pipeline(of, manifest) => api.promotions().apply(of, &manifest.definition, &manifest.source).await?,
        Planned::Cluster(ClusterManifest { namespace, name, cluster, source }) => {
            api.promotions().register(&registry::cluster(namespace.as_str(), name), cluster, source).await?
        }
        Planned::GitHost(GitHostManifest { name, host, source }) => api.promotions().register(name, host, source).await?,
    };
    let named = named(document);
    fits(outcome != Outcome::TooLarge, &named.kind, &named.name)?;
    Ok(AppliedDocument { changed: outcome == Outcome::Changed, ..named })
}

/// Refuses what does not fit.
pub fn fits(fits: bool, kind: &str, name: &str) -> Answer<()> {
    let too_large =
        || Refused::too_large(format!("the manifest of {kind} {name} does not fit into one item of the table: shorten it"));
    fits.then_some(()).ok_or_else(too_large)
}

/// The text of a document; of a project, of which no text is kept, one that says the same.
fn text(document: &Planned) -> String {
    match document {
        Planned::Project(settings) => text_of(settings),
        Planned::Shipyard { manifest, .. } => manifest.source.clone(),
        Planned::Remediation(.., manifest) => manifest.source.clone(),
        Planned::Schedule(manifest) => manifest.source.clone(),
        Planned::Pipeline(_, manifest) => manifest.source.clone(),
        Planned::Cluster(manifest) => manifest.source.clone(),
        Planned::GitHost(manifest) => manifest.source.clone(),
        Planned::DeploymentConfig(manifest) => manifest.source.clone(),
        Planned::ArtifactSource(manifest) => manifest.source.clone(),
        Planned::Webhook(manifest) => manifest.source.clone(),
    }
}

fn text_of(settings: &ProjectSettings) -> String {
    let span = |span: Option<keelway_domain::time::Span>| span.map(|span| span.to_string().replace(' ', ""));
    manifest::yaml_of(&json!({"spec": {
        "description": settings.description, "startDeadline": span(settings.start_deadline), "taskTimeout": span(settings.task_timeout)
    }}))
}

/// The text that is in force of what a document declares. Others may change it before the document is stored: the difference is
/// for people.
async fn in_force<P: Ports>(api: &Api<P>, document: &Planned) -> Answer<Option<String>> {
    Ok(match document {
        Planned::Project(settings) => match api.engine().get_project(&settings.name).await {
            Ok(project) => Some(text_of(&project.settings)),
            Err(Refusal::Unknown { .. }) => None,
            Err(refusal) => return Err(refusal.into()),
        },
        Planned::Shipyard { .. } => None,
        Planned::Remediation(_, scope, _) => {
            let known = match api.engine().resource(scope, REMEDIATION, None).await {
                Err(Refusal::Unknown { .. }) => None,
                known => known?,
            };
            known.map(|known| String::from_utf8_lossy(&known.content).into_owned())
        }
        Planned::Schedule(of) => api.engine().schedule(&of.project, &of.name).await?.map(|known| known.source),
        Planned::Pipeline(of, _) => api.promotions().definition(of).await?.map(|applied| applied.source),
        Planned::Cluster(manifest) => {
            let key = registry::cluster(manifest.namespace.as_str(), &manifest.name);
            api.promotions().registered::<Cluster>(&key).await?.map(|known| known.source)
        }
        Planned::GitHost(manifest) => api.promotions().registered::<GitHost>(&manifest.name).await?.map(|known| known.source),
        Planned::DeploymentConfig(manifest) => deployments::text_in_force(api, manifest.namespace.as_str(), &manifest.name).await?,
        Planned::ArtifactSource(manifest) => {
            api.deployments().source(manifest.namespace.as_str(), &manifest.name).await?.map(|(_, source)| source)
        }
        Planned::Webhook(manifest) => {
            api.webhooks().subscription(&subscriptions::address(manifest)).await?.map(|applied| applied.source)
        }
    })
}
