//! Lists of the API, page by page.

use crate::api::Api;
use crate::api_error::ApiError;
use keelway_domain::time::Timestamp;
use keelway_wire::http::{Listed, Page, PageKey};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::marker::PhantomData;

/// More pages than this are not followed: a list that long is asked for in parts.
const PAGES: usize = 200;
/// The most entries that a page has.
const MOST: usize = 100;

/// The pages of a list that are still to be read.
pub struct Pages<'a, T> {
    api: &'a Api,
    path: &'a [&'a str],
    query: &'a [(&'a str, &'a str)],
    size: String,
    /// Where the next one begins; `None`: the last one was read.
    key: Option<String>,
    left: usize,
    entries: PhantomData<T>,
}

impl<'a, T: Listed + DeserializeOwned> Pages<'a, T> {
    /// Those of a list, of which `limit` entries are wanted.
    pub fn of(api: &'a Api, path: &'a [&'a str], query: &'a [(&'a str, &'a str)], limit: usize) -> Self {
        let size = limit.clamp(1, MOST).to_string();
        Self { api, path, query, size, key: Some(String::new()), left: PAGES, entries: PhantomData }
    }

    /// At most so many pages.
    pub fn at_most(self, pages: usize) -> Self {
        Self { left: pages, ..self }
    }

    /// The next page; `None`: there is no further one.
    ///
    /// # Errors
    /// As the API answers. The same page is read again then.
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

/// Where the page after this one begins.
pub fn following<T: Listed>(page: &Page<T>) -> Option<String> {
    (!page.next_page_key.is_none()).then(|| page.next_page_key.to_string())
}

/// What was read of a list.
pub struct List<T: Listed> {
    /// The entries.
    pub items: Vec<T>,
    /// Whether there are more.
    pub more: bool,
    /// What the last page had beside them.
    pub extra: T::Extra,
}

/// The first `limit` entries of a list.
///
/// # Errors
/// As the API answers.
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

/// All entries of a list.
///
/// # Errors
/// As the API answers.
pub async fn all<T: Listed + DeserializeOwned>(api: &Api, path: &[&str], query: &[(&str, &str)]) -> Result<Vec<T>, ApiError> {
    Ok(read(api, path, query, usize::MAX).await?.items)
}

/// All entries of a list as JSON, under the member that has them, and the time at which the last page was read. For lists of a kind
/// that is chosen when the command runs.
///
/// # Errors
/// As the API answers.
pub async fn of_member(
    api: &Api,
    path: &[&str],
    query: &[(&str, &str)],
    member: &str,
) -> Result<(Vec<Value>, Option<Timestamp>), ApiError> {
    let (mut all, mut key, mut now) = (vec![], String::new(), None);
    for _ in 0..PAGES {
        let size = MOST.to_string();
        let paging = [("pageSize", size.as_str()), ("nextPageKey", key.as_str())];
        let query: Vec<(&str, &str)> = query.iter().copied().chain(paging).collect();
        let mut page: Value = api.get(path, &query).await?;
        if let Some(Value::Array(entries)) = page.get_mut(member).map(Value::take) {
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
