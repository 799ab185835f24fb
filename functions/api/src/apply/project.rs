//! Projects.

use crate::Api;
use crate::fence::problem::Answer;
use crate::kinds::{Called, Context, Document, How, Known, put};
use keelway_domain::border::Update;
use keelway_domain::time::Span;
use keelway_engine::border::Border;
use keelway_engine::projects::ProjectSettings;
use keelway_engine::refusal::Refusal;
use keelway_wire::http::AppliedDocument;
use keelway_wire::manifest::{self, ProjectManifest};
use serde_json::json;

/// What a manifest says about a project.
pub fn settings(project: ProjectManifest) -> ProjectSettings {
    ProjectSettings {
        name: project.name,
        description: project.description,
        start_deadline: project.start_deadline,
        task_timeout: project.task_timeout,
        // A manifest lists all of them; those that it leaves out are withdrawn.
        consents: Update::Set(project.consents),
        policy: project.policy,
    }
}

impl Document for ProjectSettings {
    fn called(&self) -> Called<'_> {
        let (name, identity) = (self.name.as_str(), format!("for project {}", self.name));
        Called { kind: "Project", name, project: Some(name), identity, order: 0 }
    }

    fn join<'a>(&'a self, context: &mut Context<'a>) {
        context.projects.push(self);
    }

    async fn validate(&self, _: &Api, _: &Context<'_>) -> Answer<()> {
        Ok(self.check()?)
    }

    async fn store(&self, api: &Api, how: How<'_>) -> Answer<AppliedDocument> {
        let known = match api.engine().projects().get(&self.name).await {
            Ok(project) => Some(project),
            Err(Refusal::Unknown { .. }) => None,
            Err(refusal) => return Err(refusal.into()),
        };
        let border = known.as_ref().map(|known| known.border.clone()).unwrap_or_default();
        let after = border.with(self.consents.clone(), self.policy.clone());
        let before = known.map(|known| Known::plain(text(&known.settings, &known.border)));
        let store = async { Ok(api.engine().projects().apply(self).await?) };
        put((before, Known::plain(text(self, &after))), self.answer(), (!how.dry_run).then_some(store)).await
    }
}

/// A text that says the same as the manifest: none is kept.
fn text(settings: &ProjectSettings, border: &Border) -> String {
    let span = |span: Option<Span>| span.map(|span| span.to_string().replace(' ', ""));
    let consents = Some(border.consents()).filter(|consents| !consents.0.is_empty());
    manifest::yaml_of(&json!({"spec": {
        "description": settings.description, "startDeadline": span(settings.start_deadline), "taskTimeout": span(settings.task_timeout),
        "consents": consents, "policy": border.policy()
    }}))
}
