//! Gitea's branches, Git data, commits, contents and archives.

use super::gitea::{Paged, immutable, listed};
use super::gitea_objects::{View, branch_json, changed_json, commit_json, verification};
use super::gitea_shapes::Viewer;
use super::{Answered, At, Call, Nothing};
use crate::content::NewFile;
use crate::git::{Entry, is_sha};
use crate::http::{Answer, Request, base64, unbase64};
use crate::model::{Repository, Scope};
use crate::refused::Refused;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Commits {
    page: Option<u64>,
    limit: Option<u64>,
    sha: Option<String>,
    path: Option<String>,
    #[serde(rename = "stat")]
    _stat: Option<bool>,
    #[serde(rename = "verification")]
    _verification: Option<bool>,
    #[serde(rename = "files")]
    _files: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TreeQuery {
    recursive: Option<String>,
    page: Option<u64>,
    per_page: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewBranch {
    new_branch_name: String,
    old_branch_name: Option<String>,
    old_ref_name: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Identity {
    #[serde(rename = "name")]
    _name: Option<String>,
    #[serde(rename = "email")]
    _email: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Dates {
    #[serde(rename = "author")]
    _author: Option<String>,
    #[serde(rename = "committer")]
    _committer: Option<String>,
}

/// One file at `/contents/{path}`, or several at `/contents`. The commit belongs to the user of the token, whatever names the
/// request has.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    message: Option<String>,
    branch: Option<String>,
    new_branch: Option<String>,
    #[serde(rename = "author")]
    _author: Option<Identity>,
    #[serde(rename = "committer")]
    _committer: Option<Identity>,
    #[serde(rename = "dates")]
    _dates: Option<Dates>,
    #[serde(rename = "signoff")]
    _signoff: Option<bool>,
    files: Option<Vec<Operation>>,
    content: Option<String>,
    sha: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Operation {
    operation: String,
    path: String,
    content: Option<String>,
    sha: Option<String>,
}

pub(crate) fn answer(call: &mut Call, (owner, name): (&str, &str), rest: &[&str]) -> Answered {
    let request = call.request;
    let method = request.method.as_str();
    let scope = if method == "GET" { Scope::Read } else { Scope::Contents };
    let viewer = Viewer::of(call);
    let (repository, user) = call.repository(owner, name, scope)?;
    let origin = &viewer.origin;
    let api = format!("{}/api/v1/repos/{}", request.origin, repository.full_name());
    match (method, rest) {
        ("GET", ["branches"]) => {
            let query: Paged = request.query()?;
            listed(request, (query.page, query.limit), repository.branches()?, |(name, sha)| {
                branch_json(repository, &viewer, &name, &sha)
            })
        }
        ("POST", ["branches"]) => {
            let new: NewBranch = request.json()?;
            let from = new.old_ref_name.or(new.old_branch_name);
            let sha = repository.commit_of(from.as_deref())?;
            repository.create_branch(&new.new_branch_name, &sha)?;
            Ok(Answer::json(201, branch_json(repository, &viewer, &new.new_branch_name, &sha)?))
        }
        ("GET", ["branches", branch @ ..]) => {
            request.query::<Nothing>()?;
            let branch = branch.join("/");
            let sha = repository.tip(&branch).map_err(|_| Refused::Repository)?;
            Ok(Answer::json(200, branch_json(repository, &viewer, &branch, &sha)?))
        }
        ("DELETE", ["branches", branch @ ..]) => {
            let branch = branch.join("/");
            repository.delete_branch(&branch, &user)?;
            Ok(Answer::empty(204))
        }
        // Gitea returns every reference with this prefix.
        ("GET", ["git", "refs", prefix @ ..]) => {
            request.query::<Nothing>()?;
            let prefix = format!("refs/{}", prefix.join("/"));
            let found: Vec<_> =
                repository.git.references("refs/")?.into_iter().filter(|(name, _)| name.starts_with(&prefix)).collect();
            if found.is_empty() {
                return Err(Refused::Repository);
            }
            let json = |(name, sha): (String, String)| {
                let object = json!({"type": "commit", "sha": sha, "url": format!("{api}/git/commits/{sha}")});
                json!({"ref": name, "url": format!("{api}/git/{name}"), "object": object})
            };
            Ok(Answer::json(200, found.into_iter().map(json).collect::<Vec<_>>()))
        }
        ("GET", ["git", "trees", revision @ ..]) => {
            let query: TreeQuery = request.query()?;
            tree(repository, &api, &revision.join("/"), &query)
        }
        ("GET", ["git", "blobs", sha]) => {
            request.query::<Nothing>()?;
            if repository.git.kind(sha)?.as_deref() != Some("blob") {
                return Err(Refused::Object((*sha).to_owned()));
            }
            let bytes = repository.git.blob(sha)?;
            let url = format!("{api}/git/blobs/{sha}");
            Ok(Answer::json(
                200,
                json!({"content": base64(&bytes), "encoding": "base64", "url": url, "sha": sha, "size": bytes.len()}),
            ))
        }
        ("GET", ["git", "commits", revision @ ..]) => {
            request.query::<Commits>()?;
            let sha = repository.commit_of(Some(&revision.join("/")))?;
            Ok(Answer::json(200, commit_json(repository, origin, &sha)?))
        }
        ("GET", ["commits"]) => {
            let query: Commits = request.query()?;
            let from = repository.commit_of(query.sha.as_deref())?;
            let all = repository.git.history(&from, query.path.as_deref().unwrap_or_default(), 1000)?;
            listed(request, (query.page, query.limit), all, |sha| commit_json(repository, origin, &sha))
        }
        ("GET", ["compare", basehead @ ..]) => {
            request.query::<Nothing>()?;
            let basehead = basehead.join("/");
            let (base, head) = basehead.split_once("...").or_else(|| basehead.split_once("..")).ok_or(Refused::Repository)?;
            let (base, head) = (repository.commit_of(Some(base))?, repository.commit_of(Some(head))?);
            let all: Result<Vec<_>, _> =
                repository.git.log(&base, &head)?.into_iter().map(|sha| commit_json(repository, origin, &sha)).collect();
            let all = all?;
            Ok(Answer::json(200, json!({"total_commits": all.len(), "commits": all})))
        }
        ("GET", ["archive", file @ ..]) => archive(repository, &file.join("/"), request),
        ("GET", ["raw" | "media", path @ ..]) => {
            let commit = repository.commit_of(request.query::<At>()?.r#ref.as_deref())?;
            Ok(Answer::text(200, "text/plain; charset=utf-8", repository.file(&commit, &path.join("/"))?))
        }
        ("GET", ["contents", path @ ..]) => {
            let at = request.query::<At>()?.r#ref;
            let commit = repository.commit_of(at.as_deref())?;
            let at = at.unwrap_or_else(|| repository.default_branch.clone());
            let view = View { repository, origin, commit: &commit, at: &at };
            Ok(Answer::json(200, view.contents(&path.join("/"))?))
        }
        ("POST" | "PUT" | "DELETE", ["contents", path @ ..]) => {
            let options: Options = request.json()?;
            let operations = operations(method, &path.join("/"), &options)?;
            change(repository, origin, method, (&options, operations), (&user, path.is_empty()))
        }
        (_, ["branches" | "git" | "commits" | "compare" | "archive" | "raw" | "media" | "contents", ..]) => Err(Refused::Method),
        _ => Err(Refused::Path),
    }
}

fn tree(repository: &Repository, api: &str, revision: &str, query: &TreeQuery) -> Answered {
    let known = is_sha(revision) && repository.git.kind(revision)?.as_deref() == Some("tree");
    let root = if known { revision.to_owned() } else { repository.commit_of(Some(revision))? };
    let recursive = query.recursive.as_deref().is_some_and(|recursive| recursive == "1" || recursive == "true");
    let all = repository.git.tree(&root, recursive)?;
    let page = crate::http::Page::new(query.page, query.per_page, 1000, 1000);
    let (shown, total) = page.cut(all);
    let entry = |entry: Entry| {
        let url = format!("{api}/git/{}s/{}", entry.kind, entry.sha);
        json!({"path": entry.path, "mode": entry.mode, "type": entry.kind, "size": entry.size.unwrap_or(0), "sha": entry.sha, "url": url})
    };
    let truncated = page.page * page.size < total;
    let shown: Vec<_> = shown.into_iter().map(entry).collect();
    let body = json!({
        "sha": root, "url": format!("{api}/git/trees/{root}"), "tree": shown, "truncated": truncated, "page": page.page, "total_count": total,
    });
    Ok(Answer::json(200, body))
}

fn archive(repository: &Repository, file: &str, request: &Request) -> Answered {
    let format = ["tar.gz", "zip", "bundle"].into_iter().find(|format| file.ends_with(&format!(".{format}")));
    let format = format.filter(|format| *format != "bundle").ok_or(Refused::Repository)?;
    let revision = &file[..file.len() - format.len() - 1];
    let sha = repository.commit_of(Some(revision))?;
    let bytes = repository.git.archive(&sha, &format!("{}/", repository.name.to_lowercase()), format, "")?;
    Ok(Answer::text(200, "application/octet-stream", bytes).with("link", immutable(request)))
}

fn operations(method: &str, path: &str, options: &Options) -> Result<Vec<Operation>, Refused> {
    let (content, sha) = (options.content.clone(), options.sha.clone());
    let missing = |field: &str| Refused::Field(format!("missing field `{field}`"));
    let unknown = |field: &str| Refused::Field(format!("unknown field `{field}`"));
    let copy = |file: &Operation| {
        let (operation, path) = (file.operation.clone(), file.path.clone());
        Operation { operation, path, content: file.content.clone(), sha: file.sha.clone() }
    };
    if path.is_empty() {
        if method != "POST" {
            return Err(Refused::Method);
        }
        if content.is_some() || sha.is_some() {
            return Err(unknown(if sha.is_some() { "sha" } else { "content" }));
        }
        return Ok(options.files.as_ref().ok_or_else(|| missing("files"))?.iter().map(copy).collect());
    }
    if options.files.is_some() {
        return Err(unknown("files"));
    }
    let operation = match method {
        "POST" if sha.is_some() => return Err(unknown("sha")),
        "DELETE" if content.is_some() => return Err(unknown("content")),
        "POST" => "create",
        "DELETE" => "delete",
        _ => "update",
    };
    Ok(vec![Operation { operation: operation.into(), path: path.into(), content, sha }])
}

fn change(
    repository: &mut Repository,
    origin: &str,
    method: &str,
    (options, operations): (&Options, Vec<Operation>),
    (user, several): (&str, bool),
) -> Answered {
    let branch = options.branch.clone().unwrap_or_else(|| repository.default_branch.clone());
    let target = options.new_branch.clone().unwrap_or_else(|| branch.clone());
    let tip = repository.git.branch(&branch)?;
    if tip.is_none() && repository.count_branches()? > 0 {
        return Err(Refused::Branch(branch));
    }
    if target != branch && repository.git.branch(&target)?.is_some() {
        return Err(Refused::BranchExists(target));
    }
    let mut files: Vec<NewFile> = vec![];
    for Operation { operation, path, content, sha } in operations {
        let present = match &tip {
            Some(tip) => repository.git.entry(tip, &path)?,
            None => None,
        };
        let required = |field: &str| Refused::Field(format!("missing field `{field}`"));
        match (operation.as_str(), &present) {
            ("create", Some(_)) => return Err(Refused::FileExists(path)),
            ("update" | "delete", None) => return Err(Refused::File(path)),
            ("create", None) => {}
            ("update" | "delete", Some(entry)) => {
                let given = sha.ok_or_else(|| required("sha"))?;
                if given != entry.sha {
                    return Err(Refused::FileMoved { path, given, found: entry.sha.clone() });
                }
            }
            _ => return Err(Refused::Field(format!("operation: {operation:?} is none of create, update, delete"))),
        }
        let bytes = match operation.as_str() {
            "delete" => None,
            _ => Some(unbase64("content", &content.ok_or_else(|| required("content"))?)?),
        };
        files.push((path, bytes));
    }
    let message = options.message.clone().filter(|message| !message.is_empty()).unwrap_or_else(|| "Update files".into());
    let message = format!("{}\n", message.trim_end_matches('\n'));
    let start = (target != branch).then_some(branch.as_str());
    let sha = repository.put_files(&target, start, &message, &files, user)?;
    let view = View { repository, origin, commit: &sha, at: &target };
    let shown = files.iter().map(|(path, bytes)| bytes.as_ref().map_or(Ok(Value::Null), |_| view.contents(path)));
    let shown: Vec<Value> = shown.collect::<Result<_, _>>()?;
    let (commit, verification) = (changed_json(repository, origin, &sha)?, verification());
    let status = if method == "POST" { 201 } else { 200 };
    if several {
        return Ok(Answer::json(status, json!({"files": shown, "commit": commit, "verification": verification})));
    }
    Ok(Answer::json(status, json!({"content": shown.into_iter().next(), "commit": commit, "verification": verification})))
}
