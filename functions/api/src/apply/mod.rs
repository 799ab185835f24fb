//! `POST /v1/apply`: manifests, all or nothing.

pub mod border;
mod compare;
mod quotas;
mod rights;
mod store;
pub mod stored;

use crate::Api;
use crate::deployments;
use crate::fence::allowed::{Allowed, act, scope};
use crate::fence::caller::Caller;
use crate::fence::input::{Params, Text, given};
use crate::fence::manifests::{by, fits};
use crate::fence::problem::{Answer, Refused};
use crate::fence::route::{Route, route};
use crate::keptn::revisions;
use crate::webhooks::subscriptions;
use axum::http::{HeaderMap, StatusCode, header};
use keelway_domain::access::Need;
use keelway_domain::border::Update;
use keelway_domain::names::ProjectName;
use keelway_domain::shipyard::Shipyard;
use keelway_engine::ports::Ports;
use keelway_engine::promotions::Address;
use keelway_engine::sequences::Sequences;
use keelway_engine::sequences::definitions::{NewShipyard, ProjectSettings, Refusal, blob_id};
use keelway_engine::sequences::remediation::form;
use keelway_engine::sequences::resources::{Forms, Scope};
use keelway_wire::http::Applied;
use keelway_wire::manifest::{
    self, ArtifactSourceManifest, ClusterManifest, DeploymentConfigManifest, Document, GitHostManifest, PipelineManifest,
    ProjectManifest, RemediationManifest, ScheduleManifest, ShipyardManifest, WebhookManifest,
};
pub use rights::policy as permits_policy;
use serde::Deserialize;
use store::{How, store};

/// The routes.
pub fn routes<P: Ports + 'static>() -> Vec<Route<P>> {
    vec![route!(apply), route!(stored::look)]
}

/// The name of the text in findings.
const FILE: &str = "-";
/// Documents in one request.
const MAX_DOCUMENTS: usize = 50;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Wanted {
    project: Option<String>,
    by: Option<String>,
    dry_run: Option<String>,
}

/// A document and what it becomes.
enum Planned {
    Project(ProjectSettings),
    Remediation(ProjectName, Scope, RemediationManifest),
    Schedule(Box<ScheduleManifest>),
    Pipeline(Address, Box<PipelineManifest>),
    Cluster(ClusterManifest),
    GitHost(GitHostManifest),
    DeploymentConfig(Box<DeploymentConfigManifest>),
    ArtifactSource(ArtifactSourceManifest),
    Webhook(Box<WebhookManifest>),
    Shipyard { project: ProjectName, revision: String, manifest: ShipyardManifest },
}

/// Refuses a new config that is more than its project may have.
pub async fn one_more_config<P: Ports>(api: &Api<P>, manifest: &DeploymentConfigManifest) -> Answer<()> {
    quotas::check(api, &[Planned::DeploymentConfig(Box::new(manifest.clone()))]).await
}

/// Applies manifests, all of them or none.
#[utoipa::path(
    post,
    path = "/v1/apply",
    tag = "definitions",
    params(Wanted, ("If-Match" = Option<String>, Header)),
    request_body(description = "Up to 50 documents in YAML or JSON.", content((String = "application/yaml", example = "apiVersion: keelway.dev/v1\nkind: Project\nmetadata:\n  name: shop\n"))),
    responses((status = 200, body = Applied), (status = 404), (status = 409), (status = 412))
)]
pub async fn apply<P: Ports + 'static>(
    caller: Allowed<scope::Anywhere<scope::Administer>, act::Apply>,
    api: Api<P>,
    Params(wanted): Params<Wanted>,
    headers: HeaderMap,

    Text(text): Text,
) -> Answer<axum::Json<Applied>> {
    let replaces = if_match(&headers)?;
    let dry_run = match given(wanted.dry_run.as_ref()) {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(Refused::field("dryRun", "is neither true nor false: send one of them, or leave it out")),
    };
    let mut parsed = manifest::parse(&text, FILE);
    if parsed.refused() {
        return Err(refused(parsed.findings));
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
    let mut planned = plan(api.engine(), &caller, given(wanted.project.as_ref()), parsed.documents).await?;
    rights::check(&caller, &planned)?;
    rights::vouch(&caller, &mut planned);
    border::check(&api, &caller, &planned).await?;
    check(&api, &planned, replaces.as_deref()).await?;
    quotas::check(&api, &planned).await?;
    if dry_run {
        caller.does_nothing();
    }
    let by = by(&caller, wanted.by.as_ref())?;
    let applied = store(&api, &planned, How { replaces: replaces.as_deref(), by: &by, dry_run }).await?;
    rights::tell(&caller, &planned, &applied);
    parsed.findings.extend(circles(&api, &planned).await?);
    Ok(axum::Json(Applied { applied, warnings: parsed.findings, dry_run }))
}

/// Warns of pipelines that carry back what others promote.
async fn circles<P: Ports>(api: &Api<P>, planned: &[Planned]) -> Answer<Vec<manifest::Finding>> {
    let mut found = vec![];
    for one in planned {
        let Planned::Pipeline(of, manifest) = one else { continue };
        for other in api.promotions().circle(of, &manifest.definition).await? {
            found.push(manifest::Finding {
                severity: manifest::Severity::Warning,
                file: FILE.to_owned(),
                line: 1,
                column: 1,
                path: "spec.environments".to_owned(),
                message: format!(
                    "of {of} make a circle with those of {other}: it carries to the first environment what comes from there, so two revisions \
                     change places for ever; let one pipeline begin elsewhere"
                ),
                snippet: None,
            });
        }
    }
    Ok(found)
}

/// Applies one shipyard to a project, whatever its metadata says, and the project with these settings before it. The revision that is
/// in force then.
pub async fn one_shipyard<P: Ports>(api: &Api<P>, caller: &Caller, project: ProjectSettings, text: &str) -> Answer<String> {
    let mut parsed = manifest::parse(text, "shipyard");
    if parsed.refused() {
        return Err(refused(parsed.findings));
    }
    let (Some(Document::Shipyard(manifest)), true) = (parsed.documents.pop(), parsed.documents.is_empty()) else {
        return Err(Refused::field("shipyard", "is not one document of kind Shipyard: send that one, and the others to /v1/apply"));
    };
    let (name, revision) = (project.name.clone(), blob_id(&manifest.source));
    let planned = [Planned::Project(project), Planned::Shipyard { project: name, revision: revision.clone(), manifest }];
    border::check(api, caller, &planned).await?;
    check(api, &planned, None).await?;
    store(api, &planned, How { replaces: None, by: &caller.by(None), dry_run: false }).await?;
    Ok(revision)
}

fn refused(findings: Vec<manifest::Finding>) -> Refused {
    let detail = "nothing was stored: mend what the findings name";
    let mut refused = Refused::new(StatusCode::BAD_REQUEST, "manifest refused", detail);
    refused.problem.findings = findings;
    refused
}

impl Planned {
    /// Its kind, its name, and where it belongs.
    fn named(&self) -> (&'static str, &str, Option<&str>) {
        match self {
            Self::Project(settings) => ("Project", settings.name.as_str(), Some(settings.name.as_str())),
            Self::Shipyard { project, .. } => ("Shipyard", project.as_str(), Some(project.as_str())),
            Self::Remediation(project, ..) => ("Remediation", project.as_str(), Some(project.as_str())),
            Self::Schedule(of) => ("Schedule", &of.name, Some(of.project.as_str())),
            Self::Pipeline(of, _) => ("Pipeline", &of.name, Some(&of.namespace)),
            Self::Cluster(of) => ("Cluster", &of.name, Some(of.namespace.as_str())),
            Self::GitHost(of) => ("GitHost", &of.name, None),
            Self::DeploymentConfig(of) => ("DeploymentConfig", &of.name, Some(of.namespace.as_str())),
            Self::ArtifactSource(of) => ("ArtifactSource", &of.name, Some(of.namespace.as_str())),
            // One that takes events of other projects concerns all of them.
            Self::Webhook(of) => {
                let own = Some(of.namespace.as_str()).filter(|namespace| of.subscription.is_within(namespace));
                ("WebhookSubscription", &of.name, own)
            }
        }
    }
}

/// The revision that must be in force, as the shipyard's `ETag` or bare.
pub fn if_match(headers: &HeaderMap) -> Answer<Option<String>> {
    let mut given = headers.get_all(header::IF_MATCH).iter();
    let (Some(value), rest) = (given.next(), given.next()) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    let revision = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    match rest.is_none() && revisions::is_revision(revision) {
        true => Ok(Some(revision.to_owned())),
        false => Err(Refused::field(
            "If-Match",
            "is no revision: send the ETag of GET /v1/project/{project}/shipyard, which is 40 hexadecimal digits in quotes",
        )),
    }
}

/// Which project each document is for.
async fn plan<P: Ports>(
    engine: &Sequences<P>,
    caller: &Caller,
    named: Option<&str>,
    documents: Vec<Document>,
) -> Answer<Vec<Planned>> {
    let declared: Vec<ProjectName> = documents
        .iter()
        .filter_map(|document| match document {
            Document::Project(project) => Some(project.name.clone()),
            _ => None,
        })
        .collect();
    let known = Known { engine, caller, declared };
    let mut planned = vec![];
    for document in documents {
        planned.push(match document {
            Document::Project(project) => Planned::Project(settings(project)),
            Document::Shipyard(manifest) => {
                let project = known.project_of(named, &manifest).await?;
                Planned::Shipyard { project, revision: blob_id(&manifest.source), manifest }
            }
            Document::Remediation(manifest) => {
                let project = known.named_project(named, &manifest).await?;
                let scope = scope_of(&project, &manifest)?;
                Planned::Remediation(project, scope, manifest)
            }
            Document::Schedule(manifest) => {
                known.find(manifest.project.as_str()).await?;
                Planned::Schedule(manifest)
            }
            Document::Pipeline(manifest) => {
                let of = Address { namespace: manifest.namespace.to_string(), name: manifest.name.clone() };
                Planned::Pipeline(of, manifest)
            }
            Document::Cluster(manifest) => Planned::Cluster(manifest),
            Document::GitHost(manifest) => Planned::GitHost(manifest),
            Document::DeploymentConfig(manifest) => Planned::DeploymentConfig(manifest),
            Document::ArtifactSource(manifest) => Planned::ArtifactSource(manifest),
            Document::Webhook(manifest) => Planned::Webhook(manifest),
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
        // A manifest says all of them: what it leaves out is taken back.
        consents: Update::Set(project.consents),
        policy: project.policy,
    }
}

/// The files that remediations are among.
fn scope_of(project: &ProjectName, manifest: &RemediationManifest) -> Answer<Scope> {
    Ok(match (&manifest.stage, &manifest.service) {
        (Some(stage), Some(service)) => Scope::service(project.clone(), stage.as_str(), service.as_str())?,
        (Some(stage), None) => Scope::stage(project.clone(), stage.as_str())?,
        _ => Scope::project(project.clone()),
    })
}

/// What the engine reads of a `remediation.yaml`.
pub fn remediation(uri: &str, content: &[u8]) -> Answer<Forms> {
    let parsed = manifest::parse(&String::from_utf8_lossy(content), uri);
    if parsed.refused() {
        return Err(refused(parsed.findings));
    }
    match parsed.documents.as_slice() {
        [Document::Remediation(manifest)] => Ok(form(uri, &manifest.remediation)),
        _ => Err(Refused::field("resourceContent", format!("{uri} is not one document of kind Remediation: send that"))),
    }
}

/// The projects that documents may be for.
struct Known<'a, P> {
    engine: &'a Sequences<P>,
    caller: &'a Caller,
    /// Those that the text has.
    declared: Vec<ProjectName>,
}

impl<P: Ports> Known<'_, P> {
    /// A project that the text declares or that exists. Whoever does not administer it does not learn which of these it is.
    async fn find(&self, name: &str) -> Answer<ProjectName> {
        self.caller.check(Need::Administer, Some(name))?;
        Ok(self.look_up(name).await?)
    }

    async fn look_up(&self, name: &str) -> Result<ProjectName, Refusal> {
        match self.declared.iter().find(|declared| declared.as_str() == name) {
            Some(declared) => Ok(declared.clone()),
            None => self.engine.find_project(name).await.map(|project| project.settings.name),
        }
    }

    /// The query's project, else the annotation's.
    async fn named_project(&self, named: Option<&str>, manifest: &RemediationManifest) -> Answer<ProjectName> {
        match named.or(manifest.project_annotation.as_deref()) {
            Some(name) => self.find(name).await,
            None => Err(Refused::field(
                "metadata.annotations",
                "do not say which project the remediation is for: send ?project=<name>, or annotate it with keelway.dev/project",
            )),
        }
    }

    /// The query's project, else the annotation's, else the one that `metadata.name` names, with or without `shipyard-`, if it exists.
    async fn project_of(&self, named: Option<&str>, manifest: &ShipyardManifest) -> Answer<ProjectName> {
        if let Some(name) = named.or(manifest.project_annotation.as_deref()) {
            return self.find(name).await;
        }
        let Some(metadata) = manifest.metadata_name.as_deref() else {
            return Err(Refused::field(
                "metadata.name",
                "is missing, and so nothing says which project the shipyard is for: send ?project=<name>, or annotate it with \
                 keelway.dev/project",
            ));
        };
        let name = metadata.strip_prefix("shipyard-").unwrap_or(metadata);
        self.caller.check(Need::Administer, Some(name))?;
        match self.look_up(name).await {
            Ok(project) => Ok(project),
            Err(Refusal::Unknown { hint, .. }) => {
                let detail = format!(
                    "nothing says which project shipyard {metadata:?} is for: send ?project=<name>, annotate it with \
                     keelway.dev/project, or apply a Project first"
                );
                Err(Refused::unknown_project(detail, &format!("; of projects, {hint}")))
            }
            Err(refusal) => Err(refusal.into()),
        }
    }
}

/// Everything that would be refused, before anything is written.
async fn check<P: Ports>(api: &Api<P>, planned: &[Planned], replaces: Option<&str>) -> Answer<()> {
    let mut seen: Vec<(&str, String)> = vec![];
    for document in planned {
        let one = match document {
            Planned::Project(settings) => ("Project", format!("for project {}", settings.name)),
            Planned::Shipyard { project, .. } => ("Shipyard", format!("for project {project}")),
            Planned::Remediation(_, scope, _) => ("Remediation", format!("for {}", scope.words())),
            Planned::Schedule(of) => ("Schedule", format!("named {}/{}", of.project, of.name)),
            Planned::Pipeline(of, _) => ("Pipeline", format!("named {of}")),
            Planned::Cluster(manifest) => ("Cluster", format!("named {}/{}", manifest.namespace, manifest.name)),
            Planned::GitHost(manifest) => ("GitHost", format!("named {}", manifest.name)),
            Planned::DeploymentConfig(manifest) => ("DeploymentConfig", format!("named {}/{}", manifest.namespace, manifest.name)),
            Planned::ArtifactSource(manifest) => ("ArtifactSource", format!("named {}/{}", manifest.namespace, manifest.name)),
            Planned::Webhook(manifest) => ("WebhookSubscription", format!("named {}/{}", manifest.namespace, manifest.name)),
        };
        if seen.contains(&one) {
            return Err(Refused::field("body", format!("has two documents of kind {} {}: leave one out", one.0, one.1)));
        }
        seen.push(one);
    }
    let mut hosts: Vec<(&str, &str)> = vec![];
    for document in planned {
        match document {
            Planned::Project(settings) => Sequences::<P>::check_project(settings)?,
            Planned::Shipyard { project, revision, manifest } => {
                let declared = seen.contains(&("Project", format!("for project {project}")));
                let ShipyardManifest { source, shipyard, .. } = manifest;
                let new = NewShipyard { revision, source, shipyard, replaces, by: "" };
                api.engine().check_shipyard((project, declared), new).await?;
            }
            Planned::Remediation(of, scope, _) => {
                api.engine().check_scope_with(scope, shipyard_of(planned, of)).await?;
            }
            Planned::Schedule(manifest) => {
                let ScheduleManifest { project, name, spec, source } = &**manifest;
                let found = api.engine().schedule(project, name).await?;
                api.engine().check_schedule(found.as_ref(), spec, source)?;
                let with = shipyard_of(planned, project);
                api.engine().check_sequence(project, with, (&spec.stage, &spec.sequence)).await?;
            }
            Planned::Pipeline(of, manifest) => {
                fits(api.promotions().pipelines().fits(of, &manifest.definition, &manifest.source), "pipeline", &of.to_string())?;
            }
            Planned::Cluster(ClusterManifest { namespace, name, cluster, source }) => {
                let of = Address::new(namespace.as_str(), name);
                fits(api.promotions().clusters().fits(&of, cluster, source), "cluster", name)?;
            }
            Planned::GitHost(GitHostManifest { name, host, source }) => {
                fits(api.promotions().git_hosts().fits(&Address::new("", name), host, source), "git host", name)?;
                check_host(api, name, &host.host, &hosts).await?;
                hosts.push((name, &host.host));
            }
            Planned::DeploymentConfig(manifest) => deployments::check(manifest)?,
            Planned::ArtifactSource(_) => {}
            Planned::Webhook(manifest) => {
                let of = subscriptions::address(manifest);
                fits(
                    api.webhooks().declared().fits(&of, &manifest.subscription, &manifest.source),
                    "webhook subscription",
                    &of.to_string(),
                )?;
            }
        }
    }
    Ok(())
}

/// The shipyard of a project in the same text.
fn shipyard_of<'p>(planned: &'p [Planned], of: &ProjectName) -> Option<&'p Shipyard> {
    planned.iter().find_map(|other| match other {
        Planned::Shipyard { project, manifest, .. } if project == of => Some(&manifest.shipyard),
        _ => None,
    })
}

/// A host is registered under one name only: otherwise nobody could say whose credentials are used.
async fn check_host<P: Ports>(api: &Api<P>, name: &str, host: &str, others: &[(&str, &str)]) -> Answer<()> {
    let stored = api.promotions().git_host_of(host).await?.map(|(other, _)| other);
    let other = others.iter().find(|(_, known)| *known == host).map(|(other, _)| (*other).to_owned());
    match other.or(stored).filter(|other| other != name) {
        Some(other) => {
            let detail =
                format!("spec.host: {host} is registered by git host {other} already: change that one, or delete it first");
            Err(Refused::new(StatusCode::CONFLICT, "conflict", detail))
        }
        None => Ok(()),
    }
}
