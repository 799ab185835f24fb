//! Shipyards: a project has one, and keeps the revisions that were in force before it.

use crate::Api;
use crate::fence::problem::{Answer, Refused};
use crate::kinds::border::{Elsewhere, Outside};
use crate::kinds::{Called, Context, Document, How};
use axum::http::{HeaderMap, header};
use keelway_domain::access::Need;
use keelway_domain::border::Act;
use keelway_domain::diff::{FieldChange, diff};
use keelway_domain::names::ProjectName;
use keelway_domain::shipyard::{CARRIED_OUT, DEPLOYMENT_CONFIG, Shipyard};
use keelway_engine::projects::{NewShipyard, blob_id};
use keelway_wire::http::AppliedDocument;
use keelway_wire::manifest::{self, ShipyardManifest};
use serde_json::Value;

/// The digits of a revision.
pub const DIGITS: usize = 40;

/// Whether a text is a revision: 40 hexadecimal digits in lower case.
pub fn is_revision(text: &str) -> bool {
    text.len() == DIGITS && text.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'))
}

/// The revision that must be in force, as the shipyard's `ETag` or bare.
pub fn if_match(headers: &HeaderMap) -> Answer<Option<String>> {
    let mut given = headers.get_all(header::IF_MATCH).iter();
    let (Some(value), rest) = (given.next(), given.next()) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    let revision = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    match rest.is_none() && is_revision(revision) {
        true => Ok(Some(revision.to_owned())),
        false => Err(Refused::field(
            "If-Match",
            "is no revision: send the ETag of GET /v1/project/{project}/shipyard, which is 40 hexadecimal digits in quotes",
        )),
    }
}

/// The shipyard of a project.
pub struct ShipyardOf {
    pub project: ProjectName,
    pub revision: String,
    pub manifest: ShipyardManifest,
}

impl ShipyardOf {
    /// As a manifest says.
    pub fn new(project: ProjectName, manifest: ShipyardManifest) -> Self {
        Self { project, revision: blob_id(&manifest.source), manifest }
    }

    fn new_one<'a>(&'a self, replaces: Option<&'a str>, by: &'a str) -> NewShipyard<'a> {
        let ShipyardManifest { source, shipyard, .. } = &self.manifest;
        NewShipyard { revision: &self.revision, source, shipyard, replaces, by }
    }

    /// Puts it in force, or says what that would change.
    pub(crate) async fn put_in_force(&self, api: &Api, how: How<'_>) -> Answer<AppliedDocument> {
        let new = self.new_one(how.replaces, how.by);
        let replaced = match how.dry_run {
            true => api.engine().check_shipyard((&self.project, true), new).await?,
            false => api.engine().apply_shipyard(&self.project, new).await?,
        };
        let before = replaced.before.filter(|_| replaced.changed);
        let old = match &before {
            Some(before) => api.engine().projects().revision(&self.project, before).await?,
            None => None,
        };
        let (changed, changes) = (replaced.changed, old.map(|old| changes(&old.source, new.source)).unwrap_or_default());
        Ok(AppliedDocument { changed, replaces: before, changes, ..self.answer() })
    }
}

impl Document for ShipyardOf {
    fn called(&self) -> Called<'_> {
        let (name, identity) = (self.project.as_str(), format!("for project {}", self.project));
        Called { kind: "Shipyard", name, project: Some(name), identity, order: 1 }
    }

    fn answer(&self) -> AppliedDocument {
        AppliedDocument {
            kind: "Shipyard".into(),
            name: self.manifest.metadata_name.clone().unwrap_or_else(|| self.project.to_string()),
            project: self.project.to_string(),
            revision: Some(self.revision.clone()),
            ..AppliedDocument::default()
        }
    }

    fn join<'a>(&'a self, context: &mut Context<'a>) {
        context.shipyards.push((&self.project, &self.manifest.shipyard));
    }

    async fn outside(&self, _: &Api) -> Answer<Outside<'_>> {
        Ok(outside(self.project.as_str(), &self.manifest.shipyard))
    }

    async fn validate(&self, api: &Api, with: &Context<'_>) -> Answer<()> {
        let declared = with.projects.iter().any(|settings| settings.name == self.project);
        api.engine().check_shipyard((&self.project, declared), self.new_one(with.replaces, "")).await?;
        Ok(())
    }

    async fn store(&self, api: &Api, how: How<'_>) -> Answer<AppliedDocument> {
        self.put_in_force(api, how).await
    }
}

/// The configs of other namespaces that carry its tasks out.
pub fn outside<'a>(project: &'a str, shipyard: &Shipyard) -> Outside<'a> {
    let mut others = vec![];
    for stage in &shipyard.stages {
        for sequence in &stage.sequences {
            for task in sequence.tasks.iter().filter(|task| CARRIED_OUT.contains(&task.name.as_str())) {
                let named = task.properties.get(DEPLOYMENT_CONFIG).and_then(Value::as_str).and_then(|named| named.split_once(':'));
                let Some((namespace, name)) = named else { continue };
                let field = format!("{DEPLOYMENT_CONFIG} of task {} in {}.{}", task.name, stage.name, sequence.name);
                let of = (namespace.to_owned(), name.to_owned());
                others.push(Elsewhere { field, need: Need::Trigger, act: Act::Deploy, of, sequence: None });
            }
        }
    }
    Outside { namespace: project, others, ..Outside::default() }
}

/// What differs between two documents of a shipyard, field by field.
pub fn changes(old: &str, new: &str) -> Vec<FieldChange> {
    diff(&manifest::value_of(old), &manifest::value_of(new))
}
