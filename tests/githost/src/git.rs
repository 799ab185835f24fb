//! The only module that runs `git`. Bare repositories with real objects; the caller's git configuration is not read.

mod loose;
mod run;

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
    /// The output of commands that name only objects, which never changes.
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
        let old = old.unwrap_or(NOTHING);
        let arguments = match new {
            Some(new) => vec!["update-ref", name, new, old],
            None => vec!["update-ref", "-d", name, old],
        };
        Ok(self.run(&arguments, None, &[])?.status.success())
    }

    /// The commit that a branch, tag, full reference or id names.
    pub fn resolve(&self, revision: &str) -> Result<Option<String>, GitError> {
        if revision.is_empty() || revision.starts_with('-') || revision.contains(['^', '~', ':', '@', ' ']) {
            return Ok(None);
        }
        if let Some(sha) = self.branch(revision)? {
            return Ok(Some(sha));
        }
        let found = self.found(&["rev-parse", "--verify", "--quiet", &format!("{revision}^{{commit}}")])?;
        Ok(found.map(|found| String::from_utf8_lossy(&found).trim().to_owned()))
    }

    /// The kind of an object (`blob`, `tree`, `commit` or `tag`), if it exists.
    pub fn kind(&self, sha: &str) -> Result<Option<String>, GitError> {
        if !is_sha(sha) {
            return Ok(None);
        }
        Ok(self.found(&["cat-file", "-t", sha])?.map(|found| String::from_utf8_lossy(&found).trim().to_owned()))
    }

    /// A commit. `None`: the id does not name one.
    pub fn commit(&self, sha: &str) -> Result<Option<Commit>, GitError> {
        if self.kind(sha)?.as_deref() != Some("commit") {
            return Ok(None);
        }
        let raw = self.read(&["cat-file", "commit", sha])?;
        let raw = String::from_utf8_lossy(&raw);
        let (head, message) = raw.split_once("\n\n").unwrap_or((&raw, ""));
        let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).unwrap_or_default();
        let parents = head.lines().filter_map(|line| line.strip_prefix("parent ")).map(str::to_owned).collect();
        Ok(Some(Commit {
            sha: sha.to_owned(),
            tree: field("tree").to_owned(),
            parents,
            author: signature(field("author")),
            committer: signature(field("committer")),
            message: message.to_owned(),
        }))
    }

    /// The entries of a tree. With `recursive`, subtrees are listed together with their entries.
    pub fn tree(&self, revision: &str, recursive: bool) -> Result<Vec<Entry>, GitError> {
        let mut arguments = vec!["ls-tree", "-z", "-l"];
        if recursive {
            arguments.extend(["-r", "-t"]);
        }
        arguments.push(revision);
        let output = self.read(&arguments)?;
        let entries = output.split(|byte| *byte == 0).filter(|line| !line.is_empty());
        Ok(entries.filter_map(|line| entry(&String::from_utf8_lossy(line))).collect())
    }

    /// The entry at a path, if it exists. The empty path is the root.
    pub fn entry(&self, revision: &str, path: &str) -> Result<Option<Entry>, GitError> {
        if path.is_empty() {
            let tree = self.lines(&["rev-parse", &format!("{revision}^{{tree}}")])?;
            let (mode, kind) = ("040000".to_owned(), "tree".to_owned());
            return Ok(Some(Entry { mode, kind, sha: tree.trim().to_owned(), size: None, path: String::new() }));
        }
        let output = self.read(&["--literal-pathspecs", "ls-tree", "-z", "-l", revision, "--", path])?;
        Ok(output.split(|byte| *byte == 0).filter(|line| !line.is_empty()).find_map(|line| entry(&String::from_utf8_lossy(line))))
    }

    /// A blob's bytes.
    pub fn blob(&self, sha: &str) -> Result<Vec<u8>, GitError> {
        self.read(&["cat-file", "blob", sha])
    }

    /// Stores bytes as they are.
    pub fn write_blob(&self, bytes: &[u8]) -> Result<String, GitError> {
        let output = self.output(&["hash-object", "-w", "--no-filters", "--stdin"], Some(bytes), &[])?;
        let sha = String::from_utf8_lossy(&output).trim().to_owned();
        self.know(&["cat-file", "-t", &sha], b"blob\n");
        self.know(&["cat-file", "blob", &sha], bytes);
        Ok(sha)
    }

    /// Stores a tree: a base, if there is one, with these changes.
    pub fn write_tree(&self, base: Option<&str>, changes: &[Change]) -> Result<String, GitError> {
        let index = self.directory.join("keelway-index");
        if index.exists() {
            std::fs::remove_file(&index).map_err(|error| failed(&["read-tree"], error.to_string()))?;
        }
        let environment = [("GIT_INDEX_FILE", index.to_string_lossy().into_owned())];
        self.output(&["read-tree", base.unwrap_or("--empty")], None, &environment)?;
        let mut lines: Vec<u8> = vec![];
        for (path, object) in changes {
            match object {
                Some((mode, sha)) if mode == "040000" => {
                    self.output(&["read-tree", &format!("--prefix={path}/"), sha], None, &environment)?;
                }
                Some((mode, sha)) => lines.extend(format!("{mode} {sha}\t{path}\0").bytes()),
                None => lines.extend(format!("0 0000000000000000000000000000000000000000\t{path}\0").bytes()),
            }
        }
        self.output(&["update-index", "-z", "--index-info"], Some(&lines), &environment)?;
        let tree = self.output(&["write-tree"], None, &environment)?;
        Ok(String::from_utf8_lossy(&tree).trim().to_owned())
    }

    /// Stores a commit.
    pub fn write_commit(&self, commit: &Commit) -> Result<String, GitError> {
        let date = |signature: &Signature| format!("@{} +0000", signature.at);
        let environment = [
            ("GIT_AUTHOR_NAME", commit.author.name.clone()),
            ("GIT_AUTHOR_EMAIL", commit.author.email.clone()),
            ("GIT_AUTHOR_DATE", date(&commit.author)),
            ("GIT_COMMITTER_NAME", commit.committer.name.clone()),
            ("GIT_COMMITTER_EMAIL", commit.committer.email.clone()),
            ("GIT_COMMITTER_DATE", date(&commit.committer)),
        ];
        let mut arguments = vec!["commit-tree", &commit.tree];
        for parent in &commit.parents {
            arguments.extend(["-p", parent]);
        }
        let output = self.output(&arguments, Some(commit.message.as_bytes()), &environment)?;
        let sha = String::from_utf8_lossy(&output).trim().to_owned();
        self.know(&["cat-file", "-t", &sha], b"commit\n");
        Ok(sha)
    }

    /// The tree of a merge of two commits. `Err` has the paths with conflicts.
    pub fn merge(&self, base: &str, head: &str) -> Result<Result<String, Vec<String>>, GitError> {
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

    /// The commits of `with` that `without` lacks, newest first.
    pub fn log(&self, without: &str, with: &str) -> Result<Vec<String>, GitError> {
        let text = self.lines(&["rev-list", with, &format!("^{without}")])?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// A commit and its ancestors, newest first, up to a limit. With a path: those that changed it.
    pub fn history(&self, revision: &str, path: &str, limit: usize) -> Result<Vec<String>, GitError> {
        let limit = format!("--max-count={limit}");
        let mut arguments = vec!["--literal-pathspecs", "rev-list", &limit, revision, "--"];
        arguments.extend((!path.is_empty()).then_some(path));
        Ok(self.lines(&arguments)?.lines().map(str::to_owned).collect())
    }

    /// Whether the first commit is the second one or one of its ancestors.
    pub fn is_ancestor(&self, ancestor: &str, of: &str) -> Result<bool, GitError> {
        Ok(self.found(&["merge-base", "--is-ancestor", ancestor, of])?.is_some())
    }

    /// The best common ancestor of two commits.
    pub fn merge_base(&self, one: &str, other: &str) -> Result<Option<String>, GitError> {
        Ok(self.found(&["merge-base", one, other])?.map(|found| String::from_utf8_lossy(&found).trim().to_owned()))
    }

    /// Letter (`A`, `M`, `D`, …) and path of each change between two commits.
    pub fn changed(&self, from: &str, to: &str) -> Result<Vec<(char, String)>, GitError> {
        let text = self.lines(&["diff-tree", "-r", "-z", "--no-renames", "--name-status", from, to])?;
        let parts: Vec<_> = text.split('\0').collect();
        Ok(parts.chunks_exact(2).filter_map(|pair| Some((pair[0].chars().next()?, pair[1].to_owned()))).collect())
    }

    /// The numbers of changed files, added lines and deleted lines between two commits.
    pub fn numbers(&self, from: &str, to: &str) -> Result<(u64, u64, u64), GitError> {
        let text = self.text(&["diff-tree", "-r", "--no-renames", "--numstat", from, to])?;
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

fn entry(line: &str) -> Option<Entry> {
    let (facts, path) = line.split_once('\t')?;
    let mut facts = facts.split_whitespace().map(str::to_owned);
    let (mode, kind, sha) = (facts.next()?, facts.next()?, facts.next()?);
    Some(Entry { mode, kind, sha, size: facts.next().and_then(|size| size.parse().ok()), path: path.to_owned() })
}

fn signature(line: &str) -> Signature {
    let (name, rest) = line.split_once(" <").unwrap_or((line, ""));
    let (email, rest) = rest.split_once("> ").unwrap_or((rest, ""));
    let at = rest.split(' ').next().and_then(|at| at.parse().ok()).unwrap_or_default();
    Signature { name: name.to_owned(), email: email.to_owned(), at }
}
