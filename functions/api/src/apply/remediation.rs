//! Remediations: they are among the files of a project, a stage or a service.

use crate::Api;
use crate::fence::manifests::refused;
use crate::fence::problem::{Answer, Refused};
use crate::kinds::{Called, Context, Document, How, Known, put};
use keelway_domain::names::ProjectName;
use keelway_engine::refusal::Refusal;
use keelway_engine::resources::{Forms, Scope};
use keelway_engine::sequences::remediation::{REMEDIATION, form};
use keelway_wire::http::AppliedDocument;
use keelway_wire::manifest::{self, RemediationManifest};

/// The parsed form of a `remediation.yaml`.
pub fn remediation(uri: &str, content: &[u8]) -> Answer<Forms> {
    let parsed = manifest::parse(&String::from_utf8_lossy(content), uri);
    if parsed.refused() {
        return Err(refused(parsed.findings));
    }
    match parsed.documents.as_slice() {
        [manifest::Document::Remediation(manifest)] => Ok(form(uri, &manifest.remediation)),
        _ => Err(Refused::field("resourceContent", format!("{uri} is not one document of kind Remediation: send that"))),
    }
}

/// The remediations of a project.
pub struct RemediationOf {
    project: ProjectName,
    /// The files that they are among.
    scope: Scope,
    manifest: RemediationManifest,
}

impl RemediationOf {
    /// As a manifest says.
    pub fn new(project: ProjectName, manifest: RemediationManifest) -> Answer<Self> {
        let scope = match (&manifest.stage, &manifest.service) {
            (Some(stage), Some(service)) => Scope::service(project.clone(), stage.as_str(), service.as_str())?,
            (Some(stage), None) => Scope::stage(project.clone(), stage.as_str())?,
            _ => Scope::project(project.clone()),
        };
        Ok(Self { project, scope, manifest })
    }
}

impl Document for RemediationOf {
    fn called(&self) -> Called<'_> {
        let (name, identity) = (self.project.as_str(), format!("for {}", self.scope.words()));
        Called { kind: "Remediation", name, project: Some(name), identity, order: 1 }
    }

    fn answer(&self) -> AppliedDocument {
        let (name, project) = (self.manifest.metadata_name.clone().unwrap_or_default(), self.project.to_string());
        AppliedDocument { kind: "Remediation".into(), name, project, ..AppliedDocument::default() }
    }

    async fn validate(&self, api: &Api, with: &Context<'_>) -> Answer<()> {
        Ok(api.engine().resources().check_scope_with(&self.scope, with.shipyard(&self.project)).await.map(drop)?)
    }

    async fn store(&self, api: &Api, how: How<'_>) -> Answer<AppliedDocument> {
        let Self { scope, manifest, .. } = self;
        let known = match api.engine().resources().get(scope, REMEDIATION, None).await {
            Err(Refusal::Unknown { .. }) => None,
            known => known?,
        };
        let before = known.map(|known| Known::plain(String::from_utf8_lossy(&known.content).into_owned()));
        let store = async {
            let files = vec![(REMEDIATION.to_owned(), manifest.source.clone().into_bytes())];
            let forms = form(REMEDIATION, &manifest.remediation);
            Ok(api.engine().resources().write_read(scope, files, &forms).await?.changed)
        };
        put((before, Known::plain(manifest.source.clone())), self.answer(), (!how.dry_run).then_some(store)).await
    }
}
