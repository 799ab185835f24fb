//! The REST form of Gitea and Forgejo: the table of paths, and errors.

use super::gitea_shapes::{Viewer, repository_json};
use super::{Answered, Call, Nothing, gitea_files, gitea_pulls};
use crate::http::{Answer, Page, Request};
use crate::model::Scope;
use crate::refused::Refused;
use serde::Deserialize;
use serde_json::{Value, json};

/// The version of the API.
const VERSION: &str = "1.26.0";

pub(crate) fn answer(call: &mut Call) -> Answered {
    let path = call.path.clone();
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let method = call.request.method.as_str();
    if let ["repos", owner, ..] = path.as_slice()
        && !call.store.all().any(|repository| repository.owner.eq_ignore_ascii_case(owner))
    {
        return Err(Refused::Owner((*owner).to_owned()));
    }
    match (method, path.as_slice()) {
        ("GET", ["version"]) => Ok(Answer::json(200, json!({"version": VERSION}))),
        ("GET", ["user"]) => {
            call.request.query::<Nothing>()?;
            let login = call.user(Scope::User)?.user.clone();
            Ok(Answer::json(200, Viewer::of(call).account(&login)))
        }
        ("GET", ["repos", owner, name]) => {
            call.request.query::<Nothing>()?;
            let viewer = Viewer::of(call);
            let (repository, _) = call.repository(owner, name, Scope::Read)?;
            Ok(Answer::json(200, repository_json(repository, &viewer)))
        }
        (_, ["version" | "user"] | ["repos", _, _]) => Err(Refused::Method),
        (_, ["repos", owner, name, rest @ ..]) => match rest {
            ["pulls", ..] | ["issues", _, "comments"] | ["issues", _] => gitea_pulls::answer(call, (owner, name), rest),
            _ => gitea_files::answer(call, (owner, name), rest),
        },
        _ => Err(Refused::Path),
    }
}

/// The wanted page of a list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Paged {
    pub page: Option<u64>,
    pub limit: Option<u64>,
}

/// Gitea's lists: at most 50 entries on a page, with the total in a header.
pub(crate) fn listed<T>(
    request: &Request,
    (page, limit): (Option<u64>, Option<u64>),
    all: Vec<T>,
    show: impl FnMut(T) -> Result<Value, Refused>,
) -> Answered {
    let page = Page::new(page, limit, 30, 50);
    let (shown, total) = page.shown(all, show)?;
    let answer = Answer::json(200, shown).with("x-total-count", total.to_string());
    Ok(match links(request, page, total) {
        Some(links) => answer.with("link", links).with("access-control-expose-headers", "Link, X-Total-Count"),
        None => answer.with("access-control-expose-headers", "X-Total-Count"),
    })
}

/// The parameters are sorted by name, and a page after the last one counts as the last one.
fn links(request: &Request, page: Page, total: u64) -> Option<String> {
    let last = total.div_ceil(page.size).max(1);
    let links = Page { page: page.page.min(last), ..page }.links(request, total)?;
    let sorted = |link: &str| {
        let (address, rest) = link.trim().split_once('>')?;
        let (address, query) = address.split_once('?')?;
        let mut query: Vec<_> = query.split('&').collect();
        query.sort_unstable();
        Some(format!("{address}?{}>{rest}", query.join("&")))
    };
    Some(links.split(", ").filter_map(sorted).collect::<Vec<_>>().join(","))
}

/// Adds the headers that every answer has.
pub(crate) fn finish(answer: Answer) -> Answer {
    let json = answer.headers.iter().any(|(_, value)| value == "application/json; charset=utf-8");
    let answer = answer.with("cache-control", "max-age=0, private, must-revalidate, no-transform");
    if json { answer.with("content-type", "application/json;charset=utf-8") } else { answer }
}

/// The entity tag of an archive, which never changes.
pub(crate) fn immutable(request: &Request) -> String {
    let path = request.uri.path();
    let revision = path.rsplit('/').next().unwrap_or_default().split('.').next().unwrap_or_default();
    format!("<{}{path}?rev={revision}>; rel=\"immutable\"", request.origin)
}

/// A refusal in Gitea's format.
pub(crate) fn refuse(request: &Request, refused: &Refused) -> Answer {
    use Refused::*;
    let swagger = format!("{}/api/swagger", request.origin);
    let error = |status: u16, message: &str| Answer::json(status, json!({"message": message, "url": swagger}));
    let not_found = |message: &str| Answer::json(404, json!({"errors": null, "message": message, "url": swagger}));
    let gone = "not found";
    let because = |message: &str, error: String| Answer::json(404, json!({"errors": [error], "message": message, "url": swagger}));
    let path = request.uri.path();
    let writes_files = request.method == "POST" && path.ends_with("/contents");
    match refused {
        Path => Answer::text(404, "text/plain; charset=utf-8", "404 page not found\n"),
        Method => Answer::text(405, "text/plain; charset=utf-8", "Method Not Allowed\n"),
        Token => error(401, "invalid username, password or token"),
        Anonymous if path.contains("/repos/") => not_found(gone),
        Anonymous => error(401, "token is required"),
        Scope(scope) => {
            let name = match scope {
                crate::model::Scope::User => "read:user",
                crate::model::Scope::Read => "read:repository",
                crate::model::Scope::Contents | crate::model::Scope::Pulls => "write:repository",
                crate::model::Scope::Comments => "write:issue",
            };
            error(403, &format!("token does not have at least one of required scope(s), required=[{name}], token scope="))
        }
        Permission if request.uri.path().ends_with("/merge") => error(405, "User not allowed to merge PR"),
        Permission if request.uri.path().ends_with("/contents") => {
            error(403, "user should have a permission to write to the target branch")
        }
        Permission if request.method == "PATCH" => Answer::empty(403),
        Permission => error(403, "user should have a permission to write to a repo"),
        ContentType(_) => error(422, "[]: Unsupported Content-Type"),
        Agent | Header(_) => error(400, &refused.to_string()),
        Field(message) => error(422, &field(message)),
        Query(message) => error(422, message),
        Owner(name) => because("GetUserByName", format!("user redirect does not exist [name: {name}]")),
        // Gitea fails here instead of reporting that the pull request or the commit does not exist.
        Pull if path.contains("/issues/") => error(500, ""),
        Object(_) if path.contains("/archive/") => error(500, "").with("link", immutable(request)),
        Pull if path.ends_with("/merge") => because(
            "GetPullRequestByIndex",
            "pull request does not exist [id: 0, issue_id: 0, head_repo_id: 0, base_repo_id: 0, head_branch: , base_branch: ]"
                .into(),
        ),
        Repository | Pull => not_found(gone),
        Branch(name) if writes_files => error(404, &format!("branch does not exist [repo_id: 1 name: {name}]")),
        Branch(name) => because(gone, format!("branch does not exist [name: {name}]")),
        Object(sha) if path.contains("/git/commits/") => not_found(&format!("commit doesn't exist: {sha}")),
        Object(sha) if path.contains("/contents/") => because(gone, format!("object does not exist [id: {sha}, rel_path: ]")),
        Object(_) => not_found(gone),
        File(file) if writes_files => error(404, &format!("object does not exist [id: , rel_path: {file}]")),
        File(file) => because("GetContentsOrList", format!("object does not exist [id: , rel_path: {file}]")),
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
        // Gitea checks for conflicts before the merge, and answers this for a pull request with conflicts.
        Conflict(_) => error(405, "Please try again later"),
        HeadMoved { .. } => error(409, "head out of date"),
        State(crate::model::State::Merged) if request.method == "PATCH" => {
            error(412, "cannot change state of this pull request, it was already merged")
        }
        State(crate::model::State::Merged) => error(405, "The PR is already merged"),
        State(_) => not_found(gone),
        MergeMethod(method) => error(405, &format!("{method} is not allowed an allowed merge style for this repository")),
        Version { .. } | Git(_) | Disk(_) => error(500, "Internal Server Error"),
    }
}

/// Gitea's binding errors name the Go field in brackets.
fn field(message: &str) -> String {
    let quoted = message.split('`').nth(1).unwrap_or_default();
    match quoted {
        "" => format!("[]: {message}"),
        name if message.contains("missing field") => format!("[{}]: Required", name[..1].to_uppercase() + &name[1..]),
        name => format!("[{name}]: {message}"),
    }
}
