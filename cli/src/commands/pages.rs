//! Lists of the API, page by page.

use crate::api::Api;
use crate::error::CliError;
use keelway_domain::time::Timestamp;
use keelway_wire::http::EventPage;
use serde_json::Value;

/// More pages than this are not followed: a list that long is asked for in parts.
pub const PAGES: usize = 200;

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
