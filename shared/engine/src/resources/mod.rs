//! Resources: the files of a project that executors read, such as thresholds or a list of actions. A file belongs to the project,
//! to a stage, or to a service in a stage, and is found by its URI there.
//!
//! The store is versioned as a repository is. Every write is a commit, which names the state of all files of the project: a file is
//! read as it is now, or as it was at a commit. A version is an item of its own and never changes; an entry per file names the one
//! in force. `shipyard.yaml` of a project is no file of its own but the applied shipyard.

pub mod keys;
mod write;

pub use write::{Commit, Forms, check_files};

use crate::item::{Attr, Item};
use crate::ports::{Cursor, PortError, Ports, Query};
use crate::projects::{self, Projects};
use crate::refusal::Refusal;
use crate::table;
use keelway_domain::names::{NameError, ProjectName, ServiceName, StageName};
use keelway_domain::time::{Span, Timestamp};

/// The largest content of a resource, in bytes: it is stored in one item.
pub const MAX_CONTENT_BYTES: usize = 300 * 1024;
/// The longest URI of a resource, in bytes.
pub const MAX_URI_BYTES: usize = 300;
/// The most resources of one write: with their versions and entries, one transaction holds them.
pub const MAX_AT_ONCE: usize = 30;
/// The project's resource that is the applied shipyard.
pub const SHIPYARD: &str = "shipyard.yaml";

/// What a resource belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    project: ProjectName,
    stage: Option<StageName>,
    service: Option<ServiceName>,
}

impl Scope {
    /// The files of a project.
    pub fn project(project: ProjectName) -> Self {
        Self { project, stage: None, service: None }
    }
    /// The files of a stage, those of its services included: they are in a folder of the service's name.
    ///
    /// # Errors
    /// A name that breaks the rule for names.
    pub fn stage(project: ProjectName, stage: &str) -> Result<Self, Refusal> {
        let stage = StageName::new(stage).map_err(|error| invalid("stage", &error))?;
        Ok(Self { project, stage: Some(stage), service: None })
    }
    /// The files of a service in a stage.
    ///
    /// # Errors
    /// A name that breaks the rule for names.
    pub fn service(project: ProjectName, stage: &str, service: &str) -> Result<Self, Refusal> {
        let service = ServiceName::new(service).map_err(|error| invalid("service", &error))?;
        Ok(Self { service: Some(service), ..Self::stage(project, stage)? })
    }

    /// Whether that resource is the applied shipyard.
    pub fn is_shipyard(&self, uri: &str) -> bool {
        self.stage.is_none() && uri == SHIPYARD
    }

    /// The file's path in the stage, or in the project.
    fn path(&self, uri: &str) -> String {
        self.service.as_ref().map_or_else(|| uri.to_owned(), |service| format!("{service}/{uri}"))
    }
    fn stage_name(&self) -> &str {
        self.stage.as_ref().map_or("", StageName::as_str)
    }
    /// For messages: `stage dev of project shop`.
    pub fn words(&self) -> String {
        let stage = self.stage.as_ref().map(|stage| format!("stage {stage} of ")).unwrap_or_default();
        let service = self.service.as_ref().map(|service| format!("service {service} in ")).unwrap_or_default();
        format!("{service}{stage}project {}", self.project)
    }
}

fn invalid(field: &'static str, error: &NameError) -> Refusal {
    Refusal::Invalid { field, message: error.to_string() }
}

/// A resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// What it is called in its scope.
    pub uri: String,
    /// What it contains; empty in lists.
    pub content: Vec<u8>,
    /// The commit that wrote this version; of the shipyard its revision.
    pub version: String,
}

/// A URI as it is stored: without `./` and empty parts.
///
/// # Errors
/// One that is empty, too long, or leaves its scope.
pub fn uri(text: &str) -> Result<String, Refusal> {
    let refuse = |message: String| Err(Refusal::Invalid { field: "resourceURI", message });
    let shown: String = text.chars().take(100).collect();
    if text.contains("..") || text.contains('~') || text.contains('\\') {
        return refuse(format!("{shown:?} contains `..`, `~` or `\\`: write the path of the file, with `/` between its parts"));
    }
    if let Some(odd) = text.chars().find(|c| c.is_control()) {
        return refuse(format!("contains the control character U+{:04X}: leave it out", u32::from(odd)));
    }
    let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let uri = parts.join("/");
    match uri.len() {
        0 => refuse("is missing: say what the resource is called, for example slo.yaml".into()),
        n if n > MAX_URI_BYTES => refuse(format!("has {n} bytes: at most {MAX_URI_BYTES} are allowed")),
        _ => Ok(uri),
    }
}

/// The resources of projects.
pub struct Resources<'a, P> {
    pub(crate) projects: Projects<'a, P>,
    pub(crate) retention: Span,
}

impl<P: Ports> Resources<'_, P> {
    /// A resource as it is now, or as it was at a commit; `None`: there is no such file. At a shipyard's revision, which every
    /// event of a task names as its commit, a file is as it is now.
    ///
    /// # Errors
    /// An unknown project, a URI that is none, a commit that is not known (any more).
    pub async fn get(&self, scope: &Scope, text: &str, at: Option<&str>) -> Result<Option<Resource>, Refusal> {
        let uri = uri(text)?;
        let at = match at {
            Some(commit) => self.commit_named(&scope.project, commit).await?,
            None => At::Now,
        };
        let found =
            if scope.is_shipyard(&uri) { self.shipyard_at(scope, at).await? } else { self.version_at(scope, uri, &at).await? };
        if found.is_none() {
            self.projects.item(&scope.project).await?;
        }
        Ok(found)
    }

    /// The file of that name that is nearest to a service: its own in the stage, else the stage's, else the project's.
    ///
    /// # Errors
    /// As [`Resources::resource`], and names that break the rule for names.
    pub async fn nearest(
        &self,
        (project, stage, service): (&ProjectName, &str, &str),
        uri: &str,
        at: Option<&str>,
    ) -> Result<Option<Resource>, Refusal> {
        let own = Scope::service(project.clone(), stage, service)?;
        for scope in [own, Scope::stage(project.clone(), stage)?, Scope::project(project.clone())] {
            if let Some(found) = self.get(&scope, uri, at).await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Resources by URI, without their contents, those after `after`, at most `most`; and whether there are more.
    ///
    /// # Errors
    /// An unknown project.
    pub async fn list(&self, scope: &Scope, after: Option<&str>, most: u32) -> Result<(Vec<Resource>, bool), Refusal> {
        let project = self.projects.get(&scope.project).await?;
        let folder = keys::resource(&scope.project, scope.stage_name(), &scope.path(""));
        let cursor =
            after.map(|uri| Cursor { key: keys::resource(&scope.project, scope.stage_name(), &scope.path(uri)), index_sort: None });
        let query = Query::table(folder.pk, most).prefix(&folder.sk).after(cursor);
        let (items, mut more) = table::all(self.projects.ports, query, most as usize).await?;
        let mut found: Vec<Resource> = items
            .iter()
            .filter_map(|item| {
                let uri = keys::path(item.key.sk.strip_prefix(&folder.sk)?);
                Some(Resource { uri, content: vec![], version: item.text("c")?.to_owned() })
            })
            .collect();
        if let Some(version) = project.revision.filter(|_| scope.stage.is_none()) {
            let behind = found.last().is_some_and(|last| more && last.uri.as_str() < SHIPYARD);
            if after.is_none_or(|after| after < SHIPYARD) && !behind {
                let place = found.partition_point(|resource| resource.uri.as_str() < SHIPYARD);
                found.insert(place, Resource { uri: SHIPYARD.into(), content: vec![], version });
            }
        }
        if found.len() > most as usize {
            found.truncate(most as usize);
            more = true;
        }
        Ok((found, more))
    }

    async fn version_at(&self, scope: &Scope, uri: String, at: &At) -> Result<Option<Resource>, PortError> {
        let key = |n: i64| keys::version(&scope.project, scope.stage_name(), &scope.path(&uri), n);
        let last = if let At::Commit { n, .. } = at { *n } else { keys::LAST_VERSION };
        let query = Query { from: key(0).sk, to: Some(key(last).sk), ..Query::table(key(0).pk, 1) };
        let page = self.projects.ports.query(&query.newest_first()).await?;
        // What was replaced or deleted expires; whatever of it is still there, it is not what is there now.
        let gone = |item: &Item| matches!(at, At::Now | At::Revision(_)) && item.number("ttl").is_some();
        Ok(page.items.into_iter().next().filter(|item| !gone(item)).and_then(|item| read(uri, item)))
    }

    async fn shipyard_at(&self, scope: &Scope, at: At) -> Result<Option<Resource>, Refusal> {
        let revision = match at {
            At::Now => self.projects.get(&scope.project).await?.revision,
            At::Revision(revision) => Some(revision),
            At::Commit { shipyard, .. } => Some(shipyard),
        };
        let Some(version) = revision.filter(|revision| !revision.is_empty()) else { return Ok(None) };
        let found = self.projects.revision(&scope.project, &version).await?;
        Ok(found.map(|revision| Resource { uri: SHIPYARD.into(), content: revision.source.into_bytes(), version }))
    }

    /// The commit that stands for what an event names as its configuration: that commit, or the last one if it names a revision of
    /// the shipyard or nothing. `None`: the project has no resources.
    ///
    /// # Errors
    /// An unknown project, a commit that is not known (any more).
    pub async fn pinned(&self, project: &ProjectName, at: Option<&str>) -> Result<Option<String>, Refusal> {
        if let Some(commit) = at
            && let At::Commit { .. } = self.commit_named(project, commit).await?
        {
            return Ok(Some(commit.to_owned()));
        }
        let head = self.projects.ports.get(&keys::store(project)).await?;
        Ok(head.and_then(|head| head.text("c").map(str::to_owned)))
    }

    async fn commit_named(&self, project: &ProjectName, commit: &str) -> Result<At, Refusal> {
        let known = commit.len() == 40 && commit.bytes().all(|b| b.is_ascii_hexdigit());
        if known {
            let wanted = [keys::commit(project, commit), projects::keys::revision(project, commit)];
            let found = table::read(self.projects.ports, &wanted).await?;
            if let Some(item) = found.get(&wanted[0]) {
                let shipyard = item.text("s").unwrap_or_default().to_owned();
                return Ok(At::Commit { n: item.number("n").unwrap_or(0), shipyard });
            }
            if found.contains_key(&wanted[1]) {
                return Ok(At::Revision(commit.to_owned()));
            }
        }
        self.projects.item(project).await?;
        let days = self.retention.0 / (24 * 60 * 60 * 1000);
        let hint = format!("leave gitCommitID out for the present version; what was replaced is kept for {days} days");
        Err(Refusal::Unknown { kind: "commit", name: commit.chars().take(100).collect(), hint })
    }
}

/// Of which time a file is read.
enum At {
    Now,
    /// At a shipyard's revision.
    Revision(String),
    /// At a commit: its number, and the shipyard that was in force.
    Commit {
        n: i64,
        shipyard: String,
    },
}

/// A version; `None`: it says that the file was deleted.
fn read(uri: String, mut item: Item) -> Option<Resource> {
    let version = item.text("c")?.to_owned();
    match item.attrs.remove("x") {
        Some(Attr::B(content)) => Some(Resource { uri, content, version }),
        _ => None,
    }
}

/// When something that was replaced now expires, in seconds since 1970.
fn expires(now: Timestamp, retention: Span) -> i64 {
    (now + retention).0 / 1000
}
