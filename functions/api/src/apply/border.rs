//! What documents name outside of their namespace, and whether they may: what is another project's own, and what belongs to the installation.
//! [`outside`] has an arm for every kind of document.

use super::Planned;
use crate::caller::Caller;
use crate::problem::{Answer, Refused};
use crate::{Api, deployments};
use axum::http::StatusCode;
use keelway_domain::access::Need;
use keelway_domain::border::{Act, Home, Resource, ResourceKind, Vouched};
use keelway_domain::deployments::definition::{Action, Definition, Hook, ImageTag, Tagged};
use keelway_domain::promotions::definition::{Definition as Pipeline, Strategy};
use keelway_domain::promotions::registry::Cluster;
use keelway_domain::shipyard::{CARRIED_OUT, DEPLOYMENT_CONFIG, Shipyard};
use keelway_engine::border::Border;
use keelway_engine::ports::Ports;
use keelway_engine::promotions::{self as pipelines, registry};
use keelway_engine::protocol::Engine;
use keelway_githosts::Repository;
use keelway_wire::manifest::ArtifactSourceManifest;
use serde_json::Value;
use std::collections::BTreeMap;

/// What a document names outside of its namespace.
#[derive(Debug, Default)]
pub struct Outside<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// What is other projects' own.
    pub others: Vec<Elsewhere>,
    /// What belongs to the installation, and the field that names it.
    pub resources: Vec<(String, Resource)>,
    /// Whether an administrator of the installation applies it.
    pub vouched: bool,
}

/// Something in another namespace.
#[derive(Debug)]
pub struct Elsewhere {
    /// The field that names it.
    pub field: String,
    /// What whoever applies the document needs there.
    pub need: Need<'static>,
    /// What the namespace has to consent to.
    pub act: Act,
    /// Which namespace, and what in it.
    pub of: (String, String),
}

/// What a document names outside of its namespace.
async fn outside<'a, P: Ports>(api: &Api<P>, document: &'a Planned) -> Answer<Outside<'a>> {
    Ok(match document {
        Planned::Shipyard { project, manifest, .. } => shipyard(project.as_str(), &manifest.shipyard),
        Planned::DeploymentConfig(manifest) => match &manifest.definition {
            Some(definition) => config(api, (manifest.namespace.as_str(), &manifest.name), definition).await?,
            None => Outside::default(),
        },
        Planned::Pipeline(of, manifest) => pipeline(api, of, &manifest.definition).await?,
        Planned::Cluster(manifest) => {
            let namespace = manifest.namespace.as_str();
            let old = api.promotions().registered::<Cluster>(&registry::cluster(namespace, &manifest.name)).await?;
            let vouched = manifest.cluster.in_place_of(old.as_ref().map(|old| &old.value)).vouched;
            let server = Resource::named(ResourceKind::Servers, manifest.cluster.server.as_str());
            Outside { namespace, resources: vec![("spec.server".to_owned(), server)], vouched, ..Outside::default() }
        }
        Planned::ArtifactSource(manifest) => source(api, manifest).await?,
        // They name nothing outside of their namespace, or they are for administrators only.
        Planned::Project(_) | Planned::Remediation(..) | Planned::Schedule(_) | Planned::GitHost(_) | Planned::Webhook(_) => {
            Outside::default()
        }
    })
}

/// Of a source: the repository of ECR that it follows. What a webhook tells is compared with each push.
async fn source<'a, P: Ports>(api: &Api<P>, manifest: &'a ArtifactSourceManifest) -> Answer<Outside<'a>> {
    let (namespace, new) = (manifest.namespace.as_str(), &manifest.artifacts);
    let Some(repository) = new.repository() else { return Ok(Outside::default()) };
    let images = Resource::image(&repository.images(&api.deployments().home()));
    let old = api.deployments().source(namespace, &manifest.name).await?;
    let vouched = new.in_place_of(old.as_ref().map(|(old, _)| old)).vouched;
    Ok(Outside { namespace, resources: vec![("spec.ecr.repository".to_owned(), images)], vouched, ..Outside::default() })
}

/// The configs of other namespaces that carry tasks out.
pub fn shipyard<'a>(project: &'a str, shipyard: &Shipyard) -> Outside<'a> {
    let mut others = vec![];
    for stage in &shipyard.stages {
        for sequence in &stage.sequences {
            for task in sequence.tasks.iter().filter(|task| CARRIED_OUT.contains(&task.name.as_str())) {
                let named = task.properties.get(DEPLOYMENT_CONFIG).and_then(Value::as_str).and_then(|named| named.split_once(':'));
                let Some((namespace, name)) = named else { continue };
                let field = format!("{DEPLOYMENT_CONFIG} of task {} in {}.{}", task.name, stage.name, sequence.name);
                let of = (namespace.to_owned(), name.to_owned());
                others.push(Elsewhere { field, need: Need::Trigger, act: Act::Deploy, of });
            }
        }
    }
    Outside { namespace: project, others, ..Outside::default() }
}

/// Of a config: the tags that its hooks move and its triggers watch, and what Keelway uses to carry it out.
pub async fn config<'a, P: Ports>(
    api: &Api<P>,
    (namespace, name): (&'a str, &str),
    definition: &Definition,
) -> Answer<Outside<'a>> {
    let elsewhere = |field: String, need: Need<'static>, act: Act, tag: &ImageTag| {
        let of = (tag.namespace.clone(), tag.name.clone());
        Elsewhere { field, need, act, of }
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
    if let Some(starter) = &definition.deployer {
        starter.check().map_err(|why| Refused::field("spec.deployer", why))?;
    }
    let mut resources = vec![];
    for (field, resource) in definition.resources() {
        resources.push((field.clone(), resource.map_err(|why| Refused::field(&field, why))?));
    }
    // Whoever applies the same again does not take a vouch away.
    let vouched = definition.vouched
        || !resources.is_empty() && {
            let old = deployments::in_force(api, namespace, name).await?;
            definition.in_place_of(old.as_ref().map(|(old, _)| old)).vouched
        };
    Ok(Outside { namespace, others, resources, vouched })
}

/// Of a pipeline: the configs and clusters that it observes, the sequences that it triggers, and the repositories in which it opens pull
/// requests with the credentials of the installation.
async fn pipeline<'a, P: Ports>(api: &Api<P>, of: &'a pipelines::Address, definition: &Pipeline) -> Answer<Outside<'a>> {
    let (mut others, mut resources) = (vec![], vec![]);
    for (n, environment) in definition.environments.iter().enumerate() {
        for (m, target) in environment.targets.iter().enumerate() {
            let Some((namespace, name)) = target.beyond(&definition.app, &of.namespace) else { continue };
            let member = if target.cluster.is_some() { "clusterRef.namespace" } else { "namespace" };
            let field = format!("spec.environments[{n}].targets[{m}].{member}");
            others.push(Elsewhere { field, need: Need::Read, act: Act::Observe, of: (namespace.to_owned(), name.to_owned()) });
        }
        let own = if environment.promotion.is_some() { format!("environments[{n}].") } else { String::new() };
        let strategy = format!("spec.{own}promotion.strategy");
        // Nothing is promoted into the first environment.
        match definition.promotion(environment).filter(|_| n > 0).map(|promotion| &promotion.strategy) {
            Some(Strategy::Sequence(sequence)) => {
                let (project, stage) = sequence.place(&of.namespace, &environment.name);
                let of = (project.to_owned(), stage.to_owned());
                others.push(Elsewhere {
                    field: format!("{strategy}.sequence.project"),
                    need: Need::Trigger,
                    act: Act::Trigger,
                    of,
                });
            }
            // What is no repository's URL is told by the attempt, which sends nothing.
            Some(Strategy::PullRequest(request)) if request.secret.is_empty() => {
                let repository = request.host.parse().ok().and_then(|form| Repository::parse(form, &request.url).ok());
                resources.extend(repository.map(|repository| (format!("{strategy}.pullRequest.url"), repository.resource())));
            }
            _ => {}
        }
    }
    let vouched = definition.vouched
        || !resources.is_empty() && {
            let old = api.promotions().definition(of).await?;
            definition.in_place_of(old.as_ref().map(|old| &old.definition)).vouched
        };
    Ok(Outside { namespace: &of.namespace, others, resources, vouched })
}

/// Refuses documents that name what they may not: where the caller lacks a right, where a project has not consented, and what a project may
/// not use of the installation. It is asked again before each act.
pub(super) async fn check<P: Ports>(api: &Api<P>, caller: &Caller, planned: &[Planned]) -> Answer<()> {
    let mut borders = Borders { api, planned, known: BTreeMap::new() };
    for document in planned {
        let (kind, name, _) = document.named();
        borders.check(caller, &outside(api, document).await?).await.map_err(|mut refused| {
            refused.problem.detail = format!("{kind} {name}: {}", refused.problem.detail);
            refused
        })?;
    }
    Ok(())
}

/// The same for one document that is not applied with others.
pub async fn check_one<P: Ports>(api: &Api<P>, caller: &Caller, outside: &Outside<'_>) -> Answer<()> {
    Borders { api, planned: &[], known: BTreeMap::new() }.check(caller, outside).await
}

/// The border of a namespace as it is when the documents are in force.
pub(super) async fn planned<P: Ports>(api: &Api<P>, planned: &[Planned], namespace: &str) -> Answer<Border> {
    let mut border = Border::of(api.deployments().ports(), namespace).await?;
    for document in planned {
        if let Planned::Project(settings) = document
            && settings.name.as_str() == namespace
        {
            border = border.with(settings.consents.clone(), settings.policy.clone());
        }
    }
    Ok(border)
}

/// The borders of the namespaces concerned, each read once, and as they are when the documents are in force.
struct Borders<'a, P> {
    api: &'a Api<P>,
    planned: &'a [Planned],
    known: BTreeMap<String, Border>,
}

impl<P: Ports> Borders<'_, P> {
    async fn of(&mut self, namespace: &str) -> Answer<&Border> {
        if !self.known.contains_key(namespace) {
            self.known.insert(namespace.to_owned(), planned(self.api, self.planned, namespace).await?);
        }
        self.known.get(namespace).ok_or_else(Refused::internal)
    }

    async fn check(&mut self, caller: &Caller, outside: &Outside<'_>) -> Answer<()> {
        let at =
            |field: &str, why: &dyn std::fmt::Display| Refused::new(StatusCode::FORBIDDEN, "forbidden", format!("{field}: {why}"));
        let elsewhere = |other: &&Elsewhere| other.of.0 != outside.namespace;
        for Elsewhere { field, need, act, of: (namespace, name) } in outside.others.iter().filter(elsewhere) {
            // Whoever may do nothing there does not learn what it consents to.
            caller.check(*need, Some(namespace)).map_err(|refused| {
                let own = format!("or name what is in {}", outside.namespace);
                at(field, &format!("{}, {own}", refused.problem.detail))
            })?;
            let let_in = self.of(namespace).await?.let_in(outside.namespace, *act, name);
            let_in.map_err(|why| at(field, &format!("{why}, or name what is in {}", outside.namespace)))?;
        }
        let home: Home = self.api.deployments().home();
        for (field, resource) in &outside.resources {
            let border = self.of(outside.namespace).await?;
            border.permit(resource.clone(), outside.vouched, &home).map_err(|why| at(field, &why))?;
        }
        Ok(())
    }
}
