//! A git host in memory for tests of the operations: it can lose any request or answer, and others may act between two requests.

use crate::client::{Archive, Branched, Client, File, Look, Merge, NewBranch, NewRequest, Request, State};
use crate::error::{HostError, Kind};
use crate::repository::Repository;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

type Files = BTreeMap<String, String>;

#[derive(Clone, Default)]
pub(crate) struct Commit {
    pub(crate) parent: Option<String>,
    pub(crate) files: Files,
}

/// A fault of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The request is lost.
    Request,
    /// The answer is lost after the effect.
    Answer,
}

#[derive(Default)]
pub(crate) struct World {
    pub(crate) branches: BTreeMap<String, String>,
    pub(crate) commits: BTreeMap<String, Commit>,
    pub(crate) requests: Vec<Request>,
    pub(crate) comments: Vec<(u64, String)>,
    /// All writes, in order.
    pub(crate) writes: Vec<String>,
    pub(crate) calls: usize,
    /// The fault, and the number of the call that it strikes.
    pub(crate) fault: Option<(usize, Fault)>,
    /// The number of the call before which somebody merges a pull request.
    pub(crate) merge: Option<usize>,
}

#[derive(Default)]
pub(crate) struct Twin(Mutex<World>);

impl World {
    pub(crate) fn commit(&mut self, parent: Option<&str>, files: Files) -> String {
        let id = format!("c{}", self.commits.len());
        self.commits.insert(id.clone(), Commit { parent: parent.map(str::to_owned), files });
        id
    }

    /// Another person's commit on the base.
    pub(crate) fn push(&mut self, path: &str, content: &str) {
        let tip = self.branches.get("main").cloned();
        let mut files = tip.as_ref().map(|tip| self.commits[tip].files.clone()).unwrap_or_default();
        files.insert(path.to_owned(), content.to_owned());
        let commit = self.commit(tip.as_deref(), files);
        self.branches.insert("main".to_owned(), commit);
    }

    pub(crate) fn merge_all(&mut self) {
        for request in &mut self.requests {
            if request.state == State::Open {
                request.state = State::Merged { commit: request.head.clone() };
                self.branches.insert("main".to_owned(), request.head.clone());
            }
        }
    }
}

impl Twin {
    pub(crate) fn lock(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }

    /// One request.
    fn call<T>(&self, write: &str, effect: impl FnOnce(&mut World) -> Result<T, HostError>) -> Result<T, HostError> {
        let mut world = self.lock();
        world.calls += 1;
        if world.merge == Some(world.calls) {
            world.merge_all();
        }
        let fault = world.fault.filter(|(call, _)| *call == world.calls).map(|(_, fault)| fault);
        let lost = || Err(HostError::new(Kind::Transient, "lost"));
        if fault == Some(Fault::Request) {
            return lost();
        }
        if !write.is_empty() {
            world.writes.push(write.to_owned());
        }
        let result = effect(&mut world);
        if fault == Some(Fault::Answer) { lost() } else { result }
    }
}

fn refused<T>(message: &str) -> Result<T, HostError> {
    Err(HostError::new(Kind::Refused, message))
}

impl Client for Twin {
    fn host(&self) -> &str {
        "git.test"
    }
    async fn access(&self, _: &Repository) -> Result<(), HostError> {
        self.call("", |_| Ok(()))
    }
    async fn find(&self, _: &Repository, branch: &str, _: Option<&str>) -> Result<Vec<Request>, HostError> {
        self.call("", |world| Ok(world.requests.iter().filter(|request| request.branch == branch).cloned().collect()))
    }
    async fn list(&self, _: &Repository, _: &[u64], _: Option<&str>) -> Result<Look, HostError> {
        self.call("", |world| {
            let open = world.requests.iter().filter(|request| request.state == State::Open).cloned().collect();
            Ok(Look { requests: Some(open), mark: None, every: true })
        })
    }
    async fn get(&self, _: &Repository, number: u64) -> Result<Option<Request>, HostError> {
        self.call("", |world| Ok(world.requests.iter().find(|request| request.number == number).cloned()))
    }
    async fn tip(&self, _: &Repository, branch: &str) -> Result<Option<String>, HostError> {
        self.call("", |world| Ok(world.branches.get(branch).cloned()))
    }
    async fn parents(&self, _: &Repository, commit: &str) -> Result<Vec<String>, HostError> {
        self.call("", |world| Ok(world.commits[commit].parent.iter().cloned().collect()))
    }
    async fn archive(&self, _: &Repository, commit: &str) -> Result<Archive, HostError> {
        self.call("", |world| {
            let files: Vec<(&str, &str)> =
                world.commits[commit].files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
            Ok(Archive { bytes: crate::archive::tests::archive(&files).into(), folder: false })
        })
    }
    async fn file(&self, _: &Repository, commit: &str, path: &str) -> Result<Option<File>, HostError> {
        self.call("", |world| {
            let file = world.commits[commit].files.get(path);
            Ok(file.map(|text| File { content: text.clone().into_bytes(), blob: None }))
        })
    }
    /// Makes branch and commit in two steps, like the slowest host.
    async fn branch(&self, _: &Repository, new: NewBranch<'_>) -> Result<Branched, HostError> {
        let exists = self.call("create branch", |world| {
            let exists = world.branches.contains_key(new.name) && !new.replace;
            if !exists {
                world.branches.insert(new.name.to_owned(), new.base_commit.to_owned());
            }
            Ok(exists)
        })?;
        if exists {
            return Ok(Branched::Exists);
        }
        self.call("commit", |world| {
            let mut files = world.commits[new.base_commit].files.clone();
            files.extend(new.files.iter().map(|file| (file.path.clone(), file.content.clone())));
            let commit = world.commit(Some(new.base_commit), files);
            world.branches.insert(new.name.to_owned(), commit.clone());
            Ok(Branched::Done(commit))
        })
    }
    async fn delete_branch(&self, _: &Repository, branch: &str) -> Result<(), HostError> {
        self.call("delete branch", |world| {
            world.branches.remove(branch);
            Ok(())
        })
    }
    async fn open(&self, _: &Repository, new: NewRequest<'_>) -> Result<Request, HostError> {
        self.call("open", |world| {
            let Some(head) = world.branches.get(new.branch).cloned() else { return refused("no such branch") };
            if world.requests.iter().any(|request| request.branch == new.branch && request.state == State::Open) {
                return refused("it exists");
            }
            let number = world.requests.len() as u64 + 1;
            let url = format!("https://git.test/pulls/{number}");
            let request = Request { number, url, branch: new.branch.to_owned(), head, state: State::Open, mergeable: None };
            world.requests.push(request.clone());
            Ok(request)
        })
    }
    async fn comment_once(&self, _: &Repository, number: u64, text: &str) -> Result<(), HostError> {
        self.call("comment", |world| {
            if !world.comments.contains(&(number, text.to_owned())) {
                world.comments.push((number, text.to_owned()));
            }
            Ok(())
        })
    }
    async fn close(&self, _: &Repository, number: u64) -> Result<(), HostError> {
        self.call("close", |world| match world.requests.iter_mut().find(|request| request.number == number) {
            Some(request) if request.state == State::Open => {
                request.state = State::Closed;
                Ok(())
            }
            _ => refused("it is not open"),
        })
    }
    async fn merge(&self, _: &Repository, _: &Request) -> Result<Merge, HostError> {
        self.call("merge", |world| {
            world.merge_all();
            Ok(Merge::Merged(String::new()))
        })
    }
}
