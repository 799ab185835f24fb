//! Webhooks of git hosts. A webhook only tells where to look: what it claims about a pull request is not used.

use crate::repository::{Form, Repository};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// The subject of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookAbout {
    /// The repository, by its URL for people.
    pub repository: Repository,
    /// The number of the pull request.
    pub number: u64,
}

/// The error of a signature that is missing, or does not match secret and body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the webhook is not signed with the secret")]
pub struct BadSignature;

/// The headers with the signatures of GitHub, Gitea, Bitbucket Server and GitLab.
pub const SIGNATURES: [&str; 4] = ["x-hub-signature-256", "x-gitea-signature", "x-hub-signature", "x-gitlab-token"];

/// Checks the signature of a webhook, and returns its subject. `None`: it is not about a pull request. `headers`: names (in any
/// case) and values. An empty secret accepts nothing. GitHub, Gitea and Bitbucket Server sign the body with HMAC-SHA256; GitLab
/// sends the secret.
pub fn webhook(form: Form, headers: &[(&str, &str)], body: &[u8], secret: &str) -> Result<Option<WebhookAbout>, BadSignature> {
    let header = |wanted: &str| headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim());
    if secret.is_empty() {
        return Err(BadSignature);
    }
    let good = match form {
        Form::GitHub => header("x-hub-signature-256").is_some_and(|text| is_signed(text.strip_prefix("sha256="), body, secret)),
        // Forgejo also sends a header of its own; both hosts send this one.
        Form::Gitea => header("x-gitea-signature").is_some_and(|text| is_signed(Some(text), body, secret)),
        Form::BitbucketServer => {
            header("x-hub-signature").is_some_and(|text| is_signed(text.strip_prefix("sha256="), body, secret))
        }
        Form::GitLab => header("x-gitlab-token").is_some_and(|text| text.as_bytes().ct_eq(secret.as_bytes()).into()),
    };
    if !good {
        return Err(BadSignature);
    }
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    Ok(about(form, &body))
}

fn is_signed(signature: Option<&str>, body: &[u8], secret: &str) -> bool {
    let Some(signature) = signature.and_then(unhex) else { return false };
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else { return false };
    mac.update(body);
    // Compares in constant time.
    mac.verify_slice(&signature).is_ok()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

fn about(form: Form, body: &Value) -> Option<WebhookAbout> {
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str);
    let (url, number) = match form {
        Form::GitHub | Form::Gitea => {
            (text("/repository/html_url")?.to_owned(), body.pointer("/pull_request/number").or_else(|| body.pointer("/number"))?)
        }
        Form::GitLab if text("/object_kind") == Some("merge_request") => {
            (text("/project/web_url")?.to_owned(), body.pointer("/object_attributes/iid")?)
        }
        Form::GitLab => return None,
        Form::BitbucketServer => {
            let repository = body.pointer("/pullRequest/toRef/repository")?;
            let link = repository.pointer("/links/self/0/href").and_then(Value::as_str)?;
            (link.trim_end_matches("/browse").to_owned(), body.pointer("/pullRequest/id")?)
        }
    };
    // Other events have numbers, too: GitHub has those of issues.
    if matches!(form, Form::GitHub | Form::Gitea) && body.get("pull_request").is_none() {
        return None;
    }
    // A host behind a proxy may not know that it is reached with TLS.
    let url = url.strip_prefix("http://").map_or(url.clone(), |rest| format!("https://{rest}"));
    Some(WebhookAbout { repository: Repository::parse(form, &url).ok()?, number: number.as_u64()? })
}

#[cfg(test)]
mod tests;
