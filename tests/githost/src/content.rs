//! The branches and files of a repository. Every change is a commit, and every move of a branch names its old position.

use crate::git::{Change, Commit, Signature, is_reference};
use crate::model::{Repository, now};
use crate::refused::Refused;

/// A path and its new content. `None` removes the file.
pub type NewFile = (String, Option<Vec<u8>>);

impl Repository {
    /// `owner/name`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }

    /// The commit of an existing branch.
    pub fn tip(&self, branch: &str) -> Result<String, Refused> {
        self.git.branch(branch)?.ok_or_else(|| Refused::Branch(branch.to_owned()))
    }

    /// The commit that a branch, tag or id names. `None` or an empty text: that of the default branch.
    pub fn commit_of(&self, revision: Option<&str>) -> Result<String, Refused> {
        let revision = revision.filter(|revision| !revision.is_empty()).unwrap_or(&self.default_branch);
        self.git.resolve(revision)?.ok_or_else(|| Refused::Object(revision.to_owned()))
    }

    /// Branches and their commits, by name.
    pub fn branches(&self) -> Result<Vec<(String, String)>, Refused> {
        if let Some(tips) = self.git.tips() {
            let mut all: Vec<_> = tips.iter().map(|(name, sha)| (name.clone(), sha.clone())).collect();
            all.sort();
            return Ok(all);
        }
        let strip = |(name, sha): (String, String)| Some((name.strip_prefix("refs/heads/")?.to_owned(), sha));
        Ok(self.git.references("refs/heads/")?.into_iter().filter_map(strip).collect())
    }

    /// How many branches there are.
    pub fn count_branches(&self) -> Result<usize, Refused> {
        self.git.tips().map_or_else(|| self.branches().map(|all| all.len()), |tips| Ok(tips.len()))
    }

    /// Creates a branch at a commit.
    pub fn create_branch(&mut self, name: &str, sha: &str) -> Result<(), Refused> {
        if !is_reference(&format!("refs/heads/{name}")) {
            return Err(Refused::Field(format!("{name:?} is no name of a branch")));
        }
        if self.git.branch(name)?.is_some() {
            return Err(Refused::BranchExists(name.to_owned()));
        }
        if self.git.kind(sha)?.as_deref() != Some("commit") {
            return Err(Refused::Object(sha.to_owned()));
        }
        if !self.git.update(&format!("refs/heads/{name}"), Some(sha), None)? {
            return Err(Refused::BranchExists(name.to_owned()));
        }
        self.changed = true;
        Ok(())
    }

    /// Moves a branch to a commit; without `force`, only forward.
    pub fn move_branch(&mut self, name: &str, sha: &str, force: bool) -> Result<(), Refused> {
        let tip = self.tip(name)?;
        if self.git.kind(sha)?.as_deref() != Some("commit") {
            return Err(Refused::Object(sha.to_owned()));
        }
        if !force && !self.git.is_ancestor(&tip, sha)? {
            return Err(Refused::FastForward);
        }
        if !self.git.update(&format!("refs/heads/{name}"), Some(sha), Some(&tip))? {
            return Err(Refused::FastForward);
        }
        self.changed = true;
        self.refresh()
    }

    /// Deletes a branch. Open pull requests from or into it are closed.
    pub fn delete_branch(&mut self, name: &str, by: &str) -> Result<(), Refused> {
        let tip = self.tip(name)?;
        // A pull request remembers the last commit of its head.
        self.refresh()?;
        self.git.update(&format!("refs/heads/{name}"), None, Some(&tip))?;
        self.changed = true;
        let affected: Vec<_> = self
            .pulls
            .values()
            .filter(|pull| pull.is_open() && (pull.head == name || pull.base == name))
            .map(|pull| pull.number)
            .collect();
        affected.into_iter().try_for_each(|number| self.close(number, by))
    }

    /// Commits files to a branch, and returns the id of the commit. A missing branch starts at `start`, or at nothing in an empty
    /// repository.
    pub fn put_files(
        &mut self,
        branch: &str,
        start: Option<&str>,
        message: &str,
        files: &[NewFile],
        by: &str,
    ) -> Result<String, Refused> {
        if !is_reference(&format!("refs/heads/{branch}")) {
            return Err(Refused::Field(format!("{branch:?} is no name of a branch")));
        }
        let tip = self.git.branch(branch)?;
        let parent = match (&tip, start) {
            (Some(tip), _) => Some(tip.clone()),
            (None, Some(start)) => Some(self.commit_of(Some(start))?),
            (None, None) if self.count_branches()? == 0 => None,
            (None, None) => return Err(Refused::Branch(branch.to_owned())),
        };
        let mut changes: Vec<Change> = vec![];
        for (path, bytes) in files {
            if path.is_empty()
                || path.starts_with('/')
                || path.split('/').any(|part| part.is_empty() || part == ".." || part == "." || part == ".git")
            {
                return Err(Refused::Field(format!("{path:?} is no path of a file")));
            }
            let present = match &parent {
                Some(parent) => self.git.entry(parent, path)?,
                None => None,
            };
            match bytes {
                Some(bytes) => {
                    let mode = present.filter(|entry| entry.kind == "blob").map_or_else(|| "100644".to_owned(), |entry| entry.mode);
                    changes.push((path.clone(), Some((mode, self.git.write_blob(bytes)?))));
                }
                None if present.is_some() => changes.push((path.clone(), None)),
                None => return Err(Refused::File(path.clone())),
            }
        }
        let tree = self.git.write_tree(parent.as_deref(), &changes)?;
        let sha = self.commit_tree(&tree, parent.as_slice(), message, by)?;
        if !self.git.update(&format!("refs/heads/{branch}"), Some(&sha), tip.as_deref())? {
            return Err(Refused::FastForward);
        }
        self.changed = true;
        self.refresh()?;
        Ok(sha)
    }

    /// Stores a commit by a user, with the present time.
    pub(crate) fn commit_tree(&mut self, tree: &str, parents: &[String], message: &str, by: &str) -> Result<String, Refused> {
        let author = who(by);
        let (tree, parents, committer, message) = (tree.to_owned(), parents.to_vec(), author.clone(), message.to_owned());
        Ok(self.git.write_commit(&Commit { sha: String::new(), tree, parents, author, committer, message })?)
    }

    /// A file's bytes at a revision.
    pub fn file(&self, revision: &str, path: &str) -> Result<Vec<u8>, Refused> {
        let entry = self.git.entry(revision, path)?.filter(|entry| entry.kind == "blob");
        Ok(self.git.blob(&entry.ok_or_else(|| Refused::File(path.to_owned()))?.sha)?)
    }
}

/// The signature of a user, with the present time.
pub(crate) fn who(user: &str) -> Signature {
    Signature { name: user.to_owned(), email: format!("{user}@noreply.localhost"), at: now() }
}
