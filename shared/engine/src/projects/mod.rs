//! Projects, their services, and the revisions of their shipyards: what `apply` writes and everything else reads. They have no
//! effects of their own, so the API writes them itself, each with one conditional write. What depends on open executions is in
//! [`crate::keptn`].

pub mod border;
pub mod keys;
mod shipyards;

pub(crate) use shipyards::in_force;
pub use shipyards::{InForce, MAX_SOURCE_BYTES, NewShipyard, Replaced, Revision, Revisions, blob_id, is_place};

use crate::item::{Attr, Attrs, Item, Key, Name};
use crate::ports::{Condition, Cursor, PortError, Ports, Query, Write, Written};
use crate::protocol::change::{Step, as_read, change, next_version};
use crate::protocol::check_format;
use crate::refusal::Refusal;
use crate::table;
use border::Border;
use keelway_domain::border::{Consents, Policy, Update};
use keelway_domain::names::{ProjectName, ServiceName};
use keelway_domain::shipyard::{EVALUATION, Sequence, Shipyard, Stage};
use keelway_domain::time::{Span, Timestamp};
use std::sync::Arc;

/// The newest format of a project that this code knows.
pub(crate) const FORMAT: i64 = 1;
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
    /// What others may do in it. Of a project that was read: kept, so that applying it again never brings back what was taken away
    /// meanwhile.
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

    /// Whether a project could be applied; no request.
    ///
    /// # Errors
    /// A description or a border that is too long.
    pub fn check(&self) -> Result<(), Refusal> {
        check_size(&Border::default().with(self.consents.clone(), self.policy.clone()))?;
        match self.description.as_ref().map_or(0, String::len) {
            n if n > MAX_DESCRIPTION_BYTES => {
                Err(Refusal::TooLarge(format!("spec.description has {n} bytes: at most {MAX_DESCRIPTION_BYTES} can be stored")))
            }
            _ => Ok(()),
        }
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

/// Projects on the ports.
pub struct Projects<'a, P> {
    pub(crate) ports: &'a P,
    pub(crate) revisions: &'a Revisions,
}

impl<P: Ports> Projects<'_, P> {
    /// Creates a project or changes its settings. `false`: nothing changed.
    ///
    /// # Errors
    /// A description or a border that is too long.
    pub async fn apply(&self, settings: &ProjectSettings) -> Result<bool, Refusal> {
        settings.check()?;
        let now = self.ports.now();
        // The list comes first: a name without a project is skipped, but a project without a name would never be found.
        let listed = Item::new(keys::listed(settings.name.as_str())).with("at", now.0);
        drop(self.ports.write(&Write::Put(listed, Condition::Absent)).await?);
        let key = keys::project(&settings.name);
        change(self.ports, &key, |present| {
            present.map_or(Ok(()), |item| check_format(item, FORMAT))?;
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

    /// A project.
    ///
    /// # Errors
    /// An unknown project.
    pub async fn get(&self, name: &ProjectName) -> Result<Project, Refusal> {
        let item = self.item(name).await?;
        Ok(self.read(name, &item).await?)
    }

    /// A project by a name from outside: a name that breaks the rule for names counts as unknown.
    ///
    /// # Errors
    /// An unknown project, with similar names.
    pub async fn find(&self, name: &str) -> Result<Project, Refusal> {
        match ProjectName::new(name) {
            Ok(name) => self.get(&name).await,
            Err(_) => Err(self.unknown(name).await?),
        }
    }

    /// Projects by name, at most 100, those after `after`; and whether there are more.
    ///
    /// # Errors
    /// A port fails.
    pub async fn list(&self, after: Option<&str>, most: u32) -> Result<(Vec<Project>, bool), Refusal> {
        let (names, more) = self.names(after, most.min(100)).await?;
        Ok((self.named(&names).await?, more))
    }

    /// The projects of these names that exist.
    ///
    /// # Errors
    /// A port fails.
    pub async fn named(&self, names: &[ProjectName]) -> Result<Vec<Project>, Refusal> {
        let wanted: Vec<Key> = names.iter().map(keys::project).collect();
        let items = if wanted.is_empty() { Default::default() } else { table::read(self.ports, &wanted).await? };
        let mut projects = vec![];
        for name in names {
            if let Some(item) = items.get(&keys::project(name)) {
                projects.push(self.read(name, item).await?);
            }
        }
        Ok(projects)
    }

    /// The names in the list of projects after `after`, at most `most`; and whether there are more.
    ///
    /// # Errors
    /// A port fails.
    pub async fn names(&self, after: Option<&str>, most: u32) -> Result<(Vec<ProjectName>, bool), PortError> {
        let after = after.map(|name| Cursor { key: keys::listed(name), index_sort: None });
        let (items, more) = table::all(self.ports, Query::table(keys::PROJECTS, most).after(after), most as usize).await?;
        Ok((items.into_iter().filter_map(|item| ProjectName::new(item.key.sk).ok()).collect(), more))
    }

    /// Services of a project and when they were first seen, by name, those after `after`; and whether there are more.
    ///
    /// # Errors
    /// A port fails.
    pub async fn services(
        &self,
        project: &ProjectName,
        after: Option<&str>,
        most: u32,
    ) -> Result<(Vec<(String, Timestamp)>, bool), PortError> {
        let after = after.map(|name| Cursor { key: keys::service(project, name), index_sort: None });
        let query = Query::table(keys::project_partition(project), most).prefix(keys::SERVICE).after(after);
        let (items, more) = table::all(self.ports, query, most as usize).await?;
        let service = |item: &Item| {
            let name = item.key.sk.strip_prefix(keys::SERVICE)?.to_owned();
            Some((name, Timestamp(item.number("at").unwrap_or(0))))
        };
        Ok((items.iter().filter_map(service).collect(), more))
    }

    /// When a service was first seen; `None`: there is no such service.
    ///
    /// # Errors
    /// A port fails.
    pub async fn service(&self, project: &ProjectName, service: &str) -> Result<Option<Timestamp>, PortError> {
        let item = self.ports.get(&keys::service(project, service)).await?;
        Ok(item.map(|item| Timestamp(item.number("at").unwrap_or(0))))
    }

    /// Names a service before anything is triggered for it.
    ///
    /// # Errors
    /// An unknown project, a name that breaks the rule for names, a service that exists.
    pub async fn create_service(&self, project: &ProjectName, service: &str) -> Result<(), Refusal> {
        let named = ServiceName::new(service);
        let service = named.map_err(|error| Refusal::Invalid { field: "serviceName", message: error.to_string() })?;
        self.item(project).await?;
        let item = Item::new(keys::service(project, service.as_str())).with("at", self.ports.now().0);
        match self.ports.write(&Write::Put(item, Condition::Absent)).await? {
            Written::Done => Ok(()),
            Written::Conflict(_) => Err(Refusal::Conflict(format!("service {service} exists in project {project} already"))),
        }
    }

    /// The error for a project that does not exist.
    pub(crate) async fn unknown(&self, name: &str) -> Result<Refusal, PortError> {
        let (known, _) = self.names(None, 1000).await?;
        Ok(Refusal::unknown("project", name, known.iter().map(ProjectName::as_str)))
    }

    /// The project's item.
    pub(crate) async fn item(&self, name: &ProjectName) -> Result<Item, Refusal> {
        match self.ports.get(&keys::project(name)).await? {
            Some(item) => Ok(item),
            None => Err(self.unknown(name.as_str()).await?),
        }
    }

    /// The project in its item.
    pub(crate) async fn read(&self, name: &ProjectName, item: &Item) -> Result<Project, PortError> {
        check_format(item, FORMAT)?;
        let revision = item.text("rev").filter(|revision| !revision.is_empty()).map(str::to_owned);
        Ok(Project {
            settings: settings_of(name, item),
            border: Border::read(name.as_str(), Some(item))?,
            created: created(item),
            shipyard: self.shipyard(name, revision.as_deref().unwrap_or_default()).await?,
            revision,
            revisions: item.number("n").unwrap_or(0),
        })
    }

    pub(crate) async fn change(&self, key: &Key, present: Option<&Item>, set: Attrs, remove: Vec<Name>) -> Result<bool, PortError> {
        Ok(self.ports.write(&changed(key, present, set, remove)).await? == Written::Done)
    }
}

/// When a project was created.
pub(crate) fn created(item: &Item) -> Timestamp {
    Timestamp(item.number("at").unwrap_or(0))
}

/// The write that changes a project's item.
fn changed(key: &Key, present: Option<&Item>, mut set: Attrs, remove: Vec<Name>) -> Write {
    set.insert(Name::Borrowed("v"), Attr::N(next_version(present)));
    set.insert(Name::Borrowed("f"), Attr::N(FORMAT));
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

/// A stage by a name from outside.
///
/// # Errors
/// There is none: the stages that there are.
pub fn stage_of<'s>(shipyard: &'s Shipyard, name: &str) -> Result<&'s Stage, Refusal> {
    let known = || shipyard.stages.iter().map(|stage| stage.name.as_str());
    shipyard.stage(name).ok_or_else(|| Refusal::unknown("stage", name, known()))
}

/// A sequence by names from outside.
pub(crate) fn sequence_of(shipyard: &Shipyard, stage: &str, name: &str) -> Result<Sequence, Refusal> {
    let stage = stage_of(shipyard, stage)?;
    if let Some(sequence) = stage.sequence(name) {
        return Ok(sequence);
    }
    let mut known: Vec<&str> = stage.sequences.iter().map(|sequence| sequence.name.as_str()).collect();
    if !known.contains(&EVALUATION) {
        known.push(EVALUATION);
    }
    Err(Refusal::unknown("sequence", name, known))
}
