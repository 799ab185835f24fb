//! Webhooks of git hosts. A webhook only orders a look at the repository: the state of a pull request is read from the host.

use crate::Api;
use crate::fence::allowed::{Allowed, scope};
use crate::fence::input::{Anything, Params, Path, json_body};
use crate::fence::names::is_name;
use crate::fence::problem::{Answer, Refused};
use crate::fence::signed;
use axum::extract::Request;
use axum::http::StatusCode;
use keelway_domain::address::Address;
use keelway_engine::secrets;
use keelway_githosts::{Form, Repository, SIGNATURES, webhook};
use serde_json::Value;

/// The answer to every webhook without a valid signature.
fn refusal() -> Refused {
    let detail =
        "the webhook is not signed with the secret that a GitHost of this name refers to: docs/promotions.md says how to set it up";
    Refused::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
}

/// Tells that something happened to a pull request; signed by the git host.
///
/// 202: a repository is looked at now. 204: there is nothing to look at.
#[utoipa::path(
    post,
    path = "/v1/webhooks/{githost}",
    tag = "pipelines",
    request_body(content = Value, example = json!({"action": "closed"})),
    responses((status = 202), (status = 204))
)]
pub(crate) async fn wake(
    _: Allowed<scope::OfGitHost>,
    api: Api,
    Path(name): Path<String>,
    _: Params<Anything>,
    request: Request,
) -> Answer<StatusCode> {
    // A webhook without a signature is refused before anything is read.
    if !is_name(&name) || !SIGNATURES.iter().any(|header| request.headers().contains_key(*header)) {
        return Err(refusal());
    }
    let host = api.promotions().git_hosts().get(&Address::new("", &name)).await?.ok_or_else(refusal)?.spec;
    let short = host.webhook_secret.ok_or_else(refusal)?;
    signed::admit_webhook(&api, &name, request.extensions().get()).await?;
    let secret = signed::read(&api, &secrets::name(secrets::INSTALLATION, &short)).await?.ok_or_else(refusal)?;
    let form: Form = host.form.parse().map_err(|_| refusal())?;
    let headers = request.headers().clone();
    let body = json_body(request).await?;
    let pairs: Vec<(&str, &str)> = headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?))).collect();
    let about = webhook(form, &pairs, &body, &text(secret.expose())).map_err(|_| refusal())?;
    let Some(about) = about else { return Ok(StatusCode::NO_CONTENT) };
    let mut looked = false;
    for url in urls(&host.host, &about.repository) {
        looked |= api.promotions().look_at(&url).await?;
    }
    Ok(if looked { StatusCode::ACCEPTED } else { StatusCode::NO_CONTENT })
}

/// The secret itself: the member `secret` of a JSON object, else the whole text.
fn text(secret: &str) -> String {
    let json: Option<Value> = serde_json::from_str(secret).ok().filter(Value::is_object);
    match json {
        Some(json) => json.get("secret").and_then(Value::as_str).unwrap_or_default().to_owned(),
        None => secret.trim().to_owned(),
    }
}

/// The URLs under which pipelines may name a repository of a registered host. They are built from the registered name, because the
/// host may know itself by another name, and must wake only its own repositories. Bitbucket Server has two forms of URLs.
fn urls(host: &str, repository: &Repository) -> Vec<String> {
    let path = repository.url().split_once("://").and_then(|(_, rest)| rest.split_once('/')).map_or("", |(_, path)| path);
    let path = path.trim_end_matches(".git");
    let (owner, name) = (repository.owner(), repository.name());
    let mut paths = vec![path.to_owned()];
    if let Some(base) = path.strip_suffix(&format!("projects/{owner}/repos/{name}")) {
        paths.push(format!("{base}scm/{owner}/{name}"));
        paths.push(format!("{base}scm/{}/{name}", owner.to_lowercase()));
        paths.dedup();
    }
    paths.iter().flat_map(|path| [format!("https://{host}/{path}"), format!("https://{host}/{path}.git")]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bitbuckets_repositories_have_two_forms_of_urls() {
        let repository = Repository::parse(Form::BitbucketServer, "https://inside.test/projects/SHOP/repos/apps").unwrap();
        let urls = urls("git.test", &repository);
        let expected = ["projects/SHOP/repos/apps", "scm/SHOP/apps", "scm/shop/apps"];
        let expected = expected.map(|path| [format!("https://git.test/{path}"), format!("https://git.test/{path}.git")]);
        assert_eq!(urls, expected.concat());
        assert_eq!((text(r#"{"secret": "s"}"#), text(" s\n"), text(r#"{"other": "s"}"#)), ("s".into(), "s".into(), String::new()));
    }
}
