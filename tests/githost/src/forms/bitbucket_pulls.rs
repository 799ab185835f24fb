//! Bitbucket Server's pull requests.

use super::bitbucket::{Window, account, repository_json};
use super::bitbucket_files::{branch_of, read};
use super::{Answered, Call, Nothing};
use crate::http::Answer;
use crate::model::{Comment, Form, Method, Pull, Repository, Scope, State};
use crate::pulls::{Merge, NewPull};
use crate::refused::Refused;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct List {
    direction: Option<String>,
    at: Option<String>,
    state: Option<String>,
    order: Option<String>,
    start: Option<u64>,
    limit: Option<u64>,
    #[serde(rename = "withAttributes")]
    _with_attributes: Option<bool>,
    #[serde(rename = "withProperties")]
    _with_properties: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Paged {
    start: Option<u64>,
    limit: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Versioned {
    version: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct New {
    title: String,
    description: Option<String>,
    from_ref: Ref,
    to_ref: Ref,
    #[serde(rename = "reviewers")]
    _reviewers: Option<Vec<Value>>,
    /// Bitbucket accepts these fields only with the values of a new pull request.
    #[serde(rename = "state")]
    _state: Option<String>,
    #[serde(rename = "open")]
    _open: Option<bool>,
    #[serde(rename = "closed")]
    _closed: Option<bool>,
    #[serde(rename = "locked")]
    _locked: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ref {
    id: String,
    repository: Option<RefRepository>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RefRepository {
    slug: String,
    project: Project,
    #[serde(rename = "name")]
    _name: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Project {
    key: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Edit {
    version: u64,
    title: Option<String>,
    description: Option<String>,
    to_ref: Option<Ref>,
    #[serde(rename = "reviewers")]
    _reviewers: Option<Vec<Value>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct MergeOptions {
    message: Option<String>,
    strategy_id: Option<String>,
    version: Option<u64>,
    #[serde(rename = "autoSubject")]
    _auto_subject: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewComment {
    text: String,
}

pub(crate) fn answer(call: &mut Call, (owner, name): (&str, &str), rest: &[&str]) -> Answered {
    let request = call.request;
    let origin = &request.origin;
    let method = request.method.as_str();
    let scope = match (method, rest) {
        ("GET", _) => Scope::Read,
        (_, [_, "comments"]) => Scope::Comments,
        _ => Scope::Pulls,
    };
    let (repository, user) = call.repository(owner, name, scope)?;
    repository.refresh()?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| Refused::Pull);
    let shown =
        |repository: &Repository, number: u64| Ok(Answer::json(200, pull_json(repository, repository.pull(number)?, origin)));
    match (method, rest) {
        ("GET", []) => {
            let query: List = request.query()?;
            let window = Window { start: query.start, limit: query.limit };
            window.page(list(repository, &query)?, |pull| Ok(pull_json(repository, pull, origin)))
        }
        ("POST", []) => {
            let new: New = request.json()?;
            for home in [&new.from_ref, &new.to_ref].into_iter().filter_map(|side| side.repository.as_ref()) {
                if !home.slug.eq_ignore_ascii_case(&repository.name) || !home.project.key.eq_ignore_ascii_case(&repository.owner) {
                    return Err(Refused::Repository);
                }
            }
            let (head, base) = (branch_of(&new.from_ref.id).to_owned(), branch_of(&new.to_ref.id).to_owned());
            let new = NewPull { title: new.title, body: new.description.unwrap_or_default(), head, base, empty: false };
            let number = repository.open(&new, &user)?;
            shown(repository, number).map(|answer| Answer { status: 201, ..answer })
        }
        ("GET", [id]) => {
            request.query::<Nothing>()?;
            shown(repository, number(id)?)
        }
        ("PUT", [id]) => {
            let number = number(id)?;
            repository.pull(number)?;
            let edit: Edit = request.json()?;
            at_version(repository, number, Some(edit.version))?;
            if let Some(to) = edit.to_ref {
                repository.retarget(number, branch_of(&to.id))?;
            }
            repository.edit(number, edit.title, edit.description)?;
            shown(repository, number)
        }
        ("POST", [id, act @ ("decline" | "reopen")]) => {
            let number = number(id)?;
            // The version may also be in the body.
            let body: Option<Versioned> = if request.body.is_empty() { None } else { Some(request.json()?) };
            let version = request.query::<Versioned>()?.version.or(body.and_then(|body| body.version));
            at_version(repository, number, version)?;
            let state = repository.pull(number)?.state;
            match (*act, state) {
                ("decline", State::Open) => repository.close(number, &user)?,
                ("reopen", State::Closed) => repository.reopen(number, &user)?,
                _ => return Err(Refused::State(state)),
            }
            shown(repository, number)
        }
        ("GET", [id, "merge"]) => {
            let number = number(id)?;
            let open = repository.pull(number)?.is_open();
            let clean = open && repository.mergeable(number)?.0;
            let outcome = if clean { "CLEAN" } else { "CONFLICTED" };
            Ok(Answer::json(200, json!({"canMerge": clean, "conflicted": open && !clean, "outcome": outcome, "vetoes": []})))
        }
        ("POST", [id, "merge"]) => {
            let number = number(id)?;
            let options: MergeOptions = if request.body.is_empty() { Default::default() } else { request.json()? };
            at_version(repository, number, request.query::<Versioned>()?.version.or(options.version))?;
            let method = match options.strategy_id.as_deref() {
                None | Some("no-ff") => Method::Merge,
                Some("squash") => Method::Squash,
                Some(other) => return Err(Refused::MergeMethod(other.to_owned())),
            };
            repository.merge(number, &Merge { method, head: None, message: options.message }, &user)?;
            shown(repository, number)
        }
        ("GET", [id, "commits"]) => {
            let query: Paged = request.query()?;
            let (from, to) = repository.span(repository.pull(number(id)?)?)?;
            let window = Window { start: query.start, limit: query.limit };
            window.page(repository.git.log(&from, &to)?, |sha| read(repository, origin, sha))
        }
        ("GET", [id, "changes"]) => {
            let query: Paged = request.query()?;
            let (from, to) = repository.span(repository.pull(number(id)?)?)?;
            Window { start: query.start, limit: query.limit }.page(repository.git.changed(&from, &to)?, |(letter, path)| {
                let kind = match letter {
                    'A' => "ADD",
                    'D' => "DELETE",
                    _ => "MODIFY",
                };
                Ok(json!({"path": {"toString": path}, "type": kind, "nodeType": "FILE"}))
            })
        }
        // Comments on the whole pull request are listed only among its activities, newest first.
        ("GET", [id, "activities"]) => {
            let query: Paged = request.query()?;
            let pull = repository.pull(number(id)?)?;
            let window = Window { start: query.start, limit: query.limit };
            window.page(activities(pull, origin), Ok)
        }
        ("POST", [id, "comments"]) => {
            let number = number(id)?;
            let new: NewComment = request.json()?;
            repository.comment(number, &new.text, &user)?;
            Ok(Answer::json(201, comment_json(repository.pull(number)?.comments.last().ok_or(Refused::Pull)?, origin)))
        }
        (_, [] | [_] | [_, "decline" | "reopen" | "merge" | "commits" | "changes" | "activities" | "comments"]) => {
            Err(Refused::Method)
        }
        _ => Err(Refused::Path),
    }
}

/// Checks the version that a change was made from. It also rises when people push to the head.
fn at_version(repository: &Repository, number: u64, given: Option<u64>) -> Result<(), Refused> {
    let found = repository.pull(number)?.version;
    match given {
        Some(given) if given == found => Ok(()),
        Some(given) => Err(Refused::Version { given, found }),
        None => Err(Refused::Query("missing field `version`".into())),
    }
}

fn list<'r>(repository: &'r Repository, query: &List) -> Result<Vec<&'r Pull>, Refused> {
    let state = match query.state.as_deref().unwrap_or("OPEN") {
        "ALL" => None,
        "OPEN" => Some(State::Open),
        "DECLINED" => Some(State::Closed),
        "MERGED" => Some(State::Merged),
        other => return Err(Refused::Query(format!("state: {other:?} is none of ALL, OPEN, DECLINED, MERGED"))),
    };
    let incoming = match query.direction.as_deref().unwrap_or("INCOMING") {
        "INCOMING" => true,
        "OUTGOING" => false,
        other => return Err(Refused::Query(format!("direction: {other:?} is neither INCOMING nor OUTGOING"))),
    };
    // The full name of a branch: the base of incoming pull requests, the head of outgoing ones.
    let at = query.at.as_deref();
    let fits = |pull: &&Pull| {
        let branch = if incoming { &pull.base } else { &pull.head };
        state.is_none_or(|state| state == pull.state) && at.is_none_or(|at| at.strip_prefix("refs/heads/") == Some(branch))
    };
    let mut all: Vec<_> = repository.pulls.values().filter(fits).collect();
    match query.order.as_deref().unwrap_or("NEWEST") {
        "NEWEST" => all.reverse(),
        "OLDEST" => {}
        other => return Err(Refused::Query(format!("order: {other:?} is neither NEWEST nor OLDEST"))),
    }
    Ok(all)
}

pub(crate) fn pull_json(repository: &Repository, pull: &Pull, origin: &str) -> Value {
    let side = |branch: &str, sha: &str| {
        let home = repository_json(repository, origin);
        json!({"id": format!("refs/heads/{branch}"), "displayId": branch, "latestCommit": sha, "type": "BRANCH", "repository": home})
    };
    let state = match pull.state {
        State::Open => "OPEN",
        State::Closed => "DECLINED",
        State::Merged => "MERGED",
    };
    let author = json!({"user": account(&pull.author, origin), "role": "AUTHOR", "approved": false, "status": "UNAPPROVED"});
    let mut json = json!({
        "id": pull.number, "version": pull.version, "title": pull.title, "description": pull.body, "state": state, "open": pull.is_open(),
        "closed": !pull.is_open(), "draft": false, "createdDate": pull.created * 1000, "updatedDate": pull.updated * 1000,
        "fromRef": side(&pull.head, &pull.head_sha), "toRef": side(&pull.base, &pull.base_sha), "locked": false, "author": author,
        "reviewers": [], "participants": [], "properties": {},
        "links": {"self": [{"href": super::page_of(Form::Bitbucket, origin, repository, pull)}]},
    });
    if let Some(closed) = pull.closed {
        json["closedDate"] = (closed * 1000).into();
    }
    if let Some(sha) = &pull.merge_commit {
        json["properties"]["mergeCommit"] = json!({"id": sha, "displayId": &sha[..11]});
    }
    json
}

fn comment_json(comment: &Comment, origin: &str) -> Value {
    let at = comment.created * 1000;
    json!({
        "id": comment.id, "version": 0, "text": comment.body, "author": account(&comment.author, origin), "createdDate": at, "updatedDate": at,
        "comments": [], "tasks": [], "severity": "NORMAL", "state": "OPEN",
    })
}

fn activities(pull: &Pull, origin: &str) -> Vec<Value> {
    let act = |id: u64, at: i64, by: &str, action: &str| json!({"id": id, "createdDate": at * 1000, "user": account(by, origin), "action": action});
    let mut all = vec![act(pull.number * 1000, pull.created, &pull.author, "OPENED")];
    for comment in &pull.comments {
        let mut json = act(comment.id, comment.created, &comment.author, "COMMENTED");
        json["commentAction"] = "ADDED".into();
        json["comment"] = comment_json(comment, origin);
        all.push(json);
    }
    if let Some(at) = pull.closed {
        let action = if pull.state == State::Merged { "MERGED" } else { "DECLINED" };
        all.push(act(pull.number * 1000 + 1, at, pull.merged_by.as_deref().unwrap_or(&pull.author), action));
    }
    all.reverse();
    all
}
