//! Gitea's and Forgejo's REST form: the table of its paths, and its errors.

use super::{Answered, Call, Nothing, gitea_files, gitea_pulls};
use crate::http::{Answer, Page, Request};
use crate::model::{Method, Repository, Scope, written};
use crate::refused::Refused;
use serde::Deserialize;
use serde_json::{Value, json};

/// The version whose API this is.
const VERSION: &str = "1.24.0";

pub(crate) fn answer(call: &mut Call) -> Answered {
    let path = call.path.clone();
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let method = call.request.method.as_str();
    match (method, path.as_slice()) {
        ("GET", ["version"]) => Ok(Answer::json(200, json!({"version": VERSION}))),
        ("GET", ["user"]) => {
            call.request.query::<Nothing>()?;
            let login = call.user(Scope::User)?.user.clone();
            Ok(Answer::json(200, account(&login, &call.request.origin)))
        }
        ("GET", ["repos", owner, name]) => {
            call.request.query::<Nothing>()?;
            let origin = &call.request.origin;
            let (repository, _) = call.repository(owner, name, Scope::Read)?;
            Ok(Answer::json(200, repository_json(repository, origin)))
        }
        (_, ["version" | "user"] | ["repos", _, _]) => Err(Refused::Method),
        (_, ["repos", owner, name, rest @ ..]) => match rest {
            ["pulls", ..] | ["issues", _, "comments"] | ["issues", _] => gitea_pulls::answer(call, (owner, name), rest),
            _ => gitea_files::answer(call, (owner, name), rest),
        },
        _ => Err(Refused::Path),
    }
}

pub(crate) fn account(login: &str, origin: &str) -> Value {
    let id = login.bytes().fold(7u64, |id, byte| (id * 31 + u64::from(byte)) % 100_000_000);
    json!({
        "id": id, "login": login, "login_name": "", "source_id": 0, "full_name": "", "email": format!("{login}@noreply.localhost"),
        "avatar_url": format!("{origin}/avatars/{id}"), "html_url": format!("{origin}/{login}"), "language": "", "is_admin": false,
        "active": true, "username": login,
    })
}

pub(crate) fn repository_json(repository: &Repository, origin: &str) -> Value {
    let full = repository.full_name();
    let allows = |method| repository.methods.contains(&method);
    json!({
        "id": repository.id, "owner": account(&repository.owner, origin), "name": repository.name, "full_name": full, "description": "",
        "empty": repository.last == 0 && repository.branches().is_ok_and(|all| all.is_empty()), "private": repository.private, "fork": false,
        "template": false, "mirror": false, "archived": false, "html_url": format!("{origin}/{full}"),
        "url": format!("{origin}/api/v1/repos/{full}"), "clone_url": format!("{origin}/{full}.git"),
        "default_branch": repository.default_branch, "created_at": written(repository.created), "updated_at": written(repository.created),
        "permissions": {"admin": false, "push": true, "pull": true}, "has_pull_requests": true, "has_issues": true,
        "allow_merge_commits": allows(Method::Merge), "allow_squash_merge": allows(Method::Squash), "allow_rebase": false,
        "allow_rebase_explicit": false, "allow_fast_forward_only_merge": false, "default_merge_style": "merge",
    })
}

/// Which page of a list is wanted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Paged {
    pub page: Option<u64>,
    pub limit: Option<u64>,
}

/// Lists of Gitea: at most 50 a page, the total in a header. Only what is on the page is shown.
pub(crate) fn listed<T>(
    request: &Request,
    (page, limit): (Option<u64>, Option<u64>),
    all: Vec<T>,
    show: impl FnMut(T) -> Result<Value, Refused>,
) -> Answered {
    let page = Page::new(page, limit, 30, 50);
    let (shown, total) = page.cut(all);
    let shown: Vec<Value> = shown.into_iter().map(show).collect::<Result<_, _>>()?;
    let answer = Answer::json(200, shown)
        .with("x-total-count", total.to_string())
        .with("access-control-expose-headers", "X-Total-Count, Link");
    Ok(match page.links(request, total) {
        Some(links) => answer.with("link", links),
        None => answer,
    })
}

/// A refusal in Gitea's words.
pub(crate) fn refuse(request: &Request, refused: &Refused) -> Answer {
    use Refused::*;
    let swagger = format!("{}/api/swagger", request.origin);
    let error = |status: u16, message: &str| Answer::json(status, json!({"message": message, "url": swagger}));
    let not_found = |message: &str| Answer::json(404, json!({"errors": null, "message": message, "url": swagger}));
    let gone = "The target couldn't be found.";
    match refused {
        Path => Answer::text(404, "text/plain; charset=utf-8", "404 page not found\n"),
        Method => Answer::text(405, "text/plain; charset=utf-8", "Method Not Allowed\n"),
        Token => error(401, "user does not exist [uid: 0, name: ]"),
        Anonymous if request.method == "GET" && request.uri.path().contains("/repos/") => not_found(gone),
        Anonymous => error(401, "token is required"),
        Scope(scope) => {
            let name = match scope {
                crate::model::Scope::User => "read:user",
                crate::model::Scope::Read => "read:repository",
                crate::model::Scope::Contents | crate::model::Scope::Pulls => "write:repository",
                crate::model::Scope::Comments => "write:issue",
            };
            error(403, &format!("token does not have at least one of required scope(s): [{name}]"))
        }
        ContentType(_) => error(422, "[]: Unsupported Content-Type"),
        Agent | Header(_) => error(400, &refused.to_string()),
        Field(message) => error(422, &field(message)),
        Query(message) => error(422, message),
        Repository | Pull => not_found(gone),
        Branch(name) => not_found(&format!("branch does not exist [name: {name}]")),
        Object(_) => not_found(gone),
        File(path) => not_found(&format!("object does not exist [id: , rel_path: {path}]")),
        BranchExists(_) if request.uri.path().ends_with("/branches") => error(409, "The branch already exists."),
        BranchExists(name) => error(422, &format!("branch already exists [name: {name}]")),
        FileExists(path) => error(422, &format!("repository file already exists [path: {path}]")),
        FileMoved { given, found, .. } => error(422, &format!("sha does not match [given: {given}, expected: {found}]")),
        FastForward => error(409, "merge push out of date"),
        NothingChanged => error(422, "nothing changed"),
        PullExists { number, head, base } => error(
            409,
            &format!(
                "pull request already exists for these targets [id: {number}, issue_id: {number}, head_repo_id: 1, base_repo_id: 1, \
                 head_branch: {head}, base_branch: {base}]"
            ),
        ),
        NoCommits { .. } => error(422, "Invalid PullRequest: There are no changes between the head and the base"),
        BaseMissing(_) | HeadMissing(_) => not_found(gone),
        // Gitea checks for conflicts ahead of the merge, and says this of a pull request that has some.
        Conflict(_) => error(405, "Please try again later"),
        HeadMoved { .. } => error(409, "head out of date"),
        State(crate::model::State::Merged) if request.method == "PATCH" => {
            error(412, "cannot change state of this pull request, it was already merged")
        }
        State(crate::model::State::Merged) => error(405, ""),
        State(_) => not_found(gone),
        MergeMethod(method) => error(405, &format!("{method} is not allowed an allowed merge style for this repository")),
        Version { .. } | Git(_) | Disk(_) => error(500, "Internal Server Error"),
    }
}

/// Binding errors of Gitea name the Go field in brackets.
fn field(message: &str) -> String {
    let quoted = message.split('`').nth(1).unwrap_or_default();
    match quoted {
        "" => format!("[]: {message}"),
        name if message.contains("missing field") => format!("[{}]: Required", name[..1].to_uppercase() + &name[1..]),
        name => format!("[{name}]: {message}"),
    }
}
