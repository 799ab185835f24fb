//! Facts: what somebody outside has seen or done. The newest one of a thing is kept, by [`super::change`], and then whoever depends
//! on it is told. Whoever tells a fact again tells them again, so nobody is left out when a worker stops between the two.

use super::inbox::Letter;
use crate::item::Item;
use crate::ports::{Page, PortError, Ports, Query};
use crate::table;
use keelway_domain::address::Address;

/// Sends a letter to each of those who are entered there, page after page; `first` is the first page, if it was read already.
///
/// # Errors
/// Of the ports.
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

/// Whom an entry leads to.
pub fn entered(item: &Item) -> Option<Address> {
    Some(Address::new(item.text("ns")?, item.text("na")?))
}

/// An entry that leads to somebody.
pub fn entry(item: Item, to: &Address) -> Item {
    item.with("ns", to.namespace.as_str()).with("na", to.name.as_str())
}
