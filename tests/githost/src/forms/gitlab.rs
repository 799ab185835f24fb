//! The REST form of GitLab: the table of paths, branches and files, and errors.

use super::{Answered, Call, Nothing, gitlab_files, gitlab_pulls};
use crate::http::{Answer, Page, Request};
use crate::model::{Repository, Scope, written};
use crate::refused::Refused;
use serde_json::{Value, json};

pub(crate) fn answer(call: &mut Call) -> Answered {
    let path = call.path.clone();
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let request = call.request;
    match (request.method.as_str(), path.as_slice()) {
        ("GET", ["version"]) => {
            call.user(Scope::User)?;
            Ok(Answer::json(200, json!({"version": "17.5.0", "revision": "0000000"})))
        }
        ("GET", ["user"]) => {
            request.query::<Nothing>()?;
            let user = call.user(Scope::User)?.user.clone();
            Ok(Answer::json(200, account(&user, &request.origin)))
        }
        ("GET", ["personal_access_tokens", "self"]) => {
            let token = call.user(Scope::User)?;
            let scope = if token.scopes.contains(&Scope::Contents) { "api" } else { "read_api" };
            Ok(Answer::json(200, json!({"id": 1, "name": token.user, "revoked": false, "active": true, "scopes": [scope]})))
        }
        (_, ["version" | "user"] | ["personal_access_tokens", "self"]) => Err(Refused::Method),
        (method, ["projects", id, rest @ ..]) => {
            let (owner, name) = project(call, id)?;
            match rest {
                [] if method == "GET" => {
                    request.query::<Nothing>()?;
                    let (repository, _) = call.repository(&owner, &name, Scope::Read)?;
                    Ok(Answer::json(200, project_json(repository, &request.origin)))
                }
                [] => Err(Refused::Method),
                ["repository", rest @ ..] => gitlab_files::answer(call, (&owner, &name), rest),
                ["merge_requests", rest @ ..] => gitlab_pulls::answer(call, (&owner, &name), rest),
                _ => Err(Refused::Path),
            }
        }
        _ => Err(Refused::Path),
    }
}

/// The project, by its number, or by its path with an encoded slash.
fn project(call: &Call, id: &str) -> Result<(String, String), Refused> {
    if let Ok(number) = id.parse() {
        let found = call.store.numbered(number).map(|repository| (repository.owner.clone(), repository.name.clone()));
        return found.ok_or(if call.token.is_some() { Refused::Repository } else { Refused::Anonymous });
    }
    let (owner, name) = id.split_once('/').ok_or(Refused::Path)?;
    Ok((owner.to_owned(), name.to_owned()))
}

pub(crate) fn account(login: &str, origin: &str) -> Value {
    let id = login.bytes().fold(7u64, |id, byte| (id * 31 + u64::from(byte)) % 100_000_000);
    json!({"id": id, "username": login, "name": login, "state": "active", "locked": false, "avatar_url": null, "web_url": format!("{origin}/{login}")})
}

fn project_json(repository: &Repository, origin: &str) -> Value {
    let full = repository.full_name();
    json!({
        "id": repository.id, "description": null, "name": repository.name, "name_with_namespace": format!("{} / {}", repository.owner, repository.name),
        "path": repository.name, "path_with_namespace": full, "created_at": written(repository.created),
        "default_branch": repository.default_branch, "web_url": format!("{origin}/{full}"), "http_url_to_repo": format!("{origin}/{full}.git"),
        "namespace": {"name": repository.owner, "path": repository.owner, "full_path": repository.owner},
        "visibility": if repository.private { "private" } else { "public" }, "archived": false, "empty_repo": false,
        "merge_requests_enabled": true, "merge_method": "merge",
        "permissions": {"project_access": {"access_level": 30}, "group_access": null},
    })
}

/// GitLab's lists: 20 entries on a page, at most 100, with everything about the pages in headers.
pub(crate) fn listed<T>(
    request: &Request,
    (page, size): (Option<u64>, Option<u64>),
    all: Vec<T>,
    show: impl FnMut(T) -> Result<Value, Refused>,
) -> Answered {
    let page = Page::new(page, size, 20, 100);
    let (answer, total) = page.answer(request, all, show)?;
    let pages = total.div_ceil(page.size).max(1);
    let next = if page.page < pages { (page.page + 1).to_string() } else { String::new() };
    let previous = if page.page > 1 { (page.page - 1).to_string() } else { String::new() };
    let answer = answer.with("x-total", total.to_string()).with("x-total-pages", pages.to_string());
    let answer = answer.with("x-page", page.page.to_string()).with("x-per-page", page.size.to_string());
    Ok(answer.with("x-next-page", next).with("x-prev-page", previous))
}

/// A refusal in GitLab's format. GitLab's own errors have `message`, those of its API framework `error`.
pub(crate) fn refuse(request: &Request, refused: &Refused) -> Answer {
    use Refused::*;
    let message = |status: u16, message: &str| Answer::json(status, json!({"message": message}));
    let error = |status: u16, error: &str| Answer::json(status, json!({"error": error}));
    match refused {
        Path => error(404, "404 Not Found"),
        Method => error(405, "405 Not Allowed"),
        Token => message(401, "401 Unauthorized"),
        Anonymous if request.method == "GET" && request.uri.path().contains("/projects/") => message(404, "404 Project Not Found"),
        Anonymous => message(401, "401 Unauthorized"),
        Scope(scope) => {
            let name = match scope {
                crate::model::Scope::User | crate::model::Scope::Read => "api read_api",
                _ => "api",
            };
            let text = "The request requires higher privileges than provided by the access token.";
            Answer::json(403, json!({"error": "insufficient_scope", "error_description": text, "scope": name}))
        }
        Permission => message(403, "403 Forbidden"),
        ContentType(kind) => error(415, &format!("The provided content-type '{kind}' is not supported.")),
        Agent | Header(_) => error(400, &refused.to_string()),
        Field(text) | Query(text) => error(400, &field(text)),
        Repository | Owner(_) => message(404, "404 Project Not Found"),
        Branch(_) if request.uri.path().ends_with("/repository/commits") => {
            message(400, "You can only create or edit files when you are on a branch")
        }
        Branch(_) => message(404, "404 Branch Not Found"),
        BranchExists(name) if request.uri.path().ends_with("/repository/commits") => {
            message(400, &format!("A branch called '{name}' already exists. Switch to that branch in order to make changes"))
        }
        BranchExists(_) => message(400, "Branch already exists"),
        Object(name) if request.method == "POST" => message(400, &format!("Invalid reference name: {name}")),
        Object(_) if request.uri.path().contains("/tree") => message(404, "404 Tree Not Found"),
        Object(_) => message(404, "404 Commit Not Found"),
        File(_) if request.method == "GET" => message(404, "404 File Not Found"),
        File(_) => message(400, "A file with this name doesn't exist"),
        FileExists(_) => message(400, "A file with this name already exists"),
        FileMoved { .. } | FastForward => {
            message(400, "You are attempting to update a file that has changed since you started editing it.")
        }
        NothingChanged => message(400, "No changes"),
        Pull => message(404, "404 Not found"),
        PullExists { number, .. } => Answer::json(
            409,
            json!({"message": [format!("Another open merge request already exists for this source branch: !{number}")]}),
        ),
        BaseMissing(branch) => Answer::json(400, json!({"message": [format!("Target branch \"{branch}\" does not exist")]})),
        HeadMissing(branch) => Answer::json(400, json!({"message": [format!("Source branch \"{branch}\" does not exist")]})),
        NoCommits { .. } => Answer::json(400, json!({"message": ["You can't use same project/branch for source and target"]})),
        Conflict(_) => message(422, "Branch cannot be merged"),
        HeadMoved { found, .. } => message(409, &format!("SHA does not match HEAD of source branch: {found}")),
        State(_) | MergeMethod(_) => message(405, "405 Method Not Allowed"),
        Version { .. } | Git(_) | Disk(_) => message(500, "500 Internal Server Error"),
    }
}

fn field(text: &str) -> String {
    match text.split('`').nth(1) {
        Some(name) if text.contains("missing field") => format!("{name} is missing"),
        Some(name) => format!("{name} is invalid"),
        None => text.to_owned(),
    }
}
