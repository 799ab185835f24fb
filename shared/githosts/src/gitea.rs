//! Gitea and Forgejo: <https://docs.gitea.com/api>, version 1. Files are written by `POST /repos/{owner}/{repo}/contents`, which
//! makes the branch and one commit for all files (Gitea 1.20, Forgejo 1.20).

use crate::archive;
use crate::client::{Archive, Branched, Client, File, Look, Merge, NewBranch, NewFile, NewRequest, Request, State};
use crate::error::{HostError, Kind};
use crate::github::{content, foreign, parents};
use crate::http::{Call, Http, path, segment};
use crate::repository::Repository;
use keelway_domain::time::Timestamp;
use keelway_outgoing::{Method, StatusCode};
use serde::Deserialize;
use serde_json::json;

/// How many pages of closed pull requests are searched if the base is not known. The last changed come first.
const RECENT: usize = 10;

/// A client for Gitea.
#[derive(Debug)]
pub(crate) struct Gitea(pub(crate) Http);

#[derive(Deserialize)]
struct Pull {
    number: u64,
    html_url: String,
    state: String,
    #[serde(default)]
    merged: bool,
    merge_commit_sha: Option<String>,
    mergeable: Option<bool>,
    #[serde(default)]
    updated_at: String,
    head: Side,
    base: Side,
}

#[derive(Deserialize)]
struct Side {
    label: String,
    #[serde(rename = "ref")]
    reference: String,
    sha: String,
    repo_id: i64,
}

impl Pull {
    /// `None`: the pull request comes from a fork, or from a deleted repository.
    fn request(self) -> Option<Request> {
        if self.head.repo_id != self.base.repo_id {
            return None;
        }
        let state = match (self.merged, self.state.as_str()) {
            (true, _) => State::Merged { commit: self.merge_commit_sha.unwrap_or_else(|| self.head.sha.clone()) },
            (false, "open") => State::Open,
            (false, _) => State::Closed,
        };
        // After the deletion of the branch, the ref is refs/pull/<number>/head; the label still has the name.
        let branch = if self.head.reference.starts_with("refs/pull/") { self.head.label } else { self.head.reference };
        // Gitea also answers `false` while it checks, for about a second after a change of the base. The next look corrects that.
        let mergeable = self.mergeable.filter(|_| state == State::Open);
        Some(Request { number: self.number, url: self.html_url, branch, head: self.head.sha, state, mergeable })
    }
}

impl Gitea {
    /// A request about the repository or something in it.
    fn call(&self, method: Method, of: &Repository, rest: &str, what: &str) -> Call<'_> {
        let what = if what.is_empty() { format!("repository {of}") } else { format!("{what} in {of}") };
        self.0.call(method, &format!("/repos/{}/{}{rest}", segment(of.owner()), segment(of.name())), &what)
    }

    fn pulls(&self, of: &Repository, state: &str, page: &str) -> Call<'_> {
        let query = [("state", state), ("sort", "recentupdate"), ("limit", "50"), ("page", page)];
        self.call(Method::GET, of, "/pulls", "").query(&query)
    }

    async fn open_ones(&self, of: &Repository) -> Result<Vec<Request>, HostError> {
        let pulls = self.0.pages::<Pull>(|page| self.pulls(of, "open", &page)).await?;
        Ok(pulls.into_iter().filter_map(Pull::request).collect())
    }

    async fn pull(&self, of: &Repository, rest: &str, what: &str) -> Result<Option<Request>, HostError> {
        let answer = self.call(Method::GET, of, &format!("/pulls/{rest}"), what).send().await?.found()?;
        Ok(answer.map(|answer| answer.json::<Pull>()).transpose()?.and_then(Pull::request))
    }
}

impl Client for Gitea {
    fn host(&self) -> &str {
        self.0.host()
    }

    async fn access(&self, of: &Repository) -> Result<(), HostError> {
        #[derive(Deserialize)]
        struct Access {
            permissions: Option<Permissions>,
            #[serde(default)]
            archived: bool,
        }
        #[derive(Deserialize)]
        struct Permissions {
            push: bool,
        }
        let access: Access = self.call(Method::GET, of, "", "").send().await?.ok()?.json()?;
        if access.archived {
            return Err(HostError::archived(self.host(), of));
        }
        if access.permissions.is_some_and(|permissions| !permissions.push) {
            let remedy = "give its user write access, and the token the scopes write:repository and write:issue";
            return Err(HostError::read_only(self.host(), of, remedy));
        }
        Ok(())
    }

    async fn find(&self, of: &Repository, branch: &str, base: Option<&str>) -> Result<Vec<Request>, HostError> {
        // There is no filter by branch: the pull request is found by its two branches.
        let ours = |requests: Vec<Request>| requests.into_iter().filter(|request| request.branch == branch).collect();
        let Some(base) = base else {
            let open: Vec<Request> = ours(self.open_ones(of).await?);
            if !open.is_empty() {
                return Ok(open);
            }
            let pulls = self.0.first::<Pull>(|page| self.pulls(of, "closed", &page), RECENT).await?;
            return Ok(ours(pulls.into_iter().filter_map(Pull::request).collect()));
        };
        let rest = format!("{}/{}", segment(base), path(branch));
        let mut found: Vec<Request> = self.pull(of, &rest, "pull request").await?.into_iter().collect();
        // Somebody may have changed the base, or opened another pull request of the branch. If the branch is gone, none is open.
        if found.iter().all(|request| request.state != State::Open) && self.tip(of, branch).await?.is_some() {
            found.extend(ours(self.open_ones(of).await?));
        }
        Ok(found)
    }

    async fn list(&self, of: &Repository, wanted: &[u64], mark: Option<&str>) -> Result<Look, HostError> {
        let about = |pull: &Pull| (pull.number, Timestamp::parse(&pull.updated_at));
        let recent = self.0.recent::<Pull>(|page| self.pulls(of, "all", &page), wanted, mark, about).await?;
        Ok(recent.look(Pull::request))
    }

    async fn get(&self, of: &Repository, number: u64) -> Result<Option<Request>, HostError> {
        self.pull(of, &number.to_string(), &format!("pull request {number}")).await
    }

    async fn tip(&self, of: &Repository, branch: &str) -> Result<Option<String>, HostError> {
        #[derive(Deserialize)]
        struct Branch {
            commit: Commit,
        }
        #[derive(Deserialize)]
        struct Commit {
            id: String,
        }
        let call = self.call(Method::GET, of, &format!("/branches/{}", path(branch)), &format!("branch {branch}"));
        let branch = call.send().await?.found()?.map(|answer| answer.json::<Branch>()).transpose()?;
        Ok(branch.map(|branch| branch.commit.id))
    }

    async fn parents(&self, of: &Repository, commit: &str) -> Result<Vec<String>, HostError> {
        parents(self.call(Method::GET, of, &format!("/git/commits/{}", segment(commit)), "commits").send().await?)
    }

    async fn archive(&self, of: &Repository, commit: &str) -> Result<Archive, HostError> {
        let call = self.call(Method::GET, of, &format!("/archive/{}.tar.gz", segment(commit)), "archive");
        Ok(Archive { bytes: call.send_up_to(archive::DOWNLOAD).await?.ok()?.body, folder: true })
    }

    async fn file(&self, of: &Repository, commit: &str, name: &str) -> Result<Option<File>, HostError> {
        let call = self.call(Method::GET, of, &format!("/contents/{}", path(name)), name).query(&[("ref", commit)]);
        content(call.send().await?)
    }

    fn compares(&self, files: &[NewFile]) -> bool {
        files.iter().all(|file| file.blob.is_some())
    }

    async fn branch(&self, of: &Repository, new: NewBranch<'_>) -> Result<Branched, HostError> {
        #[derive(Deserialize)]
        struct Changed {
            commit: Commit,
        }
        #[derive(Deserialize)]
        struct Commit {
            sha: String,
        }
        if new.replace {
            self.delete_branch(of, new.name).await?;
        }
        let operation = |file: &NewFile| json!({"operation": "update", "path": file.path, "content": crate::base64(&file.content), "sha": file.blob});
        let body = json!({
            "branch": new.base,
            "new_branch": new.name,
            "message": new.message,
            "files": new.files.iter().map(operation).collect::<Vec<_>>(),
        });
        let answer = self.call(Method::POST, of, "/contents", &format!("branch {}", new.name)).json(&body).send().await?;
        let code = answer.status.as_u16();
        if matches!(code, 409 | 422) && answer.says(&["branch already exists"]) {
            return Ok(Branched::Exists);
        }
        if new.packed && matches!(code, 404 | 409 | 422) && answer.says(&["sha does not match", "does not exist"]) {
            return Ok(Branched::Differs);
        }
        // The base has changed between reading and writing.
        if matches!(code, 409 | 422) && answer.says(&["sha does not match"]) {
            let message = format!("{}: {} has changed while {of} was read", self.host(), new.base);
            return Err(HostError::new(Kind::Transient, message));
        }
        Ok(Branched::Done(answer.ok()?.json::<Changed>()?.commit.sha))
    }

    async fn delete_branch(&self, of: &Repository, branch: &str) -> Result<(), HostError> {
        let answer =
            self.call(Method::DELETE, of, &format!("/branches/{}", path(branch)), &format!("branch {branch}")).send().await?;
        if answer.status == StatusCode::NOT_FOUND { Ok(()) } else { answer.deleted() }
    }

    async fn open(&self, of: &Repository, new: NewRequest<'_>) -> Result<Request, HostError> {
        let body = json!({"title": new.title, "head": new.branch, "base": new.base, "body": new.body});
        let answer = self.call(Method::POST, of, "/pulls", "pull requests").json(&body).send().await?.ok()?;
        answer.json::<Pull>()?.request().ok_or_else(|| foreign(self.host(), of))
    }

    async fn comment_once(&self, of: &Repository, number: u64, text: &str) -> Result<(), HostError> {
        #[derive(Deserialize)]
        struct Comment {
            body: String,
        }
        // All comments are in one answer.
        let (rest, what) = (format!("/issues/{number}/comments"), format!("pull request {number}"));
        let comments: Vec<Comment> = self.call(Method::GET, of, &rest, &what).send().await?.ok()?.json()?;
        if comments.iter().any(|comment| comment.body.trim() == text.trim()) {
            return Ok(());
        }
        self.call(Method::POST, of, &rest, &what).json(&json!({"body": text})).send().await?.accepted()
    }

    async fn close(&self, of: &Repository, number: u64) -> Result<(), HostError> {
        let call = self.call(Method::PATCH, of, &format!("/pulls/{number}"), &format!("pull request {number}"));
        call.json(&json!({"state": "closed"})).send().await?.accepted()
    }

    async fn merge(&self, of: &Repository, request: &Request) -> Result<Merge, HostError> {
        let number = request.number;
        let call = self.call(Method::POST, of, &format!("/pulls/{number}/merge"), &format!("pull request {number}"));
        let answer = call.json(&json!({"Do": "merge", "head_commit_id": request.head})).send().await?;
        match answer.status.as_u16() {
            200 => {
                let merged = self.get(of, number).await?.map(|request| request.state);
                match merged {
                    Some(State::Merged { commit }) => Ok(Merge::Merged(commit)),
                    _ => Ok(Merge::NotYet(format!("{} has not finished merging", self.host()))),
                }
            }
            405 if answer.says(&["merge style"]) => {
                Ok(Merge::Refused(format!("the repository allows no merge commits ({})", answer.words())))
            }
            // A conflict, a running check, a missing check or review: Gitea does not say which.
            405 => Ok(Merge::NotYet(answer.words())),
            409 if answer.says(&["head out of date"]) => Ok(Merge::HeadMoved),
            409 if answer.says(&["push out of date"]) => Ok(Merge::NotYet(answer.words())),
            409 => Ok(Merge::Refused(format!("it conflicts with the base branch ({})", answer.words()))),
            _ => Err(answer.error()),
        }
    }
}
