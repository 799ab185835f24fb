//! Trees: their entries, an entry by its path, a tree with changes, and what differs between two.

use super::{Change, Entry, Git, GitError, failed};
use std::collections::BTreeMap;

/// The mode of a directory, in six digits.
const DIRECTORY: &str = "040000";

/// The files of a tree: mode and id by path. Paths are bytes, because git does not say how they are encoded. This is the order in
/// which git lists and stores them, too.
type Files = BTreeMap<Vec<u8>, (String, String)>;

impl Git {
    /// The entries of a tree. With `recursive`, subtrees are listed together with their entries.
    pub fn tree(&self, revision: &str, recursive: bool) -> Result<Vec<Entry>, GitError> {
        let mut entries = vec![];
        self.walk(&self.root(revision)?, b"", &mut |mode, path, sha| {
            entries.push((mode.to_owned(), path.to_vec(), sha.to_owned()));
            recursive
        })?;
        entries.into_iter().map(|(mode, path, sha)| self.listed(mode, &path, sha)).collect()
    }

    /// The entry at a path, if it exists. The empty path is the root.
    pub fn entry(&self, revision: &str, path: &str) -> Result<Option<Entry>, GitError> {
        let mut found = (DIRECTORY.to_owned(), self.root(revision)?);
        for part in path.split('/').filter(|_| !path.is_empty()) {
            if found.0 != DIRECTORY {
                return Ok(None);
            }
            let mut below = None;
            self.walk(&found.1, b"", &mut |mode, name, sha| {
                if name == part.as_bytes() {
                    below = Some((mode.to_owned(), sha.to_owned()));
                }
                false
            })?;
            match below {
                Some(below) => found = below,
                None => return Ok(None),
            }
        }
        self.listed(found.0, path.as_bytes(), found.1).map(Some)
    }

    /// Stores a tree: a base, if there is one, with these changes. A file takes the place of a directory, and the other way around.
    pub fn write_tree(&self, base: Option<&str>, changes: &[Change]) -> Result<String, GitError> {
        let mut files = match base {
            Some(base) => self.files(&self.root(base)?)?,
            None => Files::new(),
        };
        for (path, object) in changes {
            if path.split('/').any(|part| ["", ".", ".."].contains(&part) || part.eq_ignore_ascii_case(".git"))
                || path.contains('\0')
            {
                return Err(failed(&["update-index"], format!("invalid path {path:?}")));
            }
            let Some((mode, sha)) = object else {
                files.remove(path.as_bytes());
                continue;
            };
            let within = [path.as_bytes(), b"/"].concat();
            files.retain(|file, _| {
                let above = path.as_bytes().strip_prefix(&file[..]).is_some_and(|rest| rest.first() == Some(&b'/'));
                file != path.as_bytes() && !file.starts_with(&within) && !above
            });
            if mode == DIRECTORY {
                files.extend(self.files(sha)?.into_iter().map(|(file, object)| ([&within[..], &file].concat(), object)));
            } else {
                files.insert(path.clone().into_bytes(), (mode.clone(), sha.clone()));
            }
        }
        self.write_files(&files.iter().map(|(path, (mode, sha))| (&path[..], &mode[..], &sha[..])).collect::<Vec<_>>())
    }

    /// Letter (`A`, `M`, `T`, `D`) and path of each change between two commits.
    pub fn changed(&self, from: &str, to: &str) -> Result<Vec<(char, String)>, GitError> {
        let (from, to) = (self.files(&self.root(from)?)?, self.files(&self.root(to)?)?);
        let mut changed: BTreeMap<_, _> = from.keys().filter(|path| !to.contains_key(*path)).map(|path| (path, 'D')).collect();
        for (path, object) in &to {
            match from.get(path) {
                None => drop(changed.insert(path, 'A')),
                // The first three digits are the type: file, link or commit.
                Some(old) if old.0[..3] != object.0[..3] => drop(changed.insert(path, 'T')),
                Some(old) if old != object => drop(changed.insert(path, 'M')),
                Some(_) => {}
            }
        }
        Ok(changed.into_iter().map(|(path, letter)| (letter, String::from_utf8_lossy(path).into_owned())).collect())
    }

    /// The tree that a commit, tree or other revision has.
    fn root(&self, revision: &str) -> Result<String, GitError> {
        if self.kind(revision)?.as_deref() == Some("tree") {
            return Ok(revision.to_owned());
        }
        match self.commit(revision)? {
            Some(commit) => Ok(commit.tree),
            None => Ok(self.lines(&["rev-parse", "--verify", &format!("{revision}^{{tree}}")])?.trim().to_owned()),
        }
    }

    /// Calls `each` with mode, path and id of each entry of a tree. Where it answers true for a directory, also with those below.
    fn walk(&self, tree: &str, prefix: &[u8], each: &mut dyn FnMut(&str, &[u8], &str) -> bool) -> Result<(), GitError> {
        let object = self.content("tree", tree)?;
        let mut rest = &object.bytes[..];
        // `100644 name`, a zero byte, and the twenty bytes of the id.
        while let Some(end) = rest.iter().position(|byte| *byte == 0).filter(|end| rest.len() > end + 20) {
            let (facts, id) = (&rest[..end], &rest[end + 1..end + 21]);
            rest = &rest[end + 21..];
            let space = facts.iter().position(|byte| *byte == b' ').unwrap_or_default();
            let mode = format!("{:0>6}", String::from_utf8_lossy(&facts[..space]));
            let sha: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
            let path = [prefix, &facts[space + 1..]].concat();
            if each(&mode, &path, &sha) && mode == DIRECTORY {
                self.walk(&sha, &[&path[..], b"/"].concat(), each)?;
            }
        }
        Ok(())
    }

    fn files(&self, tree: &str) -> Result<Files, GitError> {
        let mut files = Files::new();
        self.walk(tree, b"", &mut |mode, path, sha| {
            if mode != DIRECTORY {
                files.insert(path.to_vec(), (mode.to_owned(), sha.to_owned()));
            }
            true
        })?;
        Ok(files)
    }

    /// Stores a tree with these files (path, mode, id), in the order of [`Files`].
    fn write_files(&self, mut files: &[(&[u8], &str, &str)]) -> Result<String, GitError> {
        let mut tree = vec![];
        let mut entry = |mode: &str, name: &[u8], sha: &str| {
            tree.extend([mode.trim_start_matches('0').as_bytes(), b" ", name, b"\0"].concat());
            tree.extend((0..20).map(|at| u8::from_str_radix(&sha[2 * at..2 * at + 2], 16).unwrap_or_default()));
        };
        while let Some((path, mode, sha)) = files.first() {
            let Some(length) = path.iter().position(|byte| *byte == b'/') else {
                entry(mode, path, sha);
                files = &files[1..];
                continue;
            };
            let prefix = &path[..=length];
            let (below, after) = files.split_at(files.iter().take_while(|(path, ..)| path.starts_with(prefix)).count());
            let below: Vec<_> = below.iter().map(|(path, mode, sha)| (&path[length + 1..], *mode, *sha)).collect();
            entry(DIRECTORY, &path[..length], &self.write_files(&below)?);
            files = after;
        }
        self.write_object("tree", &tree)
    }

    fn listed(&self, mode: String, path: &[u8], sha: String) -> Result<Entry, GitError> {
        let kind = match mode.as_str() {
            DIRECTORY => "tree",
            "160000" => "commit",
            _ => "blob",
        };
        let size = (kind == "blob").then(|| self.content(kind, &sha)).transpose()?.map(|object| object.bytes.len() as u64);
        Ok(Entry { mode, kind: kind.to_owned(), sha, size, path: String::from_utf8_lossy(path).into_owned() })
    }
}
