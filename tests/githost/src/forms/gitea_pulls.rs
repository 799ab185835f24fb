//! Gitea's pull requests.

use super::gitea::{Paged, listed};
use super::gitea_objects::commit_json;
use super::gitea_shapes::{Viewer, comment_json, listed_pull_json, pull_json};
use super::{Answered, Call, Nothing};
use crate::http::Answer;
use crate::model::{Comment, Method, Pull, Repository, Scope, State};
use crate::pulls::{Merge, NewPull};
use crate::refused::Refused;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    state: Option<String>,
    sort: Option<String>,
    base_branch: Option<String>,
    poster: Option<String>,
    page: Option<u64>,
    limit: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Comments {
    since: Option<String>,
    before: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct New {
    head: String,
    base: String,
    title: String,
    body: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    title: Option<String>,
    body: Option<String>,
    state: Option<String>,
    base: Option<String>,
    #[serde(rename = "allow_maintainer_edit")]
    _allow_maintainer_edit: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MergeOptions {
    #[serde(rename = "Do")]
    how: String,
    #[serde(rename = "MergeTitleField")]
    title: Option<String>,
    #[serde(rename = "MergeMessageField")]
    message: Option<String>,
    head_commit_id: Option<String>,
    #[serde(default)]
    delete_branch_after_merge: bool,
    #[serde(rename = "force_merge")]
    _force_merge: Option<bool>,
    #[serde(default)]
    merge_when_checks_succeed: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewComment {
    body: String,
    #[serde(rename = "updated_at")]
    _updated_at: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EditIssue {
    title: Option<String>,
    body: Option<String>,
    state: Option<String>,
}

pub(crate) fn answer(call: &mut Call, (owner, name): (&str, &str), rest: &[&str]) -> Answered {
    let request = call.request;
    let method = request.method.as_str();
    let scope = match (method, rest) {
        ("GET", _) => Scope::Read,
        (_, ["issues", ..]) => Scope::Comments,
        _ => Scope::Pulls,
    };
    let viewer = Viewer::of(call);
    let (repository, user) = call.repository(owner, name, scope)?;
    repository.refresh()?;
    if rest[0] == "pulls" && repository.count_branches()? == 0 {
        return Err(Refused::Repository);
    }
    let origin = &request.origin;
    let number = |text: &str| text.parse::<u64>().map_err(|_| Refused::Pull);
    match (method, rest) {
        ("GET", ["pulls"]) => {
            let query: List = request.query()?;
            let numbers = list(repository, &query)?;
            listed(request, (query.page, query.limit), numbers, |number| listed_pull_json(repository, number, &viewer))
        }
        ("POST", ["pulls"]) => {
            let new: New = request.json()?;
            let head = match new.head.split_once(':') {
                Some((owner, branch)) if owner.eq_ignore_ascii_case(&repository.owner) => branch.to_owned(),
                Some(_) => return Err(Refused::HeadMissing(new.head)),
                None => new.head,
            };
            if head == new.base {
                return Err(Refused::NoCommits { base: new.base, head });
            }
            let new = NewPull { title: new.title, body: new.body.unwrap_or_default(), head, base: new.base, empty: true };
            let number = repository.open(&new, &user)?;
            Ok(Answer::json(201, pull_json(repository, number, &viewer)?))
        }
        ("GET", ["pulls", file]) if file.ends_with(".diff") || file.ends_with(".patch") => {
            let number = number(file.split('.').next().unwrap_or_default())?;
            let (from, to) = repository.span(repository.pull(number)?)?;
            Ok(Answer::text(200, "text/plain; charset=utf-8", repository.git.diff(&from, &to)?))
        }
        ("GET", ["pulls", id]) => {
            request.query::<Nothing>()?;
            Ok(Answer::json(200, pull_json(repository, number(id)?, &viewer)?))
        }
        // The last segment is either a sub-path of a number, or the head branch for a base branch.
        ("GET", ["pulls", id, "merge"]) if number(id).is_ok() => match repository.pull(number(id)?)?.state {
            State::Merged => Ok(Answer::empty(204)),
            _ => Err(Refused::Pull),
        },
        ("GET", ["pulls", id, "files"]) if number(id).is_ok() => {
            let query: Paged = request.query()?;
            let (from, to) = repository.span(repository.pull(number(id)?)?)?;
            let file = |(letter, path): (char, String)| {
                let status = match letter {
                    'A' => "added",
                    'D' => "deleted",
                    _ => "changed",
                };
                Ok(json!({"filename": path, "status": status, "additions": 0, "deletions": 0, "changes": 0}))
            };
            listed(request, (query.page, query.limit), repository.git.changed(&from, &to)?, file)
        }
        ("GET", ["pulls", id, "commits"]) if number(id).is_ok() => {
            let query: Paged = request.query()?;
            let (from, to) = repository.span(repository.pull(number(id)?)?)?;
            listed(request, (query.page, query.limit), repository.git.log(&from, &to)?, |sha| commit_json(repository, origin, &sha))
        }
        ("GET", ["pulls", base, head @ ..]) if !head.is_empty() => {
            request.query::<Nothing>()?;
            let head = head.join("/");
            let found = repository.pulls.values().filter(|pull| pull.base == *base && pull.head == head);
            // The open one, otherwise the last one.
            let found = found.max_by_key(|pull| (pull.is_open(), pull.number)).ok_or(Refused::Pull)?.number;
            Ok(Answer::json(200, pull_json(repository, found, &viewer)?))
        }
        ("PATCH", ["pulls", id]) => {
            let number = number(id)?;
            if !viewer.write && repository.pull(number)?.author != user {
                return Err(Refused::Permission);
            }
            let edit: Edit = request.json()?;
            let title = edit.title.filter(|title| !title.is_empty());
            if let Some(base) = edit.base.filter(|base| !base.is_empty()) {
                repository.retarget(number, &base)?;
            }
            change_state(repository, number, edit.state.as_deref(), &user)?;
            repository.edit(number, title, edit.body)?;
            Ok(Answer::json(201, pull_json(repository, number, &viewer)?))
        }
        ("PATCH", ["issues", id]) => {
            let number = number(id)?;
            repository.pull(number)?;
            let edit: EditIssue = request.json()?;
            change_state(repository, number, edit.state.as_deref(), &user)?;
            repository.edit(number, edit.title, edit.body)?;
            Ok(Answer::json(201, pull_json(repository, number, &viewer)?))
        }
        ("POST", ["pulls", id, "merge"]) => {
            let number = number(id)?;
            repository.pull(number)?;
            if !viewer.write {
                return Err(Refused::Permission);
            }
            let options: MergeOptions = request.json()?;
            merge(repository, number, options, &user)
        }
        ("GET", ["issues", id, "comments"]) => {
            let query: Comments = request.query()?;
            let at = |name: &str, text: Option<String>| {
                let at = text.map(|text| chrono::DateTime::parse_from_rfc3339(&text)).transpose();
                at.map(|at| at.map(|at| at.timestamp())).map_err(|error| Refused::Query(format!("{name}: {error}")))
            };
            let (since, before) = (at("since", query.since)?, at("before", query.before)?);
            let pull = repository.pull(number(id)?)?;
            let shown = |comment: &&Comment| {
                since.is_none_or(|since| comment.created >= since) && before.is_none_or(|before| comment.created <= before)
            };
            let all: Vec<_> =
                pull.comments.iter().filter(shown).map(|comment| comment_json(repository, pull, comment, origin)).collect();
            let answer = Answer::json(200, &all).with("x-total-count", all.len().to_string());
            Ok(answer.with("access-control-expose-headers", "X-Total-Count"))
        }
        ("POST", ["issues", id, "comments"]) => {
            let number = number(id)?;
            let new: NewComment = request.json()?;
            if new.body.is_empty() {
                return Err(Refused::Field("missing field `body`".into()));
            }
            repository.comment(number, &new.body, &user)?;
            let pull = repository.pull(number)?;
            Ok(Answer::json(201, comment_json(repository, pull, pull.comments.last().ok_or(Refused::Pull)?, origin)))
        }
        (_, ["pulls"] | ["pulls", _] | ["pulls", _, "merge" | "files" | "commits"] | ["issues", _, "comments"]) => {
            Err(Refused::Method)
        }
        _ => Err(Refused::Path),
    }
}

fn change_state(repository: &mut Repository, number: u64, state: Option<&str>, user: &str) -> Result<(), Refused> {
    if state.is_some() && repository.pull(number)?.state == State::Merged {
        return Err(Refused::State(State::Merged));
    }
    match state {
        None => Ok(()),
        Some("closed") => repository.close(number, user),
        Some("open") => repository.reopen(number, user),
        Some(other) => Err(Refused::Field(format!("unknown state: {other}"))),
    }
}

fn merge(repository: &mut Repository, number: u64, options: MergeOptions, user: &str) -> Answered {
    let method = match options.how.as_str() {
        "" | "merge" => Method::Merge,
        "squash" => Method::Squash,
        other @ ("rebase" | "rebase-merge" | "fast-forward-only" | "manually-merged") => {
            return Err(Refused::MergeMethod(other.to_owned()));
        }
        other => return Err(Refused::Field(format!("unknown value of `Do`: {other:?}"))),
    };
    if options.merge_when_checks_succeed {
        return Err(Refused::Field("merge_when_checks_succeed: this host has no checks".into()));
    }
    let title = options.title.filter(|title| !title.trim().is_empty());
    let body = options.message.filter(|message| !message.trim().is_empty());
    let message = title.map(|title| format!("{title}{}", body.map(|body| format!("\n\n{body}")).unwrap_or_default()));
    let head = options.head_commit_id.filter(|head| !head.is_empty());
    let pull = repository.pull(number)?;
    let own = format!("Merge pull request '{}' (#{number}) from {} into {}", pull.title, pull.head, pull.base);
    let message = message.or((method == Method::Merge).then_some(own)).map(|message| format!("{message}\n"));
    repository.merge(number, &Merge { method, head, message }, user)?;
    if options.delete_branch_after_merge {
        let branch = repository.pull(number)?.head.clone();
        repository.delete_branch(&branch, user)?;
    }
    Ok(Answer::empty(200))
}

fn list(repository: &Repository, query: &List) -> Result<Vec<u64>, Refused> {
    let state = query.state.as_deref().unwrap_or("open");
    if !["open", "closed", "all"].contains(&state) {
        return Err(Refused::Query(format!("state: {state:?} is none of open, closed, all")));
    }
    let shown = |pull: &&Pull| {
        let state = state == "all" || pull.is_open() == (state == "open");
        let poster = query.poster.as_ref().is_none_or(|poster| *poster == pull.author);
        state && poster && query.base_branch.as_ref().is_none_or(|base| *base == pull.base)
    };
    let mut all: Vec<&Pull> = repository.pulls.values().filter(shown).collect();
    all.reverse();
    match query.sort.as_deref().unwrap_or("newest") {
        "newest" => {}
        "oldest" => all.reverse(),
        "recentupdate" => all.sort_by_key(|pull| std::cmp::Reverse(pull.updated)),
        "leastupdate" => all.sort_by_key(|pull| pull.updated),
        "mostcomment" => all.sort_by_key(|pull| std::cmp::Reverse(pull.comments.len())),
        "leastcomment" => all.sort_by_key(|pull| pull.comments.len()),
        other => return Err(Refused::Query(format!("sort: {other:?} is no order"))),
    }
    Ok(all.into_iter().map(|pull| pull.number).collect())
}
