//! Flags of a context reach its executions by messages: one to the context, one from it to every open execution.

use super::Engine;
use super::codec::{self, address};
use crate::keys;
use crate::message::{Handled, Message};
use crate::ports::{PortError, Ports, Query};
use crate::table;
use keelway_domain::names::{Context, ProjectName};

/// Executions of one context looked at in one message; more go on in pages.
const MOST: usize = 1000;

impl<P: Ports> Engine<P> {
    /// Tells every open execution of a context that its flags changed.
    pub(super) async fn conform(&self, project: &ProjectName, context: &Context) -> Result<Handled, PortError> {
        let mut query = Query::table(keys::context_partition(project, context), 100).prefix("X#");
        let mut seen = 0;
        loop {
            let page = self.ports.query(&query).await?;
            let mut bodies = Vec::new();
            for item in &page.items {
                match codec::execution(item) {
                    Ok(loaded) if loaded.x.outcome.is_none() => bodies.push(Message::Obey { to: address(&loaded.x) }.to_body()),
                    Ok(_) => {}
                    // One that this code cannot read keeps the others from nothing; newer code will sweep it.
                    Err(error) => tracing::error!(item = %item.key, %error, "an execution cannot be told of its context's flags"),
                }
            }
            table::send(&self.ports, &bodies).await?;
            seen += page.items.len();
            match page.next {
                Some(next) if seen < MOST => query.after = Some(next),
                Some(_) => {
                    tracing::warn!(%project, %context, seen, "a context has too many executions to tell all of them at once");
                    return Ok(Handled::Committed);
                }
                None => return Ok(Handled::Committed),
            }
        }
    }
}
