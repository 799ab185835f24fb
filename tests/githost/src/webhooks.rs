//! Webhooks: the events of pull requests, with the payload and signature of the form.

use crate::forms::gitea_shapes::{self, Viewer};
use crate::forms::{bitbucket_pulls, github, github_pulls, page_of};
use crate::model::{Form, Happened, Repository, State, Webhook, written};
use crate::refused::Refused;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// A webhook to be sent.
#[derive(Debug)]
pub(crate) struct Letter {
    pub url: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

/// The result of a webhook.
#[expect(missing_docs, reason = "the names of the fields say what they are")]
#[derive(Debug, Clone, serde::Serialize)]
pub struct Delivery {
    pub url: String,
    /// The status of the answer. 0: there was none.
    pub status: u16,
}

/// The webhooks for the events in a repository since the last call.
pub(crate) fn letters(repository: &mut Repository, form: Form, origin: &str) -> Result<Vec<Letter>, Refused> {
    let happened = std::mem::take(&mut repository.happened);
    let Some(webhook) = repository.webhook.clone() else { return Ok(vec![]) };
    let form = webhook.form.unwrap_or(form);
    happened.into_iter().map(|what| letter(repository, form, &webhook, (what, origin))).collect()
}

fn letter(
    repository: &mut Repository,
    form: Form,
    webhook: &Webhook,
    ((what, number, by), origin): ((Happened, u64, String), &str),
) -> Result<Letter, Refused> {
    let body = match form {
        Form::GitHub => github(repository, (what, number, &by), origin)?,
        Form::Gitea => gitea(repository, (what, number, &by), origin)?,
        Form::GitLab => gitlab(repository, (what, number, &by), origin)?,
        Form::Bitbucket => bitbucket(repository, (what, number, &by), origin)?,
    };
    let body = body.to_string().into_bytes();
    let signature = signature(&webhook.secret, &body);
    let delivery =
        format!("{}-{}-{}-{}-{}", &signature[..8], &signature[8..12], &signature[12..16], &signature[16..20], &signature[20..32]);
    let headers = match form {
        Form::GitHub => vec![
            ("x-github-event", "pull_request".to_owned()),
            ("x-github-delivery", delivery),
            ("x-hub-signature-256", format!("sha256={signature}")),
            ("user-agent", "GitHub-Hookshot/0000000".to_owned()),
        ],
        Form::Gitea => vec![
            ("x-gitea-event", "pull_request".to_owned()),
            ("x-gitea-event-type", "pull_request".to_owned()),
            ("x-gitea-delivery", delivery.clone()),
            ("x-gitea-signature", signature.clone()),
            ("x-github-event", "pull_request".to_owned()),
            ("x-github-event-type", "pull_request".to_owned()),
            ("x-github-delivery", delivery),
            ("x-hub-signature-256", format!("sha256={signature}")),
        ],
        Form::GitLab => vec![
            ("x-gitlab-event", "Merge Request Hook".to_owned()),
            ("x-gitlab-token", webhook.secret.clone()),
            ("x-gitlab-event-uuid", delivery),
            ("user-agent", "GitLab/17.0.0".to_owned()),
        ],
        Form::Bitbucket => vec![
            ("x-event-key", key(what).to_owned()),
            ("x-request-id", delivery),
            ("x-hub-signature", format!("sha256={signature}")),
        ],
    };
    Ok(Letter { url: webhook.url.clone(), headers, body })
}

fn action(what: Happened) -> &'static str {
    match what {
        Happened::Opened => "opened",
        Happened::Reopened => "reopened",
        Happened::Closed | Happened::Merged => "closed",
    }
}

fn key(what: Happened) -> &'static str {
    match what {
        Happened::Opened => "pr:opened",
        Happened::Reopened => "pr:reopened",
        Happened::Closed => "pr:declined",
        Happened::Merged => "pr:merged",
    }
}

fn github(repository: &Repository, (what, number, by): (Happened, u64, &str), origin: &str) -> Result<Value, Refused> {
    let pull = repository.pull(number)?;
    let mut json = github_pulls::pull_json(repository, pull);
    json["merged"] = (pull.state == State::Merged).into();
    let body = json!({
        "action": action(what), "number": number, "pull_request": json, "repository": github::repository_json(repository),
        "sender": github::account(by),
    });
    Ok(github::absolute(body, origin))
}

fn gitea(repository: &mut Repository, (what, number, by): (Happened, u64, &str), origin: &str) -> Result<Value, Refused> {
    let viewer = Viewer { origin: origin.to_owned(), user: by.to_owned(), write: true };
    let json = gitea_shapes::pull_json(repository, number, &viewer)?;
    Ok(json!({
        "action": action(what), "number": number, "pull_request": json, "requested_reviewer": null,
        "repository": gitea_shapes::repository_json(repository, &viewer), "sender": gitea_shapes::account(by, origin),
        "commit_id": "", "review": null,
    }))
}

fn gitlab(repository: &Repository, (what, number, by): (Happened, u64, &str), origin: &str) -> Result<Value, Refused> {
    let pull = repository.pull(number)?;
    let (action, state) = match what {
        Happened::Opened => ("open", "opened"),
        Happened::Reopened => ("reopen", "opened"),
        Happened::Closed => ("close", "closed"),
        Happened::Merged => ("merge", "merged"),
    };
    let full = repository.full_name();
    let project = json!({"id": repository.id, "name": repository.name, "path_with_namespace": full, "default_branch": repository.default_branch,
        "web_url": format!("{origin}/{full}"), "git_http_url": format!("{origin}/{full}.git")});
    Ok(json!({
        "object_kind": "merge_request", "event_type": "merge_request", "user": {"name": by, "username": by}, "project": project,
        "repository": {"name": repository.name, "homepage": format!("{origin}/{full}")},
        "object_attributes": {
            "id": repository.id * 10_000 + number, "iid": number, "title": pull.title, "description": pull.body, "state": state,
            "action": action, "source_branch": pull.head, "target_branch": pull.base, "source_project_id": repository.id,
            "target_project_id": repository.id, "created_at": written(pull.created), "updated_at": written(pull.updated),
            "merge_commit_sha": pull.merge_commit, "last_commit": {"id": pull.head_sha},
            "url": page_of(Form::GitLab, origin, repository, pull),
        },
        "labels": [], "changes": {},
    }))
}

fn bitbucket(repository: &Repository, (what, number, by): (Happened, u64, &str), origin: &str) -> Result<Value, Refused> {
    Ok(json!({
        "eventKey": key(what), "date": written(repository.pull(number)?.updated), "actor": {"name": by, "slug": by},
        "pullRequest": bitbucket_pulls::pull_json(repository, repository.pull(number)?, origin),
    }))
}

/// HMAC-SHA-256 of a payload, in hexadecimal.
pub fn signature(secret: &str, body: &[u8]) -> String {
    // HMAC accepts keys of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else { return String::new() };
    mac.update(body);
    hex(&mac.finalize().into_bytes())
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
