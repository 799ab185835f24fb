//! The documents of a text, each with what it is for. Whoever adds a kind adds it to the list here.

use super::project::settings;
use super::remediation::RemediationOf;
use super::shipyard::ShipyardOf;
use crate::Api;
use crate::fence::caller::Caller;
use crate::fence::problem::{Answer, Refused};
use crate::kinds::border::Outside;
use crate::kinds::{Called, Context, Document, How};
use crate::ports::AnyPorts;
use keelway_domain::access::Need;
use keelway_domain::border::Counted;
use keelway_domain::names::ProjectName;
use keelway_engine::projects::ProjectSettings;
use keelway_engine::refusal::Refusal;
use keelway_engine::sequences::Sequences;
use keelway_wire::http::AppliedDocument;
use keelway_wire::manifest::{self, Finding, RemediationManifest, ShipyardManifest};

/// Makes [`Planned`], and `each!`, which does the same with a document of any kind.
macro_rules! planned {
    ($d:tt $($(#[$doc:meta])* $name:ident($ty:ty)),* $(,)?) => {
        /// A document, and what it is for.
        pub enum Planned {
            $($(#[$doc])* $name($ty)),*
        }

        macro_rules! each {
            ($d planned:expr, $d one:ident => $d done:expr) => {
                match $d planned {
                    $(Planned::$name($d one) => $d done),*
                }
            };
        }
    };
}

planned! {
    $
    Project(ProjectSettings),
    Shipyard(ShipyardOf),
    Remediation(RemediationOf),
    Schedule(Box<manifest::ScheduleManifest>),
    Pipeline(Box<manifest::PipelineManifest>),
    Cluster(manifest::ClusterManifest),
    GitHost(manifest::GitHostManifest),
    DeploymentConfig(Box<manifest::DeploymentConfigManifest>),
    ArtifactSource(manifest::ArtifactSourceManifest),
    MetricsSource(manifest::MetricsSourceManifest),
    Webhook(Box<manifest::WebhookManifest>),
}

impl Document for Planned {
    fn called(&self) -> Called<'_> {
        each!(self, one => one.called())
    }

    fn answer(&self) -> AppliedDocument {
        each!(self, one => one.answer())
    }

    fn join<'a>(&'a self, context: &mut Context<'a>) {
        each!(self, one => one.join(context));
    }

    fn vouch(&mut self, vouched: bool) {
        each!(self, one => one.vouch(vouched));
    }

    async fn outside(&self, api: &Api) -> Answer<Outside<'_>> {
        each!(self, one => one.outside(api).await)
    }

    async fn validate(&self, api: &Api, with: &Context<'_>) -> Answer<()> {
        each!(self, one => one.validate(api, with).await)
    }

    async fn counted(&self, api: &Api) -> Answer<Option<(Counted, &str)>> {
        each!(self, one => one.counted(api).await)
    }

    async fn count(&self, api: &Api, most: usize) -> Answer<usize> {
        each!(self, one => one.count(api, most).await)
    }

    async fn warnings(&self, api: &Api) -> Answer<Vec<Finding>> {
        each!(self, one => one.warnings(api).await)
    }

    async fn store(&self, api: &Api, how: How<'_>) -> Answer<AppliedDocument> {
        each!(self, one => one.store(api, how).await)
    }
}

/// Which project each document is for.
pub(crate) async fn plan(
    engine: &Sequences<AnyPorts>,
    caller: &Caller,
    named: Option<&str>,
    documents: Vec<manifest::Document>,
) -> Answer<Vec<Planned>> {
    use manifest::Document as Written;
    let declared = documents.iter().filter_map(|document| match document {
        Written::Project(project) => Some(project.name.clone()),
        _ => None,
    });
    let known = Projects { engine, caller, declared: declared.collect() };
    let mut planned = vec![];
    for document in documents {
        planned.push(match document {
            Written::Project(project) => Planned::Project(settings(project)),
            Written::Shipyard(manifest) => {
                let project = known.of_shipyard(named, &manifest).await?;
                Planned::Shipyard(ShipyardOf::new(project, manifest))
            }
            Written::Remediation(manifest) => {
                let project = known.of_remediation(named, &manifest).await?;
                Planned::Remediation(RemediationOf::new(project, manifest)?)
            }
            Written::Schedule(manifest) => {
                known.find(manifest.project.as_str()).await?;
                Planned::Schedule(manifest)
            }
            Written::Pipeline(manifest) => Planned::Pipeline(manifest),
            Written::Cluster(manifest) => Planned::Cluster(manifest),
            Written::GitHost(manifest) => Planned::GitHost(manifest),
            Written::DeploymentConfig(manifest) => Planned::DeploymentConfig(manifest),
            Written::ArtifactSource(manifest) => Planned::ArtifactSource(manifest),
            Written::MetricsSource(manifest) => Planned::MetricsSource(manifest),
            Written::Webhook(manifest) => Planned::Webhook(manifest),
        });
    }
    Ok(planned)
}

/// The projects for which documents may be.
struct Projects<'a> {
    engine: &'a Sequences<AnyPorts>,
    caller: &'a Caller,
    /// The projects that the text declares.
    declared: Vec<ProjectName>,
}

impl Projects<'_> {
    /// Whether a project is declared in the text or exists. A caller that does not administer it does not learn which.
    async fn find(&self, name: &str) -> Answer<ProjectName> {
        self.caller.check(Need::Administer, Some(name))?;
        Ok(self.look_up(name).await?)
    }

    async fn look_up(&self, name: &str) -> Result<ProjectName, Refusal> {
        match self.declared.iter().find(|declared| declared.as_str() == name) {
            Some(declared) => Ok(declared.clone()),
            None => self.engine.projects().find(name).await.map(|project| project.settings.name),
        }
    }

    /// The query's project, else the annotation's.
    async fn of_remediation(&self, named: Option<&str>, manifest: &RemediationManifest) -> Answer<ProjectName> {
        match named.or(manifest.project_annotation.as_deref()) {
            Some(name) => self.find(name).await,
            None => Err(Refused::field(
                "metadata.annotations",
                "do not say which project the remediation is for: send ?project=<name>, or annotate it with keelway.dev/project",
            )),
        }
    }

    /// The query's project, else the annotation's, else the one that `metadata.name` names, with or without `shipyard-`, if it
    /// exists.
    async fn of_shipyard(&self, named: Option<&str>, manifest: &ShipyardManifest) -> Answer<ProjectName> {
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
