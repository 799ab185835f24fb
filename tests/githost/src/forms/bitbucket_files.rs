//! Bitbucket Server's branches, files, commits and archives.

use super::bitbucket::{Window, account};
use super::{Answered, Call, Nothing};
use crate::git::Commit;
use crate::http::{Answer, Request};
use crate::model::{Repository, Scope};
use crate::refused::Refused;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(rename_all = "camelCase")]
struct Branches {
    filter_text: Option<String>,
    /// `ALPHABETICAL` or `MODIFICATION`. The order does not affect what is found.
    #[serde(rename = "orderBy")]
    _order_by: Option<String>,
    #[serde(rename = "details")]
    _details: Option<bool>,
    start: Option<u64>,
    limit: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct NewBranch {
    name: String,
    start_point: String,
    #[serde(rename = "message")]
    _message: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct OldBranch {
    name: String,
    end_point: Option<String>,
    #[serde(default)]
    dry_run: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct At {
    at: Option<String>,
    start: Option<u64>,
    limit: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Commits {
    until: Option<String>,
    since: Option<String>,
    path: Option<String>,
    start: Option<u64>,
    limit: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Archive {
    at: Option<String>,
    format: Option<String>,
    path: Option<String>,
    prefix: Option<String>,
    #[serde(rename = "filename")]
    _filename: Option<String>,
}

pub(crate) fn answer(call: &mut Call, (owner, name): (&str, &str), rest: &[&str]) -> Answered {
    let request = call.request;
    let origin = &request.origin;
    let method = request.method.as_str();
    let scope = if method == "GET" { Scope::Read } else { Scope::Contents };
    let (repository, user) = call.repository(owner, name, scope)?;
    match (method, rest) {
        ("GET", ["branches"]) => {
            let query: Branches = request.query()?;
            let mut all = repository.branches()?;
            all.retain(|(name, _)| query.filter_text.as_ref().is_none_or(|part| name.contains(part.as_str())));
            let window = Window { start: query.start, limit: query.limit };
            window.page(all, |(name, sha)| Ok(branch_json(repository, &name, &sha)))
        }
        ("GET", ["branches", "default"] | ["default-branch"]) => {
            request.query::<Nothing>()?;
            let sha = repository.tip(&repository.default_branch)?;
            Ok(Answer::json(200, branch_json(repository, &repository.default_branch, &sha)))
        }
        ("POST", ["branches" | "branch-utils"]) => {
            let new: NewBranch = request.json()?;
            let sha = commit_at(repository, Some(&new.start_point))?;
            repository.create_branch(&new.name, &sha)?;
            let status = if rest == ["branches"] { 200 } else { 201 };
            Ok(Answer::json(status, branch_json(repository, &new.name, &sha)))
        }
        ("DELETE", ["branch-utils"]) => {
            let old: OldBranch = request.json()?;
            let name = branch_of(&old.name).to_owned();
            let tip = repository.tip(&name)?;
            if old.end_point.is_some_and(|end| end != tip) {
                return Err(Refused::FastForward);
            }
            if !old.dry_run {
                repository.delete_branch(&name, &user)?;
            }
            Ok(Answer::empty(204))
        }
        ("GET", ["files", path @ ..]) => {
            let query: At = request.query()?;
            let commit = commit_at(repository, query.at.as_deref())?;
            let path = path.join("/");
            let entry = repository.git.entry(&commit, &path)?.filter(|entry| entry.kind == "tree").ok_or(Refused::File(path))?;
            let all: Vec<_> = repository.git.tree(&entry.sha, true)?.into_iter().filter(|entry| entry.kind == "blob").collect();
            Window { start: query.start, limit: query.limit }.page(all, |entry| Ok(entry.path.into()))
        }
        ("GET", ["raw", path @ ..]) => {
            let commit = commit_at(repository, request.query::<At>()?.at.as_deref())?;
            Ok(Answer::text(200, "text/plain;charset=UTF-8", repository.file(&commit, &path.join("/"))?))
        }
        ("GET", ["browse", path @ ..]) => browse(repository, request, &path.join("/")),
        ("PUT", ["browse", path @ ..]) if !path.is_empty() => edit(repository, request, &path.join("/"), &user),
        ("GET", ["archive"]) => {
            let query: Archive = request.query()?;
            let commit = commit_at(repository, query.at.as_deref())?;
            let (format, kind) = match query.format.as_deref().unwrap_or("zip") {
                "zip" => ("zip", "application/x-zip-compressed"),
                "tar" => ("tar", "application/x-tar"),
                "tgz" | "tar.gz" => ("tar.gz", "application/x-tar"),
                other => return Err(Refused::Query(format!("format: {other:?} is none of zip, tar, tar.gz, tgz"))),
            };
            let prefix = query.prefix.map(|prefix| format!("{}/", prefix.trim_end_matches('/'))).unwrap_or_default();
            Ok(Answer::text(
                200,
                kind,
                repository.git.archive(&commit, &prefix, format, query.path.as_deref().unwrap_or_default())?,
            ))
        }
        ("GET", ["commits"]) => {
            let query: Commits = request.query()?;
            let until = commit_at(repository, query.until.as_deref())?;
            let all = match query.since {
                Some(since) => repository.git.log(&commit_at(repository, Some(&since))?, &until)?,
                None => repository.git.history(&until, query.path.as_deref().unwrap_or_default(), 10_000)?,
            };
            Window { start: query.start, limit: query.limit }.page(all, |sha| read(repository, origin, sha))
        }
        ("GET", ["commits", revision]) => {
            request.query::<Nothing>()?;
            Ok(Answer::json(200, read(repository, origin, commit_at(repository, Some(revision))?)?))
        }
        (_, ["branches" | "files" | "raw" | "browse" | "archive" | "commits" | "default-branch", ..]) => Err(Refused::Method),
        _ => Err(Refused::Path),
    }
}

/// The name of a branch, which Bitbucket accepts as `refs/heads/x` and as `x`.
pub(crate) fn branch_of(text: &str) -> &str {
    text.strip_prefix("refs/heads/").unwrap_or(text)
}

fn commit_at(repository: &Repository, at: Option<&str>) -> Result<String, Refused> {
    repository.commit_of(at.map(branch_of))
}

fn branch_json(repository: &Repository, name: &str, sha: &str) -> Value {
    json!({
        "id": format!("refs/heads/{name}"), "displayId": name, "type": "BRANCH", "latestCommit": sha, "latestChangeset": sha,
        "isDefault": name == repository.default_branch,
    })
}

pub(crate) fn read(repository: &Repository, origin: &str, sha: String) -> Result<Value, Refused> {
    let commit: Commit = repository.git.commit(&sha)?.ok_or_else(|| Refused::Object(sha.clone()))?;
    let parent = |sha: &String| json!({"id": sha, "displayId": &sha[..11]});
    Ok(json!({
        "id": sha, "displayId": &sha[..11], "author": account(&commit.author.name, origin), "authorTimestamp": commit.author.at * 1000,
        "committer": account(&commit.committer.name, origin), "committerTimestamp": commit.committer.at * 1000, "message": commit.message,
        "parents": commit.parents.iter().map(parent).collect::<Vec<_>>(),
    }))
}

/// The children of a folder, or the lines of a file.
fn browse(repository: &Repository, request: &Request, path: &str) -> Answered {
    let query: At = request.query()?;
    let commit = commit_at(repository, query.at.as_deref())?;
    let entry = repository.git.entry(&commit, path)?.ok_or_else(|| Refused::File(path.to_owned()))?;
    let window = Window { start: query.start, limit: query.limit };
    let named =
        |path: &str| json!({"components": path.split('/').collect::<Vec<_>>(), "name": path.rsplit('/').next(), "toString": path});
    if entry.kind == "tree" {
        let children = window.page(repository.git.tree(&entry.sha, false)?, |child| {
            let kind = if child.kind == "tree" { "DIRECTORY" } else { "FILE" };
            Ok(json!({"path": named(&child.path), "contentId": child.sha, "type": kind, "size": child.size}))
        })?;
        let children: Value = serde_json::from_slice(&children.body).unwrap_or_default();
        return Ok(Answer::json(200, json!({"path": named(path), "revision": commit, "children": children})));
    }
    let text = String::from_utf8_lossy(&repository.git.blob(&entry.sha)?).into_owned();
    // Lines without their ends: /raw has the bytes.
    let lines: Vec<_> = text.lines().map(|line| json!({"text": line})).collect();
    let size = lines.len();
    Ok(Answer::json(200, json!({"lines": lines, "start": 0, "size": size, "isLastPage": true})))
}

/// Edits one file. The request names the commit at which the file was read.
fn edit(repository: &mut Repository, request: &Request, path: &str, user: &str) -> Answered {
    let mut fields = request.fields()?;
    let mut text = |name: &str| fields.remove(name).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let (branch, message, source) = (text("branch"), text("message"), text("sourceCommitId"));
    let start = text("sourceBranch");
    let content = fields.remove("content").ok_or_else(|| Refused::Field("missing field `content`".into()))?;
    if let Some(name) = fields.keys().next() {
        return Err(Refused::Field(format!("unknown field `{name}`")));
    }
    let branch = branch.ok_or_else(|| Refused::Field("missing field `branch`".into()))?;
    let branch = branch_of(&branch).to_owned();
    let start = start.as_deref().map(branch_of);
    let tip = match (repository.git.branch(&branch)?, start) {
        (Some(tip), _) => Some(tip),
        (None, Some(start)) => Some(repository.tip(start)?),
        (None, None) if repository.count_branches()? == 0 => None,
        (None, None) => return Err(Refused::Branch(branch)),
    };
    let entry = |commit: &str| repository.git.entry(commit, path).map(|entry| entry.map(|entry| entry.sha));
    let found = match &tip {
        Some(tip) => entry(tip)?,
        None => None,
    };
    match (&found, &source) {
        (Some(_), None) => return Err(Refused::FileExists(path.to_owned())),
        (_, Some(source)) => {
            let given = entry(&commit_at(repository, Some(source))?)?;
            if given != found {
                let (given, found) = (given.unwrap_or_default(), found.unwrap_or_default());
                return Err(Refused::FileMoved { path: path.to_owned(), given, found });
            }
        }
        (None, None) => {}
    }
    if let Some(found) = &found
        && repository.git.blob(found)? == content
    {
        return Err(Refused::NothingChanged);
    }
    let message = message.unwrap_or_else(|| format!("{} edited online with Bitbucket", path.rsplit('/').next().unwrap_or(path)));
    let sha = repository.put_files(&branch, start, &message, &[(path.to_owned(), Some(content))], user)?;
    Ok(Answer::json(200, read(repository, &request.origin, sha)?))
}
