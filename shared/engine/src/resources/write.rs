//! Commits: one transaction writes the new versions, the entries that name them, and the commit. The store's own item counts
//! commits; its version is the condition, so commits of a project come one after the other.

use super::{MAX_AT_ONCE, MAX_CONTENT_BYTES, Resources, Scope, expires, keys, uri};
use crate::item::{Attr, Attrs, Item, Key, Name};
use crate::ports::{Condition, Ports, Transacted, Write};
use crate::projects::{Project, blob_id, stage_of};
use crate::protocol::{COMMIT_TRIES, check_format, contended};
use crate::refusal::Refusal;
use crate::table::{self, Items};
use keelway_domain::shipyard::Shipyard;
use std::collections::{BTreeMap, BTreeSet};

/// The newest format of the store that this code knows.
const FORMAT: i64 = 1;

/// The state of a project's files that a write led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// 40 hexadecimal digits, as git has them.
    pub id: String,
    /// Whether anything changed; otherwise it is the commit before.
    pub changed: bool,
}

/// Files and what becomes of them; `None`: deleted.
type Changes = BTreeMap<String, Option<Vec<u8>>>;

/// What the engine reads of files, as JSON, by URI.
pub type Forms = BTreeMap<String, String>;

/// Whether files could be written at once; no request.
///
/// # Errors
/// URIs that are none or are there twice, contents that are too large, too many files or none.
pub fn check_files(scope: &Scope, files: &[(String, Vec<u8>)]) -> Result<(), Refusal> {
    let refuse = |message: String| Err(Refusal::Invalid { field: "resources", message });
    let mut seen = BTreeSet::new();
    for (text, content) in files {
        let uri = own_file(scope, text)?;
        if uri != *text {
            return refuse(format!("{text:?} is called {uri:?} here: send that"));
        }
        if content.len() > MAX_CONTENT_BYTES {
            let size = content.len();
            return Err(Refusal::TooLarge(format!("{uri} has {size} bytes: at most {MAX_CONTENT_BYTES} can be stored")));
        }
        if !seen.insert(text) {
            return refuse(format!("{uri:?} is there more than once: send each resource once"));
        }
    }
    match files.len() {
        0 => refuse("is empty: send at least one resource".into()),
        n if n > MAX_AT_ONCE => {
            Err(Refusal::TooLarge(format!("resources: there are {n}, at most {MAX_AT_ONCE} are written at once")))
        }
        _ => Ok(()),
    }
}

impl<P: Ports> Resources<'_, P> {
    /// Writes files by their [`uri`]s, all of them or none. What is there already with the same content is left alone.
    ///
    /// # Errors
    /// An unknown project, stage or service, URIs that are none, contents that are too large.
    pub async fn write(&self, scope: &Scope, files: Vec<(String, Vec<u8>)>) -> Result<Commit, Refusal> {
        self.write_read(scope, files, &Forms::new()).await
    }

    /// As [`Resources::write_resources`], of files that the engine reads itself: the form in which it reads them is kept with their
    /// entries.
    ///
    /// # Errors
    /// The same; a form that is too large.
    pub async fn write_read(&self, scope: &Scope, files: Vec<(String, Vec<u8>)>, forms: &Forms) -> Result<Commit, Refusal> {
        check_files(scope, &files)?;
        if let Some((uri, form)) = forms.iter().find(|(_, form)| form.len() > MAX_CONTENT_BYTES) {
            let size = form.len();
            return Err(Refusal::TooLarge(format!(
                "{uri} has {size} bytes as it is read: at most {MAX_CONTENT_BYTES} can be stored"
            )));
        }
        let changes: Changes = files.into_iter().map(|(uri, content)| (uri, Some(content))).collect();
        self.commit(scope, &changes, forms).await
    }

    /// Deletes a file. Its versions are kept for the retention period.
    ///
    /// # Errors
    /// An unknown project, stage or service, or no such file.
    pub async fn delete(&self, scope: &Scope, text: &str) -> Result<Commit, Refusal> {
        let uri = own_file(scope, text)?;
        let commit = self.commit(scope, &Changes::from([(uri.clone(), None)]), &Forms::new()).await?;
        if !commit.changed {
            let hint = format!("there is no such file for {}", scope.words());
            return Err(Refusal::Unknown { kind: "resource", name: uri, hint });
        }
        Ok(commit)
    }

    /// Deletes every file of a scope; how many.
    pub(crate) async fn delete_all(&self, scope: &Scope) -> Result<usize, Refusal> {
        let mut deleted = 0;
        loop {
            let (found, more) = self.list(scope, None, MAX_AT_ONCE as u32).await?;
            let gone: Changes = found.into_iter().map(|resource| (resource.uri, None)).collect();
            deleted += gone.len();
            if !gone.is_empty() {
                self.commit(scope, &gone, &Forms::new()).await?;
            }
            if !more {
                return Ok(deleted);
            }
        }
    }

    /// Whether files can be written there.
    ///
    /// # Errors
    /// An unknown project, stage or service.
    pub async fn check_scope(&self, scope: &Scope) -> Result<Project, Refusal> {
        let project = self.projects.get(&scope.project).await?;
        self.check_scope_with(scope, Some(&project.shipyard)).await?;
        Ok(project)
    }

    /// As [`Resources::check_scope`], if this shipyard is applied before; absent: with the shipyard in force.
    ///
    /// # Errors
    /// The same.
    pub async fn check_scope_with(&self, scope: &Scope, shipyard: Option<&Shipyard>) -> Result<(), Refusal> {
        let in_force;
        let shipyard = match shipyard {
            Some(shipyard) => shipyard,
            None => {
                in_force = self.projects.get(&scope.project).await?.shipyard;
                &in_force
            }
        };
        if let Some(stage) = &scope.stage {
            stage_of(shipyard, stage.as_str())?;
        }
        if let Some(service) = &scope.service
            && self.projects.service(&scope.project, service.as_str()).await?.is_none()
        {
            let (known, _) = self.projects.services(&scope.project, None, 100).await?;
            return Err(Refusal::unknown("service", service.as_str(), known.iter().map(|(name, _)| name.as_str())));
        }
        Ok(())
    }

    async fn commit(&self, scope: &Scope, changes: &Changes, forms: &Forms) -> Result<Commit, Refusal> {
        let project = self.check_scope(scope).await?;
        let head = keys::store(&scope.project);
        let entry = |uri: &str| keys::resource(&scope.project, scope.stage_name(), &scope.path(uri));
        let wanted: Vec<Key> = std::iter::once(head.clone()).chain(changes.keys().map(|uri| entry(uri))).collect();
        for _ in 0..COMMIT_TRIES {
            let present = table::read(self.projects.ports, &wanted).await?;
            present.get(&head).map_or(Ok(()), |item| check_format(item, FORMAT))?;
            let before = present.get(&head).and_then(|item| item.text("c")).unwrap_or_default().to_owned();
            let draft = Draft {
                scope,
                present: &present,
                before: &before,
                shipyard: project.revision.as_deref().unwrap_or_default(),
                forms,
            };
            let changed: Vec<(&String, &Option<Vec<u8>>)> =
                changes.iter().filter(|(uri, content)| draft.differs(&entry(uri), content.as_deref())).collect();
            if changed.is_empty() {
                return Ok(Commit { id: before, changed: false });
            }
            let (id, writes) = self.writes(&draft, &changed);
            if self.projects.ports.transact(&writes).await? == Transacted::Done {
                return Ok(Commit { id, changed: true });
            }
        }
        Err(contended(format_args!("the resources of project {}", scope.project)).into())
    }

    /// The id of a commit, which follows from what it changes and from the commit before; and everything it writes.
    fn writes(&self, draft: &Draft, changed: &[(&String, &Option<Vec<u8>>)]) -> (String, Vec<Write>) {
        let (scope, now) = (draft.scope, self.projects.ports.now());
        let (project, stage) = (&scope.project, scope.stage_name());
        let head = keys::store(project);
        let version = draft.present.get(&head).map_or(0, Item::version);
        let (n, ttl) = (version + 1, expires(now, self.retention));
        let mut text = format!("commit {} {n}\n", draft.before);
        for (uri, content) in changed {
            let blob = content.as_deref().map_or_else(|| "-".to_owned(), blob_id);
            text.push_str(&format!("{stage}#{} {blob}\n", scope.path(uri)));
        }
        let id = blob_id(text.as_bytes());
        let condition = if version == 0 { Condition::Absent } else { Condition::Version(version) };
        let store = Item::new(head).with("v", n).with("f", FORMAT).with("c", id.as_str());
        let commit = Item::new(keys::commit(project, &id)).with("n", n).with("s", draft.shipyard).with("at", now.0);
        let mut writes = vec![Write::Put(store, condition), Write::Put(commit, Condition::Absent)];
        if !draft.before.is_empty() {
            writes.push(fade(keys::commit(project, draft.before), ttl));
        }
        for (uri, content) in changed {
            let path = scope.path(uri);
            let entry = keys::resource(project, stage, &path);
            if let Some(old) = draft.present.get(&entry).and_then(|item| item.number("n")) {
                writes.push(fade(keys::version(project, stage, &path, old), ttl));
            }
            let version = Item::new(keys::version(project, stage, &path, n)).with("c", id.as_str()).with("at", now.0);
            match content {
                Some(content) => {
                    let blob = blob_id(content);
                    let named = Item::new(entry).with("n", n).with("c", id.as_str()).with("b", blob.as_str()).with("at", now.0);
                    let named = named.with_some("j", draft.forms.get(*uri).map(String::as_str));
                    writes.push(Write::Put(named, Condition::Always));
                    writes.push(Write::Put(version.with("x", content.clone()), Condition::Absent));
                }
                None => {
                    writes.push(Write::Delete(entry, Condition::Always));
                    writes.push(Write::Put(version.with("ttl", ttl), Condition::Absent));
                }
            }
        }
        (id, writes)
    }
}

/// What a commit is made from.
struct Draft<'a> {
    scope: &'a Scope,
    present: &'a Items,
    before: &'a str,
    shipyard: &'a str,
    forms: &'a Forms,
}

impl Draft<'_> {
    fn differs(&self, entry: &Key, content: Option<&[u8]>) -> bool {
        let present = self.present.get(entry).and_then(|item| item.text("b"));
        present != content.map(blob_id).as_deref()
    }
}

/// Lets a version or a commit that was replaced expire after the retention period.
fn fade(key: Key, ttl: i64) -> Write {
    let set = Attrs::from([(Name::Borrowed("ttl"), Attr::N(ttl))]);
    Write::Update { key, condition: Condition::Always, set, remove: vec![], raise: false }
}

/// The URI of a file that the store holds itself.
fn own_file(scope: &Scope, text: &str) -> Result<String, Refusal> {
    let uri = uri(text)?;
    if scope.is_shipyard(&uri) {
        let message = "is the applied shipyard: apply another one to change it, delete the project to be rid of it";
        return Err(Refusal::Conflict(format!("{uri} {message}")));
    }
    Ok(uri)
}
