//! Clusters and git hosts: lists, single ones, their deletion.

use crate::Api;
use crate::caller::Caller;
use crate::input::{Params, Path, given};
use crate::pipelines::{KNOWN, Nothing, Paging, Wanted, after, is_name, limit, text};
use crate::problem::{Answer, Refused};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use keelway_domain::access::Need;
use keelway_domain::names::ProjectName;
use keelway_domain::promotions::registry::{Cluster, GitHost};
use keelway_engine::ports::Ports;
use keelway_engine::promotions::registry::{Kind, Registered as Entry, cluster};
use keelway_engine::sequences::definitions::Refusal;
use keelway_wire::http::promotions::{Registered, RegisteredPage};
use serde_json::Value;

fn shown<T: Kind>(kind: &str, name: &str, entry: &Entry<T>) -> Registered {
    let (namespace, name) = name.split_once('/').map_or((None, name), |(namespace, name)| (Some(namespace.to_owned()), name));
    let spec = match serde_json::to_value(&entry.value) {
        // No manifest says whether it is vouched for.
        Ok(Value::Object(spec)) => spec.into_iter().filter(|(field, _)| field != "vouched").collect(),
        _ => Default::default(),
    };
    let (applied_at, version) = (entry.at.rfc3339(), entry.version);
    // Of git hosts it goes without saying.
    let vouched = namespace.is_some() && entry.value.vouched();
    Registered { kind: kind.to_owned(), namespace, name: name.to_owned(), spec, vouched, applied_at, version }
}

async fn page<P: Ports, T: Kind>(
    api: &Api<P>,
    caller: &Caller,
    (kind, prefix): (&str, &str),
    (size, key): (Option<&String>, Option<&String>),
) -> Answer<Json<RegisteredPage>> {
    let limit = limit(size)?;
    let after = after(key)?;
    // Clusters belong to a namespace; who may list git hosts was checked before.
    let (found, next) = match caller.seen().filter(|_| prefix.is_empty()) {
        None => api.promotions().all_registered::<T>(prefix, after, limit).await?,
        Some(namespaces) => of_namespaces::<P, T>(api, &namespaces, after, limit).await?,
    };
    let items: Vec<Registered> = found.iter().map(|(name, entry)| shown(kind, name, entry)).collect();
    let next_page_key = next.unwrap_or_else(|| "0".into());
    Ok(Json(RegisteredPage { total_count: items.len() as u64, items, next_page_key, page_size: u64::from(limit) }))
}

/// What is registered in some namespaces, and where the next page begins.
pub async fn of_namespaces<P: Ports, T: Kind>(
    api: &Api<P>,
    namespaces: &[ProjectName],
    after: Option<&str>,
    limit: u32,
) -> Answer<(Vec<(String, Entry<T>)>, Option<String>)> {
    let mut all = vec![];
    for namespace in namespaces {
        let prefix = format!("{namespace}/");
        let inside = after.filter(|after| after.starts_with(&prefix));
        if after.is_some_and(|after| *after > *prefix) && inside.is_none() {
            continue;
        }
        // One more than is shown says whether there is another page.
        let left = limit + 1 - u32::try_from(all.len()).unwrap_or(limit);
        all.extend(api.promotions().all_registered::<T>(&prefix, inside, left).await?.0);
        if all.len() > limit as usize {
            all.truncate(limit as usize);
            let last = all.last().map(|(name, _): &(String, Entry<T>)| name.clone());
            return Ok((all, last));
        }
    }
    Ok((all, None))
}

async fn found<P: Ports, T: Kind>(api: &Api<P>, kind: &'static str, name: Option<&str>, asked: &str) -> Answer<Entry<T>> {
    if let Some(name) = name
        && let Some(entry) = api.promotions().registered::<T>(name).await?
    {
        return Ok(entry);
    }
    Err(unknown::<P, T>(api, kind, asked).await?)
}

async fn unknown<P: Ports, T: Kind>(api: &Api<P>, kind: &'static str, asked: &str) -> Answer<Refused> {
    // Who asks may see what is in this namespace.
    let prefix = match asked.split_once('/') {
        None => Some(String::new()),
        Some((namespace, _)) => ProjectName::new(namespace).ok().map(|namespace| format!("{namespace}/")),
    };
    let known = match prefix {
        Some(prefix) => api.promotions().all_registered::<T>(&prefix, None, KNOWN).await?.0,
        None => vec![],
    };
    Ok(Refusal::unknown(kind, asked, known.iter().map(|(name, _)| name.as_str())).into())
}

/// The name of a cluster's entry, if the path names one.
fn cluster_name(namespace: &str, name: &str) -> Option<String> {
    (ProjectName::new(namespace).is_ok() && is_name(name)).then(|| cluster(namespace, name))
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
    State(api): State<Api<P>>,
    caller: Caller,
    Params(wanted): Params<Wanted>,
) -> Answer<Json<RegisteredPage>> {
    let prefix = match given(wanted.namespace.as_ref()) {
        None => String::new(),
        Some(namespace) => {
            let namespace = ProjectName::new(namespace).map_err(|error| Refused::field("namespace", error))?;
            caller.check(Need::Read, Some(namespace.as_str()))?;
            format!("{namespace}/")
        }
    };
    page::<P, Cluster>(&api, &caller, ("Cluster", &prefix), (wanted.page_size.as_ref(), wanted.next_page_key.as_ref())).await
}

/// A registered cluster.
#[utoipa::path(
    get,
    path = "/v1/clusters/{namespace}/{name}",
    tag = "pipelines",
    responses((status = 200, body = Registered))
)]
pub async fn cluster_one<P: Ports + 'static>(
    State(api): State<Api<P>>,
    Path((namespace, name)): Path<(String, String)>,
    Params(Nothing {}): Params<Nothing>,
) -> Answer<Json<Registered>> {
    let asked = format!("{namespace}/{name}");
    let entry = found::<P, Cluster>(&api, "cluster", cluster_name(&namespace, &name).as_deref(), &asked).await?;
    Ok(Json(shown("Cluster", &asked, &entry)))
}

/// The manifest as it was applied.
#[utoipa::path(
    get,
    path = "/v1/clusters/{namespace}/{name}/manifest",
    tag = "pipelines",
    responses((status = 200, body = String, content_type = "text/yaml", headers(("ETag" = String))))
)]
pub async fn cluster_manifest<P: Ports + 'static>(
    State(api): State<Api<P>>,
    Path((namespace, name)): Path<(String, String)>,
    Params(Nothing {}): Params<Nothing>,
) -> Answer<Response> {
    let asked = format!("{namespace}/{name}");
    let entry = found::<P, Cluster>(&api, "cluster", cluster_name(&namespace, &name).as_deref(), &asked).await?;
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
    State(api): State<Api<P>>,
    Path((namespace, name)): Path<(String, String)>,
    Params(Nothing {}): Params<Nothing>,
) -> Answer<StatusCode> {
    let asked = format!("{namespace}/{name}");
    if let Some(name) = cluster_name(&namespace, &name)
        && api.promotions().observe_cluster(&name).await?
    {
        return Ok(StatusCode::ACCEPTED);
    }
    Err(unknown::<P, Cluster>(&api, "cluster", &asked).await?)
}

/// Deregisters a cluster.
#[utoipa::path(
    delete,
    path = "/v1/clusters/{namespace}/{name}",
    tag = "pipelines",
    responses((status = 204))
)]
pub async fn cluster_delete<P: Ports + 'static>(
    State(api): State<Api<P>>,
    Path((namespace, name)): Path<(String, String)>,
    Params(Nothing {}): Params<Nothing>,
) -> Answer<StatusCode> {
    let asked = format!("{namespace}/{name}");
    if let Some(name) = cluster_name(&namespace, &name)
        && api.promotions().deregister_cluster(&name).await?
    {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(unknown::<P, Cluster>(&api, "cluster", &asked).await?)
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
    State(api): State<Api<P>>,
    caller: Caller,
    Params(paging): Params<Paging>,
) -> Answer<Json<RegisteredPage>> {
    page::<P, GitHost>(&api, &caller, ("GitHost", ""), (paging.page_size.as_ref(), paging.next_page_key.as_ref())).await
}

/// A registered git host.
#[utoipa::path(
    get,
    path = "/v1/githosts/{name}",
    tag = "pipelines",
    responses((status = 200, body = Registered))
)]
pub async fn git_host_one<P: Ports + 'static>(
    State(api): State<Api<P>>,
    Path(name): Path<String>,
    Params(Nothing {}): Params<Nothing>,
) -> Answer<Json<Registered>> {
    let entry = found::<P, GitHost>(&api, "git host", Some(&*name).filter(|name| is_name(name)), &name).await?;
    Ok(Json(shown("GitHost", &name, &entry)))
}

/// The manifest as it was applied.
#[utoipa::path(
    get,
    path = "/v1/githosts/{name}/manifest",
    tag = "pipelines",
    responses((status = 200, body = String, content_type = "text/yaml", headers(("ETag" = String))))
)]
pub async fn git_host_manifest<P: Ports + 'static>(
    State(api): State<Api<P>>,
    Path(name): Path<String>,
    Params(Nothing {}): Params<Nothing>,
) -> Answer<Response> {
    let entry = found::<P, GitHost>(&api, "git host", Some(&*name).filter(|name| is_name(name)), &name).await?;
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
    State(api): State<Api<P>>,
    Path(name): Path<String>,
    Params(Nothing {}): Params<Nothing>,
) -> Answer<StatusCode> {
    if is_name(&name) && api.promotions().deregister::<GitHost>(&name).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(unknown::<P, GitHost>(&api, "git host", &name).await?)
}
