//! The REST form of Bitbucket Server (Data Center): the gate, the table of paths, pages and errors.

use super::{Answered, Call, Nothing, bitbucket_files, bitbucket_pulls};
use crate::http::{Answer, Request};
use crate::model::{Repository, Scope};
use crate::refused::Refused;
use serde_json::{Value, json};

pub(crate) fn answer(call: &mut Call) -> Answered {
    let path = call.path.clone();
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let request = call.request;
    gate(request)?;
    match (request.method.as_str(), path.as_slice()) {
        // Answers every caller, anonymous ones with an empty text: tools check their token in this way.
        ("GET", ["plugins", "servlet", "applinks", "whoami"]) => {
            let user = call.token.as_ref().map_or("", |token| token.user.as_str());
            Ok(Answer::text(200, "text/plain", user))
        }
        ("GET", ["rest", "api", "1.0" | "latest", "application-properties"]) => {
            Ok(Answer::json(200, json!({"version": "8.19.0", "buildNumber": "8019000", "displayName": "Bitbucket"})))
        }
        ("GET", ["rest", "api", "1.0" | "latest", "users", slug]) => {
            request.query::<Nothing>()?;
            call.user(Scope::User)?;
            let known = call.store.tokens.iter().any(|token| token.user == *slug);
            if known { Ok(Answer::json(200, account(slug, &request.origin))) } else { Err(Refused::File((*slug).to_owned())) }
        }
        ("GET", ["rest", "api", "1.0" | "latest", "projects", project, "repos", name]) => {
            request.query::<Nothing>()?;
            let (repository, _) = call.repository(project, name, Scope::Read)?;
            Ok(Answer::json(200, repository_json(repository, &request.origin)))
        }
        (_, ["rest", "api", "1.0" | "latest", "projects", project, "repos", name, "pull-requests", rest @ ..]) => {
            bitbucket_pulls::answer(call, (project, name), rest)
        }
        (_, ["rest", "api", "1.0" | "latest", "projects", project, "repos", name, rest @ ..]) => {
            bitbucket_files::answer(call, (project, name), rest)
        }
        ("POST" | "DELETE", ["rest", "branch-utils", "1.0" | "latest", "projects", project, "repos", name, "branches"]) => {
            bitbucket_files::answer(call, (project, name), &["branch-utils"])
        }
        _ => Err(Refused::Path),
    }
}

/// A request that a form on a foreign page could send needs a header that the page cannot send.
fn gate(request: &Request) -> Result<(), Refused> {
    let kind = request.header("content-type").unwrap_or_default();
    let foreign = ["", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain"];
    let foreign = request.method == "POST" && foreign.contains(&kind.split(';').next().unwrap_or_default().trim());
    if foreign && request.header("x-atlassian-token").is_none_or(|value| !["no-check", "nocheck"].contains(&value)) {
        return Err(Refused::Header("XSRF check failed".into()));
    }
    Ok(())
}

pub(crate) fn account(login: &str, origin: &str) -> Value {
    let id = login.bytes().fold(7u64, |id, byte| (id * 31 + u64::from(byte)) % 100_000_000);
    json!({
        "name": login, "emailAddress": format!("{login}@noreply.localhost"), "active": true, "displayName": login, "id": id, "slug": login,
        "type": "NORMAL", "links": {"self": [{"href": format!("{origin}/users/{login}")}]},
    })
}

pub(crate) fn repository_json(repository: &Repository, origin: &str) -> Value {
    let (owner, name) = (&repository.owner, &repository.name);
    json!({
        "slug": name, "id": repository.id, "name": name, "hierarchyId": format!("{:020}", repository.id), "scmId": "git", "state": "AVAILABLE",
        "statusMessage": "Available", "forkable": true, "project": {"key": owner, "id": 1, "name": owner, "public": false, "type": "NORMAL"},
        "public": !repository.private, "archived": false,
        "links": {"clone": [{"href": format!("{origin}/{owner}/{name}.git"), "name": "http"}],
            "self": [{"href": format!("{origin}/projects/{owner}/repos/{name}/browse")}]},
    })
}

/// The wanted page of a list, and its length.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    pub start: Option<u64>,
    pub limit: Option<u64>,
}

impl Window {
    /// One page: its values, and the start of the next one.
    pub fn page<T>(self, all: Vec<T>, show: impl FnMut(T) -> Result<Value, Refused>) -> Answered {
        let (start, limit) = (self.start.unwrap_or(0), self.limit.filter(|limit| *limit > 0).unwrap_or(25).min(1000));
        let total = all.len() as u64;
        let shown = all.into_iter().skip(start as usize).take(limit as usize).map(show);
        let shown: Vec<Value> = shown.collect::<Result<_, _>>()?;
        let end = start + shown.len() as u64;
        let next = (end < total).then_some(end);
        let size = shown.len();
        let body = json!({"size": size, "limit": limit, "isLastPage": next.is_none(), "values": shown, "start": start, "nextPageStart": next});
        Ok(Answer::json(200, body))
    }
}

/// A refusal in Bitbucket's format, with the name of the exception.
pub(crate) fn refuse(refused: &Refused) -> Answer {
    use Refused::*;
    let error = |status: u16, message: &str, exception: &str| {
        let exception = if exception.is_empty() { Value::Null } else { format!("com.atlassian.bitbucket.{exception}").into() };
        Answer::json(status, json!({"errors": [{"context": null, "message": message, "exceptionName": exception}]}))
    };
    let more = |answer: Answer, more: Value| {
        let mut body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if let (Some(error), Value::Object(more)) = (body["errors"][0].as_object_mut(), more) {
            error.extend(more);
        }
        Answer { body: body.to_string().into_bytes(), ..answer }
    };
    let invalid = |text: &str| error(400, text, "validation.ArgumentValidationException");
    match refused {
        Path => error(404, "null for uri", ""),
        Method => error(405, "Method Not Allowed", ""),
        Token => {
            let text = "Authentication failed. Please check your credentials and try again.";
            error(401, text, "auth.IncorrectPasswordAuthenticationException")
        }
        Anonymous | Scope(_) | Permission => error(401, "You are not permitted to access this resource", "AuthorisationException"),
        Header(_) => Answer::text(403, "text/html", "XSRF check failed"),
        ContentType(_) => error(415, "Unsupported Media Type", ""),
        Agent | Field(_) | Query(_) => invalid(&refused.to_string()),
        Repository | Owner(_) => error(404, "Repository does not exist.", "repository.NoSuchRepositoryException"),
        Branch(name) => {
            error(404, &format!("Branch \"{name}\" does not exist in this repository."), "repository.NoSuchBranchException")
        }
        BranchExists(name) => error(
            409,
            &format!("Branch {name} cannot be created: it already exists in this repository."),
            "repository.DuplicateRefException",
        ),
        Object(name) => error(404, &format!("Commit '{name}' does not exist in this repository."), "commit.NoSuchCommitException"),
        File(path) => error(404, &format!("The path \"{path}\" does not exist."), "content.NoSuchPathException"),
        FileExists(path) => {
            let text = format!("The file \"{path}\" could not be edited because it already exists.");
            error(409, &text, "content.FileAlreadyExistsException")
        }
        FileMoved { path, .. } => {
            let text = format!("The file \"{path}\" could not be edited because it has been changed since it was last read.");
            error(409, &text, "content.FileOutOfDateException")
        }
        NothingChanged => {
            error(409, "The file was not edited because its content is the same.", "content.FileContentUnmodifiedException")
        }
        FastForward => error(409, "The branch was changed by another push.", "repository.ref.RefOutOfDateException"),
        Pull => error(404, "The pull request does not exist in this repository.", "pull.NoSuchPullRequestException"),
        PullExists { number, .. } => {
            let answer = error(
                409,
                "Only one pull request may be open for a given source and target branch",
                "pull.DuplicatePullRequestException",
            );
            more(answer, json!({"existingPullRequest": {"id": number, "state": "OPEN", "open": true}}))
        }
        NoCommits { base, head } => {
            error(409, &format!("{base} is already up-to-date with branch {head}."), "pull.EmptyPullRequestException")
        }
        BaseMissing(branch) | HeadMissing(branch) => {
            error(404, &format!("Branch \"{branch}\" does not exist in this repository."), "repository.NoSuchBranchException")
        }
        Conflict(_) => {
            let answer = error(409, "The pull request has conflicts and cannot be merged.", "pull.PullRequestMergeVetoedException");
            more(answer, json!({"conflicted": true, "vetoes": []}))
        }
        Version { given, found } => {
            let text = "You are attempting to modify a pull request based on out-of-date information.";
            more(error(409, text, "pull.PullRequestOutOfDateException"), json!({"currentVersion": found, "expectedVersion": given}))
        }
        State(state) => {
            let text = match state {
                crate::model::State::Open => "This pull request is already open.",
                crate::model::State::Closed => "This pull request has already been declined.",
                crate::model::State::Merged => "This pull request has already been merged.",
            };
            error(409, text, "pull.IllegalPullRequestStateException")
        }
        MergeMethod(method) => invalid(&format!("The merge strategy {method} is not enabled for this repository.")),
        HeadMoved { .. } | Git(_) | Disk(_) => error(500, "An error occurred while processing the request.", ""),
    }
}
