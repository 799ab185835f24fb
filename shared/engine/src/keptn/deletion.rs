//! The end of services and projects: both are deleted only when nothing of theirs is open.

use crate::evaluations;
use crate::item::Item;
use crate::ports::{Condition, Ports, Query, Write, Written};
use crate::projects;
use crate::protocol::contended;
use crate::refusal::Refusal;
use crate::resources::{self, Scope};
use crate::schedules;
use crate::sequences::Sequences;
use crate::table;
use keelway_domain::names::{ProjectName, ServiceName};

/// Items read for one batch of deletions. A version of a resource is large.
const AT_ONCE: u32 = 20;

/// What was deleted with a service or a project.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deleted {
    /// Services.
    pub services: usize,
    /// Resources that were in force.
    pub resources: usize,
    /// Schedules.
    pub schedules: usize,
}

impl<P: Ports> Sequences<P> {
    /// Deletes a service and its resources. Its history stays until it expires.
    ///
    /// # Errors
    /// An unknown project or service; something of it is open (409; checked once before the writes).
    pub async fn delete_service(&self, project: &ProjectName, service: &str) -> Result<Deleted, Refusal> {
        let of = self.projects().get(project).await?;
        let known = ServiceName::new(service).is_ok() && self.projects().service(project, service).await?.is_some();
        if !known {
            let (known, _) = self.projects().services(project, None, 100).await?;
            return Err(Refusal::unknown("service", service, known.iter().map(|(name, _)| name.as_str())));
        }
        self.check_nothing_open(project, Some(service)).await?;
        let mut deleted = Deleted { services: 1, ..Deleted::default() };
        for stage in &of.shipyard.stages {
            deleted.resources +=
                self.resources().delete_all(&Scope::service(project.clone(), stage.name.as_str(), service)?).await?;
        }
        drop(self.ports.write(&Write::Delete(projects::keys::service(project, service), Condition::Always)).await?);
        Ok(deleted)
    }

    /// Deletes a project with its schedules, services and resources. What it was triggered by stays known and its history stays
    /// until it expires; its shipyard's revisions stay, because executions name them.
    ///
    /// # Errors
    /// An unknown project; something of it is open (409; checked once before the writes).
    pub async fn delete_project(&self, project: &ProjectName) -> Result<Deleted, Refusal> {
        let item = self.projects().item(project).await?;
        self.check_nothing_open(project, None).await?;
        let services = Query::table(projects::keys::project_partition(project), 100).prefix(projects::keys::SERVICE);
        let resources = Query::table(resources::keys::partition(project), AT_ONCE);
        let in_force = |item: &Item| item.key.sk.starts_with(resources::keys::IN_FORCE);
        let schedule = |item: &Item| item.key.sk.starts_with(schedules::keys::SCHEDULE) && !item.flag("de");
        let schedules = Query::table(schedules::keys::schedules(project), 100);
        let deleted = Deleted {
            schedules: self.delete_all(schedules, schedule).await?,
            services: self.delete_all(services, |_| true).await?,
            resources: self.delete_all(resources, in_force).await?,
        };
        // A new project of this name chooses its own source.
        drop(self.ports.write(&Write::Delete(evaluations::keys::chosen(project.as_str()), Condition::Always)).await?);
        let delete = Write::Delete(projects::keys::project(project), Condition::Version(item.version()));
        if self.ports.write(&delete).await? != Written::Done {
            return Err(contended(format_args!("project {project}")).into());
        }
        // The list comes last: a name without a project is skipped there.
        drop(self.ports.write(&Write::Delete(projects::keys::listed(project.as_str()), Condition::Always)).await?);
        Ok(deleted)
    }

    /// Deletes what a query finds; how many of those that count.
    async fn delete_all(&self, query: Query, counts: impl Fn(&Item) -> bool) -> Result<usize, Refusal> {
        let mut n = 0;
        let mut query = query;
        loop {
            let page = self.ports.query(&query).await?;
            n += page.items.iter().filter(|item| counts(item)).count();
            table::record(&self.ports, vec![], page.items.into_iter().map(|item| item.key).collect()).await?;
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(n),
            }
        }
    }

    /// Whether a project, or a service of it, has nothing open.
    ///
    /// # Errors
    /// What is open (409).
    pub async fn check_nothing_open(&self, project: &ProjectName, service: Option<&str>) -> Result<(), Refusal> {
        let what = service.map_or_else(|| format!("project {project}"), |service| format!("service {service}"));
        let (open, more) = self.open_of(project).await?;
        if more {
            let n = open.len();
            return Err(Refusal::Conflict(format!(
                "{what} cannot be deleted: more than {n} sequences are open in project {project}; abort them, then delete it"
            )));
        }
        let mut open = open.into_iter().filter(|x| service.is_none_or(|service| x.service.as_str() == service)).peekable();
        if open.peek().is_none() {
            return Ok(());
        }
        let told: Vec<String> =
            open.map(|x| format!("{} of {} in {} (context {})", x.sequence, x.service, x.stage, x.context)).collect();
        let more = if told.len() > 3 { format!(" and {} more", told.len() - 3) } else { String::new() };
        let some = told[..told.len().min(3)].join("; ");
        Err(Refusal::Conflict(format!(
            "{what} cannot be deleted: {some}{more} is still open; wait for the end or abort it (keelway abort sequence), then delete it"
        )))
    }
}
