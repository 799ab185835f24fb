//! Bitbucket Server and Data Center: <https://developer.atlassian.com/server/bitbucket/rest>. Files are written by
//! `PUT …/browse/{path}`, one commit for each.

use crate::archive;
use crate::client::{Archive, Branched, Client, File, Look, Merge, NewBranch, NewRequest, Request, State};
use crate::error::{HostError, Kind};
use crate::http::{Call, Http, PAGES, path, segment};
use crate::repository::Repository;
use keelway_outgoing::{Method, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A client for Bitbucket Server.
#[derive(Debug)]
pub(crate) struct Bitbucket(pub(crate) Http);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pull {
    id: u64,
    version: u64,
    state: String,
    from_ref: Side,
    to_ref: Side,
    links: Value,
    #[serde(default)]
    properties: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Side {
    id: String,
    latest_commit: String,
    repository: Repo,
}

#[derive(Deserialize, PartialEq)]
struct Repo {
    slug: String,
    project: Project,
}

#[derive(Deserialize, PartialEq)]
struct Project {
    key: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<T> {
    values: Vec<T>,
    is_last_page: bool,
    next_page_start: Option<u64>,
}

#[derive(Deserialize)]
struct Commit {
    id: String,
}

/// Whether a pull request can be merged.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Test {
    can_merge: bool,
    conflicted: bool,
    #[serde(default)]
    vetoes: Vec<Veto>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Veto {
    summary_message: Option<String>,
}

impl Pull {
    /// `None`: the pull request comes from a fork, or goes to another repository.
    fn request(&self) -> Option<Request> {
        if self.from_ref.repository != self.to_ref.repository {
            return None;
        }
        let text = |pointer: &str| self.properties.pointer(pointer).and_then(Value::as_str);
        let head = self.from_ref.latest_commit.clone();
        let state = match self.state.as_str() {
            "OPEN" => State::Open,
            "MERGED" => State::Merged { commit: text("/mergeCommit/id").map_or(head.clone(), str::to_owned) },
            _ => State::Closed,
        };
        let mergeable = match text("/mergeResult/outcome") {
            Some("CLEAN") => Some(true),
            Some("CONFLICTED") => Some(false),
            _ => None,
        };
        Some(Request {
            number: self.id,
            url: self.links.pointer("/self/0/href").and_then(Value::as_str).unwrap_or_default().to_owned(),
            branch: self.from_ref.id.strip_prefix("refs/heads/").unwrap_or(&self.from_ref.id).to_owned(),
            head,
            mergeable: mergeable.filter(|_| state == State::Open),
            state,
        })
    }
}

impl Bitbucket {
    fn place(of: &Repository) -> String {
        format!("/projects/{}/repos/{}", segment(of.owner()), segment(of.name()))
    }

    /// A request about the repository or something in it.
    fn call(&self, method: Method, of: &Repository, rest: &str, what: &str) -> Call<'_> {
        let what = if what.is_empty() { format!("repository {of}") } else { format!("{what} in {of}") };
        // Without this header, requests without a JSON body are refused as forgeries.
        self.0.call(method, &format!("{}{rest}", Self::place(of)), &what).header("x-atlassian-token", "no-check")
    }

    async fn pages<'h, T: DeserializeOwned>(&'h self, call: impl Fn() -> Call<'h>) -> Result<Vec<T>, HostError> {
        let (mut all, mut start) = (vec![], 0);
        for _ in 0..PAGES {
            let answer = call().query(&[("limit", "100"), ("start", &start.to_string())]).send().await?.ok()?;
            let page: Page<T> = answer.json()?;
            all.extend(page.values);
            match page.next_page_start {
                Some(next) if !page.is_last_page && next > start => start = next,
                _ => return Ok(all),
            }
        }
        let message = format!("{}: the list has more than {PAGES} pages, which is more than is read", self.host());
        Err(HostError::new(Kind::TooLarge, message))
    }

    async fn pulls(&self, of: &Repository, query: &[(&str, &str)]) -> Result<Vec<Request>, HostError> {
        let pulls: Vec<Pull> = self.pages(|| self.call(Method::GET, of, "/pull-requests", "").query(query)).await?;
        let ours = |pull: &&Pull| {
            let Repo { slug, project } = &pull.to_ref.repository;
            slug.eq_ignore_ascii_case(of.name()) && project.key.eq_ignore_ascii_case(of.owner())
        };
        Ok(pulls.iter().filter(ours).filter_map(Pull::request).collect())
    }

    async fn pull(&self, of: &Repository, number: u64) -> Result<Option<Pull>, HostError> {
        let what = format!("pull request {number}");
        let answer = self.call(Method::GET, of, &format!("/pull-requests/{number}"), &what).send().await?.found()?;
        answer.map(|answer| answer.json()).transpose()
    }

    async fn test(&self, of: &Repository, number: u64) -> Result<Test, HostError> {
        let rest = format!("/pull-requests/{number}/merge");
        self.call(Method::GET, of, &rest, &format!("pull request {number}")).send().await?.ok()?.json()
    }

    /// Commits one file to a branch.
    async fn write(&self, of: &Repository, new: &NewBranch<'_>, file: &crate::client::NewFile) -> Result<String, HostError> {
        let fields = [
            ("branch", new.name),
            ("message", new.message),
            ("sourceCommitId", new.base_commit),
            ("content", file.content.as_str()),
        ];
        let call = self.call(Method::PUT, of, &format!("/browse/{}", path(&file.path)), &file.path);
        Ok(call.form(&fields).send().await?.ok()?.json::<Commit>()?.id)
    }
}

impl Client for Bitbucket {
    fn host(&self) -> &str {
        self.0.host()
    }

    /// Bitbucket Server does not report the permissions of a token: one that may only read is refused at the first write, which
    /// then has no effect.
    async fn access(&self, of: &Repository) -> Result<(), HostError> {
        #[derive(Deserialize)]
        struct Access {
            #[serde(default)]
            archived: bool,
        }
        let access: Access = self.call(Method::GET, of, "", "").send().await?.ok()?.json()?;
        if access.archived {
            return Err(HostError::archived(self.host(), of));
        }
        Ok(())
    }

    async fn find(&self, of: &Repository, branch: &str, _base: Option<&str>) -> Result<Vec<Request>, HostError> {
        let at = format!("refs/heads/{branch}");
        let found = self.pulls(of, &[("at", &at), ("direction", "OUTGOING"), ("state", "ALL")]).await?;
        Ok(found.into_iter().filter(|request| request.branch == branch).collect())
    }

    /// The documentation promises no order by the last change.
    async fn list(&self, of: &Repository, _wanted: &[u64], _mark: Option<&str>) -> Result<Look, HostError> {
        Ok(Look { requests: Some(self.pulls(of, &[("state", "OPEN")]).await?), mark: None, every: true })
    }

    async fn get(&self, of: &Repository, number: u64) -> Result<Option<Request>, HostError> {
        let mut found = self.pull(of, number).await?.and_then(|pull| pull.request());
        // The properties of a pull request contain it only after somebody has requested it.
        if let Some(request) = found.as_mut().filter(|request| request.state == State::Open && request.mergeable.is_none()) {
            request.mergeable = Some(!self.test(of, number).await?.conflicted);
        }
        Ok(found)
    }

    async fn tip(&self, of: &Repository, branch: &str) -> Result<Option<String>, HostError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Branch {
            id: String,
            latest_commit: String,
        }
        let call = || self.call(Method::GET, of, "/branches", &format!("branch {branch}")).query(&[("filterText", branch)]);
        let found: Vec<Branch> = self.pages(call).await?;
        let wanted = format!("refs/heads/{branch}");
        Ok(found.into_iter().find(|found| found.id == wanted).map(|found| found.latest_commit))
    }

    async fn parents(&self, of: &Repository, commit: &str) -> Result<Vec<String>, HostError> {
        #[derive(Deserialize)]
        struct Found {
            parents: Vec<Commit>,
        }
        let answer = self.call(Method::GET, of, &format!("/commits/{}", segment(commit)), "commits").send().await?.ok()?;
        Ok(answer.json::<Found>()?.parents.into_iter().map(|parent| parent.id).collect())
    }

    async fn archive(&self, of: &Repository, commit: &str) -> Result<Archive, HostError> {
        let call = self.call(Method::GET, of, "/archive", "archive").query(&[("at", commit), ("format", "tar.gz")]);
        Ok(Archive { bytes: call.send_up_to(archive::DOWNLOAD).await?.ok()?.body, folder: false })
    }

    async fn file(&self, of: &Repository, commit: &str, name: &str) -> Result<Option<File>, HostError> {
        let answer = self.call(Method::GET, of, &format!("/raw/{}", path(name)), name).query(&[("at", commit)]).send().await?;
        Ok(answer.found()?.map(|answer| File { content: answer.body.to_vec(), blob: None }))
    }

    async fn branch(&self, of: &Repository, new: NewBranch<'_>) -> Result<Branched, HostError> {
        if new.replace {
            self.delete_branch(of, new.name).await?;
        }
        let body = json!({"name": new.name, "startPoint": new.base_commit});
        let answer = self.call(Method::POST, of, "/branches", &format!("branch {}", new.name)).json(&body).send().await?;
        if answer.status == StatusCode::CONFLICT {
            return Ok(Branched::Exists);
        }
        answer.accepted()?;
        let mut tip = new.base_commit.to_owned();
        for file in new.files {
            tip = self.write(of, &new, file).await?;
        }
        Ok(Branched::Done(tip))
    }

    async fn delete_branch(&self, of: &Repository, branch: &str) -> Result<(), HostError> {
        let root = self.0.base().rsplit_once("/api/").map_or("", |(root, _)| root);
        let url = format!("{root}/branch-utils/1.0{}/branches", Self::place(of));
        let body = json!({"name": format!("refs/heads/{branch}"), "dryRun": false});
        let answer = self.0.call_at(Method::DELETE, &url, &format!("branch {branch} in {of}")).json(&body).send().await?;
        let gone = matches!(answer.status.as_u16(), 400 | 404) && answer.says(&["does not exist", "no such branch", "not found"]);
        if gone || answer.status == StatusCode::NOT_FOUND { Ok(()) } else { answer.deleted() }
    }

    async fn open(&self, of: &Repository, new: NewRequest<'_>) -> Result<Request, HostError> {
        let side = |branch: &str| {
            let repository = json!({"slug": of.name(), "project": {"key": of.owner()}});
            json!({"id": format!("refs/heads/{branch}"), "repository": repository})
        };
        let body = json!({"title": new.title, "description": new.body, "fromRef": side(new.branch), "toRef": side(new.base)});
        let answer = self.call(Method::POST, of, "/pull-requests", "pull requests").json(&body).send().await?.ok()?;
        answer.json::<Pull>()?.request().ok_or_else(|| crate::github::foreign(self.host(), of))
    }

    async fn comment_once(&self, of: &Repository, number: u64, text: &str) -> Result<(), HostError> {
        let what = format!("pull request {number}");
        let rest = format!("/pull-requests/{number}/activities");
        let activities: Vec<Value> = self.pages(|| self.call(Method::GET, of, &rest, &what)).await?;
        let said = |activity: &Value| activity.pointer("/comment/text").and_then(Value::as_str).map(str::trim) == Some(text.trim());
        if activities.iter().any(said) {
            return Ok(());
        }
        let call = self.call(Method::POST, of, &format!("/pull-requests/{number}/comments"), &what);
        call.json(&json!({"text": text})).send().await?.accepted()
    }

    async fn close(&self, of: &Repository, number: u64) -> Result<(), HostError> {
        let what = format!("pull request {number}");
        let Some(pull) = self.pull(of, number).await? else { return Ok(()) };
        let call = self.call(Method::POST, of, &format!("/pull-requests/{number}/decline"), &what);
        let answer = call.query(&[("version", &pull.version.to_string())]).send().await?;
        if answer.status == StatusCode::CONFLICT {
            let now = self.pull(of, number).await?;
            if now.is_some_and(|now| now.state == "OPEN" && now.version != pull.version) {
                let message = format!("{}: {what} in {of} has changed while it was closed", self.host());
                return Err(HostError::new(Kind::Transient, message));
            }
        }
        answer.accepted()
    }

    async fn merge(&self, of: &Repository, request: &Request) -> Result<Merge, HostError> {
        let number = request.number;
        let what = format!("pull request {number}");
        let rest = format!("/pull-requests/{number}/merge");
        let test = self.test(of, number).await?;
        if test.conflicted {
            return Ok(Merge::Refused("it conflicts with the base branch".to_owned()));
        }
        if !test.can_merge {
            let vetoes: Vec<String> = test.vetoes.into_iter().filter_map(|veto| veto.summary_message).collect();
            return Ok(Merge::NotYet(vetoes.join("; ")));
        }
        // The merge names the version that was read together with the head.
        let Some(pull) = self.pull(of, number).await? else { return Ok(Merge::Refused(format!("{what} is gone"))) };
        if pull.from_ref.latest_commit != request.head {
            return Ok(Merge::HeadMoved);
        }
        let call = self.call(Method::POST, of, &rest, &what).query(&[("version", &pull.version.to_string())]);
        let answer = call.send().await?;
        if answer.status == StatusCode::CONFLICT {
            return Ok(Merge::NotYet(answer.words()));
        }
        if answer.status == StatusCode::BAD_REQUEST && answer.says(&["strategy"]) {
            return Ok(Merge::Refused(format!("the repository allows no merge commits ({})", answer.words())));
        }
        match answer.ok()?.json::<Pull>()?.request().map(|request| request.state) {
            Some(State::Merged { commit }) => Ok(Merge::Merged(commit)),
            _ => Ok(Merge::NotYet(format!("{} has not finished merging", self.host()))),
        }
    }
}
