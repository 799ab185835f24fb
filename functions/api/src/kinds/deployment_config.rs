//! Deployment configs: the tags that the hooks of one move and its triggers watch, and what Keelway uses to carry it out.

use super::border::{Elsewhere, Outside};
use super::kept::{Kept, Page};
use super::{Context, Kind, Said};
use crate::Api;
use crate::fence::problem::{Answer, Refused};
use crate::ports::AnyPorts;
use keelway_domain::access::Need;
use keelway_domain::address::Address;
use keelway_domain::border::{Act, Counted, Home};
use keelway_domain::deployments::definition::{Action, Definition, Hook, ImageTag, Tagged};
use keelway_domain::deployments::{Applied, template};
use keelway_domain::names::ProjectName;
use keelway_engine::deployments::Deployments;
use keelway_engine::deployments::configs::Wanted;
use keelway_engine::protocol::declare::{Declared, Outcome};
use keelway_wire::http::deployments::FieldError;
use keelway_wire::manifest::{DeploymentConfigManifest, render, yaml_of};
use serde_json::Value;

impl Kind for DeploymentConfigManifest {
    const KIND: &'static str = "DeploymentConfig";
    const NOUN: &'static str = "deployment config";
    const ORDER: usize = 1;
    const COUNTED: Option<Counted> = Some(Counted::DeploymentConfigs);
    type Spec = Definition;

    fn said(&self) -> Said<'_, Definition> {
        let Self { namespace, name, definition, source, .. } = self;
        Said { namespace: namespace.as_str(), name, spec: definition.as_ref(), source }
    }

    fn spec(&mut self) -> Option<&mut Definition> {
        self.definition.as_mut()
    }

    fn kept(api: &Api) -> impl Kept<Spec = Definition> {
        Configs(api.deployments())
    }

    async fn validate(&self, _: &Api, _: &Context<'_>) -> Answer<()> {
        definition(self).map(drop)
    }

    fn compared(at: &Address, old: &Declared<Definition>, new: &Definition) -> Option<[Value; 2]> {
        if old.source != rewritten(at, &old.spec) {
            return None;
        }
        // A rollback wrote down the images that triggers had set; a manifest leaves them to the triggers.
        let stated = template::images(&new.template);
        let left = |name: &&String| stated.get(*name).is_none_or(String::is_empty);
        let left: template::Images = new
            .image_changes()
            .flat_map(|change| &change.containers)
            .filter(left)
            .map(|name| (name.clone(), String::new()))
            .collect();
        let shown = |definition: &Definition| {
            let template = template::with_images(&definition.template, &left);
            render(&at.namespace, &at.name, &Definition { template, ..definition.clone() })
        };
        Some([shown(&old.spec), shown(new)])
    }

    fn outside<'a>(namespace: &'a str, definition: &Definition, _: &Home) -> Outside<'a> {
        let elsewhere = |field: String, need: Need<'static>, act: Act, tag: &ImageTag| {
            let of = (tag.namespace.clone(), tag.name.clone());
            Elsewhere { field, need, act, of, sequence: None }
        };
        let hooks = &definition.strategy.hooks;
        let mut others = vec![];
        for (which, hook) in [("pre", &hooks.pre), ("mid", &hooks.mid), ("post", &hooks.post)] {
            if let Some(Hook { action: Action::TagImages(tags), .. }) = hook {
                let tag = |tagged: &Tagged| elsewhere(format!("tagImages of hook {which}"), Need::Trigger, Act::Tag, &tagged.to);
                others.extend(tags.iter().map(tag));
            }
        }
        let watched = definition.watched().into_iter();
        others.extend(watched.map(|tag| elsewhere(format!("from {tag} of a trigger"), Need::Read, Act::Observe, tag)));
        let starter = definition.deployer.as_ref().and_then(|starter| starter.check().err());
        let mut refused: Vec<_> = starter.map(|why| ("spec.deployer".to_owned(), why)).into_iter().collect();
        let mut resources = vec![];
        for (field, resource) in definition.resources() {
            match resource {
                Ok(resource) => resources.push((field, resource)),
                Err(why) => refused.push((field, why.to_string())),
            }
        }
        Outside { namespace, others, resources, refused, vouched: definition.vouched }
    }
}

/// What a manifest says that is no request to roll back.
pub fn definition(manifest: &DeploymentConfigManifest) -> Answer<&Definition> {
    let message = "is a request, and no part of a config: send it to PUT /v1/deploymentConfigs/{id}, or use `keelway rollback`";
    let definition = manifest.definition.as_ref().filter(|_| manifest.rollback.is_none());
    let error = || FieldError { field: "rollback".into(), code: "Invalid".into(), message: message.into() };
    definition.ok_or_else(|| Refused::invalid(vec![error()]))
}

/// What configs say, without who applied it.
struct Configs<'a>(&'a Deployments<AnyPorts>);

fn plain((at, one): (Address, Declared<Applied>)) -> (Address, Declared<Definition>) {
    let Declared { spec: Applied { definition, .. }, source, at: when, version } = one;
    let source = if source.is_empty() { rewritten(&at, &definition) } else { source };
    (at, Declared { spec: definition, source, at: when, version })
}

/// The text of a config that a rollback changed.
fn rewritten(at: &Address, definition: &Definition) -> String {
    let object = render(&at.namespace, &at.name, definition);
    let said = "# A rollback changed this config: this is what is in force now, and not the manifest that was applied.";
    format!("{said}\n{}", yaml_of(&object))
}

impl Kept for Configs<'_> {
    type Spec = Definition;

    async fn get(&self, at: &Address) -> Answer<Option<Declared<Definition>>> {
        Ok(self.0.configs().get(at).await?.map(|one| plain((at.clone(), one)).1))
    }

    async fn page(&self, namespace: &str, after: Option<&str>, limit: u32) -> Answer<Page<Definition>> {
        let (found, next) = self.0.configs().page(namespace, after, limit).await?;
        Ok((found.into_iter().map(plain).collect(), next))
    }

    async fn names(&self, namespace: &str, after: Option<&str>, limit: u32) -> Answer<(Vec<String>, Option<String>)> {
        Ok(self.0.configs().names(namespace, after, limit).await?)
    }

    async fn everywhere(&self, among: Option<&[ProjectName]>, after: Option<&str>, limit: u32) -> Answer<Page<Definition>> {
        let (found, next) = self.0.configs().everywhere(among, after, limit).await?;
        Ok((found.into_iter().map(plain).collect(), next))
    }

    fn fits(&self, at: &Address, spec: &Definition, source: &str) -> bool {
        let applied = Applied { definition: spec.clone(), version: i64::MAX, by: String::new(), request: None, asked: 0 };
        self.0.configs().fits(at, &applied, source)
    }

    async fn put(&self, at: &Address, spec: &Definition, source: &str, by: &str) -> Answer<Outcome> {
        Ok(self.0.apply(at, &Wanted { definition: spec, source, by, request: None, over: None }).await?)
    }

    async fn delete(&self, at: &Address) -> Answer<bool> {
        Ok(self.0.delete(at).await?)
    }
}
