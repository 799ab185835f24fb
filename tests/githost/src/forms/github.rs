//! The REST form of GitHub: the gate (headers, errors) and the table of paths.

use super::{Answered, Call, Nothing, github_files, github_git, github_pulls};
use crate::http::{Answer, Request};
use crate::model::{Repository, Scope, written};
use crate::refused::Refused;
use serde_json::{Value, json};

/// GitHub's limit of requests per hour for a user.
const LIMIT: u64 = 5000;
const VERSIONS: [&str; 2] = ["2022-11-28", "2026-03-10"];

pub(crate) fn answer(call: &mut Call) -> Answered {
    gate(call.request)?;
    let path = call.path.clone();
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let method = call.request.method.as_str();
    match path.as_slice() {
        ["user"] => read(method, || user(call)),
        ["rate_limit"] => read(method, || {
            let core = json!({"limit": LIMIT, "used": 0, "remaining": LIMIT, "reset": crate::model::now() + 3600});
            Ok(Answer::json(200, json!({"resources": {"core": core}, "rate": core})))
        }),
        ["repos", owner, name] => read(method, || {
            call.request.query::<Nothing>()?;
            let (repository, _) = call.repository(owner, name, Scope::Read)?;
            let json = repository_json(repository);
            Ok(Answer::json(200, absolute(json, &call.request.origin)))
        }),
        ["repos", owner, name, rest @ ..] => {
            let at = (*owner, *name);
            match rest {
                ["pulls", ..] | ["issues", _, "comments"] => github_pulls::answer(call, at, rest),
                ["git", rest @ ..] => github_git::answer(call, at, rest),
                _ => github_files::answer(call, at, rest),
            }
        }
        _ => Err(Refused::Path),
    }
}

/// Answers `GET` only.
pub(crate) fn read(method: &str, answer: impl FnOnce() -> Answered) -> Answered {
    if method == "GET" { answer() } else { Err(Refused::Method) }
}

/// Checks what GitHub requires of every request.
fn gate(request: &Request) -> Result<(), Refused> {
    if request.header("user-agent").is_none_or(|agent| agent.trim().is_empty()) {
        return Err(Refused::Agent);
    }
    if let Some(version) = request.header("x-github-api-version").filter(|version| !VERSIONS.contains(version)) {
        return Err(Refused::Header(format!("{version:?} is not a supported version of X-GitHub-Api-Version")));
    }
    let accept = request.header("accept").unwrap_or("*/*");
    let known =
        |kind: &str| ["*/*", "application/*", "application/json"].contains(&kind) || kind.starts_with("application/vnd.github");
    if !accept.split(',').any(|kind| known(kind.split(';').next().unwrap_or_default().trim())) {
        return Err(Refused::Header(format!("the Accept {accept:?} names none of GitHub's types")));
    }
    Ok(())
}

fn user(call: &Call) -> Answered {
    call.request.query::<Nothing>()?;
    let user = call.user(Scope::User)?;
    let scopes = if user.scopes.contains(&Scope::Contents) { "repo, user" } else { "user" };
    let account = absolute(account(&user.user), &call.request.origin);
    Ok(Answer::json(200, account).with("x-oauth-scopes", scopes))
}

/// A user in GitHub's format.
pub(crate) fn account(login: &str) -> Value {
    let id = login.bytes().fold(7u64, |id, byte| (id * 31 + u64::from(byte)) % 100_000_000);
    let api = format!("{{api}}/users/{login}");
    json!({
        "login": login, "id": id, "node_id": format!("U_{id}"), "avatar_url": format!("{{web}}/avatars/{id}"), "gravatar_id": "", "url": api,
        "html_url": format!("{{web}}/{login}"), "followers_url": format!("{api}/followers"), "following_url": format!("{api}/following"),
        "gists_url": format!("{api}/gists"), "starred_url": format!("{api}/starred"), "subscriptions_url": format!("{api}/subscriptions"),
        "organizations_url": format!("{api}/orgs"), "repos_url": format!("{api}/repos"), "events_url": format!("{api}/events"),
        "received_events_url": format!("{api}/received_events"), "type": "User", "site_admin": false,
    })
}

pub(crate) fn repository_json(repository: &Repository) -> Value {
    let full = repository.full_name();
    let allows = |method| repository.methods.contains(&method);
    json!({
        "id": repository.id, "node_id": format!("R_{}", repository.id), "name": repository.name, "full_name": full,
        "private": repository.private, "owner": account(&repository.owner), "html_url": format!("{{web}}/{full}"), "description": null,
        "fork": false, "url": format!("{{api}}/repos/{full}"), "default_branch": repository.default_branch,
        "clone_url": format!("{{web}}/{full}.git"), "archived": false, "disabled": false,
        "visibility": if repository.private { "private" } else { "public" },
        "permissions": {"admin": false, "maintain": false, "push": true, "triage": true, "pull": true},
        "allow_merge_commit": allows(crate::model::Method::Merge), "allow_squash_merge": allows(crate::model::Method::Squash),
        "allow_rebase_merge": false, "delete_branch_on_merge": false, "created_at": written(repository.created),
        "updated_at": written(repository.created), "pushed_at": written(repository.created),
    })
}

/// Replaces `{api}` and `{web}` in JSON by the addresses at which the caller reached the host.
pub(crate) fn absolute(json: Value, origin: &str) -> Value {
    match json {
        Value::String(text) if text.starts_with("{web}") => Value::String(text.replacen("{web}", origin, 1)),
        Value::String(text) if text.starts_with("{api}") => Value::String(text.replacen("{api}", &format!("{origin}/api/v3"), 1)),
        Value::Array(all) => all.into_iter().map(|json| absolute(json, origin)).collect(),
        Value::Object(map) => map.into_iter().map(|(name, json)| (name, absolute(json, origin))).collect(),
        other => other,
    }
}

/// Adds the headers that every answer has.
pub(crate) fn finish(request: &Request, answer: Answer) -> Answer {
    let answer = if answer.headers.iter().any(|(name, _)| name == "x-ratelimit-limit") {
        answer
    } else {
        let remaining = LIMIT - 1;
        let answer = answer.with("x-ratelimit-limit", LIMIT.to_string()).with("x-ratelimit-remaining", remaining.to_string());
        answer.with("x-ratelimit-used", "1").with("x-ratelimit-reset", (crate::model::now() + 3600).to_string())
    };
    let answer = answer.with("x-ratelimit-resource", "core").with("x-github-media-type", "github.v3; format=json");
    answer.with("x-github-request-id", "0000:0000:0000000:0000000:00000000").tagged(request, true)
}

/// A refusal in GitHub's format.
pub(crate) fn refuse(request: &Request, refused: &Refused) -> Answer {
    use Refused::*;
    let simple = |status: u16, message: &str| error(status, message, None);
    let pull = |fields: Value| {
        let mut fields = fields;
        fields["resource"] = "PullRequest".into();
        error(422, "Validation Failed", Some(json!([fields])))
    };
    let owner = request.segments().iter().skip_while(|part| *part != "repos").nth(1).cloned().unwrap_or_default();
    match refused {
        Agent => Answer::text(
            403,
            "text/html; charset=utf-8",
            "Request forbidden by administrative rules. Please make sure your request has a User-Agent header \
             (https://docs.github.com/en/rest/overview/resources-in-the-rest-api#user-agent-required).\n",
        ),
        Token => simple(401, "Bad credentials"),
        // An anonymous caller does not learn whether a repository exists, and has no user.
        Anonymous if request.uri.path().contains("/repos/") => simple(404, "Not Found"),
        Anonymous => simple(401, "Requires authentication"),
        Scope(scope) => {
            let wanted = match scope {
                crate::model::Scope::User => "",
                crate::model::Scope::Read => "contents=read",
                crate::model::Scope::Contents => "contents=write",
                crate::model::Scope::Pulls | crate::model::Scope::Comments => "pull_requests=write",
            };
            simple(403, "Resource not accessible by personal access token").with("x-accepted-github-permissions", wanted)
        }
        Permission => simple(403, "Must have push access to repository"),
        ContentType(_) => simple(415, "Unsupported Media Type"),
        Header(message) if message.contains("Accept") => simple(415, "Must accept 'application/json'"),
        Header(message) => simple(400, message),
        Field(message) => field(message),
        Query(message) => simple(422, &format!("Invalid request.\n\n{message}")),
        Path | Repository | Owner(_) | Branch(_) | File(_) | Pull | Method => simple(404, "Not Found"),
        BranchExists(_) => simple(422, "Reference already exists"),
        Object(_) if request.uri.path().contains("/git/refs") => simple(422, "Object does not exist"),
        Object(sha) if request.method == "GET" && crate::git::is_sha(sha) && request.uri.path().contains("/commits/") => {
            simple(422, &format!("No commit found for SHA: {sha}"))
        }
        Object(_) if request.method == "GET" => simple(404, "Not Found"),
        Object(sha) => simple(422, &format!("{sha} is not a valid object")),
        FileExists(_) => simple(422, "Invalid request.\n\n\"sha\" wasn't supplied."),
        FileMoved { path, given, .. } => simple(409, &format!("{path} does not match {given}")),
        FastForward if request.uri.path().ends_with("/merge") => {
            simple(405, "Base branch was modified. Review and try the merge again.")
        }
        FastForward if request.uri.path().contains("/contents/") => simple(409, "is at a different commit"),
        FastForward => simple(422, "Update is not a fast forward"),
        NothingChanged => simple(422, "Validation Failed"),
        PullExists { head, .. } => {
            pull(json!({"code": "custom", "message": format!("A pull request already exists for {owner}:{head}.")}))
        }
        NoCommits { base, head } => pull(json!({"code": "custom", "message": format!("No commits between {base} and {head}")})),
        BaseMissing(_) => pull(json!({"field": "base", "code": "invalid"})),
        HeadMissing(branch) if request.method == "PATCH" => pull(
            json!({"field": "state", "code": "invalid", "message": format!("state cannot be changed. The {branch} branch has been deleted.")}),
        ),
        HeadMissing(_) => pull(json!({"field": "head", "code": "invalid"})),
        Conflict(_) => simple(405, "Pull Request is not mergeable"),
        HeadMoved { .. } => simple(409, "Head branch was modified. Review and try the merge again."),
        State(crate::model::State::Merged) if request.method == "PATCH" => pull(
            json!({"field": "state", "code": "invalid", "message": "state cannot be changed. The pull request has been merged."}),
        ),
        State(_) => simple(405, "Pull Request is not mergeable"),
        MergeMethod(method) => {
            let name = match method.as_str() {
                "squash" => "Squash merges",
                "rebase" => "Rebase merges",
                _ => "Merge commits",
            };
            simple(405, &format!("{name} are not allowed on this repository."))
        }
        Version { .. } | Git(_) | Disk(_) => simple(500, "Server Error"),
    }
}

/// GitHub's schema error for an error of serde.
fn field(message: &str) -> Answer {
    let quoted = message.split('`').nth(1).unwrap_or_default();
    let text = if message.contains("unknown field") {
        format!("Invalid request.\n\n\"{quoted}\" is not a permitted key.")
    } else if message.contains("missing field") {
        format!("Invalid request.\n\n\"{quoted}\" wasn't supplied.")
    } else if message.contains("EOF") || message.contains("expected value") || message.contains("key must be") {
        return error(400, "Problems parsing JSON", None);
    } else {
        format!("Invalid request.\n\n{message}")
    };
    error(422, &text, None)
}

pub(crate) fn error(status: u16, message: &str, errors: Option<Value>) -> Answer {
    let mut body = json!({"message": message, "documentation_url": "https://docs.github.com/rest", "status": status.to_string()});
    if let Some(errors) = errors {
        body["errors"] = errors;
    }
    Answer::json(status, body)
}
