//! Reads the audit.

use crate::Api;
use crate::fence::allowed::{Allowed, scope};
use crate::fence::input::{Params, given, page_size, window};
use crate::fence::pages::place;
use crate::fence::problem::Answer;
use axum::Json;
use keelway_domain::access::Need;
use keelway_engine::access::{Entry, Filter};
use keelway_wire::http::access::{AuditEntry, AuditPage};
use serde::Deserialize;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Wanted {
    token: Option<String>,
    action: Option<String>,
    project: Option<String>,
    from_time: Option<String>,
    before_time: Option<String>,
    page_size: Option<String>,
    next_page_key: Option<String>,
}

/// Lists who did what, newest first. Whoever administers some projects reads the entries of these.
#[utoipa::path(
    get,
    path = "/v1/audit",
    tag = "access",
    params(Wanted),
    responses((status = 200, body = AuditPage))
)]
pub(crate) async fn list(
    caller: Allowed<scope::Anywhere<scope::Administer>>,
    api: Api,
    Params(wanted): Params<Wanted>,
) -> Answer<Json<AuditPage>> {
    let own = |text: &Option<String>| given(text.as_ref()).map(str::to_owned);
    let administered = caller.administered().map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>());
    let limited = administered.is_some();
    let projects = match own(&wanted.project) {
        None => administered,
        Some(project) => {
            caller.check(Need::Administer, Some(&project))?;
            Some(vec![project])
        }
    };
    let window = window(wanted.from_time.as_ref(), wanted.before_time.as_ref())?;
    let filter =
        Filter { token: own(&wanted.token), action: own(&wanted.action), projects, from: window.after, before: window.before };
    let size = page_size(wanted.page_size.as_ref())?;
    let after = place(wanted.next_page_key.as_ref(), |key| is_key(key).then_some(key))?;
    let (entries, next) = api.access().audit(&filter, after, size.into()).await?;
    Ok(Json(AuditPage::new(entries.into_iter().map(|entry| shown(entry, limited)).collect(), size, next)))
}

/// Whether a text can be the end of a page: a time, possibly with an id.
fn is_key(key: &str) -> bool {
    let (time, id) = key.split_once('#').unwrap_or((key, ""));
    time.len() == 13 && time.bytes().all(|byte| byte.is_ascii_digit()) && id.len() <= 20
}

/// An entry. Whoever does not administer everything reads no words that may name other projects.
fn shown(entry: Entry, limited: bool) -> AuditEntry {
    let Entry { at, id, action, token, subject, by, address, project, request, what, note, status, alone } = entry;
    let what = if limited && !alone { String::new() } else { what };
    AuditEntry {
        at: at.rfc3339(),
        id: format!("{id:016x}"),
        action,
        token,
        subject,
        by,
        address,
        project,
        request,
        what,
        note,
        status,
    }
}
