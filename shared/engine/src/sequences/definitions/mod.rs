//! Projects, shipyards and services: what `apply` writes and everything else reads. Definitions have no effects of their own, so
//! the API writes them itself, each with one conditional write.

mod deletion;
mod refusal;
mod removal;
mod shipyards;

pub use deletion::Deleted;
pub use refusal::Refusal;
pub use shipyards::{InForce, MAX_SOURCE_BYTES, NewShipyard, Replaced, Revision, blob_id, is_place};

use super::{Sequences, codec, keys};
use crate::border::{self, Border};
use crate::item::{Attr, Attrs, Item, Key, Name};
use crate::ports::{Condition, Cursor, PortError, Ports, Query, Write, Written};
use crate::protocol::change::{Step, as_read, change, next_version};
use crate::protocol::check_format;
use crate::table;
use keelway_domain::border::{Consents, Policy, Update};
use keelway_domain::names::{Context, ProjectName};
use keelway_domain::shipyard::Shipyard;
use keelway_domain::time::{Span, Timestamp};
use std::sync::Arc;

/// The longest description of a project, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 10 * 1024;

/// A project as it is applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectSettings {
    /// Its name.
    pub name: ProjectName,
    /// For people.
    pub description: Option<String>,
    /// How long executors have to answer a task's trigger, if not the installation's default.
    pub start_deadline: Option<Span>,
    /// How long a started task may take, if not the installation's default; 0 = for ever.
    pub task_timeout: Option<Span>,
    /// What others may do in it. Of a project that was read: kept, so that applying it again never brings back what was taken away meanwhile.
    pub consents: Update<Consents>,
    /// What it may use of the installation. Of a project that was read: kept.
    pub policy: Update<Option<Policy>>,
}

impl ProjectSettings {
    /// A project that has everything from the installation. If it exists, it keeps its border.
    pub fn plain(name: ProjectName) -> Self {
        let (consents, policy) = (Update::Keep, Update::Keep);
        Self { name, description: None, start_deadline: None, task_timeout: None, consents, policy }
    }

    /// Whether applying them changes nothing of a project.
    fn are(&self, present: &ProjectSettings) -> bool {
        let of = |settings: &ProjectSettings| (settings.description.clone(), settings.start_deadline, settings.task_timeout);
        of(self) == of(present)
    }
}

/// A project as it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Project {
    /// What was applied.
    pub settings: ProjectSettings,
    /// Who may act in it, and what it may use.
    pub border: Border,
    /// When it was first applied.
    pub created: Timestamp,
    /// The shipyard revision in force; `None`: no shipyard yet.
    pub revision: Option<String>,
    /// How many times a revision was put in force.
    pub revisions: i64,
    /// The process in force; without stages when there is none.
    pub shipyard: Arc<Shipyard>,
}

impl<P: Ports> Sequences<P> {
    /// Creates a project or changes its settings. `false`: nothing changed.
    ///
    /// # Errors
    /// A description or a border that is too long.
    pub async fn apply_project(&self, settings: &ProjectSettings) -> Result<bool, Refusal> {
        Self::check_project(settings)?;
        let now = self.ports.now();
        // The list comes first: a name without a project is skipped, but a project without a name would never be found.
        let listed = Item::new(Key::new(keys::PROJECTS, settings.name.as_str())).with("at", now.0);
        drop(self.ports.write(&Write::Put(listed, Condition::Absent)).await?);
        let key = keys::project(&settings.name);
        change(&self.ports, &key, |present| {
            present.map_or(Ok(()), |item| check_format(item, codec::FORMAT))?;
            let known = Border::read(settings.name.as_str(), present)?;
            let border = known.clone().with(settings.consents.clone(), settings.policy.clone());
            if border == known && present.is_some_and(|item| settings.are(&settings_of(&settings.name, item))) {
                return Ok(Step::Leave(false));
            }
            // What is kept counts as well.
            check_size(&border)?;
            let mut set = Attrs::new();
            let mut remove = vec![];
            let own = [
                (Name::Borrowed("de"), settings.description.clone().map(Attr::S)),
                (Name::Borrowed("sd"), settings.start_deadline.map(|span| Attr::N(span.0))),
                (Name::Borrowed("tt"), settings.task_timeout.map(|span| Attr::N(span.0))),
            ];
            for (name, value) in own.into_iter().chain(border.attrs()) {
                match value {
                    Some(value) => drop(set.insert(name, value)),
                    None => remove.push(name),
                }
            }
            if present.is_none() {
                set.insert(Name::Borrowed("at"), Attr::N(now.0));
            }
            Ok(Step::Write(changed(&key, present, set, remove), true))
        })
        .await
    }

    /// Whether a project could be applied; no request.
    ///
    /// # Errors
    /// A description or a border that is too long.
    pub fn check_project(settings: &ProjectSettings) -> Result<(), Refusal> {
        check_size(&Border::default().with(settings.consents.clone(), settings.policy.clone()))?;
        match settings.description.as_ref().map_or(0, String::len) {
            n if n > MAX_DESCRIPTION_BYTES => {
                Err(Refusal::TooLarge(format!("spec.description has {n} bytes: at most {MAX_DESCRIPTION_BYTES} can be stored")))
            }
            _ => Ok(()),
        }
    }

    /// A project.
    ///
    /// # Errors
    /// An unknown project.
    pub async fn get_project(&self, name: &ProjectName) -> Result<Project, Refusal> {
        let item = self.project_item(name).await?;
        Ok(self.read_project(name, &item).await?)
    }

    /// A project by a name from outside: a name that breaks the rule for names counts as unknown.
    ///
    /// # Errors
    /// An unknown project, with similar names.
    pub async fn find_project(&self, name: &str) -> Result<Project, Refusal> {
        match ProjectName::new(name) {
            Ok(name) => self.get_project(&name).await,
            Err(_) => Err(self.unknown_project(name).await?),
        }
    }

    /// Projects by name, at most 100, those after `after`; and whether there are more.
    ///
    /// # Errors
    /// Only of the ports.
    pub async fn list_projects(&self, after: Option<&str>, most: u32) -> Result<(Vec<Project>, bool), Refusal> {
        let (names, more) = self.project_names(after, most.min(100)).await?;
        Ok((self.projects_named(&names).await?, more))
    }

    /// The projects of these names that exist.
    ///
    /// # Errors
    /// Only of the ports.
    pub async fn projects_named(&self, names: &[ProjectName]) -> Result<Vec<Project>, Refusal> {
        let wanted: Vec<Key> = names.iter().map(keys::project).collect();
        let items = if wanted.is_empty() { Default::default() } else { self.read(&wanted).await? };
        let mut projects = vec![];
        for name in names {
            if let Some(item) = items.get(&keys::project(name)) {
                projects.push(self.read_project(name, item).await?);
            }
        }
        Ok(projects)
    }

    /// The names in the list of projects after `after`, at most `most`; and whether there are more.
    ///
    /// # Errors
    /// Only of the ports.
    pub async fn project_names(&self, after: Option<&str>, most: u32) -> Result<(Vec<ProjectName>, bool), PortError> {
        let after = after.map(|name| Cursor { key: Key::new(keys::PROJECTS, name), index_sort: None });
        let (items, more) = table::all(&self.ports, Query::table(keys::PROJECTS, most).after(after), most as usize).await?;
        Ok((items.into_iter().filter_map(|item| ProjectName::new(item.key.sk).ok()).collect(), more))
    }

    /// The projects that have a context of this name, among the first 1,000 projects.
    ///
    /// # Errors
    /// Only of the ports.
    pub async fn projects_of(&self, context: &Context) -> Result<Vec<ProjectName>, PortError> {
        let (names, _) = self.project_names(None, 1000).await?;
        let wanted: Vec<Key> = names.iter().map(|name| keys::context(name, context)).collect();
        let found = if wanted.is_empty() { Default::default() } else { self.read(&wanted).await? };
        Ok(names.into_iter().filter(|name| found.contains_key(&keys::context(name, context))).collect())
    }

    /// Services of a project and when they were first seen, by name, those after `after`; and whether there are more.
    ///
    /// # Errors
    /// Only of the ports.
    pub async fn list_services(
        &self,
        project: &ProjectName,
        after: Option<&str>,
        most: u32,
    ) -> Result<(Vec<(String, Timestamp)>, bool), PortError> {
        let after = after.map(|name| Cursor { key: keys::service(project, name), index_sort: None });
        let query = Query::table(keys::project_partition(project), most).prefix(keys::SERVICE).after(after);
        let (items, more) = table::all(&self.ports, query, most as usize).await?;
        let service = |item: &Item| {
            let name = item.key.sk.strip_prefix(keys::SERVICE)?.to_owned();
            Some((name, Timestamp(item.number("at").unwrap_or(0))))
        };
        Ok((items.iter().filter_map(service).collect(), more))
    }

    /// When a service was first seen; `None`: there is no such service.
    ///
    /// # Errors
    /// Only of the ports.
    pub async fn get_service(&self, project: &ProjectName, service: &str) -> Result<Option<Timestamp>, PortError> {
        let item = self.ports.get(&keys::service(project, service)).await?;
        Ok(item.map(|item| Timestamp(item.number("at").unwrap_or(0))))
    }

    /// The error for a project that does not exist.
    pub(super) async fn unknown_project(&self, name: &str) -> Result<Refusal, PortError> {
        let (known, _) = self.project_names(None, 1000).await?;
        Ok(Refusal::unknown("project", name, known.iter().map(ProjectName::as_str)))
    }

    /// The project's item.
    pub(super) async fn project_item(&self, name: &ProjectName) -> Result<Item, Refusal> {
        match self.ports.get(&keys::project(name)).await? {
            Some(item) => Ok(item),
            None => Err(self.unknown_project(name.as_str()).await?),
        }
    }

    async fn read_project(&self, name: &ProjectName, item: &Item) -> Result<Project, PortError> {
        check_format(item, codec::FORMAT)?;
        let revision = item.text("rev").filter(|revision| !revision.is_empty()).map(str::to_owned);
        Ok(Project {
            settings: settings_of(name, item),
            border: Border::read(name.as_str(), Some(item))?,
            created: Timestamp(item.number("at").unwrap_or(0)),
            shipyard: self.shipyard(name, revision.as_deref().unwrap_or_default()).await?,
            revision,
            revisions: item.number("n").unwrap_or(0),
        })
    }

    async fn change_project(&self, key: &Key, present: Option<&Item>, set: Attrs, remove: Vec<Name>) -> Result<bool, PortError> {
        Ok(self.ports.write(&changed(key, present, set, remove)).await? == Written::Done)
    }
}

/// The write that changes a project's item.
fn changed(key: &Key, present: Option<&Item>, mut set: Attrs, remove: Vec<Name>) -> Write {
    set.insert(Name::Borrowed("v"), Attr::N(next_version(present)));
    set.insert(Name::Borrowed("f"), Attr::N(codec::FORMAT));
    Write::Update { key: key.clone(), condition: as_read(present), set, remove, raise: false }
}

fn settings_of(name: &ProjectName, item: &Item) -> ProjectSettings {
    ProjectSettings {
        description: item.text("de").map(str::to_owned),
        start_deadline: item.number("sd").map(Span),
        task_timeout: item.number("tt").map(Span),
        ..ProjectSettings::plain(name.clone())
    }
}

/// Refuses a border that would make the project's item large.
fn check_size(of: &Border) -> Result<(), Refusal> {
    match of.size() {
        n if n > border::MOST_BYTES => Err(Refusal::TooLarge(format!(
            "spec.consents and spec.policy have {n} bytes: at most {} can be stored for a project; write fewer names, with `*` for any text",
            border::MOST_BYTES
        ))),
        _ => Ok(()),
    }
}
