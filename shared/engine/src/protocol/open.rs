//! What an engine has open, from the index that its sweep goes through. Pipelines and deployment configs are open as long as they
//! exist.

use super::subject::{Loaded, Subject};
use crate::keys;
use crate::ports::{Index, PortError, Query, Store};
use crate::table;
use futures_util::future::try_join_all;
use keelway_domain::names::ProjectName;

/// Subjects, and whether there are more than were read.
#[derive(Debug, Clone, PartialEq)]
pub struct Open<S> {
    /// Oldest first.
    pub subjects: Vec<S>,
    /// Whether older ones left no room for others, or one cannot be read.
    pub more: bool,
}

/// The open subjects of an engine `among` some projects, or of all, the oldest `most`. The index lags by a moment; the subjects
/// themselves are read as they are.
///
/// # Errors
/// A port fails.
pub async fn open<S: Subject>(store: &impl Store, among: Option<&[ProjectName]>, most: usize) -> Result<Open<S>, PortError> {
    let limit = u32::try_from(most).unwrap_or(u32::MAX);
    let query = |shard: u32| Query::index(Index::ByAge, keys::open_work(S::PART, shard), limit);
    let queries: Vec<Query> = match among {
        Some(projects) => {
            projects.iter().map(|project| query(keys::shard_of(project.as_str())).prefix(&format!("{project}#"))).collect()
        }
        None => (0..keys::SHARDS).map(query).collect(),
    };
    let found = try_join_all(queries.into_iter().map(|query| table::all(store, query, most))).await?;
    let mut more = found.iter().any(|(_, more)| *more);
    // `<scope>#<since>#<name>`
    let since = |sort: &str| sort.split('#').nth(1).unwrap_or_default().to_owned();
    let mut entries: Vec<_> =
        found.into_iter().flat_map(|(items, _)| items).filter_map(|item| Some((since(item.text("gs2")?), item.key))).collect();
    entries.sort();
    more |= entries.len() > most;
    entries.truncate(most);
    let wanted: Vec<_> = entries.into_iter().map(|(_, key)| key).collect();
    if wanted.is_empty() {
        return Ok(Open { subjects: vec![], more });
    }
    let items = table::read(store, &wanted).await?;
    let mut subjects = vec![];
    for item in wanted.iter().filter_map(|key| items.get(key)) {
        match Loaded::<S>::read(item) {
            Ok(loaded) => subjects.extend(Some(loaded.x).filter(|x| !x.over())),
            // One that this code cannot read hides no other, and is not passed over in silence.
            Err(error) if error.is_of_an_item() => more = true,
            Err(error) => return Err(error),
        }
    }
    Ok(Open { subjects, more })
}
