//! Pages of lists.

use crate::fence::input::{given, no_page_key, page_size};
use crate::fence::problem::Answer;
use serde::Deserialize;

/// The most names that are searched for a similar one.
pub const KNOWN: u32 = 100;

/// Which entries of a list are wanted.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Wanted {
    /// Only those of this namespace.
    pub namespace: Option<String>,
    /// How many.
    pub page_size: Option<String>,
    /// Where the page before ended.
    pub next_page_key: Option<String>,
}

/// Paging.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Paging {
    /// How many.
    pub page_size: Option<String>,
    /// Where the page before ended.
    pub next_page_key: Option<String>,
}

/// As [`Wanted`], with what the document says about parameters of these names everywhere.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Unexplained {
    namespace: Option<String>,
    page_size: Option<String>,
    next_page_key: Option<String>,
}

/// What a list is asked for.
#[derive(Debug)]
pub struct Asked<'a> {
    pub namespace: Option<&'a String>,
    pub size: Option<&'a String>,
    pub key: Option<&'a String>,
}

impl Wanted {
    pub fn asked(&self) -> Asked<'_> {
        Asked { namespace: self.namespace.as_ref(), size: self.page_size.as_ref(), key: self.next_page_key.as_ref() }
    }
}

impl Paging {
    pub fn asked(&self) -> Asked<'_> {
        Asked { namespace: None, size: self.page_size.as_ref(), key: self.next_page_key.as_ref() }
    }
}

impl Unexplained {
    pub fn asked(&self) -> Asked<'_> {
        Asked { namespace: self.namespace.as_ref(), size: self.page_size.as_ref(), key: self.next_page_key.as_ref() }
    }
}

/// The size of a page, for the engine.
pub fn limit(size: Option<&String>) -> Answer<u32> {
    page_size(size).map(u32::from)
}

/// Where a page begins, read from a key; `None`: it is the first one. A key that no page of the list ends with is refused.
pub fn place<'a, T>(key: Option<&'a String>, read: impl FnOnce(&'a str) -> Option<T>) -> Answer<Option<T>> {
    let Some(key) = given(key).filter(|key| *key != "0") else { return Ok(None) };
    read(key).map(Some).ok_or_else(|| no_page_key(key))
}

/// The last name of the page before. A text that cannot be part of a key is refused.
pub fn after(key: Option<&String>) -> Answer<Option<&str>> {
    let fits = |key: &str| key.len() <= 300 && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./#:".contains(&byte));
    place(key, |key| fits(key).then_some(key))
}
