//! The only module that knows git's repositories. They are bare, with real objects; the caller's git configuration is not read.
//! What is a matter of one file (an object, a branch) is read and written here, as git does it. Merges, patches, archives and all
//! that is packed are left to `git`.

mod commits;
mod loose;
mod objects;
mod run;
mod trees;

use std::collections::HashMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// An error of the `git` command itself. The host answers 500.
#[derive(Debug, thiserror::Error)]
#[error("git {command}: {message}")]
pub struct GitError {
    /// The subcommand with its arguments.
    pub command: String,
    /// The output of git, or why it could not be started.
    pub message: String,
}

/// The author or committer of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    pub name: String,
    pub email: String,
    /// Seconds since 1970.
    pub at: i64,
}

/// A commit.
#[derive(Debug, Clone)]
pub struct Commit {
    pub sha: String,
    /// The id of its tree.
    pub tree: String,
    /// The ids of its parents.
    pub parents: Vec<String>,
    pub author: Signature,
    pub committer: Signature,
    pub message: String,
}

/// An entry of a tree.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The file mode in six octal digits.
    pub mode: String,
    /// `blob`, `tree` or `commit`.
    pub kind: String,
    /// The id of the object.
    pub sha: String,
    /// The size of a blob in bytes.
    pub size: Option<u64>,
    /// The path from the root of the listing.
    pub path: String,
}

/// The change of one path: a new object (mode and id), or `None` to remove it.
pub type Change = (String, Option<(String, String)>);

/// The id of the empty tree, which every repository has.
pub(crate) const EMPTY: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// A bare repository.
#[derive(Debug, Clone, Default)]
pub struct Git {
    directory: PathBuf,
    /// The objects that were read or written. They never change.
    objects: Arc<Mutex<HashMap<String, Arc<objects::Object>>>>,
    /// The output of commands that name only objects, which never changes either.
    known: Arc<Mutex<HashMap<String, Vec<u8>>>>,
    /// The branches when they were last read.
    branches: Arc<Mutex<Option<loose::Branches>>>,
}

impl Git {
    /// The repository in this directory, which need not exist yet.
    pub fn at(directory: PathBuf) -> Self {
        Self { directory, ..Self::default() }
    }

    pub fn path(&self) -> &Path {
        &self.directory
    }

    /// Creates the repository.
    pub fn init(&self, branch: &str) -> Result<(), GitError> {
        std::fs::create_dir_all(&self.directory).map_err(|error| failed(&["init"], error.to_string()))?;
        self.text(&["init", "--quiet", "--bare", "--template=", &format!("--initial-branch={branch}"), "."])?;
        // Automatic garbage collection could remove the commits of a closed pull request.
        let config = std::fs::OpenOptions::new().append(true).open(self.directory.join("config"));
        let written = config.and_then(|mut config| config.write_all(b"[gc]\n\tauto = 0\n"));
        written.map_err(|error| failed(&["config"], error.to_string()))
    }

    /// The commit of a branch.
    pub fn branch(&self, name: &str) -> Result<Option<String>, GitError> {
        self.reference(&format!("refs/heads/{name}"))
    }

    /// The object of a full reference name.
    pub fn reference(&self, name: &str) -> Result<Option<String>, GitError> {
        if !is_reference(name) {
            return Ok(None);
        }
        // Almost every reference is loose, and reading its file is a hundred times cheaper than a process.
        if let Ok(text) = std::fs::read_to_string(self.directory.join(name)) {
            return Ok(Some(text.trim().to_owned()));
        }
        if !self.directory.join("packed-refs").exists() {
            return Ok(None);
        }
        let found = self.run(&["rev-parse", "--verify", "--quiet", name], None, &[])?;
        Ok(found.status.success().then(|| String::from_utf8_lossy(&found.stdout).trim().to_owned()))
    }

    /// Full names and ids of the references under a prefix, by name.
    pub fn references(&self, prefix: &str) -> Result<Vec<(String, String)>, GitError> {
        if !self.directory.join("packed-refs").exists() {
            let mut all = vec![];
            self.loose(prefix.trim_end_matches('/'), &mut all);
            all.sort();
            return Ok(all);
        }
        let text = self.text(&["for-each-ref", "--format=%(refname) %(objectname)", prefix])?;
        Ok(text.lines().filter_map(|line| line.split_once(' ')).map(|(name, sha)| (name.to_owned(), sha.to_owned())).collect())
    }

    /// Collects the references whose files are below a name.
    fn loose(&self, name: &str, all: &mut Vec<(String, String)>) {
        for entry in std::fs::read_dir(self.directory.join(name)).into_iter().flatten().flatten() {
            let name = format!("{name}/{}", entry.file_name().to_string_lossy());
            match std::fs::read_to_string(entry.path()) {
                Ok(text) => all.extend(is_reference(&name).then(|| (name, text.trim().to_owned()))),
                Err(_) => self.loose(&name, all),
            }
        }
    }

    /// Moves a reference from one object to another. `None` means that it does not exist. Returns false if it pointed elsewhere.
    pub fn update(&self, name: &str, new: Option<&str>, old: Option<&str>) -> Result<bool, GitError> {
        const NOTHING: &str = "0000000000000000000000000000000000000000";
        if let Some(moved) = new.and_then(|new| self.move_loose(name, new, old)) {
            return Ok(moved);
        }
        let old = old.unwrap_or(NOTHING);
        let arguments = match new {
            Some(new) => vec!["update-ref", name, new, old],
            None => vec!["update-ref", "-d", name, old],
        };
        Ok(self.run(&arguments, None, &[])?.status.success())
    }

    /// Moves a reference that is a file, or is to be one, as git does: a second file is its lock, and takes its place. `None`: this
    /// is for git to decide, or to wait for.
    fn move_loose(&self, name: &str, new: &str, old: Option<&str>) -> Option<bool> {
        let file = self.directory.join(name);
        let simple = is_reference(name) && !file.is_dir() && !self.directory.join("packed-refs").exists();
        self.loose_object(new).filter(|object| simple && object.kind == "commit")?;
        std::fs::create_dir_all(file.parent()?).ok()?;
        let lock = self.directory.join(format!("{name}.lock"));
        let mut draft = std::fs::OpenOptions::new().write(true).create_new(true).open(&lock).ok()?;
        let found = std::fs::read_to_string(&file).ok();
        let same = found.as_deref().map(str::trim) == old;
        let moved = same && draft.write_all(format!("{new}\n").as_bytes()).and_then(|()| std::fs::rename(&lock, &file)).is_ok();
        if !moved {
            // Nothing else removes it.
            std::fs::remove_file(&lock).ok();
        }
        (moved || !same).then_some(moved)
    }

    /// The commit that a branch, tag, full reference or id names.
    pub fn resolve(&self, revision: &str) -> Result<Option<String>, GitError> {
        if revision.is_empty() || revision.starts_with('-') || revision.contains(['^', '~', ':', '@', ' ']) {
            return Ok(None);
        }
        if let Some(sha) = self.branch(revision)? {
            return Ok(Some(sha));
        }
        if self.kind(revision)?.as_deref() == Some("commit") {
            return Ok(Some(revision.to_owned()));
        }
        let found = self.found(&["rev-parse", "--verify", "--quiet", &format!("{revision}^{{commit}}")])?;
        Ok(found.map(|found| String::from_utf8_lossy(&found).trim().to_owned()))
    }

    /// The kind of an object (`blob`, `tree`, `commit` or `tag`), if it exists.
    pub fn kind(&self, sha: &str) -> Result<Option<String>, GitError> {
        if !is_sha(sha) {
            return Ok(None);
        }
        Ok(self.object(sha)?.map(|object| object.kind.clone()))
    }

    /// A blob's bytes.
    pub fn blob(&self, sha: &str) -> Result<Vec<u8>, GitError> {
        Ok(self.content("blob", sha)?.bytes.clone())
    }

    /// Stores bytes as they are.
    pub fn write_blob(&self, bytes: &[u8]) -> Result<String, GitError> {
        self.write_object("blob", bytes)
    }

    /// The tree of a merge of two commits. `Err` has the paths with conflicts.
    pub fn merge(&self, base: &str, head: &str) -> Result<Result<String, Vec<String>>, GitError> {
        // If one contains the other, nothing is merged.
        for (older, newer) in [(base, head), (head, base)] {
            if self.is_ancestor(older, newer)?
                && let Some(newer) = self.commit(newer)?
            {
                return Ok(Ok(newer.tree));
            }
        }
        let arguments =
            ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", "--allow-unrelated-histories", base, head];
        let found = self.run(&arguments, None, &[])?;
        let text = String::from_utf8_lossy(&found.stdout).into_owned();
        let mut parts = text.split('\0').map(str::trim).filter(|part| !part.is_empty());
        let tree = parts.next().unwrap_or_default().to_owned();
        match found.status.code() {
            Some(0) => Ok(Ok(tree)),
            Some(1) => Ok(Err(parts.map(str::to_owned).collect())),
            _ => Err(failed(&arguments, String::from_utf8_lossy(&found.stderr).into_owned())),
        }
    }

    /// The numbers of changed files, added lines and deleted lines between two commits.
    pub fn numbers(&self, from: &str, to: &str) -> Result<(u64, u64, u64), GitError> {
        let text = self.lines(&["diff-tree", "-r", "--no-renames", "--numstat", from, to])?;
        let number = |line: &str, at: usize| line.split('\t').nth(at).and_then(|count| count.parse::<u64>().ok()).unwrap_or(0);
        Ok(text
            .lines()
            .fold((0, 0, 0), |(files, added, deleted), line| (files + 1, added + number(line, 0), deleted + number(line, 1))))
    }

    /// The changes between two commits as a patch.
    pub fn diff(&self, from: &str, to: &str) -> Result<Vec<u8>, GitError> {
        self.read(&["diff-tree", "-r", "-p", "--no-renames", "--full-index", from, to])
    }

    /// The files of a commit as an archive. `format` is `tar.gz`, `tar` or `zip`.
    pub fn archive(&self, revision: &str, prefix: &str, format: &str, path: &str) -> Result<Vec<u8>, GitError> {
        let (format, prefix) = (format!("--format={format}"), format!("--prefix={prefix}"));
        let mut arguments = vec!["archive", &format, &prefix, revision];
        arguments.extend((!path.is_empty()).then_some(path));
        self.read(&arguments)
    }
}

/// Whether a text is a full object id.
pub fn is_sha(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a text may be a full reference name, by those rules of `git check-ref-format` that keep paths inside the repository.
pub fn is_reference(name: &str) -> bool {
    let forbidden = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
    let part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    name.starts_with("refs/")
        && !name.contains(forbidden)
        && !name.contains("..")
        && !name.contains("@{")
        && !name.ends_with('.')
        && name.split('/').all(part)
}

fn failed(arguments: &[&str], message: String) -> GitError {
    GitError { command: arguments.join(" "), message }
}

#[cfg(test)]
mod tests;
