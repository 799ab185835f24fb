//! GitHub's pull requests.

use super::github::{account, repository_json};
use super::github_files::{files_json, listed, read};
use super::github_git::addressed;
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
    head: Option<String>,
    base: Option<String>,
    sort: Option<String>,
    direction: Option<String>,
    page: Option<u64>,
    per_page: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Comments {
    page: Option<u64>,
    per_page: Option<u64>,
    since: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct New {
    title: String,
    head: String,
    base: String,
    body: Option<String>,
    #[serde(default)]
    draft: bool,
    #[serde(rename = "maintainer_can_modify")]
    _maintainer_can_modify: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    /// A parameter of the path that octocrab repeats in the body, and that GitHub accepts there.
    #[serde(rename = "pull_number")]
    _pull_number: Option<u64>,
    title: Option<String>,
    body: Option<String>,
    state: Option<String>,
    base: Option<String>,
    #[serde(rename = "maintainer_can_modify")]
    _maintainer_can_modify: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct MergeOptions {
    commit_title: Option<String>,
    commit_message: Option<String>,
    sha: Option<String>,
    merge_method: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewComment {
    body: String,
}

pub(crate) fn answer(call: &mut Call, (owner, name): (&str, &str), rest: &[&str]) -> Answered {
    let request = call.request;
    let method = request.method.as_str();
    let scope = match (method, rest) {
        ("GET", _) => Scope::Read,
        (_, ["issues", ..]) => Scope::Comments,
        // A merge writes the base branch.
        (_, [.., "merge"]) => Scope::Contents,
        _ => Scope::Pulls,
    };
    let (repository, user) = call.repository(owner, name, scope)?;
    repository.refresh()?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| Refused::Pull);
    let answer = match (method, rest) {
        ("GET", ["pulls"]) => {
            let query: List = request.query()?;
            let all = list(repository, &query)?;
            listed(request, (query.page, query.per_page), all, |pull| Ok(pull_json(repository, pull)))?
        }
        ("POST", ["pulls"]) => {
            let new: New = request.json()?;
            if new.draft {
                return Err(Refused::Field("draft: this host has no drafts".into()));
            }
            let head = own_branch(repository, &new.head)?;
            let new = NewPull { title: new.title, body: new.body.unwrap_or_default(), head, base: new.base, empty: false };
            let number = repository.open(&new, &user)?;
            Answer::json(201, detailed(repository, number)?)
        }
        ("GET", ["pulls", id]) => {
            request.query::<Nothing>()?;
            let number = number(id)?;
            Answer::json(200, detailed(repository, number)?)
        }
        ("PATCH", ["pulls", id]) => {
            let number = number(id)?;
            repository.pull(number)?;
            let edit: Edit = request.json()?;
            match edit.state.as_deref() {
                None => {}
                // GitHub accepts "closed" for a merged pull request, which is closed.
                Some("closed") if repository.pull(number)?.state == State::Merged => {}
                Some("closed") => repository.close(number, &user)?,
                Some("open") => repository.reopen(number, &user)?,
                Some(other) => return Err(Refused::Field(format!("state: {other:?} is neither open nor closed"))),
            }
            if let Some(base) = &edit.base {
                repository.retarget(number, base)?;
            }
            repository.edit(number, edit.title, edit.body)?;
            Answer::json(200, detailed(repository, number)?)
        }
        ("GET", ["pulls", id, "merge"]) => {
            request.query::<Nothing>()?;
            match repository.pull(number(id)?)?.state {
                State::Merged => Answer::empty(204),
                _ => return Err(Refused::Pull),
            }
        }
        ("PUT", ["pulls", id, "merge"]) => {
            let number = number(id)?;
            let options: MergeOptions = if request.body.is_empty() { Default::default() } else { request.json()? };
            let method = match options.merge_method.as_deref() {
                None | Some("merge") => Method::Merge,
                Some("squash") => Method::Squash,
                Some("rebase") => return Err(Refused::MergeMethod("rebase".into())),
                Some(other) => return Err(Refused::Field(format!("merge_method: {other:?} is none of merge, squash, rebase"))),
            };
            let message = options.commit_title.map(|title| format!("{title}\n\n{}", options.commit_message.unwrap_or_default()));
            let sha = repository.merge(number, &Merge { method, head: options.sha, message }, &user)?;
            Answer::json(200, json!({"sha": sha, "merged": true, "message": "Pull Request successfully merged"}))
        }
        ("GET", ["pulls", id, "files"]) => {
            let query: Comments = request.query()?;
            let (from, to) = repository.span(repository.pull(number(id)?)?)?;
            listed(request, (query.page, query.per_page), files_json(repository, &from, &to)?, Ok)?
        }
        ("GET", ["pulls", id, "commits"]) => {
            let query: Comments = request.query()?;
            let (from, to) = repository.span(repository.pull(number(id)?)?)?;
            let all = repository.git.log(&from, &to)?.into_iter().rev().collect();
            listed(request, (query.page, query.per_page), all, |sha| read(repository, sha))?
        }
        ("GET", ["issues", id, "comments"]) => {
            let query: Comments = request.query()?;
            let since = query.since.map(|since| chrono::DateTime::parse_from_rfc3339(&since));
            let since =
                since.transpose().map_err(|error| Refused::Query(format!("since: {error}")))?.map(|since| since.timestamp());
            let pull = repository.pull(number(id)?)?;
            let all = pull.comments.iter().filter(|comment| since.is_none_or(|since| comment.created >= since)).collect();
            listed(request, (query.page, query.per_page), all, |comment| Ok(comment_json(repository, pull, comment)))?
        }
        ("POST", ["issues", id, "comments"]) => {
            let number = number(id)?;
            let new: NewComment = request.json()?;
            repository.comment(number, &new.body, &user)?;
            let pull = repository.pull(number)?;
            let comment = pull.comments.last().ok_or(Refused::Pull)?;
            Answer::json(201, comment_json(repository, pull, comment))
        }
        (_, ["pulls"] | ["pulls", _] | ["pulls", _, "merge" | "files" | "commits"] | ["issues", _, "comments"]) => {
            return Err(Refused::Method);
        }
        _ => return Err(Refused::Path),
    };
    Ok(addressed(answer, &request.origin))
}

/// A head is `branch` or `owner:branch`. This host has no forks.
fn own_branch(repository: &Repository, head: &str) -> Result<String, Refused> {
    match head.split_once(':') {
        None => Ok(head.to_owned()),
        Some((owner, branch)) if owner.eq_ignore_ascii_case(&repository.owner) => Ok(branch.to_owned()),
        Some(_) => Err(Refused::HeadMissing(head.to_owned())),
    }
}

fn list<'r>(repository: &'r Repository, query: &List) -> Result<Vec<&'r Pull>, Refused> {
    let state = query.state.as_deref().unwrap_or("open");
    if !["open", "closed", "all"].contains(&state) {
        return Err(Refused::Query(format!("state: {state:?} is none of open, closed, all")));
    }
    // GitHub expects owner:branch in `head`, and ignores a value without an owner.
    let head = query.head.as_ref().and_then(|head| head.split_once(':'));
    let shown = |pull: &&Pull| {
        let state = state == "all" || pull.is_open() == (state == "open");
        let base = query.base.as_ref().is_none_or(|base| *base == pull.base);
        state && base && head.is_none_or(|(owner, branch)| owner.eq_ignore_ascii_case(&repository.owner) && branch == pull.head)
    };
    let mut all: Vec<_> = repository.pulls.values().filter(shown).collect();
    match query.sort.as_deref().unwrap_or("created") {
        "created" => {}
        "updated" => all.sort_by_key(|pull| pull.updated),
        other => return Err(Refused::Query(format!("sort: {other:?} is neither created nor updated"))),
    }
    match query.direction.as_deref().unwrap_or("desc") {
        "desc" => all.reverse(),
        "asc" => {}
        other => return Err(Refused::Query(format!("direction: {other:?} is neither asc nor desc"))),
    }
    Ok(all)
}

/// A pull request in the format of lists.
pub(crate) fn pull_json(repository: &Repository, pull: &Pull) -> Value {
    let full = repository.full_name();
    let (url, html) =
        (format!("{{api}}/repos/{full}/pulls/{}", pull.number), super::page_of(Form::GitHub, "{web}", repository, pull));
    let issue = format!("{{api}}/repos/{full}/issues/{}", pull.number);
    let user = account(&repository.owner);
    let side = |branch: &str, sha: &str| json!({"label": format!("{}:{branch}", repository.owner), "ref": branch, "sha": sha, "user": user, "repo": repository_json(repository)});
    json!({
        "id": repository.id * 10_000 + pull.number, "node_id": format!("PR_{}", pull.number), "number": pull.number, "url": url,
        "html_url": html, "diff_url": format!("{html}.diff"), "patch_url": format!("{html}.patch"), "issue_url": issue,
        "commits_url": format!("{url}/commits"), "review_comments_url": format!("{url}/comments"),
        "review_comment_url": format!("{{api}}/repos/{full}/pulls/comments{{/number}}"), "comments_url": format!("{issue}/comments"),
        "statuses_url": format!("{{api}}/repos/{full}/statuses/{}", pull.head_sha),
        "state": if pull.is_open() { "open" } else { "closed" }, "locked": false, "title": pull.title, "user": account(&pull.author),
        "body": (!pull.body.is_empty()).then_some(&pull.body), "labels": [], "milestone": null, "active_lock_reason": null,
        "created_at": written(pull.created), "updated_at": written(pull.updated), "closed_at": pull.closed.map(written),
        "merged_at": pull.closed.filter(|_| pull.state == State::Merged).map(written), "merge_commit_sha": pull.merge_commit,
        "assignee": null, "assignees": [], "requested_reviewers": [], "requested_teams": [], "head": side(&pull.head, &pull.head_sha),
        "base": side(&pull.base, &pull.base_sha), "author_association": "MEMBER", "auto_merge": null, "draft": false,
    })
}

/// A single pull request. Whether it can be merged is computed on the first request, to which GitHub answers null.
fn detailed(repository: &mut Repository, number: u64) -> Result<Value, Refused> {
    let (clean, known) = match repository.pull(number)?.state {
        State::Open => repository.mergeable(number)?,
        _ => (false, false),
    };
    let pull = repository.pull(number)?;
    let mut json = pull_json(repository, pull);
    json["merged"] = (pull.state == State::Merged).into();
    json["mergeable"] = known.then_some(clean).into();
    json["rebaseable"] = known.then_some(clean).into();
    let state = match (known, clean) {
        (false, _) => "unknown",
        (true, true) => "clean",
        (true, false) => "dirty",
    };
    json["mergeable_state"] = state.into();
    json["merged_by"] = pull.merged_by.as_deref().map(account).into();
    let (from, to) = repository.span(pull)?;
    json["commits"] = repository.git.log(&from, &to)?.len().into();
    json["changed_files"] = repository.git.changed(&from, &to)?.len().into();
    for (name, value) in [("comments", pull.comments.len()), ("review_comments", 0), ("additions", 0), ("deletions", 0)] {
        json[name] = value.into();
    }
    json["maintainer_can_modify"] = false.into();
    Ok(json)
}

fn comment_json(repository: &Repository, pull: &Pull, comment: &Comment) -> Value {
    let full = repository.full_name();
    json!({
        "id": comment.id, "node_id": format!("IC_{}", comment.id), "url": format!("{{api}}/repos/{full}/issues/comments/{}", comment.id),
        "html_url": format!("{}#issuecomment-{}", super::page_of(Form::GitHub, "{web}", repository, pull), comment.id),
        "issue_url": format!("{{api}}/repos/{full}/issues/{}", pull.number), "body": comment.body, "user": account(&comment.author),
        "created_at": written(comment.created), "updated_at": written(comment.created), "author_association": "MEMBER",
    })
}
