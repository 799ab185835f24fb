//! Lists of the API, page by page.

use crate::api::Api;
use crate::error::CliError;
use keelway_domain::time::Timestamp;
use keelway_wire::http::EventPage;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// More pages than this are not followed: a list that long is asked for in parts.
pub const PAGES: usize = 200;

/// The entries of a list, page by page, up to `limit`. `read`: those of a page, and where the next one begins.
///
/// # Errors
/// As the API answers.
pub async fn all<P: DeserializeOwned, T>(
    api: &Api,
    (path, query): (&[&str], &[(&str, &str)]),
    limit: usize,
    read: impl Fn(P) -> (Vec<T>, String),
) -> Result<Vec<T>, CliError> {
    let (mut all, mut key) = (vec![], String::new());
    for _ in 0..PAGES {
        let page = [("pageSize", "100"), ("nextPageKey", key.as_str())];
        let query: Vec<(&str, &str)> = query.iter().copied().chain(page).collect();
        let (entries, next) = read(api.get(path, &query).await?);
        all.extend(entries);
        if is_last(&next) || all.len() >= limit {
            break;
        }
        key = next;
    }
    all.truncate(limit);
    Ok(all)
}

/// Every event of a list, page by page, up to about `limit`, and the server's clock.
///
/// # Errors
/// As the API answers.
pub async fn all_events(
    api: &Api,
    path: &[&str],
    query: &[(&str, &str)],
    limit: usize,
) -> Result<(Vec<Value>, Option<Timestamp>), CliError> {
    let (mut events, mut key, mut now) = (vec![], String::new(), None);
    for _ in 0..PAGES {
        let query: Vec<(&str, &str)> = query.iter().copied().chain([("nextPageKey", key.as_str())]).collect();
        let page: EventPage = api.get(path, &query).await?;
        now = Timestamp::parse(&page.now);
        events.extend(page.events);
        if is_last(&page.next_page_key) || events.len() >= limit {
            break;
        }
        key = page.next_page_key;
    }
    Ok((events, now))
}

/// Whether a page key says that there is no further page.
pub fn is_last(key: &str) -> bool {
    key.is_empty() || key == "0"
}
