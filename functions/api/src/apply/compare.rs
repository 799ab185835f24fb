//! How a document differs from what is in force.

use super::Planned;
use crate::Api;
use crate::deployments;
use crate::fence::problem::Answer;
use crate::webhooks::subscriptions;
use keelway_domain::address::Address;
use keelway_domain::border::Vouched;
use keelway_domain::diff::{FieldChange, diff};
use keelway_domain::time::Span;
use keelway_engine::border::Border;
use keelway_engine::ports::Ports;
use keelway_engine::projects::ProjectSettings;
use keelway_engine::refusal::Refusal;
use keelway_engine::sequences::remediation::REMEDIATION;
use keelway_wire::manifest;
use serde_json::json;

/// A document as it is in force, or as it will be.
#[derive(Debug, PartialEq)]
pub struct Known {
    /// Its text; of a project, of which no text is kept, one that says the same.
    text: String,
    /// Whether an administrator of the installation vouches for it; never for what names nothing of the installation's.
    vouched: bool,
}

impl Known {
    /// What differs from what was before.
    pub fn unlike(&self, before: &Self) -> Vec<FieldChange> {
        let mut changes = diff(&manifest::value_of(&before.text), &manifest::value_of(&self.text));
        if self.vouched != before.vouched {
            let (was, becomes) = (Some(json!(before.vouched)), Some(json!(self.vouched)));
            changes.push(FieldChange { field: "vouched".into(), was, becomes });
        }
        changes
    }
}

fn plain(text: String) -> Known {
    Known { text, vouched: false }
}

/// With the vouch that the new one will have.
fn vouched<T: Vouched>(old: Option<(T, String)>, new: &T, text: &str) -> (Option<Known>, Known) {
    let after = Known { text: text.to_owned(), vouched: new.in_place_of(old.as_ref().map(|(old, _)| old)).vouched() };
    (old.map(|(old, text)| Known { text, vouched: old.vouched() }), after)
}

/// What is in force of what a document declares, if anything is, and what will be. Others may change it before the document is
/// stored: the difference is for people.
pub async fn compared<P: Ports>(api: &Api<P>, document: &Planned) -> Answer<(Option<Known>, Known)> {
    let unvouched = |before: Option<String>, after: &str| (before.map(plain), plain(after.to_owned()));
    Ok(match document {
        Planned::Project(settings) => project(api, settings).await?,
        Planned::Shipyard { manifest, .. } => unvouched(None, &manifest.source),
        Planned::Remediation(_, scope, manifest) => {
            let known = match api.engine().resources().get(scope, REMEDIATION, None).await {
                Err(Refusal::Unknown { .. }) => None,
                known => known?,
            };
            unvouched(known.map(|known| String::from_utf8_lossy(&known.content).into_owned()), &manifest.source)
        }
        Planned::Schedule(of) => {
            unvouched(api.engine().schedules().get(&of.project, &of.name).await?.map(|known| known.source), &of.source)
        }
        Planned::Pipeline(of, manifest) => {
            let known = api.promotions().definition(of).await?;
            vouched(known.map(|known| (known.spec, known.source)), &manifest.definition, &manifest.source)
        }
        Planned::Cluster(manifest) => {
            let of = Address::new(manifest.namespace.as_str(), &manifest.name);
            let known = api.promotions().clusters().get(&of).await?;
            vouched(known.map(|known| (known.spec, known.source)), &manifest.cluster, &manifest.source)
        }
        Planned::GitHost(manifest) => {
            let known = api.promotions().git_hosts().get(&Address::new("", &manifest.name)).await?;
            unvouched(known.map(|known| known.source), &manifest.source)
        }
        Planned::DeploymentConfig(manifest) => {
            let known = deployments::in_force(api, manifest.namespace.as_str(), &manifest.name).await?;
            match &manifest.definition {
                Some(definition) => vouched(known, definition, &manifest.source),
                None => unvouched(known.map(|(_, text)| text), &manifest.source),
            }
        }
        Planned::ArtifactSource(manifest) => {
            let known = api.deployments().sources().get(&Address::new(manifest.namespace.as_str(), &manifest.name)).await?;
            vouched(known.map(|known| (known.spec, known.source)), &manifest.artifacts, &manifest.source)
        }
        Planned::Webhook(manifest) => {
            let known = api.webhooks().subscription(&subscriptions::address(manifest)).await?;
            unvouched(known.map(|known| known.source), &manifest.source)
        }
    })
}

async fn project<P: Ports>(api: &Api<P>, settings: &ProjectSettings) -> Answer<(Option<Known>, Known)> {
    let known = match api.engine().projects().get(&settings.name).await {
        Ok(project) => Some(project),
        Err(Refusal::Unknown { .. }) => None,
        Err(refusal) => return Err(refusal.into()),
    };
    let border = known.as_ref().map(|known| known.border.clone()).unwrap_or_default();
    let after = border.with(settings.consents.clone(), settings.policy.clone());
    Ok((known.map(|known| plain(text_of(&known.settings, &known.border))), plain(text_of(settings, &after))))
}

fn text_of(settings: &ProjectSettings, border: &Border) -> String {
    let span = |span: Option<Span>| span.map(|span| span.to_string().replace(' ', ""));
    let consents = Some(border.consents()).filter(|consents| !consents.0.is_empty());
    manifest::yaml_of(&json!({"spec": {
        "description": settings.description, "startDeadline": span(settings.start_deadline), "taskTimeout": span(settings.task_timeout),
        "consents": consents, "policy": border.policy()
    }}))
}
