//! Lists of the API, page by page.

use crate::api::Api;
use crate::api_error::ApiError;
use keelway_domain::time::Timestamp;
use keelway_wire::http::{Listed, Page, PageKey};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::marker::PhantomData;

/// The maximum number of pages that are read: a longer list must be requested in parts.
const PAGES: usize = 200;
/// The maximum number of entries of a page.
const MOST: usize = 100;

/// The unread pages of a list.
pub struct Pages<'a, T> {
    api: &'a Api,
    path: &'a [&'a str],
    query: &'a [(&'a str, &'a str)],
    size: String,
    /// The position of the next page; `None`: the last one was read.
    key: Option<String>,
    left: usize,
    entries: PhantomData<T>,
}

impl<'a, T: Listed + DeserializeOwned> Pages<'a, T> {
    /// Returns the pages of a list with at most `limit` entries.
    pub fn of(api: &'a Api, path: &'a [&'a str], query: &'a [(&'a str, &'a str)], limit: usize) -> Self {
        let size = limit.clamp(1, MOST).to_string();
        Self { api, path, query, size, key: Some(String::new()), left: PAGES, entries: PhantomData }
    }

    /// Limits the number of pages.
    pub fn at_most(self, pages: usize) -> Self {
        Self { left: pages, ..self }
    }

    /// Reads the next page; `None`: there is no further one.
    ///
    /// # Errors
    /// The answer of the API. The next call reads the same page again.
    pub async fn next(&mut self) -> Result<Option<Page<T>>, ApiError> {
        let Some(key) = self.key.as_deref().filter(|_| self.left > 0) else { return Ok(None) };
        let paging = [("pageSize", self.size.as_str()), ("nextPageKey", key)];
        let query: Vec<(&str, &str)> = self.query.iter().copied().chain(paging).collect();
        let page: Page<T> = self.api.get(self.path, &query).await?;
        self.left -= 1;
        self.key = following(&page);
        Ok(Some(page))
    }
}

/// The position of the next page.
pub fn following<T: Listed>(page: &Page<T>) -> Option<String> {
    (!page.next_page_key.is_none()).then(|| page.next_page_key.to_string())
}

/// The entries read from a list.
pub struct List<T: Listed> {
    /// The entries.
    pub items: Vec<T>,
    /// Whether there are more.
    pub more: bool,
    /// The other fields of the last page.
    pub extra: T::Extra,
}

/// Reads the first `limit` entries of a list.
///
/// # Errors
/// The error that the API answers.
pub async fn read<T: Listed + DeserializeOwned>(
    api: &Api,
    path: &[&str],
    query: &[(&str, &str)],
    limit: usize,
) -> Result<List<T>, ApiError> {
    let mut pages = Pages::of(api, path, query, limit);
    let mut list = List { items: vec![], more: false, extra: T::Extra::default() };
    while list.items.len() < limit
        && let Some(page) = pages.next().await?
    {
        list.items.extend(page.items);
        list.extra = page.extra;
    }
    list.more = list.items.len() > limit || pages.key.is_some();
    list.items.truncate(limit);
    Ok(list)
}

/// Reads all entries of a list.
///
/// # Errors
/// The error that the API answers.
pub async fn all<T: Listed + DeserializeOwned>(api: &Api, path: &[&str], query: &[(&str, &str)]) -> Result<Vec<T>, ApiError> {
    Ok(read(api, path, query, usize::MAX).await?.items)
}

/// All entries of a list as JSON, and the time at which the last page was read. For lists of a kind that is chosen when the command
/// runs.
///
/// # Errors
/// The error that the API answers.
pub async fn of_kind(api: &Api, path: &[&str], query: &[(&str, &str)]) -> Result<(Vec<Value>, Option<Timestamp>), ApiError> {
    let (mut all, mut key, mut now) = (vec![], String::new(), None);
    for _ in 0..PAGES {
        let size = MOST.to_string();
        let paging = [("pageSize", size.as_str()), ("nextPageKey", key.as_str())];
        let query: Vec<(&str, &str)> = query.iter().copied().chain(paging).collect();
        let mut page: Value = api.get(path, &query).await?;
        if let Some(Value::Array(entries)) = page.get_mut("items").map(Value::take) {
            all.extend(entries);
        }
        now = page["now"].as_str().and_then(Timestamp::parse);
        key = page["nextPageKey"].as_str().unwrap_or_default().to_owned();
        if PageKey::is_none(&key) {
            break;
        }
    }
    Ok((all, now))
}
