//! Deployment configs and their versions. `{id}` is `<name>` in namespace `default`, or `<namespace>:<name>`; a version is `{id}-{n}`.

pub mod artifacts;
mod carry;
pub mod commands;
pub mod configs;
pub mod deployers;
pub mod generate;
pub mod history;
mod prepare;
pub mod rollbacks;
mod shape;
mod together;
pub mod write;

pub use artifacts::store as store_source;
pub use configs::in_force;
pub use write::{by, check, store};

use crate::Api;
use crate::pipelines::{address as address_of, is_name};
use crate::problem::{Answer, Refused};
use axum::http::StatusCode;
use keelway_domain::deployments::Refused as Conflict;
use keelway_engine::deployments::Address;
use keelway_engine::deployments::views::View;
use keelway_engine::ports::Ports;
use keelway_engine::sequences::definitions::Refusal;
use keelway_wire::http::deployments::FieldError;

/// The namespace of an id that names none.
const DEFAULT_NAMESPACE: &str = "default";
/// So many names are looked through for one that was probably meant.
const KNOWN: u32 = 100;
/// The field that the refusal of what a paused config does not do is about.
const PAUSED: &str = "spec.paused";
/// The longest message.
const MESSAGE: usize = 2000;
/// The longest name of a person.
const NAME: usize = 100;

/// The address that an id names, if it can be one.
pub fn address(id: &str) -> Option<Address> {
    let (namespace, name) = id.split_once(':').unwrap_or((DEFAULT_NAMESPACE, id));
    address_of(namespace, name)
}

/// `<name>` or `<namespace>:<name>`
fn id(of: &Address) -> String {
    if of.namespace == DEFAULT_NAMESPACE { of.name.clone() } else { format!("{}:{}", of.namespace, of.name) }
}

/// The config and the number that the name of a version has.
pub fn version(name: &str) -> Option<(Address, u64)> {
    let (config, n) = name.rsplit_once('-')?;
    let digits = n.bytes().all(|byte| byte.is_ascii_digit()) && !n.starts_with('0');
    Some((address(config)?, n.parse().ok().filter(|_| digits)?))
}

/// The config with an id.
async fn find<P: Ports>(api: &Api<P>, id: &str) -> Answer<(Address, View)> {
    if let Some(of) = address(id) {
        tracing::Span::current().record("project", &of.namespace);
        if let Some(view) = api.deployments().view(&of).await? {
            return Ok((of, view));
        }
    }
    Err(unknown(api, id).await?)
}

/// The refusal of a config that does not exist, with those that do.
async fn unknown<P: Ports>(api: &Api<P>, id: &str) -> Answer<Refused> {
    let (namespace, name) = id.split_once(':').unwrap_or((DEFAULT_NAMESPACE, id));
    let known = match is_name(namespace) {
        true => api.deployments().configs().page(namespace, None, KNOWN).await?.0,
        false => vec![],
    };
    let refusal = Refusal::unknown("deployment config", name, known.iter().map(|(of, _)| of.name.as_str()));
    let Refusal::Unknown { kind, name, hint } = refusal else { return Ok(refusal.into()) };
    let namespace: String = namespace.chars().take(100).collect();
    let detail = format!("{kind} {name:?} does not exist in namespace {namespace:?}: {hint}");
    Ok(Refused::new(StatusCode::NOT_FOUND, "unknown deployment config", detail))
}

/// A refusal of the engine's: 404 or 409. There may be nothing to do, which is no refusal where that can be told.
fn refused(why: Conflict) -> Refused {
    match why {
        Conflict::Unknown(detail) => Refused::new(StatusCode::NOT_FOUND, "unknown deployment", detail),
        Conflict::Conflict(detail) | Conflict::Nothing(detail) => Refused::new(StatusCode::CONFLICT, "conflict", detail),
    }
}

fn error(field: impl Into<String>, code: &str, message: impl Into<String>) -> FieldError {
    FieldError { field: field.into(), code: code.into(), message: message.into() }
}
