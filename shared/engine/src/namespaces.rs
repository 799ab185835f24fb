//! Lists that reach over all namespaces: one partition lists the namespaces, and each of them has a partition with its own.

use crate::item::Key;
use crate::ports::{Cursor, PortError, Ports, Query};
use keelway_domain::names::ProjectName;
use std::future::Future;

/// A page looks into so many namespaces.
const AT_ONCE: u32 = 25;

/// Entries that each belong to a namespace, and where the next ones of that begin.
pub(crate) type Page<T> = (Vec<T>, Option<String>);

/// What namespaces have.
pub(crate) trait Listed: Sync {
    /// One of them.
    type Entry: Send;
    /// A page of what one namespace has.
    fn page(
        &self,
        namespace: &str,
        after: Option<&str>,
        limit: u32,
    ) -> impl Future<Output = Result<Page<Self::Entry>, PortError>> + Send;
}

/// The namespaces that are looked into.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Among<'a> {
    /// All that this partition lists.
    Listed(&'static str),
    /// These, which are sorted.
    These(&'a [ProjectName]),
}

/// The page that is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// In which namespaces.
    pub among: Among<'a>,
    /// Where the page before ended. `<namespace>`: all of it was listed; `<namespace>/<name>`: up to this name.
    pub after: Option<&'a str>,
    /// The page has at most so many entries.
    pub limit: u32,
}

/// A page of what all namespaces have, and where the next one begins. It looks into a limited number of namespaces, so a page that
/// is not the last one may have fewer entries than asked for.
///
/// # Errors
/// Of the ports.
pub(crate) async fn page<L: Listed>(ports: &impl Ports, all_of: &L, wanted: Wanted<'_>) -> Result<Page<L::Entry>, PortError> {
    let Wanted { among, after, limit } = wanted;
    let (of, name) =
        after.map_or((None, None), |key| key.split_once('/').map_or((Some(key), None), |(of, name)| (Some(of), Some(name))));
    let (namespaces, more): (Vec<String>, _) = match among {
        Among::These(names) => {
            let rest = names.iter().map(ToString::to_string).filter(|name| of.is_none_or(|of| name.as_str() > of));
            (rest.collect(), None)
        }
        Among::Listed(partition) => {
            let cursor = of.map(|of| Cursor { key: Key::new(partition, of), index_sort: None });
            let page = ports.query(&Query::table(partition, AT_ONCE).after(cursor)).await?;
            (page.items.into_iter().map(|item| item.key.sk).collect(), page.next.map(|next| next.key.sk))
        }
    };
    // The key comes from outside: a namespace in it counts only if it is among those that are asked for.
    let asked = |of: &&str| match among {
        Among::Listed(_) => true,
        Among::These(names) => names.iter().any(|name| name.as_str() == *of),
    };
    let begun = of.filter(asked).filter(|_| name.is_some()).map(|of| (of, name));
    let mut all = vec![];
    let mut done = None;
    for (namespace, name) in begun.into_iter().chain(namespaces.iter().map(|namespace| (namespace.as_str(), None))) {
        let left = limit.saturating_sub(u32::try_from(all.len()).unwrap_or(limit));
        if left == 0 {
            return Ok((all, done));
        }
        let (found, next) = all_of.page(namespace, name, left).await?;
        all.extend(found);
        if let Some(name) = next {
            return Ok((all, Some(format!("{namespace}/{name}"))));
        }
        done = Some(namespace.to_owned());
    }
    Ok((all, more))
}
