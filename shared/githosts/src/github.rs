//! GitHub: <https://docs.github.com/en/rest>, version 2022-11-28. Files are written through the Git Data API; the single file of a
//! first attempt is written through the contents API, which takes fewer requests.

use crate::answer::Answer;
use crate::client::{Archive, Branched, Client, File, Look, Merge, NewBranch, NewFile, NewRequest, Request, State};
use crate::error::{HostError, Kind};
use crate::http::{Call, Http, path, segment};
use crate::repository::Repository;
use crate::{archive, unbase64};
use keelway_domain::time::Timestamp;
use keelway_outgoing::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

/// A client for GitHub.
#[derive(Debug)]
pub(crate) struct GitHub(pub(crate) Http);

#[derive(Deserialize)]
struct Pull {
    number: u64,
    html_url: String,
    state: String,
    merged_at: Option<String>,
    merge_commit_sha: Option<String>,
    mergeable: Option<bool>,
    #[serde(default)]
    updated_at: String,
    head: Side,
    base: Side,
}

#[derive(Deserialize)]
struct Side {
    #[serde(rename = "ref")]
    branch: String,
    sha: String,
    repo: Option<Repo>,
}

#[derive(Deserialize)]
struct Repo {
    full_name: String,
}

#[derive(Deserialize)]
struct Object {
    sha: String,
}

impl Pull {
    /// `None`: the pull request comes from a fork, or from a deleted repository.
    fn request(self) -> Option<Request> {
        let (head, base) = (self.head.repo?.full_name, self.base.repo?.full_name);
        if head != base {
            return None;
        }
        let state = match (self.state.as_str(), self.merged_at) {
            (_, Some(_)) => State::Merged { commit: self.merge_commit_sha.unwrap_or_else(|| self.head.sha.clone()) },
            ("open", None) => State::Open,
            _ => State::Closed,
        };
        let mergeable = self.mergeable.filter(|_| state == State::Open);
        Some(Request { number: self.number, url: self.html_url, branch: self.head.branch, head: self.head.sha, state, mergeable })
    }
}

impl GitHub {
    /// A request about the repository or something in it.
    fn call(&self, method: Method, of: &Repository, rest: &str, what: &str) -> Call<'_> {
        let what = if what.is_empty() { format!("repository {of}") } else { format!("{what} in {of}") };
        let path = format!("/repos/{}/{}{rest}", segment(of.owner()), segment(of.name()));
        let call = self.0.call(method, &path, &what);
        call.header("accept", "application/vnd.github+json").header("x-github-api-version", "2022-11-28")
    }

    /// Makes a branch whose commit changes one file, if the blob of that file is the one to be replaced.
    async fn branch_of_one(&self, of: &Repository, new: &NewBranch<'_>, file: &NewFile) -> Result<Branched, HostError> {
        #[derive(Deserialize)]
        struct Written {
            commit: Object,
        }
        if !new.begun && !self.create_branch(of, new.name, new.base_commit).await? {
            return Ok(Branched::Exists);
        }
        let body = json!({
            "message": new.message,
            "content": crate::base64(&file.content),
            "sha": file.blob,
            "branch": new.name,
        });
        let call = self.call(Method::PUT, of, &format!("/contents/{}", path(&file.path)), &file.path);
        let answer = call.json(&body).send().await?;
        if answer.status == StatusCode::CONFLICT {
            return Ok(Branched::Differs);
        }
        Ok(Branched::Done(answer.ok()?.json::<Written>()?.commit.sha))
    }

    /// Makes a branch at a commit. `false`: a branch of this name exists.
    async fn create_branch(&self, of: &Repository, name: &str, commit: &str) -> Result<bool, HostError> {
        let body = json!({"ref": format!("refs/heads/{name}"), "sha": commit});
        let answer = self.call(Method::POST, of, "/git/refs", &format!("branch {name}")).json(&body).send().await?;
        if answer.status == StatusCode::UNPROCESSABLE_ENTITY && answer.says(&["already exists"]) {
            return Ok(false);
        }
        answer.accepted().map(|()| true)
    }

    /// Creates a Git object and returns its id.
    async fn create(&self, of: &Repository, kind: &str, body: Value) -> Result<String, HostError> {
        // Blobs, trees and commits without references are invisible.
        let call = self.call(Method::POST, of, &format!("/git/{kind}"), "branches").harmless();
        Ok(call.json(&body).send().await?.ok()?.json::<Object>()?.sha)
    }
}

impl Client for GitHub {
    fn host(&self) -> &str {
        self.0.host()
    }

    async fn access(&self, of: &Repository) -> Result<(), HostError> {
        #[derive(Deserialize)]
        struct Access {
            permissions: Option<Permissions>,
            #[serde(default)]
            archived: bool,
            #[serde(default)]
            private: bool,
        }
        #[derive(Deserialize)]
        struct Permissions {
            push: bool,
        }
        let answer = self.call(Method::GET, of, "", "").send().await?.ok()?;
        let access: Access = answer.json()?;
        let host = self.host();
        // Only classic tokens have scopes.
        if let Some(scopes) = answer.header("x-oauth-scopes").filter(|scopes| !scopes.trim().is_empty()) {
            let wanted: &[&str] = if access.private { &["repo"] } else { &["repo", "public_repo"] };
            if !scopes.split(',').any(|scope| wanted.contains(&scope.trim())) {
                let message = format!("{host}: the token has the scopes {scopes}, but {of} takes {}: add it", wanted.join(" or "));
                return Err(HostError::new(Kind::Forbidden, message));
            }
        }
        if access.archived {
            return Err(HostError::archived(host, of));
        }
        if access.permissions.is_some_and(|permissions| !permissions.push) {
            return Err(HostError::read_only(host, of, "give it read and write access to contents and pull requests"));
        }
        Ok(())
    }

    async fn find(&self, of: &Repository, branch: &str, _base: Option<&str>) -> Result<Vec<Request>, HostError> {
        let head = format!("{}:{branch}", of.owner());
        let call = |page: String| {
            let query = [("head", head.as_str()), ("state", "all"), ("per_page", "100"), ("page", &page)];
            self.call(Method::GET, of, "/pulls", "").query(&query)
        };
        let pulls = self.0.pages::<Pull>(call).await?;
        Ok(pulls.into_iter().filter_map(Pull::request).filter(|request| request.branch == branch).collect())
    }

    async fn list(&self, of: &Repository, wanted: &[u64], mark: Option<&str>) -> Result<Look, HostError> {
        let call = |page: String| {
            let query = [("state", "all"), ("sort", "updated"), ("direction", "desc"), ("per_page", "100"), ("page", &page)];
            self.call(Method::GET, of, "/pulls", "").query(&query)
        };
        let about = |pull: &Pull| (pull.number, Timestamp::parse(&pull.updated_at));
        Ok(self.0.recent::<Pull>(call, wanted, mark, about).await?.look(Pull::request))
    }

    async fn get(&self, of: &Repository, number: u64) -> Result<Option<Request>, HostError> {
        let what = format!("pull request {number}");
        let answer = self.call(Method::GET, of, &format!("/pulls/{number}"), &what).send().await?.found()?;
        Ok(answer.map(|answer| answer.json::<Pull>()).transpose()?.and_then(Pull::request))
    }

    async fn tip(&self, of: &Repository, branch: &str) -> Result<Option<String>, HostError> {
        #[derive(Deserialize)]
        struct Ref {
            object: Object,
        }
        let what = format!("branch {branch}");
        let answer = self.call(Method::GET, of, &format!("/git/ref/heads/{}", path(branch)), &what).send().await?;
        // 409: the repository is empty.
        if matches!(answer.status, StatusCode::NOT_FOUND | StatusCode::CONFLICT) {
            return Ok(None);
        }
        Ok(Some(answer.ok()?.json::<Ref>()?.object.sha))
    }

    async fn parents(&self, of: &Repository, commit: &str) -> Result<Vec<String>, HostError> {
        parents(self.call(Method::GET, of, &format!("/git/commits/{}", segment(commit)), "commits").send().await?)
    }

    async fn archive(&self, of: &Repository, commit: &str) -> Result<Archive, HostError> {
        let call = self.call(Method::GET, of, &format!("/tarball/{}", segment(commit)), "archive");
        Ok(Archive { bytes: call.send_up_to(archive::DOWNLOAD).await?.ok()?.body, folder: true })
    }

    async fn file(&self, of: &Repository, commit: &str, name: &str) -> Result<Option<File>, HostError> {
        let call = self.call(Method::GET, of, &format!("/contents/{}", path(name)), name).query(&[("ref", commit)]);
        content(call.send().await?)
    }

    /// The contents API compares the blob of the only file.
    fn compares(&self, files: &[NewFile]) -> bool {
        matches!(files, [file] if file.blob.is_some() && !file.executable)
    }

    async fn branch(&self, of: &Repository, new: NewBranch<'_>) -> Result<Branched, HostError> {
        #[derive(Deserialize)]
        struct Commit {
            tree: Object,
        }
        if let ([file], true) = (new.files, new.packed) {
            return self.branch_of_one(of, &new, file).await;
        }
        let rest = format!("/git/commits/{}", segment(new.base_commit));
        let base = self.call(Method::GET, of, &rest, "commits").send().await?.ok()?.json::<Commit>()?.tree.sha;
        let mut entries = vec![];
        for file in new.files {
            let body = json!({"content": crate::base64(&file.content), "encoding": "base64"});
            let sha = self.create(of, "blobs", body).await?;
            let mode = if file.executable { "100755" } else { "100644" };
            entries.push(json!({"path": file.path, "mode": mode, "type": "blob", "sha": sha}));
        }
        let tree = self.create(of, "trees", json!({"base_tree": base, "tree": entries})).await?;
        let commit = json!({"message": new.message, "tree": tree, "parents": [new.base_commit]});
        let commit = self.create(of, "commits", commit).await?;
        if new.replace {
            let what = format!("branch {}", new.name);
            let call = self.call(Method::PATCH, of, &format!("/git/refs/heads/{}", path(new.name)), &what);
            let answer = call.json(&json!({"sha": commit, "force": true})).send().await?;
            let gone = answer.status == StatusCode::NOT_FOUND || answer.says(&["does not exist"]);
            if answer.status.is_success() || !gone {
                return answer.accepted().map(|()| Branched::Done(commit));
            }
        }
        Ok(if self.create_branch(of, new.name, &commit).await? { Branched::Done(commit) } else { Branched::Exists })
    }

    async fn delete_branch(&self, of: &Repository, branch: &str) -> Result<(), HostError> {
        let what = format!("branch {branch}");
        let answer = self.call(Method::DELETE, of, &format!("/git/refs/heads/{}", path(branch)), &what).send().await?;
        let gone = answer.status == StatusCode::NOT_FOUND
            || answer.status == StatusCode::UNPROCESSABLE_ENTITY && answer.says(&["does not exist"]);
        if gone { Ok(()) } else { answer.deleted() }
    }

    async fn open(&self, of: &Repository, new: NewRequest<'_>) -> Result<Request, HostError> {
        let body = json!({"title": new.title, "head": new.branch, "base": new.base, "body": new.body});
        let answer = self.call(Method::POST, of, "/pulls", "pull requests").json(&body).send().await?.ok()?;
        answer.json::<Pull>()?.request().ok_or_else(|| foreign(self.host(), of))
    }

    async fn comment_once(&self, of: &Repository, number: u64, text: &str) -> Result<(), HostError> {
        #[derive(Deserialize)]
        struct Comment {
            body: Option<String>,
        }
        let (rest, what) = (format!("/issues/{number}/comments"), format!("pull request {number}"));
        let call = |page: String| self.call(Method::GET, of, &rest, &what).query(&[("per_page", "100"), ("page", &page)]);
        let comments = self.0.pages::<Comment>(call).await?;
        if comments.iter().any(|comment| comment.body.as_deref().map(str::trim) == Some(text.trim())) {
            return Ok(());
        }
        self.call(Method::POST, of, &rest, &what).json(&json!({"body": text})).send().await?.accepted()
    }

    async fn close(&self, of: &Repository, number: u64) -> Result<(), HostError> {
        let call = self.call(Method::PATCH, of, &format!("/pulls/{number}"), &format!("pull request {number}"));
        call.json(&json!({"state": "closed"})).send().await?.accepted()
    }

    async fn merge(&self, of: &Repository, request: &Request) -> Result<Merge, HostError> {
        match request.mergeable {
            None => return Ok(Merge::NotYet(format!("{} is still finding out whether it can be merged", self.host()))),
            Some(false) => return Ok(Merge::Refused("it conflicts with the base branch".to_owned())),
            Some(true) => {}
        }
        let call =
            self.call(Method::PUT, of, &format!("/pulls/{}/merge", request.number), &format!("pull request {}", request.number));
        let answer = call.json(&json!({"sha": request.head})).send().await?;
        match answer.status.as_u16() {
            200 => Ok(Merge::Merged(answer.json::<Object>()?.sha)),
            405 if answer.says(&["not allowed on this repository", "commits are not allowed", "merges are not allowed"]) => {
                Ok(Merge::Refused(format!("the repository allows no merge commits ({})", answer.words())))
            }
            405 if answer.says(&["conflict"]) => Ok(Merge::Refused(answer.words())),
            // For example: the base was modified, a check is missing, a review is missing.
            405 => Ok(Merge::NotYet(answer.words())),
            409 => Ok(Merge::HeadMoved),
            _ => Err(answer.error()),
        }
    }
}

/// The parents of a commit in an answer of GitHub or Gitea.
pub(crate) fn parents(answer: Answer) -> Result<Vec<String>, HostError> {
    #[derive(Deserialize)]
    struct Commit {
        parents: Vec<Object>,
    }
    Ok(answer.ok()?.json::<Commit>()?.parents.into_iter().map(|parent| parent.sha).collect())
}

/// A file in an answer of GitHub or Gitea.
pub(crate) fn content(answer: Answer) -> Result<Option<File>, HostError> {
    #[derive(Deserialize)]
    struct Content {
        #[serde(rename = "type")]
        kind: String,
        #[serde(default)]
        content: Option<String>,
        sha: String,
    }
    let Some(answer) = answer.found()? else { return Ok(None) };
    let found: Content = answer.json()?;
    match (found.kind.as_str(), found.content.as_deref().map(unbase64)) {
        ("file", Some(Some(content))) => Ok(Some(File { content, blob: Some(found.sha) })),
        // Links and submodules are not followed.
        ("file", _) => Err(answer.without_content()),
        _ => Ok(None),
    }
}

pub(crate) fn foreign(host: &str, of: &Repository) -> HostError {
    HostError::new(Kind::Nonsense, format!("{host} opened a pull request that is not from {of} itself"))
}
