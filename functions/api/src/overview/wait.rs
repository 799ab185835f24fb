//! The list of what waits: each engine tells its part, and the list puts them in one order.

use super::{deployments, others, pipelines, sequences};
use crate::Api;
use crate::fence::allowed::{Allowed, scope};
use crate::fence::caller::Caller;
use crate::fence::input::{Params, given, page_size};
use crate::fence::pages::place;
use crate::fence::problem::{Answer, Refused};
use axum::Json;
use keelway_domain::access::Need;
use keelway_domain::ids::hash64;
use keelway_domain::names::ProjectName;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::keys::{hash, ms};
use keelway_wire::http::{Looked, WaitItem, WaitPage};
use serde::Deserialize;

/// A trigger or a version that nobody has taken up for so long is told: before, somebody may be about to.
pub const PATIENCE: Span = Span::seconds(15);

/// Who or what an item waits for, in the order of the list.
pub const PERSON: &str = "person";
pub const FAILING: &str = "failing";
pub const WAITING: &str = "waiting";

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Wanted {
    project: Option<String>,
    page_size: Option<String>,
    next_page_key: Option<String>,
}

/// What an engine tells.
#[derive(Default)]
pub struct Part {
    pub items: Vec<WaitItem>,
    /// Whether there is something at all, even if nothing of it waits.
    pub found: bool,
    /// Whether there is more than was looked at.
    pub cut: bool,
}

/// Lists what waits for a person, what fails, and what waits for something else, in all engines.
#[utoipa::path(
    get,
    path = "/v1/wait",
    tag = "sequences",
    params(Wanted),
    responses((status = 200, body = WaitPage), (status = 404))
)]
pub(crate) async fn list(
    caller: Allowed<scope::Anywhere<scope::Read>>,
    api: Api,

    Params(wanted): Params<Wanted>,
) -> Answer<Json<WaitPage>> {
    let size = page_size(wanted.page_size.as_ref())?;
    let after = place(wanted.next_page_key.as_ref(), |key| is_place(key).then_some(key))?;
    let named = given(wanted.project.as_ref());
    let among = match named {
        None => caller.seen(),
        Some(project) => {
            caller.check(Need::Read, Some(project))?;
            let Ok(name) = ProjectName::new(project) else { return Err(unknown(&api, project).await) };
            Some(vec![name])
        }
    };
    let among = among.as_deref();
    let parts = [
        ("sequences", sequences::part(&api, among).await?),
        ("pipelines", pipelines::part(&api, among).await?),
        ("deployments", deployments::part(&api, among).await?),
        ("webhooks", others::webhooks(&api, among).await?),
        ("deadLetters", letters(&api, &caller, named).await?),
    ];
    if let Some(project) = named.filter(|_| parts.iter().all(|(_, part)| !part.found)) {
        // A namespace may have pipelines and no project; one that has nothing at all may be misspelt.
        api.engine().projects().find(project).await?;
    }
    let cut = parts.iter().filter(|(_, part)| part.cut).map(|(name, _)| (*name).to_owned()).collect();
    let mut items: Vec<(String, WaitItem)> =
        parts.into_iter().flat_map(|(_, part)| part.items).map(|item| (place_of(&item), item)).collect();
    items.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut rest = items.into_iter().filter(|(place, _)| after.is_none_or(|after| **place > *after));
    let page: Vec<(String, WaitItem)> = rest.by_ref().take(size.into()).collect();
    let next = page.last().filter(|_| rest.next().is_some()).map(|(place, _)| place.clone());
    let looked = Looked { now: api.engine().now().rfc3339(), cut };
    Ok(Json(WaitPage::new(page.into_iter().map(|(_, item)| item).collect(), size, next).with(looked)))
}

/// The refusal for what cannot be the name of a project.
async fn unknown(api: &Api, project: &str) -> Refused {
    match api.engine().projects().find(project).await {
        Ok(_) => Refused::internal(),
        Err(refusal) => refusal.into(),
    }
}

/// Dead letters belong to the installation.
async fn letters(api: &Api, caller: &Caller, named: Option<&str>) -> Answer<Part> {
    if named.is_some() || !caller.may(Need::Read, None) {
        return Ok(Part::default());
    }
    others::letters(api).await
}

/// Where an item stands in the list: `<group><since><hash>`. It stays there while it waits for the same.
fn place_of(item: &WaitItem) -> String {
    let group = [PERSON, FAILING, WAITING].iter().position(|group| *group == item.group).unwrap_or(WAITING.len());
    let since = Timestamp::parse(&item.since).unwrap_or_default();
    let names = [
        &item.engine,
        &item.reason,
        &item.project,
        &item.name,
        &item.service,
        &item.stage,
        &item.environment,
        &item.context,
        &item.sequence,
        &item.id,
    ];
    let names: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
    format!("{group}{}{}", ms(since), hash(hash64(&names)))
}

fn is_place(key: &str) -> bool {
    key.len() == 27 && key.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Whether an item has waited long enough to be told.
pub fn is_long(since: Timestamp, now: Timestamp) -> bool {
    now - since >= PATIENCE
}

/// A time of the answer.
pub fn at(time: Option<Timestamp>) -> Option<String> {
    time.map(Timestamp::rfc3339)
}
