//! Branches, commits and files in Gitea's format.

use super::gitea_shapes::{NO_TIME, Viewer, account};
use crate::git::{Commit, EMPTY, Entry, Signature};
use crate::http::{base64, encoded};
use crate::model::{Repository, written};
use crate::refused::Refused;
use serde_json::{Value, json};

/// Commits on this host are not signed.
pub(crate) fn verification() -> Value {
    json!({"verified": false, "reason": "gpg.error.not_signed_commit", "signature": "", "signer": null, "payload": ""})
}

fn person(by: &Signature) -> Value {
    json!({"name": by.name, "email": by.email, "date": written(by.at)})
}

fn commit_of(repository: &Repository, sha: &str) -> Result<Commit, Refused> {
    repository.git.commit(sha)?.ok_or_else(|| Refused::Object(sha.to_owned()))
}

pub(crate) fn branch_json(repository: &Repository, viewer: &Viewer, name: &str, sha: &str) -> Result<Value, Refused> {
    let commit = commit_of(repository, sha)?;
    let url = format!("{}/{}/commit/{sha}", viewer.origin, repository.full_name());
    let user = |by: &Signature| json!({"name": by.name, "email": by.email, "username": by.name});
    let json = json!({
        "id": sha, "message": commit.message, "url": url, "author": user(&commit.author), "committer": user(&commit.committer),
        "verification": verification(), "timestamp": written(commit.author.at), "added": null, "removed": null, "modified": null,
    });
    Ok(json!({
        "name": name, "commit": json, "protected": false, "required_approvals": 0, "enable_status_check": false,
        "status_check_contexts": [], "user_can_push": viewer.write, "user_can_merge": viewer.write,
        "effective_branch_protection_name": "",
    }))
}

/// A commit with its files.
pub(crate) fn commit_json(repository: &Repository, origin: &str, sha: &str) -> Result<Value, Refused> {
    let commit = commit_of(repository, sha)?;
    let (full, created) = (repository.full_name(), written(commit.committer.at));
    let api = format!("{origin}/api/v1/repos/{full}");
    let url = format!("{api}/git/commits/{sha}");
    let parent = |sha: &String| json!({"url": format!("{api}/git/commits/{sha}"), "sha": sha, "created": NO_TIME});
    let from = commit.parents.first().map_or(EMPTY, String::as_str);
    let status = |letter: char| match letter {
        'A' => "added",
        'D' => "removed",
        _ => "modified",
    };
    let changed = repository.git.changed(from, sha)?;
    let files: Vec<_> = changed.into_iter().map(|(letter, path)| json!({"filename": path, "status": status(letter)})).collect();
    let (_, additions, deletions) = repository.git.numbers(from, sha)?;
    let inner = json!({
        "url": url, "author": person(&commit.author), "committer": person(&commit.committer), "message": commit.message,
        // The id of the tree is that of its commit.
        "tree": {"url": format!("{api}/git/trees/{sha}"), "sha": sha, "created": created}, "verification": verification(),
    });
    Ok(json!({
        "url": url, "sha": sha, "created": created, "html_url": format!("{origin}/{full}/commit/{sha}"), "commit": inner,
        "author": account(&commit.author.name, origin), "committer": account(&commit.committer.name, origin),
        "parents": commit.parents.iter().map(parent).collect::<Vec<_>>(), "files": files,
        "stats": {"total": additions + deletions, "additions": additions, "deletions": deletions},
    }))
}

/// A commit in the answer to a change of files.
pub(crate) fn changed_json(repository: &Repository, origin: &str, sha: &str) -> Result<Value, Refused> {
    let commit = commit_of(repository, sha)?;
    let full = repository.full_name();
    let api = format!("{origin}/api/v1/repos/{full}/git");
    let parent = |sha: &String| json!({"url": format!("{api}/commits/{sha}"), "sha": sha, "created": NO_TIME});
    Ok(json!({
        "url": format!("{api}/commits/{sha}"), "sha": sha, "created": NO_TIME, "html_url": format!("{origin}/{full}/commit/{sha}"),
        "author": person(&commit.author), "committer": person(&commit.committer), "message": commit.message,
        "parents": commit.parents.iter().map(parent).collect::<Vec<_>>(),
        "tree": {"url": format!("{api}/trees/{}", commit.tree), "sha": commit.tree, "created": NO_TIME},
    }))
}

/// Files at the requested revision.
pub(crate) struct View<'a> {
    pub repository: &'a Repository,
    pub origin: &'a str,
    pub commit: &'a str,
    pub at: &'a str,
}

impl View<'_> {
    /// A file with its content, or the entries of a folder.
    pub fn contents(&self, path: &str) -> Result<Value, Refused> {
        let path = path.trim_matches('/');
        let entry = self.repository.git.entry(self.commit, path)?.ok_or_else(|| Refused::File(path.to_owned()))?;
        if entry.kind != "tree" {
            let mut json = self.entry(&entry, path)?;
            json["content"] = base64(&self.repository.git.blob(&entry.sha)?).into();
            json["encoding"] = "base64".into();
            return Ok(json);
        }
        let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
        let entries = self.repository.git.tree(&entry.sha, false)?;
        entries.iter().map(|entry| self.entry(entry, &below(&entry.path))).collect()
    }

    fn entry(&self, entry: &Entry, path: &str) -> Result<Value, Refused> {
        let (repository, full) = (self.repository, self.repository.full_name());
        let (html, api) = (format!("{}/{full}", self.origin), format!("{}/api/v1/repos/{full}", self.origin));
        let last = repository.git.history(self.commit, path, 1)?.pop().unwrap_or_else(|| self.commit.to_owned());
        let commit = commit_of(repository, &last)?;
        let (kind, encoded) = (if entry.kind == "tree" { "dir" } else { "file" }, encoded(path));
        let place = match repository.git.branch(self.at)? {
            Some(_) => format!("branch/{}", self.at),
            None => format!("commit/{}", self.commit),
        };
        let (url, git) =
            (format!("{api}/contents/{encoded}?ref={}", self.at.replace('/', "%2F")), format!("{api}/git/blobs/{}", entry.sha));
        let page = format!("{html}/src/{place}/{encoded}");
        let download = (kind == "file").then(|| format!("{html}/raw/{place}/{encoded}"));
        Ok(json!({
            "name": path.rsplit('/').next(), "path": path, "sha": entry.sha, "last_commit_sha": last,
            "last_committer_date": written(commit.committer.at), "last_author_date": written(commit.author.at), "type": kind,
            "size": entry.size.unwrap_or(0), "encoding": null, "content": null, "target": null, "url": url, "html_url": page,
            "git_url": git, "download_url": download, "submodule_git_url": null, "_links": {"self": url, "git": git, "html": page},
        }))
    }
}
