//! For operators: dead letters and invalid input.

use crate::Api;
use crate::fence::allowed::{Allowed, act, scope};
use crate::fence::input::{Params, Path, given};
use crate::fence::pages::{Paging, limit, place};
use crate::fence::problem::{Answer, Refused};
use axum::Json;
use axum::http::StatusCode;
use keelway_domain::time::Timestamp;
use keelway_engine::protocol::letters::{self, Redrive, Stored};
use keelway_engine::protocol::{Inbox, invalid};
use keelway_wire::http::operations::{Day, DeadLetter, DeadLetterPage, InvalidInput, InvalidPage};
use serde::Deserialize;

fn shown(letter: Stored, with_body: bool) -> DeadLetter {
    DeadLetter {
        id: letter.id,
        engine: letter.engine,
        queue: letter.queue,
        sent_at: letter.sent.rfc3339(),
        receives: letter.receives,
        reason: letter.reason,
        next_redrive: letter.next.map(Timestamp::rfc3339),
        truncated: letter.cut,
        body: with_body.then_some(letter.body),
    }
}

fn unknown(id: &str) -> Refused {
    let id: String = id.chars().take(100).collect();
    let detail =
        format!("there is no dead letter {id:?}: it was handled or dropped, or it never existed; GET /v1/dead-letters lists them");
    Refused::new(StatusCode::NOT_FOUND, "unknown dead letter", detail)
}

/// Lists messages that failed too often, newest first.
#[utoipa::path(
    get,
    path = "/v1/dead-letters",
    tag = "operations",
    params(Paging),
    responses((status = 200, body = DeadLetterPage))
)]
pub(crate) async fn list(_: Allowed<scope::Read>, api: Api, Params(paging): Params<Paging>) -> Answer<Json<DeadLetterPage>> {
    let limit = limit(paging.page_size.as_ref())?;
    let after = place(paging.next_page_key.as_ref(), |key| letters::is_id(key).then_some(key))?;
    let (found, next) = letters::list(api.engine().ports(), after, limit).await?;
    Ok(Json(DeadLetterPage::new(found.into_iter().map(|letter| shown(letter, false)).collect(), limit, next)))
}

/// A dead letter, with its message.
#[utoipa::path(
    get,
    path = "/v1/dead-letters/{id}",
    tag = "operations",
    responses((status = 200, body = DeadLetter))
)]
pub(crate) async fn one(_: Allowed<scope::Read>, api: Api, Path(id): Path<String>) -> Answer<Json<DeadLetter>> {
    let found = letters::one(api.engine().ports(), &id).await?;
    found.map(|letter| Json(shown(letter, true))).ok_or_else(|| unknown(&id))
}

/// Sends the message again at once. The letter stays until the message is handled.
#[utoipa::path(
    post,
    path = "/v1/dead-letters/{id}/redrive",
    tag = "operations",
    responses((status = 202), (status = 409))
)]
pub(crate) async fn redrive(
    caller: Allowed<scope::Administer, act::Control>,
    api: Api,
    Path(id): Path<String>,
) -> Answer<StatusCode> {
    caller.says(format!("sent dead letter {id} again"));
    match letters::redrive(api.engine().ports(), &id).await? {
        Redrive::Sent => Ok(StatusCode::ACCEPTED),
        Redrive::Unknown => Err(unknown(&id)),
        Redrive::Cut => {
            let detail = "only the first 350 KiB of this message were kept, so it cannot be sent again: send the event anew, and drop the letter";
            Err(Refused::new(StatusCode::CONFLICT, "truncated", detail))
        }
    }
}

/// Drops a dead letter: its message is never handled.
#[utoipa::path(
    delete,
    path = "/v1/dead-letters/{id}",
    tag = "operations",
    responses((status = 204))
)]
pub(crate) async fn drop_one(
    caller: Allowed<scope::Administer, act::Delete>,
    api: Api,
    Path(id): Path<String>,
) -> Answer<StatusCode> {
    caller.says(format!("dropped dead letter {id}"));
    if letters::drop_one(api.engine().ports(), &id).await? { Ok(StatusCode::NO_CONTENT) } else { Err(unknown(&id)) }
}

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Wanted {
    day: Option<String>,
    page_size: Option<String>,
    next_page_key: Option<String>,
}

/// Lists the input of a day that could not be used, newest first.
#[utoipa::path(
    get,
    path = "/v1/invalid",
    tag = "operations",
    params(Wanted),
    responses((status = 200, body = InvalidPage))
)]
pub(crate) async fn of_day(_: Allowed<scope::Read>, api: Api, Params(wanted): Params<Wanted>) -> Answer<Json<InvalidPage>> {
    let limit = limit(wanted.page_size.as_ref())?;
    let day = match given(wanted.day.as_ref()) {
        None => api.engine().now(),
        Some(text) => Timestamp::parse(&format!("{text}T00:00:00Z"))
            .ok_or_else(|| Refused::field("day", format!("{text:?} is not a day: write it like 2026-11-22, it is a day in UTC")))?,
    };
    let fits = |key: &str| key.len() <= 40 && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'#');
    let after = place(wanted.next_page_key.as_ref(), |key| fits(key).then_some(key))?;
    let (found, next) = invalid::of_day(api.engine().ports(), day, after, limit).await?;
    let shown =
        |one: invalid::Unusable| InvalidInput { at: one.at.rfc3339(), reason: one.reason, text: one.text, truncated: one.cut };
    let day = day.rfc3339().chars().take("2026-11-22".len()).collect();
    Ok(Json(InvalidPage::new(found.into_iter().map(shown).collect(), limit, next).with(Day { day })))
}
