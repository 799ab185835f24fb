//! What documents name outside of their namespace, and whether they may: what is another project's own, and what belongs to the
//! installation. [`outside`] has an arm for every kind of document.

use super::Planned;
use crate::Api;
use crate::deployments;
use crate::fence::caller::Caller;
use crate::fence::problem::{Answer, Refused};
use axum::http::StatusCode;
use keelway_domain::access::Need;
use keelway_domain::address::Address;
use keelway_domain::border::{Act, Consent, Denied, Home, NoConsent, Resource, ResourceKind, Vouched};
use keelway_domain::deployments::definition::{Action, Definition, Hook, ImageTag, Tagged};
use keelway_domain::deployments::registry::ArtifactSource;
use keelway_domain::promotions::definition::{Definition as Pipeline, Strategy};
use keelway_domain::promotions::registry::Cluster;
use keelway_domain::shipyard::{CARRIED_OUT, DEPLOYMENT_CONFIG, Shipyard};
use keelway_engine::border::Border;
use keelway_engine::ports::Ports;
use keelway_engine::protocol::Inbox;
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
    /// Fields that say what no manifest may say, and why.
    pub refused: Vec<(String, String)>,
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
    /// The sequence that it starts there.
    pub sequence: Option<String>,
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
            let old = api.promotions().clusters().get(&Address::new(namespace, &manifest.name)).await?;
            let vouched = manifest.cluster.in_place_of(old.as_ref().map(|old| &old.spec)).vouched;
            Outside { vouched, ..of_cluster(namespace, &manifest.cluster) }
        }
        Planned::ArtifactSource(manifest) => source(api, manifest).await?,
        // They name nothing outside of their namespace, or they are for administrators only.
        Planned::Project(_) | Planned::Remediation(..) | Planned::Schedule(_) | Planned::GitHost(_) | Planned::Webhook(_) => {
            Outside::default()
        }
    })
}

/// Of a source: the repository of ECR that it follows. What a webhook tells is compared with each push.
pub fn of_source<'a>(home: &Home, namespace: &'a str, source: &ArtifactSource) -> Outside<'a> {
    let images = source.repository().map(|repository| Resource::image(&repository.images(home)));
    let resources = images.map(|images| ("spec.ecr.repository".to_owned(), images)).into_iter().collect();
    Outside { namespace, resources, vouched: source.vouched, ..Outside::default() }
}

/// Of a source that takes the place of the one in force.
async fn source<'a, P: Ports>(api: &Api<P>, manifest: &'a ArtifactSourceManifest) -> Answer<Outside<'a>> {
    let (namespace, new) = (manifest.namespace.as_str(), &manifest.artifacts);
    let mut outside = of_source(&api.deployments().home(), namespace, new);
    if !outside.vouched && !outside.resources.is_empty() {
        let old = api.deployments().sources().get(&Address::new(namespace, &manifest.name)).await?;
        outside.vouched = new.in_place_of(old.as_ref().map(|old| &old.spec)).vouched;
    }
    Ok(outside)
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
                others.push(Elsewhere { field, need: Need::Trigger, act: Act::Deploy, of, sequence: None });
            }
        }
    }
    Outside { namespace: project, others, ..Outside::default() }
}

/// The server that a cluster's token is sent to.
pub fn of_cluster<'a>(namespace: &'a str, cluster: &Cluster) -> Outside<'a> {
    let server = Resource::named(ResourceKind::Servers, cluster.server.as_str());
    Outside { namespace, resources: vec![("spec.server".to_owned(), server)], vouched: cluster.vouched, ..Outside::default() }
}

/// Of a config that takes the place of the one in force.
pub async fn config<'a, P: Ports>(
    api: &Api<P>,
    (namespace, name): (&'a str, &str),
    definition: &Definition,
) -> Answer<Outside<'a>> {
    let mut outside = of_config(namespace, definition);
    // Whoever applies the same again does not take a vouch away.
    if !outside.vouched && !outside.resources.is_empty() {
        let old = deployments::in_force(api, namespace, name).await?;
        outside.vouched = definition.in_place_of(old.as_ref().map(|(old, _)| old)).vouched;
    }
    Ok(outside)
}

/// Of a config: the tags that its hooks move and its triggers watch, and what Keelway uses to carry it out.
pub fn of_config<'a>(namespace: &'a str, definition: &Definition) -> Outside<'a> {
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

/// Of a pipeline that takes the place of the one in force.
async fn pipeline<'a, P: Ports>(api: &Api<P>, of: &'a Address, definition: &Pipeline) -> Answer<Outside<'a>> {
    let mut outside = of_pipeline(&of.namespace, definition);
    if !outside.vouched && !outside.resources.is_empty() {
        let old = api.promotions().definition(of).await?;
        outside.vouched = definition.in_place_of(old.as_ref().map(|old| &old.spec)).vouched;
    }
    Ok(outside)
}

/// Of a pipeline: the configs and clusters that it observes, the sequences that it triggers, and the repositories in which it opens
/// pull requests with the credentials of the installation.
pub fn of_pipeline<'a>(namespace: &'a str, definition: &Pipeline) -> Outside<'a> {
    let (mut others, mut resources) = (vec![], vec![]);
    for (n, environment) in definition.environments.iter().enumerate() {
        for (m, target) in environment.targets.iter().enumerate() {
            let Some((other, name)) = target.beyond(&definition.app, namespace) else { continue };
            let member = if target.cluster.is_some() { "clusterRef.namespace" } else { "namespace" };
            let field = format!("spec.environments[{n}].targets[{m}].{member}");
            let of = (other.to_owned(), name.to_owned());
            others.push(Elsewhere { field, need: Need::Read, act: Act::Observe, of, sequence: None });
        }
        let own = if environment.promotion.is_some() { format!("environments[{n}].") } else { String::new() };
        let strategy = format!("spec.{own}promotion.strategy");
        // Nothing is promoted into the first environment.
        match definition.promotion(environment).filter(|_| n > 0).map(|promotion| &promotion.strategy) {
            Some(Strategy::Sequence(sequence)) => {
                let (project, stage) = sequence.place(namespace, &environment.name);
                let of = (project.to_owned(), stage.to_owned());
                others.push(Elsewhere {
                    field: format!("{strategy}.sequence.project"),
                    need: Need::Trigger,
                    act: Act::Trigger,
                    of,
                    sequence: Some(sequence.name.clone()),
                });
            }
            // What is no repository's URL is told by the attempt, which sends nothing.
            Some(Strategy::PullRequest(request)) if request.secret.is_empty() => {
                let repository = request.host.parse().ok().and_then(|form| Repository::parse(form, &request.url).ok());
                resources.extend(repository.map(|repository| (format!("{strategy}.pull-request.url"), repository.resource())));
            }
            _ => {}
        }
    }
    Outside { namespace, others, resources, vouched: definition.vouched, ..Outside::default() }
}

impl Outside<'_> {
    /// Refuses what no manifest may say.
    fn said(&self) -> Answer<()> {
        self.refused.first().map_or(Ok(()), |(field, why)| Err(Refused::field(field, why)))
    }
    /// What really is in another namespace.
    fn elsewhere(&self) -> impl Iterator<Item = &Elsewhere> {
        self.others.iter().filter(|other| other.of.0 != self.namespace)
    }
}

/// What a definition names, and may not.
#[derive(Debug)]
pub struct Gap {
    /// The field that names it.
    pub field: String,
    /// What is missing.
    pub lack: Lack,
}

/// What is missing for a name.
#[derive(Debug)]
pub enum Lack {
    /// The consent of another project; this entry would be one.
    Consent(NoConsent, Consent),
    /// A place in the project's policy.
    Policy(Denied),
    /// There is no policy, and no administrator of the installation has applied the definition.
    Vouch(Denied),
    /// No manifest may say it.
    Form(String),
}

/// Refuses documents that name what they may not: where the caller lacks a right, where a project has not consented, and what a
/// project may not use of the installation. It is asked again before each act.
pub(super) async fn check<P: Ports>(api: &Api<P>, caller: &Caller, planned: &[Planned]) -> Answer<()> {
    let mut borders = Borders { planned, ..Borders::of_now(api) };
    for document in planned {
        let (kind, name, _) = document.named();
        let outside = outside(api, document).await?;
        outside.said()?;
        borders.check(caller, &outside).await.map_err(|mut refused| {
            refused.problem.detail = format!("{kind} {name}: {}", refused.problem.detail);
            refused
        })?;
    }
    Ok(())
}

/// The same for one document that is not applied with others.
pub async fn check_one<P: Ports>(api: &Api<P>, caller: &Caller, outside: &Outside<'_>) -> Answer<()> {
    outside.said()?;
    Borders::of_now(api).check(caller, outside).await
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
pub struct Borders<'a, P> {
    api: &'a Api<P>,
    planned: &'a [Planned],
    known: BTreeMap<String, Border>,
}

impl<'a, P: Ports> Borders<'a, P> {
    /// As they are stored.
    pub fn of_now(api: &'a Api<P>) -> Self {
        Self { api, planned: &[], known: BTreeMap::new() }
    }

    async fn of(&mut self, namespace: &str) -> Answer<&Border> {
        if !self.known.contains_key(namespace) {
            self.known.insert(namespace.to_owned(), planned(self.api, self.planned, namespace).await?);
        }
        self.known.get(namespace).ok_or_else(Refused::internal)
    }

    /// What a namespace does not let `from` do.
    async fn no_consent(
        &mut self,
        from: &str,
        Elsewhere { act, of: (namespace, name), .. }: &Elsewhere,
    ) -> Answer<Option<NoConsent>> {
        Ok(self.of(namespace).await?.let_in(from, *act, name).err())
    }

    /// What its project does not let a definition use.
    async fn denied(&mut self, outside: &Outside<'_>, resource: &Resource) -> Answer<Option<Denied>> {
        let home: Home = self.api.deployments().home();
        Ok(self.of(outside.namespace).await?.permit(resource.clone(), outside.vouched, &home).err())
    }

    /// Whether whoever applies it may do the same there by hand.
    async fn entitled(&self, caller: &Caller, other: &Elsewhere) -> Answer<()> {
        let (namespace, name) = &other.of;
        let Some(sequence) = &other.sequence else { return caller.check(other.need, Some(namespace)) };
        if !caller.may(Need::TriggerIn(name), Some(namespace)) {
            caller.check(other.need, Some(namespace))?;
            if self.api.engine().is_follow_up(namespace, (name, sequence)).await? {
                return caller.starts_follow_up((name, sequence), Some(namespace));
            }
        }
        Ok(())
    }

    async fn check(&mut self, caller: &Caller, outside: &Outside<'_>) -> Answer<()> {
        let at =
            |field: &str, why: &dyn std::fmt::Display| Refused::new(StatusCode::FORBIDDEN, "forbidden", format!("{field}: {why}"));
        let own = format!("or name what is in {}", outside.namespace);
        for other in outside.elsewhere() {
            // Whoever may do nothing there does not learn what it consents to.
            self.entitled(caller, other)
                .await
                .map_err(|refused| at(&other.field, &format!("{}, {own}", refused.problem.detail)))?;
            if let Some(why) = self.no_consent(outside.namespace, other).await? {
                return Err(at(&other.field, &format!("{why}, {own}")));
            }
        }
        for (field, resource) in &outside.resources {
            if let Some(why) = self.denied(outside, resource).await? {
                return Err(at(field, &why));
            }
        }
        Ok(())
    }

    /// Everything that a stored definition names and may not. Whoever applied it had the rights that this took; they are not asked
    /// for again, as they are not before an act.
    pub async fn gaps(&mut self, outside: &Outside<'_>) -> Answer<Vec<Gap>> {
        let form = |(field, why): &(String, String)| Gap { field: field.clone(), lack: Lack::Form(why.clone()) };
        let mut gaps: Vec<Gap> = outside.refused.iter().map(form).collect();
        for other in outside.elsewhere() {
            if let Some(why) = self.no_consent(outside.namespace, other).await? {
                let (to, may, names) = (vec![why.from.clone()], vec![why.act], vec![why.name.clone()]);
                let lack = Lack::Consent(why, Consent { to, may, names });
                gaps.push(Gap { field: other.field.clone(), lack });
            }
        }
        for (field, resource) in &outside.resources {
            if let Some(why) = self.denied(outside, resource).await? {
                let has_policy = self.of(outside.namespace).await?.policy().is_some();
                let lack = if has_policy { Lack::Policy(why) } else { Lack::Vouch(why) };
                gaps.push(Gap { field: field.clone(), lack });
            }
        }
        Ok(gaps)
    }
}
