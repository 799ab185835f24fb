//! Accounts, repositories, pull requests and comments in Gitea's format.

use super::Call;
use crate::model::{Comment, Form, Method, Pull, Repository, State, written};
use crate::refused::Refused;
use crate::webhooks::sha256;
use serde_json::{Value, json};

/// Go's text for a missing time.
pub(crate) const NO_TIME: &str = "0001-01-01T00:00:00Z";
/// When every account was created. None has signed in since.
const LONG_AGO: &str = "1970-01-01T00:00:00Z";

/// The caller, and the address at which it reached the host.
#[derive(Debug, Clone)]
pub(crate) struct Viewer {
    pub origin: String,
    pub user: String,
    pub write: bool,
}

impl Viewer {
    pub fn of(call: &Call) -> Self {
        let token = call.token.as_ref();
        Self {
            origin: call.request.origin.clone(),
            user: token.map_or_else(String::new, |token| token.user.clone()),
            write: token.is_some_and(|token| !token.read_only),
        }
    }

    /// An account. Users see more of their own.
    pub fn account(&self, login: &str) -> Value {
        let mut json = account(login, &self.origin);
        json["email"] = format!("{login}@noreply.localhost").into();
        if login == self.user {
            (json["active"], json["last_login"]) = (true.into(), LONG_AGO.into());
        }
        json
    }
}

/// An account as all users see it.
pub(crate) fn account(login: &str, origin: &str) -> Value {
    let id = login.bytes().fold(7u64, |id, byte| (id * 31 + u64::from(byte)) % 100_000_000);
    json!({
        "id": id, "login": login, "login_name": "", "source_id": 0, "full_name": "",
        "email": format!("{id}+{login}@noreply.localhost"),
        "avatar_url": format!("{origin}/avatars/{}", sha256(login.as_bytes())), "html_url": format!("{origin}/{login}"),
        "language": "",
        "is_admin": false, "last_login": NO_TIME, "created": LONG_AGO, "restricted": false, "active": false,
        "prohibit_login": false,
        "location": "", "website": "", "description": "", "visibility": "public", "followers_count": 0, "following_count": 0,
        "starred_repos_count": 0, "username": login,
    })
}

pub(crate) fn repository_json(repository: &Repository, viewer: &Viewer) -> Value {
    let (full, origin, created) = (repository.full_name(), &viewer.origin, written(repository.created));
    let allows = |method| repository.methods.contains(&method);
    let branches = repository.count_branches().unwrap_or(0);
    let open = repository.pulls.values().filter(|pull| pull.is_open()).count();
    // The owner is an organization, which has no e-mail address.
    let mut owner = account(&repository.owner, origin);
    owner["email"] = "".into();
    let style = if allows(Method::Merge) { "merge" } else { "squash" };
    json!({
        "id": repository.id, "owner": owner, "name": repository.name, "full_name": full, "description": "", "empty": branches == 0,
        "private": repository.private, "fork": false, "template": false, "mirror": false, "size": 24, "language": "",
        "languages_url": format!("{origin}/api/v1/repos/{full}/languages"), "html_url": format!("{origin}/{full}"),
        "url": format!("{origin}/api/v1/repos/{full}"), "link": "", "ssh_url": format!("git@localhost:{full}.git"),
        "clone_url": format!("{origin}/{full}.git"),
        "original_url": "", "website": "", "stars_count": 0, "forks_count": 0, "watchers_count": 1, "branch_count": branches,
        "open_issues_count": 0, "open_pr_counter": open, "release_counter": 0, "default_branch": repository.default_branch,
        "archived": false, "created_at": created, "updated_at": created, "archived_at": LONG_AGO,
        "permissions": {"admin": viewer.write, "push": viewer.write, "pull": true}, "has_code": true, "has_issues": true,
        "internal_tracker": {
            "enable_time_tracker": true, "allow_only_contributors_to_track_time": true, "enable_issue_dependencies": true,
        },
        "has_wiki": true, "has_pull_requests": true, "has_projects": true, "projects_mode": "all", "has_releases": true,
        "has_packages": true, "has_actions": true, "ignore_whitespace_conflicts": false,
        "allow_merge_commits": allows(Method::Merge),
        "allow_rebase": false, "allow_rebase_explicit": false, "allow_squash_merge": allows(Method::Squash),
        "allow_fast_forward_only_merge": false, "allow_rebase_update": true, "allow_manual_merge": false,
        "autodetect_manual_merge": false, "default_delete_branch_after_merge": false, "default_merge_style": style,
        "default_allow_maintainer_edit": true, "avatar_url": "", "internal": false, "mirror_interval": "",
        "object_format_name": "sha1", "mirror_updated": NO_TIME, "topics": [], "licenses": [],
    })
}

/// A single pull request.
pub(crate) fn pull_json(repository: &mut Repository, number: u64, viewer: &Viewer) -> Result<Value, Refused> {
    let mut json = listed_pull_json(repository, number, viewer)?;
    let (from, to) = repository.span(repository.pull(number)?)?;
    let (files, additions, deletions) = repository.git.numbers(&from, &to)?;
    let merged_by = repository.pull(number)?.merged_by.as_deref().map(|login| account(login, &viewer.origin));
    json["merged_by"] = merged_by.into();
    for field in ["assignees", "requested_reviewers", "requested_reviewers_teams"] {
        json[field] = json!([]);
    }
    (json["changed_files"], json["additions"], json["deletions"]) = (files.into(), additions.into(), deletions.into());
    Ok(json)
}

/// A pull request in a list, without the fields that need another computation.
pub(crate) fn listed_pull_json(repository: &mut Repository, number: u64, viewer: &Viewer) -> Result<Value, Refused> {
    let clean = repository.mergeable(number)?.0;
    let (pull, origin) = (repository.pull(number)?, &viewer.origin);
    let html = super::page_of(Form::Gitea, origin, repository, pull);
    let shown = repository_json(repository, viewer);
    let side = |branch: &str, reference: &str, sha: Option<String>| {
        let (id, shown) = (repository.id, shown.clone());
        json!({"label": branch, "ref": reference, "sha": sha, "repo_id": id, "repo": shown})
    };
    // The present branches. That of the head may be deleted.
    let head = match repository.git.branch(&pull.head)? {
        Some(tip) => side(&pull.head, &pull.head, Some(tip)),
        None => side(&pull.head, &format!("refs/pull/{number}/head"), Some(pull.head_sha.clone())),
    };
    let base = side(&pull.base, &pull.base, repository.git.branch(&pull.base)?);
    let merged = pull.state == State::Merged;
    let (fork, _) = repository.span(pull)?;
    Ok(json!({
        "id": repository.id * 10_000 + pull.number, "url": html, "number": pull.number, "user": viewer.account(&pull.author),
        "title": pull.title, "body": pull.body, "labels": [], "milestone": null, "assignee": null, "assignees": null,
        "requested_reviewers": null, "requested_reviewers_teams": null, "state": if pull.is_open() { "open" } else { "closed" },
        "draft": false, "is_locked": false, "comments": pull.comments.len(), "html_url": html, "diff_url": format!("{html}.diff"),
        "patch_url": format!("{html}.patch"), "mergeable": clean, "merged": merged,
        "merged_at": pull.closed.filter(|_| merged).map(written),
        "merge_commit_sha": pull.merge_commit, "merged_by": null,
        "allow_maintainer_edit": true, "base": base, "head": head, "merge_base": fork, "due_date": null,
        "created_at": written(pull.created), "updated_at": written(pull.updated), "closed_at": pull.closed.map(written),
        "pin_order": 0,
        "content_version": 0,
    }))
}

pub(crate) fn comment_json(repository: &Repository, pull: &Pull, comment: &Comment, origin: &str) -> Value {
    let html = super::page_of(Form::Gitea, origin, repository, pull);
    json!({
        "id": comment.id, "html_url": format!("{html}#issuecomment-{}", comment.id), "pull_request_url": html, "issue_url": "",
        "user": account(&comment.author, origin), "original_author": "", "original_author_id": 0, "body": comment.body,
        "assets": [],
        "created_at": written(comment.created), "updated_at": written(comment.created),
    })
}
