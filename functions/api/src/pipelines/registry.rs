//! Clusters and git hosts: lists, single ones, their deletion.

use crate::Api;
use crate::fence::allowed::{Allowed, act, scope};
use crate::fence::input::{Params, Path, given};
use crate::fence::manifests::text;
use crate::fence::names::is_name;
use crate::fence::pages::{KNOWN, Paging, Wanted, after, limit};
use crate::fence::problem::{Answer, Refused};
use axum::Json;
use axum::http::StatusCode;
use axum::response::Response;
use keelway_domain::access::Need;
use keelway_domain::address::Address;
use keelway_domain::border::Vouched;
use keelway_domain::names::ProjectName;
use keelway_engine::ports::Ports;
use keelway_engine::protocol::declare::{Declarations, Declared, Kind};
use keelway_engine::sequences::definitions::Refusal;
use keelway_wire::http::promotions::{Registered, RegisteredPage};
use serde::Serialize;
use serde_json::Value;

fn shown<T: Vouched + Serialize>(kind: &str, of: &Address, entry: &Declared<T>) -> Registered {
    let namespace = Some(of.namespace.clone()).filter(|namespace| !namespace.is_empty());
    let spec = match serde_json::to_value(&entry.spec) {
        // No manifest says whether it is vouched for.
        Ok(Value::Object(spec)) => spec.into_iter().filter(|(field, _)| field != "vouched").collect(),
        _ => Default::default(),
    };
    let (applied_at, version) = (entry.at.rfc3339(), entry.version);
    // Of git hosts it goes without saying.
    let vouched = namespace.is_some() && entry.spec.vouched();
    Registered { kind: kind.to_owned(), namespace, name: of.name.clone(), spec, vouched, applied_at, version }
}

/// A page of those in some namespaces, or of all.
async fn page<P: Ports, K: Kind<Spec: Vouched>>(
    declared: Declarations<'_, P, K>,
    among: Option<&[ProjectName]>,
    (size, key): (Option<&String>, Option<&String>),
) -> Answer<Json<RegisteredPage>> {
    let limit = limit(size)?;
    let (found, next) = declared.everywhere(among, after(key)?, limit).await?;
    Ok(Json(RegisteredPage::new(found.iter().map(|(of, entry)| shown(K::KIND, of, entry)).collect(), limit, next)))
}

async fn found<P: Ports, K: Kind>(
    declared: Declarations<'_, P, K>,
    of: Option<Address>,
    (kind, asked): (&'static str, &str),
) -> Answer<Declared<K::Spec>> {
    if let Some(of) = of
        && let Some(entry) = declared.get(&of).await?
    {
        return Ok(entry);
    }
    Err(unknown(declared, kind, asked).await?)
}

async fn unknown<P: Ports, K: Kind>(declared: Declarations<'_, P, K>, kind: &'static str, asked: &str) -> Answer<Refused> {
    // Who asks may see what is in this namespace.
    let known = match asked.split_once('/').map(|(namespace, _)| ProjectName::new(namespace)) {
        None => declared.everywhere(None, None, KNOWN).await?.0,
        Some(Ok(namespace)) => declared.page(namespace.as_str(), None, KNOWN).await?.0,
        Some(Err(_)) => vec![],
    };
    let names: Vec<String> = known.iter().map(|(of, _)| of.to_string()).collect();
    Ok(Refusal::unknown(kind, asked, names.iter().map(String::as_str)).into())
}

/// The address of a cluster, if the path names one.
fn cluster(namespace: &str, name: &str) -> Option<Address> {
    (ProjectName::new(namespace).is_ok() && is_name(name)).then(|| Address::new(namespace, name))
}

/// The address of a git host.
fn git_host(name: &str) -> Option<Address> {
    is_name(name).then(|| Address::new("", name))
}

/// Lists the registered clusters.
#[utoipa::path(
    get,
    path = "/v1/clusters",
    tag = "pipelines",
    params(Wanted),
    responses((status = 200, body = RegisteredPage))
)]
pub async fn clusters<P: Ports + 'static>(
    caller: Allowed<scope::Anywhere<scope::Read>>,
    api: Api<P>,

    Params(wanted): Params<Wanted>,
) -> Answer<Json<RegisteredPage>> {
    let among = match given(wanted.namespace.as_ref()) {
        None => caller.seen(),
        Some(namespace) => {
            let namespace = ProjectName::new(namespace).map_err(|error| Refused::field("namespace", error))?;
            caller.check(Need::Read, Some(namespace.as_str()))?;
            Some(vec![namespace])
        }
    };
    page(api.promotions().clusters(), among.as_deref(), (wanted.page_size.as_ref(), wanted.next_page_key.as_ref())).await
}

/// A registered cluster.
#[utoipa::path(
    get,
    path = "/v1/clusters/{namespace}/{name}",
    tag = "pipelines",
    responses((status = 200, body = Registered))
)]
pub async fn cluster_one<P: Ports + 'static>(
    _: Allowed<scope::Read>,
    api: Api<P>,
    Path((namespace, name)): Path<(String, String)>,
) -> Answer<Json<Registered>> {
    let asked = format!("{namespace}/{name}");
    let entry = found(api.promotions().clusters(), cluster(&namespace, &name), ("cluster", &asked)).await?;
    Ok(Json(shown("Cluster", &Address::new(namespace, name), &entry)))
}

/// The manifest as it was applied.
#[utoipa::path(
    get,
    path = "/v1/clusters/{namespace}/{name}/manifest",
    tag = "pipelines",
    responses((status = 200, body = String, content_type = "text/yaml", headers(("ETag" = String))))
)]
pub async fn cluster_manifest<P: Ports + 'static>(
    _: Allowed<scope::Read>,
    api: Api<P>,
    Path((namespace, name)): Path<(String, String)>,
) -> Answer<Response> {
    let asked = format!("{namespace}/{name}");
    let entry = found(api.promotions().clusters(), cluster(&namespace, &name), ("cluster", &asked)).await?;
    Ok(text(entry.source))
}

/// Has everything that pipelines name in the cluster be read now.
///
/// Reading it takes its time, so nothing is said yet about how that went: the pipelines show it.
#[utoipa::path(
    post,
    path = "/v1/clusters/{namespace}/{name}/observe",
    tag = "pipelines",
    responses((status = 202))
)]
pub async fn cluster_observe<P: Ports + 'static>(
    _: Allowed<scope::Trigger, act::Control>,
    api: Api<P>,
    Path((namespace, name)): Path<(String, String)>,
) -> Answer<StatusCode> {
    let asked = format!("{namespace}/{name}");
    if let Some(of) = cluster(&namespace, &name)
        && api.promotions().observe_cluster(&of).await?
    {
        return Ok(StatusCode::ACCEPTED);
    }
    Err(unknown(api.promotions().clusters(), "cluster", &asked).await?)
}

/// Deregisters a cluster.
#[utoipa::path(
    delete,
    path = "/v1/clusters/{namespace}/{name}",
    tag = "pipelines",
    responses((status = 204))
)]
pub async fn cluster_delete<P: Ports + 'static>(
    _: Allowed<scope::Administer, act::Delete>,
    api: Api<P>,
    Path((namespace, name)): Path<(String, String)>,
) -> Answer<StatusCode> {
    let asked = format!("{namespace}/{name}");
    if let Some(of) = cluster(&namespace, &name)
        && api.promotions().deregister_cluster(&of).await?
    {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(unknown(api.promotions().clusters(), "cluster", &asked).await?)
}

/// Lists the registered git hosts.
#[utoipa::path(
    get,
    path = "/v1/githosts",
    tag = "pipelines",
    params(Paging),
    responses((status = 200, body = RegisteredPage))
)]
pub async fn git_hosts<P: Ports + 'static>(
    _: Allowed<scope::Read>,
    api: Api<P>,
    Params(paging): Params<Paging>,
) -> Answer<Json<RegisteredPage>> {
    page(api.promotions().git_hosts(), None, (paging.page_size.as_ref(), paging.next_page_key.as_ref())).await
}

/// A registered git host.
#[utoipa::path(
    get,
    path = "/v1/githosts/{name}",
    tag = "pipelines",
    responses((status = 200, body = Registered))
)]
pub async fn git_host_one<P: Ports + 'static>(
    _: Allowed<scope::Read>,
    api: Api<P>,
    Path(name): Path<String>,
) -> Answer<Json<Registered>> {
    let entry = found(api.promotions().git_hosts(), git_host(&name), ("git host", &name)).await?;
    Ok(Json(shown("GitHost", &Address::new("", name), &entry)))
}

/// The manifest as it was applied.
#[utoipa::path(
    get,
    path = "/v1/githosts/{name}/manifest",
    tag = "pipelines",
    responses((status = 200, body = String, content_type = "text/yaml", headers(("ETag" = String))))
)]
pub async fn git_host_manifest<P: Ports + 'static>(
    _: Allowed<scope::Read>,
    api: Api<P>,
    Path(name): Path<String>,
) -> Answer<Response> {
    let entry = found(api.promotions().git_hosts(), git_host(&name), ("git host", &name)).await?;
    Ok(text(entry.source))
}

/// Deregisters a git host.
#[utoipa::path(
    delete,
    path = "/v1/githosts/{name}",
    tag = "pipelines",
    responses((status = 204))
)]
pub async fn git_host_delete<P: Ports + 'static>(
    _: Allowed<scope::Administer, act::Delete>,
    api: Api<P>,
    Path(name): Path<String>,
) -> Answer<StatusCode> {
    if let Some(of) = git_host(&name)
        && api.promotions().git_hosts().delete(&of).await?
    {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(unknown(api.promotions().git_hosts(), "git host", &name).await?)
}
