//! Facts: reports from outside. [`super::change`] stores the newest fact about an object, and then the subjects that depend on it
//! are told. Reporting a fact again tells them again, so no subject is left out if a worker stops between the two.

use super::inbox::Letter;
use crate::item::Item;
use crate::ports::{Page, PortError, Ports, Query};
use crate::table;
use keelway_domain::address::Address;

/// Sends a letter to the subject of each entry, page by page. `first`: the first page, if it was read already.
///
/// # Errors
/// A port fails.
pub async fn tell(
    ports: &impl Ports,
    query: Query,
    first: Option<Page>,
    letter: impl Fn(&Item) -> Option<Letter> + Send,
) -> Result<(), PortError> {
    let (mut query, mut read) = (query, first);
    loop {
        let page = match read.take() {
            Some(page) => page,
            None => ports.query(&query).await?,
        };
        let letters: Vec<Letter> = page.items.iter().filter_map(&letter).collect();
        table::send_all(ports, &letters).await?;
        let Some(next) = page.next else { return Ok(()) };
        query = query.after(Some(next));
    }
}

/// The subject to which an entry leads.
pub fn entered(item: &Item) -> Option<Address> {
    Some(Address::new(item.text("ns")?, item.text("na")?))
}

/// An entry that leads to a subject.
pub fn entry(item: Item, to: &Address) -> Item {
    item.with("ns", to.namespace.as_str()).with("na", to.name.as_str())
}
