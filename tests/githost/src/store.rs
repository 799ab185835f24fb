//! The store: a directory of bare repositories, each beside a JSON file with its pull requests.

use crate::git::Git;
use crate::model::{Form, Method, Repository, Scope, Token, Webhook, now};
use crate::refused::Refused;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// A repository to be created.
#[expect(missing_docs, reason = "the names of the fields say what they are")]
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewRepository {
    /// A user, an organisation or a project.
    pub owner: String,
    pub name: String,
    /// Whether it is hidden from tokens that do not list it.
    #[serde(default)]
    pub private: bool,
    /// Default: `main`.
    #[serde(default)]
    pub default_branch: Option<String>,
    /// The files of its first commit, by path. Without files, the repository is empty.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// The receiver of its events.
    #[serde(default)]
    pub webhook: Option<Webhook>,
    /// The permitted methods to merge. Default: all.
    #[serde(default)]
    pub methods: Option<Vec<Method>>,
}

/// The repositories and tokens.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    /// By `owner/name` in lower case, because the hosts ignore case.
    repositories: BTreeMap<String, Repository>,
    pub(crate) tokens: Vec<Token>,
    /// The form of webhooks where the receiver does not name one.
    pub(crate) form: Form,
    /// How many requests have changed something.
    pub(crate) writes: u64,
}

impl Store {
    /// Opens a directory, which may be empty or missing.
    pub fn open(directory: PathBuf, form: Form, tokens: Vec<Token>) -> Result<Self, Refused> {
        fs::create_dir_all(&directory).map_err(disk)?;
        let directory = directory.canonicalize().map_err(disk)?;
        let mut store = Self { directory, repositories: BTreeMap::new(), tokens, form, writes: 0 };
        for owner in fs::read_dir(&store.directory).map_err(disk)? {
            let owner = owner.map_err(disk)?.path();
            if !owner.is_dir() {
                continue;
            }
            for file in fs::read_dir(&owner).map_err(disk)? {
                let file = file.map_err(disk)?.path();
                if file.extension().is_some_and(|extension| extension == "json") {
                    let text = fs::read(&file).map_err(disk)?;
                    let mut repository: Repository = serde_json::from_slice(&text).map_err(disk)?;
                    repository.git = Git::at(file.with_extension("git"));
                    store.repositories.insert(key(&repository.owner, &repository.name), repository);
                }
            }
        }
        Ok(store)
    }

    /// Creates a repository with its first commit.
    pub fn create(&mut self, new: &NewRepository, by: &str) -> Result<&mut Repository, Refused> {
        let valid = |name: &str| {
            !name.is_empty() && !name.starts_with('.') && name.chars().all(|c| c.is_alphanumeric() || "-_.~".contains(c))
        };
        if !valid(&new.owner) || !valid(&new.name) || self.repositories.contains_key(&key(&new.owner, &new.name)) {
            return Err(Refused::Field(format!("{}/{} exists or is not a name", new.owner, new.name)));
        }
        let id = self.repositories.values().map(|repository| repository.id).max().unwrap_or(0) + 1;
        let branch = new.default_branch.clone().unwrap_or_else(|| "main".into());
        let git = Git::at(self.directory.join(&new.owner).join(format!("{}.git", new.name)));
        git.init(&branch)?;
        let mut repository = Repository {
            id,
            owner: new.owner.clone(),
            name: new.name.clone(),
            private: new.private,
            default_branch: branch.clone(),
            methods: new.methods.clone().unwrap_or_else(|| vec![Method::Merge, Method::Squash]),
            webhook: new.webhook.clone(),
            pulls: BTreeMap::new(),
            last: 0,
            last_comment: id * 100_000,
            created: now(),
            git,
            changed: true,
            happened: vec![],
            clean: BTreeMap::new(),
        };
        if !new.files.is_empty() {
            let files: Vec<_> = new.files.iter().map(|(path, text)| (path.clone(), Some(text.clone().into_bytes()))).collect();
            repository.put_files(&branch, None, "Initial commit", &files, by)?;
        }
        Ok(self.repositories.entry(key(&new.owner, &new.name)).or_insert(repository))
    }

    /// A repository by its owner and name.
    pub fn repository(&mut self, owner: &str, name: &str) -> Result<&mut Repository, Refused> {
        self.repositories.get_mut(&key(owner, name)).ok_or(Refused::Repository)
    }

    /// A repository by its id.
    pub fn numbered(&self, id: u64) -> Option<&Repository> {
        self.repositories.values().find(|repository| repository.id == id)
    }

    /// All repositories, by name.
    pub fn all(&self) -> impl Iterator<Item = &Repository> {
        self.repositories.values()
    }

    /// All repositories, mutable.
    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut Repository> {
        self.repositories.values_mut()
    }

    /// A repository that is visible to a token, and the token's user.
    pub(crate) fn seen(
        &mut self,
        token: Option<&Token>,
        owner: &str,
        name: &str,
        scope: Scope,
    ) -> Result<(&mut Repository, String), Refused> {
        let repository = self.repositories.get_mut(&key(owner, name));
        let Some(token) = token else {
            let public = repository.filter(|repository| scope == Scope::Read && !repository.private);
            return public.map(|repository| (repository, "anonymous".to_owned())).ok_or(Refused::Anonymous);
        };
        let full = format!("{owner}/{name}");
        let listed = token.repositories.as_ref().is_none_or(|names| names.iter().any(|name| name.eq_ignore_ascii_case(&full)));
        let repository =
            repository.filter(|repository| listed || (!repository.private && scope == Scope::Read)).ok_or(Refused::Repository)?;
        if !token.scopes.contains(&scope) {
            return Err(Refused::Scope(scope));
        }
        if token.read_only && scope == Scope::Contents {
            return Err(Refused::Permission);
        }
        Ok((repository, token.user.clone()))
    }

    /// Writes the changes to the disk. Each file is replaced as a whole, so a host that is killed finds the old one or the new one.
    pub fn save(&mut self) -> Result<(), Refused> {
        for repository in self.repositories.values_mut().filter(|repository| repository.changed) {
            let file = repository.git.path().with_extension("json");
            let draft = file.with_extension("json.new");
            fs::write(&draft, serde_json::to_vec_pretty(repository).map_err(disk)?).map_err(disk)?;
            fs::rename(&draft, &file).map_err(disk)?;
            repository.changed = false;
            self.writes += 1;
        }
        Ok(())
    }
}

fn key(owner: &str, name: &str) -> String {
    format!("{owner}/{name}").to_lowercase()
}

fn disk(error: impl std::fmt::Display) -> Refused {
    Refused::Disk(error.to_string())
}
