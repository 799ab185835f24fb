//! Acts of people on a git host, without requests: create repositories, push, merge, close, edit and comment.

use crate::model::{Comment, Method, Pull, Repository, Token, Webhook};
use crate::pulls::{Merge, NewPull};
use crate::refused::Refused;
use crate::serve::Shared;
use crate::store::NewRepository;
use std::path::PathBuf;
use std::sync::Arc;

/// A person. Cheap to clone. Each act returns when it is done.
#[derive(Clone)]
pub struct People {
    pub(crate) shared: Arc<Shared>,
    pub(crate) user: String,
}

impl People {
    /// Another person on the same host.
    pub fn named(&self, user: &str) -> Self {
        Self { shared: self.shared.clone(), user: user.to_owned() }
    }

    /// Creates a repository with its first commit, if it has files.
    pub fn create_repository(&self, new: &NewRepository) -> Result<(), Refused> {
        self.shared.with(|store| store.create(new, &self.user).map(|_| ()))
    }

    /// Creates a repository (`owner/name`) with these files on `main`.
    pub fn create(&self, repository: &str, files: &[(&str, &str)]) -> Result<(), Refused> {
        let (owner, name) = split(repository)?;
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        self.create_repository(&NewRepository {
            owner: owner.into(),
            name: name.into(),
            private: true,
            files,
            ..Default::default()
        })
    }

    /// Pushes a commit, and returns its id. `None` removes a file. A missing branch starts at the default branch.
    pub fn commit(
        &self,
        repository: &str,
        branch: &str,
        message: &str,
        files: &[(&str, Option<&[u8]>)],
    ) -> Result<String, Refused> {
        self.on(repository, |repository| {
            let start = repository.git.branch(&repository.default_branch)?.map(|_| repository.default_branch.clone());
            repository.put_files(branch, start.as_deref(), message, &owned(files), &self.user)
        })
    }

    /// Opens a pull request, and returns its number.
    pub fn open(&self, repository: &str, head: &str, base: &str, title: &str) -> Result<u64, Refused> {
        let new = NewPull { title: title.into(), head: head.into(), base: base.into(), ..Default::default() };
        self.on(repository, |repository| repository.open(&new, &self.user))
    }

    /// Merges a pull request, and returns the new commit of the base branch.
    pub fn merge(&self, repository: &str, number: u64, method: Method) -> Result<String, Refused> {
        self.on(repository, |repository| repository.merge(number, &Merge::by(method), &self.user))
    }

    /// Closes a pull request.
    pub fn close(&self, repository: &str, number: u64) -> Result<(), Refused> {
        self.on(repository, |repository| repository.close(number, &self.user))
    }

    /// Reopens a closed pull request.
    pub fn reopen(&self, repository: &str, number: u64) -> Result<(), Refused> {
        self.on(repository, |repository| repository.reopen(number, &self.user))
    }

    /// Changes title or description of a pull request.
    pub fn edit(&self, repository: &str, number: u64, title: Option<&str>, body: Option<&str>) -> Result<(), Refused> {
        self.on(repository, |repository| repository.edit(number, title.map(str::to_owned), body.map(str::to_owned)))
    }

    /// Comments on a pull request.
    pub fn comment(&self, repository: &str, number: u64, body: &str) -> Result<u64, Refused> {
        self.on(repository, |repository| repository.comment(number, body, &self.user))
    }

    /// Replaces the commits of a pull request's head by one new commit on its base, and returns its id.
    pub fn force_push(
        &self,
        repository: &str,
        number: u64,
        message: &str,
        files: &[(&str, Option<&[u8]>)],
    ) -> Result<String, Refused> {
        self.on(repository, |repository| {
            let pull = repository.pull(number)?.clone();
            let (base, head) = (repository.tip(&pull.base)?, repository.tip(&pull.head)?);
            let draft = format!("keelway-draft-{number}");
            repository.create_branch(&draft, &base)?;
            let sha = repository.put_files(&draft, None, message, &owned(files), &self.user);
            let tip = repository.tip(&draft)?;
            repository.git.update(&format!("refs/heads/{draft}"), None, Some(&tip))?;
            let sha = sha?;
            repository.git.update(&format!("refs/heads/{}", pull.head), Some(&sha), Some(&head))?;
            repository.refresh()?;
            Ok(sha)
        })
    }

    /// Moves all past events of the pull requests back by this many seconds, so that the next event is newer.
    pub fn age(&self, repository: &str, seconds: i64) -> Result<(), Refused> {
        self.on(repository, |repository| {
            for pull in repository.pulls.values_mut() {
                pull.created -= seconds;
                pull.updated -= seconds;
                pull.closed = pull.closed.map(|at| at - seconds);
                pull.comments.iter_mut().for_each(|comment| comment.created -= seconds);
            }
            repository.changed = true;
            Ok(())
        })
    }

    /// Creates a branch at the tip of another one.
    pub fn branch(&self, repository: &str, name: &str, from: &str) -> Result<(), Refused> {
        self.on(repository, |repository| {
            let tip = repository.tip(from)?;
            repository.create_branch(name, &tip)
        })
    }

    /// Deletes a branch; its open pull requests are closed.
    pub fn delete_branch(&self, repository: &str, branch: &str) -> Result<(), Refused> {
        self.on(repository, |repository| repository.delete_branch(branch, &self.user))
    }

    /// Sets the receiver of a repository's events, or removes it.
    pub fn set_webhook(&self, repository: &str, webhook: Option<Webhook>) -> Result<(), Refused> {
        self.on(repository, |repository| {
            repository.webhook = webhook;
            repository.changed = true;
            Ok(())
        })
    }

    /// Sets the permitted methods to merge.
    pub fn allow(&self, repository: &str, methods: &[Method]) -> Result<(), Refused> {
        self.on(repository, |repository| {
            repository.methods = methods.to_vec();
            repository.changed = true;
            Ok(())
        })
    }

    /// Adds a token, which replaces another one with the same secret.
    pub fn grant(&self, token: Token) -> Result<(), Refused> {
        self.shared.with(|store| {
            store.tokens.retain(|other| other.token != token.token);
            store.tokens.push(token);
            Ok(())
        })
    }

    /// Removes a token.
    pub fn revoke(&self, token: &str) -> Result<(), Refused> {
        self.shared.with(|store| {
            store.tokens.retain(|other| other.token != token);
            Ok(())
        })
    }

    /// A pull request in its present state.
    pub fn pull(&self, repository: &str, number: u64) -> Result<Pull, Refused> {
        self.on(repository, |repository| {
            repository.refresh()?;
            repository.pull(number).cloned()
        })
    }

    /// All pull requests of a repository, by number.
    pub fn pulls(&self, repository: &str) -> Result<Vec<Pull>, Refused> {
        self.on(repository, |repository| {
            repository.refresh()?;
            Ok(repository.pulls.values().cloned().collect())
        })
    }

    /// The comments on a pull request.
    pub fn comments(&self, repository: &str, number: u64) -> Result<Vec<Comment>, Refused> {
        self.on(repository, |repository| Ok(repository.pull(number)?.comments.clone()))
    }

    /// The branches and their commits.
    pub fn branches(&self, repository: &str) -> Result<Vec<(String, String)>, Refused> {
        self.on(repository, |repository| repository.branches())
    }

    /// The content of a file at a branch, tag or commit.
    pub fn file(&self, repository: &str, revision: &str, path: &str) -> Result<Vec<u8>, Refused> {
        self.on(repository, |repository| {
            let commit = repository.commit_of(Some(revision))?;
            repository.file(&commit, path)
        })
    }

    /// The paths and ids of all files at a branch, tag or commit.
    pub fn files(&self, repository: &str, revision: &str) -> Result<Vec<(String, String)>, Refused> {
        self.on(repository, |repository| {
            let entries = repository.git.tree(&repository.commit_of(Some(revision))?, true)?;
            Ok(entries.into_iter().filter(|entry| entry.kind == "blob").map(|entry| (entry.path, entry.sha)).collect())
        })
    }

    /// The directory of the bare repository, which `git clone` accepts.
    pub fn git_directory(&self, repository: &str) -> Result<PathBuf, Refused> {
        self.on(repository, |repository| Ok(repository.git.path().to_owned()))
    }

    fn on<T>(&self, repository: &str, verb: impl FnOnce(&mut Repository) -> Result<T, Refused>) -> Result<T, Refused> {
        let (owner, name) = split(repository)?;
        self.shared.with(|store| verb(store.repository(owner, name)?))
    }
}

fn split(repository: &str) -> Result<(&str, &str), Refused> {
    repository.split_once('/').ok_or(Refused::Repository)
}

fn owned(files: &[(&str, Option<&[u8]>)]) -> Vec<(String, Option<Vec<u8>>)> {
    files.iter().map(|(path, bytes)| ((*path).to_owned(), bytes.map(<[u8]>::to_vec))).collect()
}
