//! Writes the audit: an entry for every request that had an effect.

use crate::Api;
use crate::fence::caller::{Caller, Told};
use crate::fence::problem::Refused;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use keelway_domain::ids::hash64;
use keelway_engine::access::Entry;

/// The part of an entry that is known before the request is handled.
pub struct About {
    request: String,
    act: &'static str,
}

/// An extension of responses that were repeated from an earlier request.
#[derive(Debug, Clone, Copy)]
pub struct Replayed;

impl About {
    /// The part for this request.
    pub fn of(request: &Request, act: &'static str) -> Self {
        Self { request: format!("{} {}", request.method(), request.uri().path().chars().take(500).collect::<String>()), act }
    }
}

/// Stores the entry of a successful request before the answer is sent. If that fails, the client is told to repeat the request.
pub(crate) async fn keep(api: &Api, caller: &Caller, about: About, response: Response) -> Response {
    let Told { action, key, by, id, project, others, what, note, nothing } = caller.told().clone();
    let action = if action.is_empty() { about.act } else { action };
    let replayed = response.extensions().get::<Replayed>().is_some();
    if action.is_empty() || nothing || replayed || !response.status().is_success() {
        return response;
    }
    let what = one_line(&what);
    let entry = Entry {
        at: api.access().now(),
        id: id.unwrap_or_else(|| hash64(&[b"audit", uuid::Uuid::now_v7().as_bytes()])),
        action: action.to_owned(),
        token: key.unwrap_or_else(|| caller.token.clone()),
        subject: caller.subject.clone(),
        by: by.unwrap_or_else(|| caller.known.clone()),
        address: caller.address.clone(),
        project,
        request: about.request,
        what,
        note,
        status: response.status().as_u16(),
        alone: true,
    };
    let of = |(project, what): (String, String)| {
        let id = hash64(&[b"audit", &entry.id.to_be_bytes(), project.as_bytes()]);
        Entry { id, project, what: one_line(&what), ..entry.clone() }
    };
    for entry in std::iter::once(entry.clone()).chain(others.into_iter().map(of)) {
        if let Err(error) = api.access().record(&entry).await {
            return Refused::from(error).into_response();
        }
    }
    response
}

/// A sentence as it is kept: what callers have named in it may have line breaks, and characters that no event carries.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
