//! Lists over all namespaces: one partition lists the namespaces, and each namespace has a partition with its entries.

use crate::item::Key;
use crate::ports::{Cursor, PortError, Ports, Query};
use keelway_domain::names::ProjectName;
use std::future::Future;

/// The most namespaces that one page reads.
const AT_ONCE: u32 = 25;

/// Entries of a namespace, and where the next page begins.
pub(crate) type Entries<T> = (Vec<T>, Option<String>);

/// Something that every namespace lists.
pub(crate) trait Listed: Sync {
    /// One of them.
    type Entry: Send;
    /// A page of one namespace.
    fn page(
        &self,
        namespace: &str,
        after: Option<&str>,
        limit: u32,
    ) -> impl Future<Output = Result<Entries<Self::Entry>, PortError>> + Send;
}

/// The namespaces of a list.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Among<'a> {
    /// All namespaces that this partition lists.
    Listed(&'static str),
    /// These namespaces, sorted.
    These(&'a [ProjectName]),
}

/// The requested page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// The namespaces of the list.
    pub among: Among<'a>,
    /// The end of the page before. `<namespace>`: the whole namespace was listed; `<namespace>/<name>`: up to this name.
    pub after: Option<&'a str>,
    /// The most entries of the page.
    pub limit: u32,
}

/// A page over all namespaces, and where the next one begins. It reads a limited number of namespaces, so a page that is not the
/// last one may have fewer entries than requested.
///
/// # Errors
/// A port fails.
pub(crate) async fn page<L: Listed>(ports: &impl Ports, all_of: &L, wanted: Wanted<'_>) -> Result<Entries<L::Entry>, PortError> {
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
    // The key comes from the client: its namespace counts only if it is one of those that the client may list.
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
