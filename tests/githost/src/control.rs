//! `/_host/…`: faults, people and the log, for tests and scripts in other processes. It needs no token, because the host listens on
//! a loopback address.

use crate::faults::Fault;
use crate::http::{Answer, Request};
use crate::model::{Method, Token, Webhook};
use crate::people::People;
use crate::refused::Refused;
use crate::serve::{Shared, lock};
use crate::store::NewRepository;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Commit {
    branch: String,
    message: String,
    /// Paths and texts. `null` removes a file.
    files: BTreeMap<String, Option<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Open {
    head: String,
    base: String,
    title: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Merge {
    method: Method,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    title: Option<String>,
    body: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Comment {
    body: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Push {
    message: String,
    files: BTreeMap<String, Option<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct At {
    revision: String,
    path: Option<String>,
}

pub(crate) fn answer(shared: &Arc<Shared>, request: &Request, path: &[String]) -> Answer {
    let user = request.header("x-user").unwrap_or("somebody").to_owned();
    let people = People { shared: shared.clone(), user };
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match act(shared, &people, request, &path) {
        Ok(answer) => answer,
        Err(Refused::Path) => problem(404, &Refused::Path),
        Err(refused) if refused.is_violation() => problem(400, &refused),
        Err(refused @ (Refused::Git(_) | Refused::Disk(_))) => problem(500, &refused),
        Err(refused) => problem(409, &refused),
    }
}

fn problem(status: u16, refused: &Refused) -> Answer {
    Answer::json(status, json!({"message": refused.to_string()}))
}

fn act(shared: &Shared, people: &People, request: &Request, path: &[&str]) -> Result<Answer, Refused> {
    let ok = |json: Value| Ok(Answer::json(200, json));
    match (request.method.as_str(), path) {
        ("GET", ["calls"]) => Ok(Answer::json(200, &*lock(&shared.calls))),
        ("DELETE", ["calls"]) => {
            lock(&shared.calls).clear();
            ok(json!({}))
        }
        ("GET", ["violations"]) => Ok(Answer::json(200, &*lock(&shared.violations))),
        ("DELETE", ["violations"]) => {
            lock(&shared.violations).clear();
            ok(json!({}))
        }
        ("GET", ["deliveries"]) => Ok(Answer::json(200, &*lock(&shared.deliveries))),
        ("GET", ["faults"]) => Ok(Answer::json(200, &lock(&shared.faults).0)),
        ("POST", ["faults"]) => {
            let fault: Fault = request.json()?;
            lock(&shared.faults).0.push(fault);
            ok(json!({}))
        }
        ("DELETE", ["faults"]) => {
            lock(&shared.faults).0.clear();
            ok(json!({}))
        }
        ("POST", ["tokens"]) => people.grant(request.json::<Token>()?).and_then(|()| ok(json!({}))),
        ("DELETE", ["tokens", token]) => people.revoke(token).and_then(|()| ok(json!({}))),
        ("POST", ["repositories"]) => {
            let new: NewRepository = request.json()?;
            people.create_repository(&new)?;
            let name = format!("{}/{}", new.owner, new.name);
            ok(
                json!({"repository": name, "git": people.git_directory(&name)?, "clone_url": format!("{}/{name}.git", shared.origin)}),
            )
        }
        (_, ["repositories", owner, name, rest @ ..]) => repository(people, request, &format!("{owner}/{name}"), rest),
        _ => Err(Refused::Path),
    }
}

fn repository(people: &People, request: &Request, name: &str, path: &[&str]) -> Result<Answer, Refused> {
    let ok = |json: Value| Ok(Answer::json(200, json));
    let number = |text: &str| text.parse::<u64>().map_err(|_| Refused::Pull);
    match (request.method.as_str(), path) {
        ("GET", []) => {
            let branches: BTreeMap<_, _> = people.branches(name)?.into_iter().collect();
            ok(json!({"repository": name, "git": people.git_directory(name)?, "branches": branches}))
        }
        ("GET", ["files"]) => {
            let at: At = request.query()?;
            match at.path {
                Some(path) => Ok(Answer::text(200, "application/octet-stream", people.file(name, &at.revision, &path)?)),
                None => ok(json!(people.files(name, &at.revision)?.into_iter().collect::<BTreeMap<_, _>>())),
            }
        }
        ("PUT", ["webhook"]) => {
            let webhook: Option<Webhook> = request.json()?;
            people.set_webhook(name, webhook).and_then(|()| ok(json!({})))
        }
        ("PUT", ["methods"]) => people.allow(name, &request.json::<Vec<Method>>()?).and_then(|()| ok(json!({}))),
        ("POST", ["commits"]) => {
            let commit: Commit = request.json()?;
            let sha = people.commit(name, &commit.branch, &commit.message, &borrowed(&commit.files))?;
            ok(json!({"sha": sha}))
        }
        ("DELETE", ["branches", branch @ ..]) => people.delete_branch(name, &branch.join("/")).and_then(|()| ok(json!({}))),
        ("GET", ["pulls"]) => ok(json!(people.pulls(name)?)),
        ("POST", ["pulls"]) => {
            let open: Open = request.json()?;
            ok(json!({"number": people.open(name, &open.head, &open.base, &open.title)?}))
        }
        ("GET", ["pulls", id]) => ok(json!(people.pull(name, number(id)?)?)),
        ("POST", ["pulls", id, "merge"]) => {
            let method = request.json::<Merge>()?.method;
            ok(json!({"sha": people.merge(name, number(id)?, method)?}))
        }
        ("POST", ["pulls", id, "close"]) => people.close(name, number(id)?).and_then(|()| ok(json!({}))),
        ("POST", ["pulls", id, "reopen"]) => people.reopen(name, number(id)?).and_then(|()| ok(json!({}))),
        ("POST", ["pulls", id, "edit"]) => {
            let edit: Edit = request.json()?;
            people.edit(name, number(id)?, edit.title.as_deref(), edit.body.as_deref()).and_then(|()| ok(json!({})))
        }
        ("POST", ["pulls", id, "comment"]) => {
            ok(json!({"id": people.comment(name, number(id)?, &request.json::<Comment>()?.body)?}))
        }
        ("POST", ["pulls", id, "force-push"]) => {
            let push: Push = request.json()?;
            ok(json!({"sha": people.force_push(name, number(id)?, &push.message, &borrowed(&push.files))?}))
        }
        _ => Err(Refused::Path),
    }
}

fn borrowed(files: &BTreeMap<String, Option<String>>) -> Vec<(&str, Option<&[u8]>)> {
    files.iter().map(|(path, text)| (path.as_str(), text.as_ref().map(String::as_bytes))).collect()
}
