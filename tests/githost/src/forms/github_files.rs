//! GitHub's branches, commits, contents and archives.

use super::github_git::{Person, addressed, commit_json};
use super::{Answered, At, Call, Nothing};
use crate::git::{Commit, Entry};
use crate::http::{Answer, Page, Request, base64, unbase64};
use crate::model::{Repository, Scope};
use crate::refused::Refused;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Branches {
    page: Option<u64>,
    per_page: Option<u64>,
    /// No branch is protected.
    protected: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Commits {
    page: Option<u64>,
    per_page: Option<u64>,
    sha: Option<String>,
    path: Option<String>,
}

/// A single answer. GitHub would split files and commits into pages; those of tests fit on one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Paged {
    #[serde(rename = "page")]
    _page: Option<u64>,
    #[serde(rename = "per_page")]
    _per_page: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Put {
    message: String,
    content: String,
    sha: Option<String>,
    branch: Option<String>,
    committer: Option<Person>,
    author: Option<Person>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Delete {
    message: String,
    sha: String,
    branch: Option<String>,
    committer: Option<Person>,
    author: Option<Person>,
}

pub(crate) fn answer(call: &mut Call, (owner, name): (&str, &str), rest: &[&str]) -> Answered {
    let request = call.request;
    let method = request.method.as_str();
    let token = request.secret(&["token", "bearer"]).unwrap_or_default();
    let write = if method == "GET" { Scope::Read } else { Scope::Contents };
    let (repository, user) = call.repository(owner, name, write)?;
    let answer = match (method, rest) {
        ("GET", ["branches"]) => {
            let query: Branches = request.query()?;
            let all = if query.protected == Some(true) { vec![] } else { repository.branches()? };
            let api = format!("{{api}}/repos/{}/commits", repository.full_name());
            listed(request, (query.page, query.per_page), all, |(name, sha)| {
                Ok(json!({"name": name, "commit": {"sha": sha, "url": format!("{api}/{sha}")}, "protected": false}))
            })?
        }
        ("GET", ["branches", branch @ ..]) => {
            request.query::<Nothing>()?;
            let branch = branch.join("/");
            let sha = repository.tip(&branch)?;
            let commit = repository.git.commit(&sha)?.ok_or(Refused::Object(sha))?;
            let web = format!("{{web}}/{}/tree/{branch}", repository.full_name());
            let links = json!({"self": format!("{{api}}/repos/{}/branches/{branch}", repository.full_name()), "html": web});
            Answer::json(200, json!({"name": branch, "commit": long(repository, &commit), "_links": links, "protected": false}))
        }
        ("GET", ["commits"]) => {
            let query: Commits = request.query()?;
            let from = repository.commit_of(query.sha.as_deref())?;
            let all = repository.git.history(&from, query.path.as_deref().unwrap_or_default(), 10_000)?;
            listed(request, (query.page, query.per_page), all, |sha| read(repository, sha))?
        }
        ("GET", ["commits", revision @ ..]) => {
            request.query::<Paged>()?;
            let sha = repository.commit_of(Some(&revision.join("/")))?;
            Answer::json(200, read(repository, sha)?)
        }
        ("GET", ["compare", basehead @ ..]) => {
            request.query::<Paged>()?;
            compare(repository, &basehead.join("/"))?
        }
        ("GET", ["contents", path @ ..]) => {
            let at = request.query::<At>()?.r#ref;
            let commit = repository.commit_of(at.as_deref())?;
            contents(repository, &commit, &path.join("/"), at.as_deref())?
        }
        ("PUT", ["contents", path @ ..]) => {
            let put: Put = request.json()?;
            let bytes = unbase64("content", &put.content)?;
            let by = [put.author.as_ref(), put.committer.as_ref()];
            let change =
                Change { path: path.join("/"), sha: put.sha, branch: put.branch, message: put.message, bytes: Some(bytes) };
            change.apply(repository, by, &user)?
        }
        ("DELETE", ["contents", path @ ..]) => {
            let delete: Delete = request.json()?;
            let by = [delete.author.as_ref(), delete.committer.as_ref()];
            let change =
                Change { path: path.join("/"), sha: Some(delete.sha), branch: delete.branch, message: delete.message, bytes: None };
            change.apply(repository, by, &user)?
        }
        // The address of the archive contains its own ticket, as on GitHub: the client follows it without its headers.
        ("GET", ["tarball", revision @ ..]) => {
            request.query::<Nothing>()?;
            let sha = repository.commit_of(Some(&revision.join("/")))?;
            let ticket = &crate::webhooks::sha256(format!("{token}:{sha}").as_bytes())[..32];
            let to = format!("{}/_codeload/{}/legacy.tar.gz/{sha}?token={ticket}", request.origin, repository.full_name());
            Answer::empty(302).with("location", to)
        }
        (_, ["branches" | "commits" | "compare" | "contents" | "tarball", ..]) => return Err(Refused::Method),
        _ => return Err(Refused::Path),
    };
    Ok(addressed(answer, &request.origin))
}

/// GitHub's lists: 30 entries on a page, at most 100.
pub(crate) fn listed<T>(
    request: &Request,
    (page, size): (Option<u64>, Option<u64>),
    all: Vec<T>,
    show: impl FnMut(T) -> Result<Value, Refused>,
) -> Answered {
    Page::new(page, size, 30, 100).answer(request, all, show).map(|(answer, _)| answer)
}

/// The commit of a name, in the format of [`long`].
pub(crate) fn read(repository: &Repository, sha: String) -> Result<Value, Refused> {
    let commit = repository.git.commit(&sha)?.ok_or(Refused::Object(sha))?;
    Ok(long(repository, &commit))
}

/// A commit in the format of the repository API, which contains that of the Git database.
fn long(repository: &Repository, commit: &Commit) -> Value {
    let inner = commit_json(repository, commit);
    let api = format!("{{api}}/repos/{}/commits/{}", repository.full_name(), commit.sha);
    let mut json = json!({"sha": commit.sha, "node_id": inner["node_id"], "url": api, "html_url": inner["html_url"]});
    json["comments_url"] = format!("{api}/comments").into();
    json["author"] = super::github::account(&commit.author.name);
    json["committer"] = super::github::account(&commit.committer.name);
    json["parents"] = inner["parents"].clone();
    let mut git = inner;
    for field in ["sha", "node_id", "html_url", "parents"] {
        if let Some(map) = git.as_object_mut() {
            map.remove(field);
        }
    }
    git["comment_count"] = 0.into();
    json["commit"] = git;
    json
}

fn compare(repository: &Repository, basehead: &str) -> Result<Answer, Refused> {
    let (base, head) = basehead.split_once("...").ok_or(Refused::Path)?;
    let (base, head) = (repository.commit_of(Some(base))?, repository.commit_of(Some(head))?);
    let fork = repository.git.merge_base(&base, &head)?.ok_or_else(|| Refused::Object(basehead.to_owned()))?;
    let (mut ahead, behind) = (repository.git.log(&base, &head)?, repository.git.log(&head, &base)?.len());
    ahead.reverse();
    let status = match (ahead.len(), behind) {
        (0, 0) => "identical",
        (_, 0) => "ahead",
        (0, _) => "behind",
        _ => "diverged",
    };
    let files = files_json(repository, &fork, &head)?;
    let commits: Result<Vec<_>, Refused> = ahead.iter().cloned().map(|sha| read(repository, sha)).collect();
    let (base, fork) = (read(repository, base)?, read(repository, fork)?);
    let body = json!({
        "status": status, "ahead_by": ahead.len(), "behind_by": behind, "total_commits": ahead.len(), "base_commit": base,
        "merge_base_commit": fork, "commits": commits?, "files": files,
    });
    Ok(Answer::json(200, body))
}

/// The files that changed between two commits.
pub(crate) fn files_json(repository: &Repository, from: &str, to: &str) -> Result<Vec<Value>, Refused> {
    let changed = repository.git.changed(from, to)?;
    let file = |(letter, path): (char, String)| {
        let status = match letter {
            'A' => "added",
            'D' => "removed",
            _ => "modified",
        };
        let entry = repository.git.entry(if letter == 'D' { from } else { to }, &path)?;
        let sha = entry.map(|entry| entry.sha);
        Ok(json!({"sha": sha, "filename": path, "status": status, "additions": 0, "deletions": 0, "changes": 0}))
    };
    changed.into_iter().map(file).collect()
}

fn entry_json(repository: &Repository, entry: &Entry, path: &str, at: &str) -> Value {
    let full = repository.full_name();
    let kind = match (entry.kind.as_str(), entry.mode.as_str()) {
        ("tree", _) => "dir",
        ("commit", _) => "submodule",
        (_, "120000") => "symlink",
        _ => "file",
    };
    let url = format!("{{api}}/repos/{full}/contents/{path}?ref={at}");
    let git = format!("{{api}}/repos/{full}/git/{}s/{}", entry.kind, entry.sha);
    let html = format!("{{web}}/{full}/blob/{at}/{path}");
    json!({
        "name": path.rsplit('/').next(), "path": path, "sha": entry.sha, "size": entry.size.unwrap_or(0), "url": url, "html_url": html,
        "git_url": git, "download_url": null, "type": kind, "_links": {"self": url, "git": git, "html": html},
    })
}

fn contents(repository: &Repository, commit: &str, path: &str, at: Option<&str>) -> Result<Answer, Refused> {
    let at = at.unwrap_or(&repository.default_branch);
    let path = path.trim_matches('/');
    let entry = repository.git.entry(commit, path)?.ok_or_else(|| Refused::File(path.to_owned()))?;
    if entry.kind == "tree" {
        let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
        let entries = repository.git.tree(&entry.sha, false)?;
        let all: Vec<_> = entries.iter().map(|entry| entry_json(repository, entry, &below(&entry.path), at)).collect();
        return Ok(Answer::json(200, all));
    }
    let mut json = entry_json(repository, &entry, path, at);
    json["content"] = base64(&repository.git.blob(&entry.sha)?).into();
    json["encoding"] = "base64".into();
    Ok(Answer::json(200, json))
}

/// The change of one file through the contents API.
struct Change {
    path: String,
    sha: Option<String>,
    branch: Option<String>,
    message: String,
    bytes: Option<Vec<u8>>,
}

impl Change {
    fn apply(self, repository: &mut Repository, by: [Option<&Person>; 2], user: &str) -> Answered {
        // Other names are accepted and validated, but the commit belongs to the user of the token.
        by.into_iter().flatten().try_for_each(|person| person.signature().map(|_| ()))?;
        let branch = self.branch.unwrap_or_else(|| repository.default_branch.clone());
        let tip = repository.git.branch(&branch)?;
        if tip.is_none() && repository.count_branches()? > 0 {
            return Err(Refused::Branch(branch));
        }
        let present = match &tip {
            Some(tip) => repository.git.entry(tip, &self.path)?,
            None => None,
        };
        match (&present, &self.sha) {
            (Some(_), None) => return Err(Refused::FileExists(self.path)),
            (Some(entry), Some(given)) if entry.sha != *given => {
                return Err(Refused::FileMoved { path: self.path, given: given.clone(), found: entry.sha.clone() });
            }
            (None, Some(_)) if self.bytes.is_none() => return Err(Refused::File(self.path)),
            _ => {}
        }
        let status = if present.is_none() { 201 } else { 200 };
        let removed = self.bytes.is_none();
        let sha = repository.put_files(&branch, None, &self.message, &[(self.path.clone(), self.bytes)], user)?;
        let commit = repository.git.commit(&sha)?.ok_or_else(|| Refused::Object(sha.clone()))?;
        let entry = repository.git.entry(&sha, &self.path)?;
        let content = entry.filter(|_| !removed).map(|entry| entry_json(repository, &entry, &self.path, &branch));
        Ok(Answer::json(status, json!({"content": content, "commit": commit_json(repository, &commit)})))
    }
}
