//! `POST /v1/apply`: manifests, all or nothing.

use crate::Api;
use crate::input::{Params, Text, given};
use crate::problem::{Answer, Refused};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use keelway_domain::names::ProjectName;
use keelway_engine::ports::Ports;
use keelway_engine::sequences::Sequences;
use keelway_engine::sequences::definitions::{NewShipyard, ProjectSettings, Refusal, blob_id};
use keelway_wire::http::{Applied, AppliedDocument};
use keelway_wire::manifest::{self, Document, ProjectManifest, ShipyardManifest};
use serde::Deserialize;

/// The name of the text in findings.
const FILE: &str = "-";
/// Documents in one request.
const MAX_DOCUMENTS: usize = 50;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Wanted {
    project: Option<String>,
}

/// A document and what it becomes.
enum Planned {
    Project(ProjectSettings),
    Shipyard { project: ProjectName, revision: String, manifest: ShipyardManifest },
}

/// `POST /v1/apply`
pub async fn apply<P: Ports + 'static>(
    State(api): State<Api<P>>,
    Params(wanted): Params<Wanted>,
    headers: HeaderMap,
    Text(text): Text,
) -> Answer<axum::Json<Applied>> {
    let replaces = if_match(&headers)?;
    let parsed = manifest::parse(&text, FILE);
    if parsed.refused() {
        let mut refused =
            Refused::new(StatusCode::BAD_REQUEST, "manifest refused", "nothing was stored: mend what the findings name");
        refused.0.findings = parsed.findings;
        return Err(refused);
    }
    if parsed.documents.len() > MAX_DOCUMENTS {
        let n = parsed.documents.len();
        return Err(Refused::too_large(format!("the body has {n} documents: at most {MAX_DOCUMENTS} are applied at once")));
    }
    let shipyards = parsed.documents.iter().filter(|document| matches!(document, Document::Shipyard(_))).count();
    if replaces.is_some() && shipyards != 1 {
        let message = format!("names the revision that one shipyard replaces, but the body has {shipyards}: send one");
        return Err(Refused::field("If-Match", message));
    }
    let planned = plan(api.engine(), given(wanted.project.as_ref()), parsed.documents).await?;
    check(api.engine(), &planned, replaces.as_deref()).await?;
    let applied = store(api.engine(), &planned, replaces.as_deref()).await?;
    Ok(axum::Json(Applied { applied, warnings: parsed.findings }))
}

/// The revision that must be in force, as the shipyard's `ETag` or bare.
fn if_match(headers: &HeaderMap) -> Answer<Option<String>> {
    let mut given = headers.get_all(header::IF_MATCH).iter();
    let (Some(value), rest) = (given.next(), given.next()) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    let revision = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    match rest.is_none() && revision.len() == 40 && revision.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f')) {
        true => Ok(Some(revision.to_owned())),
        false => Err(Refused::field(
            "If-Match",
            "is no revision: send the ETag of GET /v1/project/{project}/shipyard, which is 40 hexadecimal digits in quotes",
        )),
    }
}

/// Which project each document is for.
async fn plan<P: Ports>(engine: &Sequences<P>, named: Option<&str>, documents: Vec<Document>) -> Answer<Vec<Planned>> {
    let declared: Vec<ProjectName> = documents
        .iter()
        .filter_map(|document| match document {
            Document::Project(project) => Some(project.name.clone()),
            _ => None,
        })
        .collect();
    let mut planned = vec![];
    for document in documents {
        planned.push(match document {
            Document::Project(project) => Planned::Project(settings(project)),
            Document::Shipyard(manifest) => {
                let project = project_of(engine, named, &declared, &manifest).await?;
                Planned::Shipyard { project, revision: blob_id(&manifest.source), manifest }
            }
            other => return Err(Refused::field("kind", format!("{} is not applied by this API", other.named()))),
        });
    }
    Ok(planned)
}

fn settings(project: ProjectManifest) -> ProjectSettings {
    ProjectSettings {
        name: project.name,
        description: project.description,
        start_deadline: project.start_deadline,
        task_timeout: project.task_timeout,
    }
}

/// The query's project, else the annotation's, else the one that `metadata.name` names, with or without `shipyard-`, if it exists.
async fn project_of<P: Ports>(
    engine: &Sequences<P>,
    named: Option<&str>,
    declared: &[ProjectName],
    manifest: &ShipyardManifest,
) -> Answer<ProjectName> {
    let find = async |name: &str| match declared.iter().find(|declared| declared.as_str() == name) {
        Some(declared) => Ok(declared.clone()),
        None => engine.find_project(name).await.map(|project| project.settings.name),
    };
    if let Some(name) = named.or(manifest.project_annotation.as_deref()) {
        return Ok(find(name).await?);
    }
    let Some(metadata) = manifest.metadata_name.as_deref() else {
        return Err(Refused::field(
            "metadata.name",
            "is missing, and so nothing says which project the shipyard is for: send ?project=<name>, or annotate it with keelway.dev/project",
        ));
    };
    match find(metadata.strip_prefix("shipyard-").unwrap_or(metadata)).await {
        Ok(project) => Ok(project),
        Err(Refusal::Unknown { hint, .. }) => {
            let detail = format!(
                "nothing says which project shipyard {metadata:?} is for: send ?project=<name>, annotate it with keelway.dev/project, or apply a \
                 Project first; of projects, {hint}"
            );
            Err(Refused::new(StatusCode::NOT_FOUND, "unknown project", detail))
        }
        Err(refusal) => Err(refusal.into()),
    }
}

/// Everything that would be refused, before anything is written.
async fn check<P: Ports>(engine: &Sequences<P>, planned: &[Planned], replaces: Option<&str>) -> Answer<()> {
    let mut seen: Vec<(&str, &str)> = vec![];
    for document in planned {
        let one = match document {
            Planned::Project(settings) => ("Project", settings.name.as_str()),
            Planned::Shipyard { project, .. } => ("Shipyard", project.as_str()),
        };
        if seen.contains(&one) {
            return Err(Refused::field(
                "body",
                format!("has two documents of kind {} for project {}: leave one out", one.0, one.1),
            ));
        }
        seen.push(one);
    }
    for document in planned {
        match document {
            Planned::Project(settings) => Sequences::<P>::check_project(settings)?,
            Planned::Shipyard { project, revision, manifest } => {
                let declared = seen.contains(&("Project", project.as_str()));
                let ShipyardManifest { source, shipyard, .. } = manifest;
                let new = NewShipyard { revision, source, shipyard, replaces };
                engine.check_shipyard((project, declared), new).await?;
            }
        }
    }
    Ok(())
}

/// Projects first, since shipyards need them; the answer is in the order of the text.
async fn store<P: Ports>(engine: &Sequences<P>, planned: &[Planned], replaces: Option<&str>) -> Answer<Vec<AppliedDocument>> {
    let mut applied: Vec<(usize, AppliedDocument)> = vec![];
    for (i, document) in planned.iter().enumerate() {
        if let Planned::Project(settings) = document {
            let changed = engine.apply_project(settings).await?;
            let name = settings.name.to_string();
            applied
                .push((i, AppliedDocument { kind: "Project".into(), name: name.clone(), project: name, revision: None, changed }));
        }
    }
    for (i, document) in planned.iter().enumerate() {
        if let Planned::Shipyard { project, revision, manifest } = document {
            let ShipyardManifest { source, shipyard, .. } = manifest;
            let changed = engine.apply_shipyard(project, NewShipyard { revision, source, shipyard, replaces }).await?;
            let name = manifest.metadata_name.clone().unwrap_or_else(|| project.to_string());
            let revision = Some(revision.clone());
            applied.push((i, AppliedDocument { kind: "Shipyard".into(), name, project: project.to_string(), revision, changed }));
        }
    }
    applied.sort_by_key(|(i, _)| *i);
    Ok(applied.into_iter().map(|(_, applied)| applied).collect())
}
