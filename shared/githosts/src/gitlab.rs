//! GitLab: <https://docs.gitlab.com/api/rest>, version 4. Files are written by `POST /projects/:id/repository/commits`, which makes
//! the branch and one commit for all files.

use crate::client::{Archive, Branched, Client, File, Look, Merge, NewBranch, NewFile, NewRequest, Request, State};
use crate::error::{HostError, Kind};
use crate::http::{Call, Http, segment};
use crate::repository::Repository;
use crate::{archive, unbase64};
use keelway_domain::time::Timestamp;
use keelway_outgoing::{Method, StatusCode};
use serde::Deserialize;
use serde_json::json;

/// The access level of developers: the lowest that may push branches and open merge requests.
const DEVELOPER: u32 = 30;

/// A client for GitLab.
#[derive(Debug)]
pub(crate) struct GitLab(pub(crate) Http);

#[derive(Deserialize)]
struct Pull {
    iid: u64,
    web_url: String,
    state: String,
    sha: Option<String>,
    source_branch: String,
    source_project_id: Option<u64>,
    target_project_id: u64,
    merge_commit_sha: Option<String>,
    squash_commit_sha: Option<String>,
    #[serde(default)]
    has_conflicts: bool,
    merge_status: Option<String>,
    detailed_merge_status: Option<String>,
    #[serde(default)]
    updated_at: String,
}

impl Pull {
    /// `None`: the merge request comes from a fork.
    fn request(self) -> Option<Request> {
        if self.source_project_id != Some(self.target_project_id) {
            return None;
        }
        let mergeable = match (self.has_conflicts, self.detailed_merge_status.as_deref(), self.merge_status.as_deref()) {
            (true, ..) | (_, Some("conflict"), _) => Some(false),
            (_, Some("mergeable"), _) | (_, None, Some("can_be_merged")) => Some(true),
            _ => None,
        };
        let head = self.sha.unwrap_or_default();
        let state = match self.state.as_str() {
            // Fast-forward merges have no commit of their own.
            "merged" => State::Merged { commit: self.merge_commit_sha.or(self.squash_commit_sha).unwrap_or_else(|| head.clone()) },
            "closed" => State::Closed,
            // `locked`: the merge is in progress.
            _ => State::Open,
        };
        let mergeable = mergeable.filter(|_| state == State::Open);
        Some(Request { number: self.iid, url: self.web_url, branch: self.source_branch, head, state, mergeable })
    }
}

impl GitLab {
    /// A request about the project or something in it.
    fn call(&self, method: Method, of: &Repository, rest: &str, what: &str) -> Call<'_> {
        let what = if what.is_empty() { format!("project {of}") } else { format!("{what} in {of}") };
        self.0.call(method, &format!("/projects/{}{rest}", segment(&of.to_string())), &what)
    }

    fn pulls(&self, of: &Repository, query: &[(&str, &str)], page: &str) -> Call<'_> {
        let call = self.call(Method::GET, of, "/merge_requests", "").query(query);
        call.query(&[("per_page", "100"), ("page", page)])
    }
}

impl Client for GitLab {
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
            project_access: Option<Level>,
            group_access: Option<Level>,
        }
        #[derive(Deserialize)]
        struct Level {
            access_level: u32,
        }
        let access: Access = self.call(Method::GET, of, "", "").send().await?.ok()?.json()?;
        if access.archived {
            return Err(HostError::archived(self.host(), of));
        }
        // Without either, the access comes from elsewhere, and the first write shows it.
        let levels = access.permissions.map(|all| [all.project_access, all.group_access]).into_iter().flatten().flatten();
        if levels.map(|level| level.access_level).max().is_some_and(|level| level < DEVELOPER) {
            return Err(HostError::read_only(self.host(), of, "give it the scope api and the role Developer"));
        }
        Ok(())
    }

    async fn find(&self, of: &Repository, branch: &str, _base: Option<&str>) -> Result<Vec<Request>, HostError> {
        let query = [("source_branch", branch), ("state", "all")];
        let found = self.0.pages::<Pull>(|page| self.pulls(of, &query, &page)).await?;
        Ok(found.into_iter().filter_map(Pull::request).filter(|request| request.branch == branch).collect())
    }

    async fn list(&self, of: &Repository, wanted: &[u64], mark: Option<&str>) -> Result<Look, HostError> {
        let query = [("state", "all"), ("order_by", "updated_at"), ("sort", "desc")];
        let about = |pull: &Pull| (pull.iid, Timestamp::parse(&pull.updated_at));
        let recent = self.0.recent::<Pull>(|page| self.pulls(of, &query, &page), wanted, mark, about).await?;
        Ok(recent.look(Pull::request))
    }

    async fn get(&self, of: &Repository, number: u64) -> Result<Option<Request>, HostError> {
        let what = format!("merge request {number}");
        let answer = self.call(Method::GET, of, &format!("/merge_requests/{number}"), &what).send().await?.found()?;
        Ok(answer.map(|answer| answer.json::<Pull>()).transpose()?.and_then(Pull::request))
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
        let rest = format!("/repository/branches/{}", segment(branch));
        let answer = self.call(Method::GET, of, &rest, &format!("branch {branch}")).send().await?.found()?;
        Ok(answer.map(|answer| answer.json::<Branch>()).transpose()?.map(|branch| branch.commit.id))
    }

    async fn parents(&self, of: &Repository, commit: &str) -> Result<Vec<String>, HostError> {
        #[derive(Deserialize)]
        struct Commit {
            parent_ids: Vec<String>,
        }
        let rest = format!("/repository/commits/{}", segment(commit));
        Ok(self.call(Method::GET, of, &rest, "commits").send().await?.ok()?.json::<Commit>()?.parent_ids)
    }

    async fn archive(&self, of: &Repository, commit: &str) -> Result<Archive, HostError> {
        let call = self.call(Method::GET, of, "/repository/archive.tar.gz", "archive").query(&[("sha", commit)]);
        Ok(Archive { bytes: call.send_up_to(archive::DOWNLOAD).await?.ok()?.body, folder: true })
    }

    async fn file(&self, of: &Repository, commit: &str, name: &str) -> Result<Option<File>, HostError> {
        #[derive(Deserialize)]
        struct Content {
            content: String,
            blob_id: String,
        }
        let rest = format!("/repository/files/{}", segment(name));
        let answer = self.call(Method::GET, of, &rest, name).query(&[("ref", commit)]).send().await?;
        let Some(answer) = answer.found()? else { return Ok(None) };
        let found: Content = answer.json()?;
        match unbase64(&found.content) {
            Some(content) => Ok(Some(File { content, blob: Some(found.blob_id) })),
            None => Err(answer.without_content()),
        }
    }

    async fn branch(&self, of: &Repository, new: NewBranch<'_>) -> Result<Branched, HostError> {
        #[derive(Deserialize)]
        struct Commit {
            id: String,
        }
        let action = |file: &NewFile| json!({"action": "update", "file_path": file.path, "content": crate::base64(&file.content), "encoding": "base64"});
        let body = json!({
            "branch": new.name,
            "start_sha": new.base_commit,
            "commit_message": new.message,
            "force": new.replace,
            "actions": new.files.iter().map(action).collect::<Vec<_>>(),
        });
        let call = self.call(Method::POST, of, "/repository/commits", &format!("branch {}", new.name));
        let answer = call.json(&body).send().await?;
        if answer.status == StatusCode::BAD_REQUEST && answer.says(&["already exists"]) {
            return Ok(Branched::Exists);
        }
        Ok(Branched::Done(answer.ok()?.json::<Commit>()?.id))
    }

    async fn delete_branch(&self, of: &Repository, branch: &str) -> Result<(), HostError> {
        let rest = format!("/repository/branches/{}", segment(branch));
        let answer = self.call(Method::DELETE, of, &rest, &format!("branch {branch}")).send().await?;
        if answer.status == StatusCode::NOT_FOUND { Ok(()) } else { answer.deleted() }
    }

    async fn open(&self, of: &Repository, new: NewRequest<'_>) -> Result<Request, HostError> {
        let body = json!({
            "source_branch": new.branch,
            "target_branch": new.base,
            "title": new.title,
            "description": new.body,
        });
        let answer = self.call(Method::POST, of, "/merge_requests", "merge requests").json(&body).send().await?.ok()?;
        answer.json::<Pull>()?.request().ok_or_else(|| crate::github::foreign(self.host(), of))
    }

    async fn comment_once(&self, of: &Repository, number: u64, text: &str) -> Result<(), HostError> {
        #[derive(Deserialize)]
        struct Note {
            body: String,
        }
        let (rest, what) = (format!("/merge_requests/{number}/notes"), format!("merge request {number}"));
        let call = |page: String| self.call(Method::GET, of, &rest, &what).query(&[("per_page", "100"), ("page", &page)]);
        let notes = self.0.pages::<Note>(call).await?;
        if notes.iter().any(|note| note.body.trim() == text.trim()) {
            return Ok(());
        }
        self.call(Method::POST, of, &rest, &what).json(&json!({"body": text})).send().await?.accepted()
    }

    async fn close(&self, of: &Repository, number: u64) -> Result<(), HostError> {
        let call = self.call(Method::PUT, of, &format!("/merge_requests/{number}"), &format!("merge request {number}"));
        call.json(&json!({"state_event": "close"})).send().await?.accepted()
    }

    async fn merge(&self, of: &Repository, request: &Request) -> Result<Merge, HostError> {
        match request.mergeable {
            // GitLab still looks for conflicts (`unchecked`, `checking`, `preparing`), which it begins when a merge request is
            // read, or it waits for a pipeline or an approval. Asked to merge, it would refuse, and not say which of these it was.
            None => return Ok(Merge::NotYet("GitLab does not report it as mergeable yet".to_owned())),
            Some(false) => return Ok(Merge::Refused("it conflicts with the base branch".to_owned())),
            Some(true) => {}
        }
        let what = format!("merge request {}", request.number);
        let call = self.call(Method::PUT, of, &format!("/merge_requests/{}/merge", request.number), &what);
        let answer = call.json(&json!({"sha": request.head})).send().await?;
        match answer.status.as_u16() {
            200 => match answer.json::<Pull>()?.request().map(|request| request.state) {
                Some(State::Merged { commit }) => Ok(Merge::Merged(commit)),
                _ => Ok(Merge::NotYet(format!("{} has not finished merging", self.host()))),
            },
            // Reading was permitted, so this is about the right to merge.
            401 => {
                let message = format!("{}: the token may not merge {}: give its user the right", self.host(), request.url);
                Err(HostError::new(Kind::Forbidden, message))
            }
            409 => Ok(Merge::HeadMoved),
            // Something has changed since it was read: the next look reports what.
            405 | 406 | 422 => Ok(Merge::NotYet(answer.words())),
            _ => Err(answer.error()),
        }
    }
}
