//! Branches whose references are separate files. They are read again only after one of their folders has changed: a host with a
//! thousand open pull requests looks up a thousand branches for each request.

use super::{Git, is_reference};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime};

/// A folder that changed within this time may change again without a new time: file systems count in ticks of some milliseconds.
const TICK: Duration = Duration::from_millis(50);

/// The result of one reading.
#[derive(Debug, Clone)]
pub(super) struct Branches {
    at: SystemTime,
    folders: Vec<(PathBuf, SystemTime)>,
    tips: Arc<HashMap<String, String>>,
}

impl Branches {
    fn read(heads: PathBuf) -> Self {
        let mut all = Self { at: SystemTime::now(), folders: vec![], tips: Arc::default() };
        let mut tips = HashMap::new();
        let mut open = vec![(heads, String::new())];
        while let Some((folder, prefix)) = open.pop() {
            // The time is read first, because later changes also change it.
            all.folders.extend(changed_at(&folder).map(|at| (folder.clone(), at)));
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
                match fs::read_to_string(entry.path()) {
                    Ok(text) if is_reference(&format!("refs/heads/{name}")) => drop(tips.insert(name, text.trim().to_owned())),
                    Ok(_) => {}
                    Err(_) => open.push((entry.path(), format!("{name}/"))),
                }
            }
        }
        all.tips = Arc::new(tips);
        all
    }

    /// Whether another reading would find the same.
    fn hold(&self) -> bool {
        let same = |(folder, at): &(PathBuf, SystemTime)| *at + TICK < self.at && changed_at(folder) == Some(*at);
        !self.folders.is_empty() && self.folders.iter().all(same)
    }
}

fn changed_at(folder: &Path) -> Option<SystemTime> {
    fs::metadata(folder).and_then(|metadata| metadata.modified()).ok()
}

impl Git {
    /// The commits of all branches by name. `None`: some references are packed, so each must be asked for.
    pub fn tips(&self) -> Option<Arc<HashMap<String, String>>> {
        if self.directory.join("packed-refs").exists() {
            return None;
        }
        let mut read = self.branches.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(branches) = read.as_ref().filter(|branches| branches.hold()) {
            return Some(branches.tips.clone());
        }
        let branches = Branches::read(self.directory.join("refs/heads"));
        Some(read.insert(branches).tips.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_that_was_moved_behind_the_hosts_back_is_seen_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::at(folder.path().join("shop.git"));
        git.init("main").unwrap();
        let commits = [super::super::EMPTY, "ce013625030ba8dba906f756967f9e9ca394464a"];
        for at in 0..200 {
            let file = git.path().join(["refs/heads/main", "refs/heads/deliver/prod"][at / 2 % 2]);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            // Like git: a new file replaces the old one.
            fs::write(file.with_extension("lock"), commits[at % 2]).unwrap();
            fs::rename(file.with_extension("lock"), &file).unwrap();
            let name = file.strip_prefix(git.path().join("refs/heads")).unwrap().to_str().unwrap();
            assert_eq!(git.tips().unwrap().get(name).map(String::as_str), Some(commits[at % 2]), "the {at}th change of {name}");
        }
        fs::remove_file(git.path().join("refs/heads/deliver/prod")).unwrap();
        assert_eq!(git.tips().unwrap().keys().collect::<Vec<_>>(), ["main"]);
        fs::write(git.path().join("packed-refs"), "").unwrap();
        assert!(git.tips().is_none());
    }
}
