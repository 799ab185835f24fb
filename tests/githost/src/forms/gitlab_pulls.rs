//! GitLab's merge requests.

use super::gitlab::{account, listed};
use super::gitlab_files::read;
use super::{Answered, Call, Nothing};
use crate::http::Answer;
use crate::model::{Comment, Form, Method, Pull, Repository, Scope, State, written};
use crate::pulls::{Merge, NewPull};
use crate::refused::Refused;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    state: Option<String>,
    source_branch: Option<String>,
    target_branch: Option<String>,
    author_username: Option<String>,
    order_by: Option<String>,
    sort: Option<String>,
    /// The lists of a project contain the merge requests of all users.
    #[serde(rename = "scope")]
    _scope: Option<String>,
    page: Option<u64>,
    per_page: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Notes {
    order_by: Option<String>,
    sort: Option<String>,
    page: Option<u64>,
    per_page: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct New {
    source_branch: String,
    target_branch: String,
    title: String,
    description: Option<String>,
    #[serde(rename = "remove_source_branch")]
    _remove_source_branch: Option<bool>,
    #[serde(rename = "squash")]
    _squash: Option<bool>,
    #[serde(rename = "allow_collaboration")]
    _allow_collaboration: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    title: Option<String>,
    description: Option<String>,
    state_event: Option<String>,
    target_branch: Option<String>,
    #[serde(rename = "remove_source_branch")]
    _remove_source_branch: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct MergeOptions {
    sha: Option<String>,
    squash: Option<bool>,
    merge_commit_message: Option<String>,
    squash_commit_message: Option<String>,
    #[serde(default)]
    should_remove_source_branch: bool,
    /// Without pipelines, "when the pipeline succeeds" means now.
    #[serde(rename = "auto_merge")]
    _auto_merge: Option<bool>,
    #[serde(rename = "merge_when_pipeline_succeeds")]
    _merge_when_pipeline_succeeds: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewNote {
    body: String,
}

pub(crate) fn answer(call: &mut Call, (owner, name): (&str, &str), rest: &[&str]) -> Answered {
    let request = call.request;
    let origin = &request.origin;
    let method = request.method.as_str();
    let scope = match (method, rest) {
        ("GET", _) => Scope::Read,
        (_, [_, "notes"]) => Scope::Comments,
        _ => Scope::Pulls,
    };
    let (repository, user) = call.repository(owner, name, scope)?;
    repository.refresh()?;
    let web = format!("{origin}/{}", repository.full_name());
    let number = |text: &str| text.parse::<u64>().map_err(|_| Refused::Pull);
    match (method, rest) {
        ("GET", []) => {
            let query: List = request.query()?;
            let all = list(repository, &query)?;
            listed(request, (query.page, query.per_page), all, |number| pull_json(repository, number, origin))
        }
        ("POST", []) => {
            let new: New = request.json()?;
            if new.source_branch == new.target_branch {
                return Err(Refused::NoCommits { base: new.target_branch, head: new.source_branch });
            }
            let (head, base) = (new.source_branch, new.target_branch);
            let new = NewPull { title: new.title, body: new.description.unwrap_or_default(), head, base, empty: true };
            let number = repository.open(&new, &user)?;
            Ok(Answer::json(201, pull_json(repository, number, origin)?))
        }
        ("GET", [id]) => {
            request.query::<Nothing>()?;
            Ok(Answer::json(200, pull_json(repository, number(id)?, origin)?))
        }
        ("PUT", [id]) => {
            let number = number(id)?;
            repository.pull(number)?;
            let edit: Edit = request.json()?;
            match edit.state_event.as_deref() {
                None => {}
                Some("close") => repository.close(number, &user)?,
                Some("reopen") => repository.reopen(number, &user)?,
                Some(_) => return Err(Refused::Field("`state_event` does not have a valid value".into())),
            }
            if let Some(base) = &edit.target_branch {
                repository.retarget(number, base)?;
            }
            repository.edit(number, edit.title, edit.description)?;
            Ok(Answer::json(200, pull_json(repository, number, origin)?))
        }
        ("PUT", [id, "merge"]) => {
            let number = number(id)?;
            repository.pull(number)?;
            let options: MergeOptions = if request.body.is_empty() { Default::default() } else { request.json()? };
            let squash = options.squash == Some(true);
            let message = if squash { options.squash_commit_message } else { options.merge_commit_message };
            let (from, to) = repository.span(repository.pull(number)?)?;
            if repository.pull(number)?.is_open() && from == to {
                return Err(Refused::Conflict(vec![]));
            }
            // Nothing is merged before it was looked for conflicts, and nobody waits for that.
            let named = options.sha.as_ref().is_none_or(|sha| *sha == to);
            if repository.pull(number)?.is_open() && named && !repository.mergeable(number)?.1 {
                return Err(Refused::Conflict(vec![]));
            }
            let how = if squash { Method::Squash } else { Method::Merge };
            repository.merge(number, &Merge { method: how, head: options.sha, message }, &user)?;
            if options.should_remove_source_branch {
                let branch = repository.pull(number)?.head.clone();
                repository.delete_branch(&branch, &user)?;
            }
            Ok(Answer::json(200, pull_json(repository, number, origin)?))
        }
        ("GET", [id, "commits"]) => {
            let (from, to) = repository.span(repository.pull(number(id)?)?)?;
            listed(request, (None, None), repository.git.log(&from, &to)?, |sha| read(repository, &web, sha))
        }
        ("GET", [id, "diffs"]) => {
            let (from, to) = repository.span(repository.pull(number(id)?)?)?;
            listed(request, (None, None), repository.git.changed(&from, &to)?, |(letter, path)| {
                let (new, gone) = (letter == 'A', letter == 'D');
                Ok(json!({"old_path": path, "new_path": path, "new_file": new, "deleted_file": gone, "renamed_file": false}))
            })
        }
        ("GET", [id, "notes"]) => {
            let query: Notes = request.query()?;
            let mut all = repository.pull(number(id)?)?.comments.clone();
            match (query.sort.as_deref().unwrap_or("desc"), query.order_by.as_deref().unwrap_or("created_at")) {
                ("desc", "created_at" | "updated_at") => all.reverse(),
                ("asc", "created_at" | "updated_at") => {}
                _ => return Err(Refused::Query("`sort` does not have a valid value".into())),
            }
            listed(request, (query.page, query.per_page), all, |note| Ok(note_json(&note, origin)))
        }
        ("POST", [id, "notes"]) => {
            let number = number(id)?;
            let new: NewNote = request.json()?;
            repository.comment(number, &new.body, &user)?;
            Ok(Answer::json(201, note_json(repository.pull(number)?.comments.last().ok_or(Refused::Pull)?, origin)))
        }
        (_, [] | [_] | [_, "merge" | "commits" | "diffs" | "notes"]) => Err(Refused::Method),
        _ => Err(Refused::Path),
    }
}

fn list(repository: &Repository, query: &List) -> Result<Vec<u64>, Refused> {
    let state = match query.state.as_deref().unwrap_or("all") {
        "all" => None,
        "opened" => Some(State::Open),
        "closed" => Some(State::Closed),
        "merged" => Some(State::Merged),
        _ => return Err(Refused::Query("`state` does not have a valid value".into())),
    };
    let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
    let shown = |pull: &&Pull| {
        let branches = is(&query.source_branch, &pull.head) && is(&query.target_branch, &pull.base);
        branches && is(&query.author_username, &pull.author) && state.is_none_or(|state| state == pull.state)
    };
    let mut all: Vec<&Pull> = repository.pulls.values().filter(shown).collect();
    match query.order_by.as_deref().unwrap_or("created_at") {
        "created_at" => {}
        "updated_at" => all.sort_by_key(|pull| pull.updated),
        _ => return Err(Refused::Query("`order_by` does not have a valid value".into())),
    }
    match query.sort.as_deref().unwrap_or("desc") {
        "desc" => all.reverse(),
        "asc" => {}
        _ => return Err(Refused::Query("`sort` does not have a valid value".into())),
    }
    Ok(all.into_iter().map(|pull| pull.number).collect())
}

/// A merge request. Whether it can be merged is computed on the first request, to which GitLab answers "checking".
pub(crate) fn pull_json(repository: &mut Repository, number: u64, origin: &str) -> Result<Value, Refused> {
    let open = repository.pull(number)?.is_open();
    let (clean, known) = if open { repository.mergeable(number)? } else { (true, true) };
    let pull = repository.pull(number)?;
    let (base, head) = repository.span(pull)?;
    let state = match pull.state {
        State::Open => "opened",
        State::Closed => "closed",
        State::Merged => "merged",
    };
    let detailed = match (open, known, clean) {
        (false, ..) => "not_open",
        (true, false, _) => "checking",
        (true, true, false) => "conflict",
        (true, true, true) if base == head => "commits_status",
        (true, true, true) => "mergeable",
    };
    let status = match (known, clean) {
        (false, _) => "checking",
        (true, true) => "can_be_merged",
        (true, false) => "cannot_be_merged",
    };
    let closed = |state: State| pull.closed.filter(|_| pull.state == state).map(written);
    Ok(json!({
        "id": repository.id * 10_000 + number, "iid": number, "project_id": repository.id, "title": pull.title, "description": pull.body,
        "state": state, "created_at": written(pull.created), "updated_at": written(pull.updated), "merged_at": closed(State::Merged),
        "merged_by": pull.merged_by.as_deref().map(|login| account(login, origin)),
        "merge_user": pull.merged_by.as_deref().map(|login| account(login, origin)), "closed_at": closed(State::Closed), "closed_by": null,
        "target_branch": pull.base, "source_branch": pull.head, "user_notes_count": pull.comments.len(), "upvotes": 0, "downvotes": 0,
        "author": account(&pull.author, origin), "assignees": [], "assignee": null, "reviewers": [], "source_project_id": repository.id,
        "target_project_id": repository.id, "labels": [], "draft": false, "work_in_progress": false, "milestone": null,
        "merge_when_pipeline_succeeds": false, "merge_status": status, "detailed_merge_status": detailed, "sha": pull.head_sha,
        "merge_commit_sha": pull.merge_commit, "squash_commit_sha": null, "has_conflicts": known && !clean, "squash": false,
        "reference": format!("!{number}"), "references": {"short": format!("!{number}"), "full": format!("{}!{number}", repository.full_name())},
        "web_url": super::page_of(Form::GitLab, origin, repository, pull),
        "diff_refs": {"base_sha": base, "head_sha": head, "start_sha": pull.base_sha},
    }))
}

fn note_json(note: &Comment, origin: &str) -> Value {
    json!({
        "id": note.id, "body": note.body, "author": account(&note.author, origin), "created_at": written(note.created),
        "updated_at": written(note.created), "system": false, "noteable_type": "MergeRequest", "internal": false, "resolvable": false,
    })
}
