//! `git clone http://…/owner/name.git` (read only, by `git http-backend`), and the archives that GitHub's API redirects to.

use crate::http::{Answer, Request};
use crate::model::Scope;
use crate::refused::Refused;
use crate::store::Store;
use serde::Deserialize;

#[derive(Deserialize)]
struct Ticket {
    token: Option<String>,
}

pub(crate) fn answer(store: &mut Store, request: &Request, path: &[String]) -> Result<Option<Answer>, Refused> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match path.as_slice() {
        ["_codeload", owner, name, "legacy.tar.gz", sha] => codeload(store, request, (owner, name), sha).map(Some),
        [owner, name, rest @ ..] if name.ends_with(".git") => {
            backend(store, request, (owner, name.trim_end_matches(".git")), rest).map(Some)
        }
        _ => Ok(None),
    }
}

/// The ticket in the address is valid for one token and one commit.
fn codeload(store: &mut Store, request: &Request, (owner, name): (&str, &str), sha: &str) -> Result<Answer, Refused> {
    let given = request.query::<Ticket>()?.token.unwrap_or_default();
    let ticket = |token: &str| crate::webhooks::sha256(format!("{token}:{sha}").as_bytes())[..32].to_owned();
    let known = store.tokens.iter().any(|token| ticket(&token.token) == given);
    let not_found = || Answer::text(404, "text/plain; charset=utf-8", "404: Not Found");
    let Ok(repository) = store.repository(owner, name) else { return Ok(not_found()) };
    if repository.private && !known || repository.git.kind(sha)?.as_deref() != Some("commit") {
        return Ok(not_found());
    }
    let root = format!("{owner}-{name}-{}", &sha[..7]);
    let bytes = repository.git.archive(sha, &format!("{root}/"), "tar.gz", "")?;
    Ok(Answer::text(200, "application/x-gzip", bytes).with("content-disposition", format!("attachment; filename={root}.tar.gz")))
}

fn backend(store: &mut Store, request: &Request, (owner, name): (&str, &str), rest: &[&str]) -> Result<Answer, Refused> {
    let secret = request.secret(&["bearer", "token"]);
    let token = secret.and_then(|secret| store.tokens.iter().find(|token| token.token == secret).cloned());
    let (repository, _) = match store.seen(token.as_ref(), owner, name, Scope::Read) {
        Ok(seen) => seen,
        Err(Refused::Anonymous) => {
            return Ok(Answer::text(401, "text/plain", "a token is needed\n").with("www-authenticate", "Basic realm=\"git\""));
        }
        Err(_) => return Ok(Answer::text(404, "text/plain", "repository not found\n")),
    };
    let environment = [
        ("GIT_PROJECT_ROOT", repository.git.path().to_string_lossy().into_owned()),
        ("GIT_HTTP_EXPORT_ALL", "1".to_owned()),
        ("PATH_INFO", format!("/{}", rest.join("/"))),
        ("REQUEST_METHOD", request.method.to_string()),
        ("QUERY_STRING", request.uri.query().unwrap_or_default().to_owned()),
        ("CONTENT_TYPE", request.header("content-type").unwrap_or_default().to_owned()),
        ("CONTENT_LENGTH", request.body.len().to_string()),
        ("HTTP_CONTENT_ENCODING", request.header("content-encoding").unwrap_or_default().to_owned()),
        ("GIT_PROTOCOL", request.header("git-protocol").unwrap_or_default().to_owned()),
        ("GIT_CONFIG_COUNT", "1".to_owned()),
        // The user of the host may differ from the owner of the directory.
        ("GIT_CONFIG_KEY_0", "safe.directory".to_owned()),
        ("GIT_CONFIG_VALUE_0", "*".to_owned()),
    ];
    let output = repository.git.output(&["http-backend"], Some(&request.body), &environment)?;
    // A CGI answer: header lines, an empty line, the body.
    let end = output.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(output.len());
    let mut answer = Answer { status: 200, headers: vec![], body: output.get(end + 4..).unwrap_or_default().to_vec() };
    for line in String::from_utf8_lossy(&output[..end]).lines() {
        match line.split_once(": ") {
            Some(("Status", status)) => {
                answer.status = status.split(' ').next().and_then(|status| status.parse().ok()).unwrap_or(500)
            }
            Some((header, value)) => answer = answer.with(&header.to_lowercase(), value),
            None => {}
        }
    }
    Ok(answer)
}
