//! Commits and the paths between them. What is asked about a few commits in a line is answered from their objects; git answers
//! where lines meet.

use super::{Commit, Git, GitError, Signature, failed};
use std::collections::HashSet;

impl Git {
    /// A commit. `None`: the id does not name one.
    pub fn commit(&self, sha: &str) -> Result<Option<Commit>, GitError> {
        if self.kind(sha)?.as_deref() != Some("commit") {
            return Ok(None);
        }
        Ok(Some(parsed(sha, &self.content("commit", sha)?.bytes)))
    }

    /// Stores a commit. Names and addresses lose the characters that git does not allow in them.
    pub fn write_commit(&self, commit: &Commit) -> Result<String, GitError> {
        let refused = |why: &str| failed(&["commit-tree"], why.to_owned());
        if commit.message.contains('\0') {
            return Err(refused("a NUL byte in the message is not allowed"));
        }
        let mut text = format!("tree {}\n", commit.tree);
        let mut parents = HashSet::new();
        for parent in commit.parents.iter().filter(|parent| parents.insert(*parent)) {
            text += &format!("parent {parent}\n");
        }
        for (role, by) in [("author", &commit.author), ("committer", &commit.committer)] {
            let (name, email) = (allowed(&by.name), allowed(&by.email));
            if name.is_empty() || by.at < 0 {
                return Err(refused(&format!("{role} without a name, or before 1970")));
            }
            text += &format!("{role} {name} <{email}> {} +0000\n", by.at);
        }
        self.write_object("commit", format!("{text}\n{}", commit.message).as_bytes())
    }

    /// The commits of `with` that `without` lacks, newest first.
    pub fn log(&self, without: &str, with: &str) -> Result<Vec<String>, GitError> {
        if self.is_ancestor(with, without)? {
            return Ok(vec![]);
        }
        let line = self.line(with);
        if let Some(end) = line.iter().position(|commit| commit.sha == without) {
            return Ok(line[..end].iter().map(|commit| commit.sha.clone()).collect());
        }
        let text = self.lines(&["rev-list", with, &format!("^{without}")])?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// A commit and its ancestors, newest first, up to a limit. With a path: those that changed it.
    pub fn history(&self, revision: &str, path: &str, limit: usize) -> Result<Vec<String>, GitError> {
        let line = self.line(revision);
        let mut found = vec![];
        for (at, commit) in line.iter().enumerate() {
            let before = match (commit.parents.is_empty(), line.get(at + 1)) {
                (true, _) => None,
                (false, Some(parent)) => self.object_at(&parent.sha, path)?,
                // Here, lines meet.
                (false, None) => break,
            };
            if path.is_empty() || self.object_at(&commit.sha, path)? != before {
                found.push(commit.sha.clone());
            }
            if found.len() == limit || commit.parents.is_empty() {
                return Ok(found);
            }
        }
        let limit = format!("--max-count={limit}");
        let mut arguments = vec!["--literal-pathspecs", "rev-list", &limit, revision, "--"];
        arguments.extend((!path.is_empty()).then_some(path));
        Ok(self.lines(&arguments)?.lines().map(str::to_owned).collect())
    }

    /// Whether the first commit is the second one or one of its ancestors.
    pub fn is_ancestor(&self, ancestor: &str, of: &str) -> Result<bool, GitError> {
        match self.reaches(of, ancestor) {
            Some(reaches) => Ok(reaches),
            None => Ok(self.found(&["merge-base", "--is-ancestor", ancestor, of])?.is_some()),
        }
    }

    /// The best common ancestor of two commits.
    pub fn merge_base(&self, one: &str, other: &str) -> Result<Option<String>, GitError> {
        for (ancestor, of) in [(one, other), (other, one)] {
            if self.reaches(of, ancestor) == Some(true) {
                return Ok(Some(ancestor.to_owned()));
            }
        }
        Ok(self.found(&["merge-base", one, other])?.map(|found| String::from_utf8_lossy(&found).trim().to_owned()))
    }

    /// A commit and its ancestors as long as each has one parent: up to the first commit, or to a merge and with it. Ends before an
    /// object that is packed.
    fn line(&self, from: &str) -> Vec<Commit> {
        let mut line = vec![];
        let mut next = self.loose_commit(from);
        while let Some(commit) = next {
            next = <&[String; 1]>::try_from(&commit.parents[..]).ok().and_then(|[parent]| self.loose_commit(parent));
            line.push(commit);
        }
        line
    }

    /// Whether a commit is among another one and its ancestors. `None`: one of them is packed, or no commit.
    fn reaches(&self, from: &str, wanted: &str) -> Option<bool> {
        let (mut open, mut seen) = (vec![from.to_owned()], HashSet::new());
        while let Some(sha) = open.pop() {
            let commit = self.loose_commit(&sha)?;
            if sha == wanted {
                return Some(true);
            }
            if seen.insert(sha) {
                open.extend(commit.parents);
            }
        }
        Some(false)
    }

    fn loose_commit(&self, sha: &str) -> Option<Commit> {
        self.loose_object(sha).filter(|object| object.kind == "commit").map(|object| parsed(sha, &object.bytes))
    }

    fn object_at(&self, commit: &str, path: &str) -> Result<Option<(String, String)>, GitError> {
        Ok(self.entry(commit, path)?.map(|entry| (entry.mode, entry.sha)))
    }
}

fn parsed(sha: &str, raw: &[u8]) -> Commit {
    let raw = String::from_utf8_lossy(raw);
    let (head, message) = raw.split_once("\n\n").unwrap_or((&raw, ""));
    let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).unwrap_or_default();
    Commit {
        sha: sha.to_owned(),
        tree: field("tree").to_owned(),
        parents: head.lines().filter_map(|line| line.strip_prefix("parent ")).map(str::to_owned).collect(),
        author: signature(field("author")),
        committer: signature(field("committer")),
        message: message.to_owned(),
    }
}

fn signature(line: &str) -> Signature {
    let (name, rest) = line.split_once(" <").unwrap_or((line, ""));
    let (email, rest) = rest.split_once("> ").unwrap_or((rest, ""));
    let at = rest.split(' ').next().and_then(|at| at.parse().ok()).unwrap_or_default();
    Signature { name: name.to_owned(), email: email.to_owned(), at }
}

/// A name or an address as git writes it.
fn allowed(text: &str) -> String {
    let at_ends = |c: char| c <= ' ' || ".,:;<>\"\\'".contains(c);
    text.trim_matches(at_ends).chars().filter(|c| !['\n', '<', '>'].contains(c)).collect()
}
