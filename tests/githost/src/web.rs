//! Web pages: the repositories, the pull requests of one, and one of them with buttons to merge and to close it.

use crate::http::{Answer, Request};
use crate::model::{Method, Pull, Repository};
use crate::pulls::Merge;
use crate::refused::Refused;
use crate::store::Store;

/// The user who presses the buttons.
const SOMEBODY: &str = "somebody";

pub(crate) fn answer(store: &mut Store, request: &Request, path: &[String]) -> Result<Option<Answer>, Refused> {
    let path: Vec<&str> = path.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    // Each form has its own addresses of pages.
    let (owner, name, rest) = match path.as_slice() {
        [] => return Ok(Some(index(store))),
        ["projects", owner, "repos", name, rest @ ..] | [owner, name, "-", rest @ ..] | [owner, name, rest @ ..] => {
            (owner, name, rest)
        }
        _ => return Ok(None),
    };
    let Ok(repository) = store.repository(owner, name) else { return Ok(None) };
    repository.refresh()?;
    let (number, act) = match rest {
        [] | ["pull" | "pulls" | "merge_requests" | "pull-requests" | "browse"] => return Ok(Some(list(repository))),
        ["pull" | "pulls" | "merge_requests" | "pull-requests", number, act @ ..] => {
            (number.parse::<u64>().unwrap_or_default(), act)
        }
        _ => return Ok(None),
    };
    if !repository.pulls.contains_key(&number) {
        return Ok(None);
    }
    // Only pages of this host may use the buttons, not those of another one.
    if request.method == "POST" && request.header("origin").is_some_and(|origin| origin != request.origin) {
        return Ok(Some(page(403, "Not done", "<p>The button is on a page of another host.</p>")));
    }
    let done = match (request.method.as_str(), act) {
        ("GET", []) => return show(repository, number, request.uri.path()).map(Some),
        ("POST", ["merge"]) => repository.merge(number, &Merge::by(Method::Merge), SOMEBODY).map(|_| ()),
        ("POST", ["close"]) => repository.close(number, SOMEBODY),
        _ => return Ok(None),
    };
    match done {
        Ok(()) => Ok(Some(Answer::empty(303).with("location", request.uri.path().rsplit_once('/').map_or("/", |(page, _)| page)))),
        Err(refused @ (Refused::Git(_) | Refused::Disk(_))) => Err(refused),
        Err(refused) => Ok(Some(page(409, "Not done", &format!("<p>{}</p>", escaped(&refused.to_string()))))),
    }
}

fn index(store: &Store) -> Answer {
    let link = |repository: &Repository| format!("<li><a href=\"/{0}/pulls\">{0}</a>\n", escaped(&repository.full_name()));
    page(200, "Repositories", &format!("<ul>{}</ul>", store.all().map(link).collect::<String>()))
}

fn list(repository: &Repository) -> Answer {
    let name = escaped(&repository.full_name());
    let row = |pull: &Pull| {
        let (title, head, base) = (escaped(&pull.title), escaped(&pull.head), escaped(&pull.base));
        format!("<tr><td>{:?}<td><a href=\"/{name}/pulls/{1}\">#{1} {title}</a><td>{head} → {base}\n", pull.state, pull.number)
    };
    let rows: String = repository.pulls.values().rev().map(row).collect();
    page(
        200,
        &name,
        &format!("<table>{rows}</table><p><code>git clone {}</code>", escaped(&repository.git.path().to_string_lossy())),
    )
}

fn show(repository: &mut Repository, number: u64, at: &str) -> Result<Answer, Refused> {
    let clean = repository.pull(number)?.is_open() && repository.mergeable(number)?.0;
    let pull = repository.pull(number)?;
    let (from, to) = repository.span(pull)?;
    let diff = String::from_utf8_lossy(&repository.git.diff(&from, &to)?).into_owned();
    let button =
        |verb: &str, off: &str| format!("<form method=post action=\"{}/{verb}\"><button {off}>{verb}</button></form>", escaped(at));
    let buttons =
        if pull.is_open() { button("merge", if clean { "" } else { "disabled" }) + &button("close", "") } else { String::new() };
    let said = |comment: &crate::model::Comment| format!("<p><b>{}</b>: {}</p>", escaped(&comment.author), escaped(&comment.body));
    let comments: String = pull.comments.iter().map(said).collect();
    let (head, base, body) = (escaped(&pull.head), escaped(&pull.base), escaped(&pull.body));
    let text = format!("<p>{:?}: {head} → {base}</p><pre>{body}</pre>{buttons}{comments}<pre>{}</pre>", pull.state, escaped(&diff));
    Ok(page(200, &escaped(&format!("#{number} {}", pull.title)), &text))
}

fn page(status: u16, title: &str, body: &str) -> Answer {
    let style = "body{font:16px/1.5 sans-serif;max-width:60em;margin:2em auto}pre{background:#f6f6f6;padding:1em;overflow:auto}form{display:inline}";
    let html = format!("<!DOCTYPE html><meta charset=utf-8><title>{title}</title><style>{style}</style><h1>{title}</h1>{body}\n");
    Answer::text(status, "text/html; charset=utf-8", html)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
