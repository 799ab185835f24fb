//! GitLab's branches, trees, files, commits and archives.

use super::gitlab::listed;
use super::{Answered, At, Call, Nothing};
use crate::content::NewFile;
use crate::git::Commit;
use crate::http::{Answer, base64, unbase64};
use crate::model::{Repository, Scope, written};
use crate::refused::Refused;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Branches {
    search: Option<String>,
    page: Option<u64>,
    per_page: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewBranch {
    branch: String,
    r#ref: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tree {
    path: Option<String>,
    r#ref: Option<String>,
    recursive: Option<bool>,
    page: Option<u64>,
    per_page: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Commits {
    ref_name: Option<String>,
    path: Option<String>,
    page: Option<u64>,
    per_page: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Archive {
    sha: Option<String>,
    path: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Compare {
    from: String,
    to: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewCommit {
    branch: String,
    commit_message: String,
    start_branch: Option<String>,
    start_sha: Option<String>,
    actions: Vec<Action>,
    /// The commit belongs to the user of the token, whatever these fields contain.
    #[serde(rename = "author_name")]
    _author_name: Option<String>,
    #[serde(rename = "author_email")]
    _author_email: Option<String>,
    #[serde(default)]
    force: bool,
    #[serde(rename = "stats")]
    _stats: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Action {
    action: String,
    file_path: String,
    content: Option<String>,
    encoding: Option<String>,
    last_commit_id: Option<String>,
}

/// One file at `/files/{path}`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OneFile {
    branch: String,
    commit_message: String,
    start_branch: Option<String>,
    content: Option<String>,
    encoding: Option<String>,
    last_commit_id: Option<String>,
}

pub(crate) fn answer(call: &mut Call, (owner, name): (&str, &str), rest: &[&str]) -> Answered {
    let request = call.request;
    let method = request.method.as_str();
    let scope = if method == "GET" { Scope::Read } else { Scope::Contents };
    let (repository, user) = call.repository(owner, name, scope)?;
    let web = format!("{}/{}", request.origin, repository.full_name());
    match (method, rest) {
        ("GET", ["branches"]) => {
            let query: Branches = request.query()?;
            let mut all = repository.branches()?;
            all.retain(|(name, _)| query.search.as_ref().is_none_or(|part| name.contains(part.as_str())));
            listed(request, (query.page, query.per_page), all, |(name, sha)| branch_json(repository, &web, &name, &sha))
        }
        ("POST", ["branches"]) => {
            // GitLab also accepts the parameters in the query.
            let new: NewBranch = if request.body.is_empty() { request.query()? } else { request.json()? };
            let sha = repository.commit_of(Some(&new.r#ref))?;
            repository.create_branch(&new.branch, &sha)?;
            Ok(Answer::json(201, branch_json(repository, &web, &new.branch, &sha)?))
        }
        ("GET", ["branches", branch]) => {
            request.query::<Nothing>()?;
            let sha = repository.tip(branch)?;
            Ok(Answer::json(200, branch_json(repository, &web, branch, &sha)?))
        }
        ("DELETE", ["branches", branch]) => {
            repository.delete_branch(branch, &user)?;
            Ok(Answer::empty(204))
        }
        ("GET", ["tree"]) => {
            let query: Tree = request.query()?;
            let commit = repository.commit_of(query.r#ref.as_deref())?;
            let path = query.path.as_deref().unwrap_or_default().trim_matches('/');
            let entry = repository.git.entry(&commit, path)?.filter(|entry| entry.kind == "tree");
            let root = entry.ok_or_else(|| Refused::Object(path.to_owned()))?.sha;
            let all = repository.git.tree(&root, query.recursive == Some(true))?;
            listed(request, (query.page, query.per_page), all, |entry| {
                let path = if path.is_empty() { entry.path.clone() } else { format!("{path}/{}", entry.path) };
                let name = entry.path.rsplit('/').next();
                Ok(json!({"id": entry.sha, "name": name, "type": entry.kind, "path": path, "mode": entry.mode}))
            })
        }
        ("GET", ["blobs", sha, rest @ ..]) => {
            if repository.git.kind(sha)?.as_deref() != Some("blob") {
                return Err(Refused::File((*sha).to_owned()));
            }
            let bytes = repository.git.blob(sha)?;
            match rest {
                [] => {
                    Ok(Answer::json(200, json!({"size": bytes.len(), "encoding": "base64", "content": base64(&bytes), "sha": sha})))
                }
                ["raw"] => Ok(Answer::text(200, "text/plain", bytes)),
                _ => Err(Refused::Path),
            }
        }
        ("GET", ["files", path, rest @ ..]) => {
            let at = request.query::<At>()?.r#ref;
            let at = at
                .or_else(|| (*rest == ["raw"]).then(|| "HEAD".to_owned()))
                .ok_or_else(|| Refused::Query("missing field `ref`".into()))?;
            file(repository, path, &at, rest)
        }
        ("POST" | "PUT" | "DELETE", ["files", path]) => {
            let one: OneFile = request.json()?;
            let action = match method {
                "POST" => "create",
                "PUT" => "update",
                _ => "delete",
            };
            let (file_path, last_commit_id) = ((*path).to_owned(), one.last_commit_id);
            let action = Action { action: action.into(), file_path, content: one.content, encoding: one.encoding, last_commit_id };
            let (branch, commit_message) = (one.branch.clone(), one.commit_message);
            let (start_sha, actions) = (None, vec![action]);
            let (_author_name, _author_email, _stats) = (None, None, None);
            let start_branch = one.start_branch;
            let new = NewCommit {
                branch,
                commit_message,
                start_branch,
                start_sha,
                actions,
                force: false,
                _author_name,
                _author_email,
                _stats,
            };
            commit(repository, new, &user)?;
            match method {
                "DELETE" => Ok(Answer::empty(204)),
                "POST" => Ok(Answer::json(201, json!({"file_path": path, "branch": one.branch}))),
                _ => Ok(Answer::json(200, json!({"file_path": path, "branch": one.branch}))),
            }
        }
        ("GET", ["archive" | "archive.tar.gz"]) => {
            let query: Archive = request.query()?;
            let sha = repository.commit_of(query.sha.as_deref())?;
            let named = query.sha.unwrap_or_else(|| repository.default_branch.clone()).replace('/', "-");
            let root = format!("{}-{named}-{sha}", repository.name);
            let bytes = repository.git.archive(&sha, &format!("{root}/"), "tar.gz", query.path.as_deref().unwrap_or_default())?;
            let disposition = format!("attachment; filename=\"{root}.tar.gz\"");
            Ok(Answer::text(200, "application/octet-stream", bytes).with("content-disposition", disposition))
        }
        ("GET", ["commits"]) => {
            let query: Commits = request.query()?;
            let from = repository.commit_of(query.ref_name.as_deref())?;
            let all = repository.git.history(&from, query.path.as_deref().unwrap_or_default(), 10_000)?;
            listed(request, (query.page, query.per_page), all, |sha| read(repository, &web, sha))
        }
        ("GET", ["commits", revision]) => {
            request.query::<Nothing>()?;
            let sha = repository.commit_of(Some(revision))?;
            Ok(Answer::json(200, read(repository, &web, sha)?))
        }
        ("POST", ["commits"]) => {
            let sha = commit(repository, request.json()?, &user)?;
            Ok(Answer::json(201, read(repository, &web, sha)?))
        }
        ("GET", ["compare"]) => {
            let query: Compare = request.query()?;
            let (from, to) = (repository.commit_of(Some(&query.from))?, repository.commit_of(Some(&query.to))?);
            let commits = repository.git.log(&from, &to)?.into_iter().rev().map(|sha| read(repository, &web, sha));
            let commits = commits.collect::<Result<Vec<_>, _>>()?;
            let body =
                json!({"commit": commits.last(), "commits": commits, "compare_timeout": false, "compare_same_ref": from == to});
            Ok(Answer::json(200, body))
        }
        (_, ["branches" | "tree" | "blobs" | "files" | "archive" | "archive.tar.gz" | "commits" | "compare", ..]) => {
            Err(Refused::Method)
        }
        _ => Err(Refused::Path),
    }
}

pub(crate) fn read(repository: &Repository, web: &str, sha: String) -> Result<Value, Refused> {
    let commit: Commit = repository.git.commit(&sha)?.ok_or_else(|| Refused::Object(sha.clone()))?;
    Ok(json!({
        "id": sha, "short_id": &sha[..8], "title": commit.message.lines().next(), "message": commit.message, "parent_ids": commit.parents,
        "author_name": commit.author.name, "author_email": commit.author.email, "authored_date": written(commit.author.at),
        "committer_name": commit.committer.name, "committer_email": commit.committer.email, "committed_date": written(commit.committer.at),
        "created_at": written(commit.committer.at), "trailers": {}, "extended_trailers": {}, "web_url": format!("{web}/-/commit/{sha}"),
    }))
}

fn branch_json(repository: &Repository, web: &str, name: &str, sha: &str) -> Result<Value, Refused> {
    Ok(json!({
        "name": name, "commit": read(repository, web, sha.to_owned())?, "merged": false, "protected": false, "developers_can_push": false,
        "developers_can_merge": false, "can_push": true, "default": name == repository.default_branch,
        "web_url": format!("{web}/-/tree/{name}"),
    }))
}

fn file(repository: &Repository, path: &str, at: &str, rest: &[&str]) -> Answered {
    let commit = repository.commit_of(Some(at).filter(|at| *at != "HEAD"))?;
    let entry = repository.git.entry(&commit, path)?.filter(|entry| entry.kind == "blob");
    let entry = entry.ok_or_else(|| Refused::File(path.to_owned()))?;
    let bytes = repository.git.blob(&entry.sha)?;
    let last = repository.git.history(&commit, path, 1)?.into_iter().next();
    match rest {
        ["raw"] => Ok(Answer::text(200, "text/plain; charset=utf-8", bytes)),
        [] => Ok(Answer::json(
            200,
            json!({
                "file_name": path.rsplit('/').next(), "file_path": path, "size": bytes.len(), "encoding": "base64", "content": base64(&bytes),
                "content_sha256": crate::webhooks::sha256(&bytes), "ref": at, "blob_id": entry.sha, "commit_id": commit, "last_commit_id": last,
                "execute_filemode": entry.mode == "100755",
            }),
        )),
        _ => Err(Refused::Path),
    }
}

fn commit(repository: &mut Repository, new: NewCommit, user: &str) -> Result<String, Refused> {
    let tip = repository.git.branch(&new.branch)?;
    let start = new.start_sha.or(new.start_branch);
    // A start means that the branch is a new one.
    let parent = match (&tip, &start) {
        (Some(_), Some(_)) if !new.force => return Err(Refused::BranchExists(new.branch)),
        (Some(tip), None) => Some(tip.clone()),
        (_, Some(start)) => Some(repository.commit_of(Some(start))?),
        (None, None) if repository.count_branches()? == 0 => None,
        (None, None) => return Err(Refused::Branch(new.branch)),
    };
    let mut files: Vec<NewFile> = vec![];
    for Action { action, file_path: path, content, encoding, last_commit_id } in new.actions {
        let present = match &parent {
            Some(parent) => repository.git.entry(parent, &path)?.is_some(),
            None => false,
        };
        match (action.as_str(), present) {
            ("create", true) => return Err(Refused::FileExists(path)),
            ("update" | "delete", false) => return Err(Refused::File(path)),
            ("create" | "update" | "delete", _) => {}
            _ => return Err(Refused::Field("`actions[action]` does not have a valid value".into())),
        }
        if let (Some(given), Some(parent)) = (last_commit_id, &parent) {
            let found = repository.git.history(parent, &path, 1)?.into_iter().next().unwrap_or_default();
            if given != found {
                return Err(Refused::FileMoved { path, given, found });
            }
        }
        let bytes = match (action.as_str(), encoding.as_deref()) {
            ("delete", _) => None,
            (_, Some("base64")) => Some(unbase64("content", &content.unwrap_or_default())?),
            (_, None | Some("text")) => Some(content.ok_or_else(|| Refused::Field("missing field `content`".into()))?.into_bytes()),
            _ => return Err(Refused::Field("`actions[encoding]` does not have a valid value".into())),
        };
        files.push((path, bytes));
    }
    let Some(tip) = tip.filter(|_| start.is_some()) else {
        return repository.put_files(&new.branch, start.as_deref(), &new.commit_message, &files, user);
    };
    // Forced: the branch moves to the new commit at once.
    let draft = format!("{}-forced", new.branch);
    let sha = repository.put_files(&draft, start.as_deref(), &new.commit_message, &files, user)?;
    repository.git.update(&format!("refs/heads/{draft}"), None, Some(&sha))?;
    if !repository.git.update(&format!("refs/heads/{}", new.branch), Some(&sha), Some(&tip))? {
        return Err(Refused::FastForward);
    }
    repository.refresh()?;
    Ok(sha)
}
