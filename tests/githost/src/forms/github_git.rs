//! GitHub's Git database: references, blobs, trees, commits.

use super::github::absolute;
use super::{Answered, Call, Nothing};
use crate::git::{Change, Commit, Signature, is_sha};
use crate::http::{Answer, base64, unbase64};
use crate::model::{Repository, Scope, written};
use crate::refused::Refused;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewRef {
    r#ref: String,
    sha: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MovedRef {
    sha: String,
    #[serde(default)]
    force: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewBlob {
    content: String,
    #[serde(default)]
    encoding: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewTree {
    #[serde(default)]
    base_tree: Option<String>,
    tree: Vec<NewEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewEntry {
    path: String,
    mode: String,
    r#type: Option<String>,
    /// Absent: `content` is used. `null`: the path is removed.
    #[serde(default, deserialize_with = "present")]
    sha: Option<Option<String>>,
    content: Option<String>,
}

fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Option<String>>, D::Error> {
    Option::<String>::deserialize(from).map(Some)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewCommit {
    message: String,
    tree: String,
    #[serde(default)]
    parents: Vec<String>,
    author: Option<Person>,
    committer: Option<Person>,
    /// An OpenPGP signature, which the host neither checks nor stores.
    #[serde(rename = "signature")]
    _signature: Option<String>,
}

/// The author or committer of a commit.
#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub(crate) struct Person {
    pub name: String,
    pub email: String,
    pub date: Option<String>,
}

impl Person {
    pub fn signature(&self) -> Result<Signature, Refused> {
        let date =
            |date: &String| chrono::DateTime::parse_from_rfc3339(date).map_err(|error| Refused::Field(format!("date: {error}")));
        let at = self.date.as_ref().map(date).transpose()?.map_or_else(crate::model::now, |date| date.timestamp());
        Ok(Signature { name: self.name.clone(), email: self.email.clone(), at })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recursive {
    recursive: Option<String>,
}

pub(crate) fn answer(call: &mut Call, (owner, name): (&str, &str), rest: &[&str]) -> Answered {
    let request = call.request;
    let method = request.method.as_str();
    let write = if method == "GET" { Scope::Read } else { Scope::Contents };
    let (repository, user) = call.repository(owner, name, write)?;
    let answer = match (method, rest) {
        ("GET", ["ref", reference @ ..]) => {
            request.query::<Nothing>()?;
            let full = format!("refs/{}", reference.join("/"));
            let sha = repository.git.reference(&full)?.ok_or(Refused::Branch(full.clone()))?;
            Answer::json(200, reference_json(repository, &full, &sha)?)
        }
        ("GET", ["matching-refs", prefix @ ..]) => {
            let prefix = format!("refs/{}", prefix.join("/"));
            let all = repository.git.references("refs/")?;
            let matching = all.into_iter().filter(|(name, _)| name.starts_with(&prefix));
            let json: Result<Vec<_>, _> = matching.map(|(name, sha)| reference_json(repository, &name, &sha)).collect();
            Answer::json(200, json?)
        }
        ("POST", ["refs"]) => {
            let new: NewRef = request.json()?;
            let branch = new.r#ref.strip_prefix("refs/heads/");
            let branch = branch
                .ok_or_else(|| Refused::Field(format!("Reference name must start with 'refs/heads/', not {:?}", new.r#ref)))?;
            repository.create_branch(branch, &new.sha)?;
            let location = format!("{}/api/v3/repos/{}/git/{}", request.origin, repository.full_name(), new.r#ref);
            Answer::json(201, reference_json(repository, &new.r#ref, &new.sha)?).with("location", location)
        }
        ("PATCH", ["refs", "heads", branch @ ..]) => {
            let moved: MovedRef = request.json()?;
            let branch = branch.join("/");
            missing(repository, &branch)?;
            repository.move_branch(&branch, &moved.sha, moved.force)?;
            Answer::json(200, reference_json(repository, &format!("refs/heads/{branch}"), &moved.sha)?)
        }
        ("DELETE", ["refs", "heads", branch @ ..]) => {
            let branch = branch.join("/");
            missing(repository, &branch)?;
            repository.delete_branch(&branch, &user)?;
            Answer::empty(204)
        }
        ("GET", ["trees", revision @ ..]) => {
            let recursive = request.query::<Recursive>()?.recursive.is_some();
            tree(repository, &revision.join("/"), recursive)?
        }
        ("POST", ["trees"]) => new_tree(repository, request.json()?)?,
        ("GET", ["blobs", sha]) => {
            request.query::<Nothing>()?;
            if repository.git.kind(sha)?.as_deref() != Some("blob") {
                return Err(Refused::Object((*sha).to_owned()));
            }
            let bytes = repository.git.blob(sha)?;
            let url = format!("{{api}}/repos/{}/git/blobs/{sha}", repository.full_name());
            let content = base64(&bytes);
            Answer::json(
                200,
                json!({"sha": sha, "node_id": sha, "size": bytes.len(), "url": url, "content": content, "encoding": "base64"}),
            )
        }
        ("POST", ["blobs"]) => {
            let new: NewBlob = request.json()?;
            let bytes = match new.encoding.as_deref() {
                None | Some("utf-8") => new.content.into_bytes(),
                Some("base64") => unbase64("content", &new.content)?,
                Some(other) => return Err(Refused::Field(format!("encoding: {other:?} is neither utf-8 nor base64"))),
            };
            let sha = repository.git.write_blob(&bytes)?;
            repository.changed = true;
            Answer::json(201, json!({"sha": sha, "url": format!("{{api}}/repos/{}/git/blobs/{sha}", repository.full_name())}))
        }
        ("GET", ["commits", sha]) => {
            request.query::<Nothing>()?;
            let commit = repository.git.commit(sha)?.ok_or_else(|| Refused::Object((*sha).to_owned()))?;
            Answer::json(200, commit_json(repository, &commit))
        }
        ("POST", ["commits"]) => {
            let sha = new_commit(repository, &request.json()?, &user)?;
            let commit = repository.git.commit(&sha)?.ok_or(Refused::Object(sha))?;
            Answer::json(201, commit_json(repository, &commit))
        }
        (_, ["refs" | "trees" | "blobs" | "commits" | "ref", ..]) => return Err(Refused::Method),
        _ => return Err(Refused::Path),
    };
    Ok(addressed(answer, &request.origin))
}

/// Makes the addresses in an answer absolute.
pub(crate) fn addressed(answer: Answer, origin: &str) -> Answer {
    match serde_json::from_slice(&answer.body) {
        Ok(json) => Answer { body: absolute(json, origin).to_string().into_bytes(), ..answer },
        Err(_) => answer,
    }
}

/// GitHub answers 422, not 404, to a change of a missing reference.
fn missing(repository: &Repository, branch: &str) -> Result<(), Refused> {
    match repository.git.branch(branch)? {
        Some(_) => Ok(()),
        None => Err(Refused::Object(branch.to_owned())),
    }
}

fn reference_json(repository: &Repository, name: &str, sha: &str) -> Result<Value, Refused> {
    let kind = repository.git.kind(sha)?.unwrap_or_default();
    let api = format!("{{api}}/repos/{}/git", repository.full_name());
    let object = json!({"type": kind, "sha": sha, "url": format!("{api}/{kind}s/{sha}")});
    Ok(json!({"ref": name, "node_id": format!("REF_{sha}"), "url": format!("{api}/{name}"), "object": object}))
}

fn tree(repository: &Repository, revision: &str, recursive: bool) -> Result<Answer, Refused> {
    let known = is_sha(revision) && repository.git.kind(revision)?.as_deref() == Some("tree");
    let root = if known {
        revision.to_owned()
    } else {
        let commit = repository.commit_of(Some(revision))?;
        repository.git.commit(&commit)?.ok_or(Refused::Object(commit))?.tree
    };
    let api = format!("{{api}}/repos/{}/git", repository.full_name());
    let entries = repository.git.tree(&root, recursive)?.into_iter().map(|entry| {
        let mut json = json!({"path": entry.path, "mode": entry.mode, "type": entry.kind, "sha": entry.sha});
        json["url"] = format!("{api}/{}s/{}", entry.kind, entry.sha).into();
        if let Some(size) = entry.size {
            json["size"] = size.into();
        }
        json
    });
    let entries: Vec<_> = entries.collect();
    Ok(Answer::json(200, json!({"sha": root, "url": format!("{api}/trees/{root}"), "tree": entries, "truncated": false})))
}

fn new_tree(repository: &mut Repository, new: NewTree) -> Result<Answer, Refused> {
    let mut changes: Vec<Change> = vec![];
    for entry in new.tree {
        let wanted = match entry.mode.as_str() {
            "100644" | "100755" | "120000" => "blob",
            "040000" => "tree",
            other => return Err(Refused::Field(format!("tree.mode: {other:?} is not a mode of a file or directory"))),
        };
        if entry.r#type.as_ref().is_some_and(|kind| kind != wanted) {
            return Err(Refused::Field(format!("tree.type does not fit the mode of {:?}", entry.path)));
        }
        let sha = match (entry.sha, entry.content) {
            (Some(Some(sha)), None) => {
                if repository.git.kind(&sha)?.as_deref() != Some(wanted) {
                    return Err(Refused::Object(format!("tree.sha {sha}")));
                }
                Some(sha)
            }
            (Some(None), None) => None,
            (None, Some(content)) => Some(repository.git.write_blob(content.as_bytes())?),
            _ => return Err(Refused::Field(format!("tree: {:?} needs either sha or content", entry.path))),
        };
        changes.push((entry.path, sha.map(|sha| (entry.mode, sha))));
    }
    if let Some(base) = &new.base_tree
        && !matches!(repository.git.kind(base)?.as_deref(), Some("tree" | "commit"))
    {
        return Err(Refused::Object(format!("base_tree {base}")));
    }
    let sha = repository.git.write_tree(new.base_tree.as_deref(), &changes)?;
    repository.changed = true;
    tree(repository, &sha, false).map(|answer| Answer { status: 201, ..answer })
}

fn new_commit(repository: &mut Repository, new: &NewCommit, user: &str) -> Result<String, Refused> {
    if repository.git.kind(&new.tree)?.as_deref() != Some("tree") {
        return Err(Refused::Object(format!("Tree SHA {}", new.tree)));
    }
    for parent in &new.parents {
        if repository.git.kind(parent)?.as_deref() != Some("commit") {
            return Err(Refused::Object(format!("Parent SHA {parent}")));
        }
    }
    let author = new.author.as_ref().map(Person::signature).transpose()?.unwrap_or_else(|| crate::content::who(user));
    let committer = new.committer.as_ref().map(Person::signature).transpose()?.unwrap_or_else(|| author.clone());
    let (tree, parents, message) = (new.tree.clone(), new.parents.clone(), new.message.clone());
    let sha = repository.git.write_commit(&Commit { sha: String::new(), tree, parents, author, committer, message })?;
    repository.changed = true;
    Ok(sha)
}

pub(crate) fn commit_json(repository: &Repository, commit: &Commit) -> Value {
    let api = format!("{{api}}/repos/{}/git", repository.full_name());
    let person = |by: &Signature| json!({"name": by.name, "email": by.email, "date": written(by.at)});
    let web = format!("{{web}}/{}/commit", repository.full_name());
    let parent = |sha: &String| json!({"sha": sha, "url": format!("{api}/commits/{sha}"), "html_url": format!("{web}/{sha}")});
    json!({
        "sha": commit.sha, "node_id": format!("C_{}", commit.sha), "url": format!("{api}/commits/{}", commit.sha),
        "html_url": format!("{web}/{}", commit.sha), "author": person(&commit.author), "committer": person(&commit.committer),
        "tree": {"sha": commit.tree, "url": format!("{api}/trees/{}", commit.tree)}, "message": commit.message,
        "parents": commit.parents.iter().map(parent).collect::<Vec<_>>(),
        "verification": {"verified": false, "reason": "unsigned", "signature": null, "payload": null, "verified_at": null},
    })
}
