//! Flags of a context reach its executions by messages: one to the context, one from it to every open execution.

use super::message::Message;
use super::{Loaded, Sequences, keys};
use crate::item::Key;
use crate::ports::{Cursor, PortError, Ports, Query};
use crate::protocol::{Handled, Letter};
use crate::table;
use keelway_domain::names::{Context, ProjectName};

/// Executions of one context notified in one message; the next message continues.
const IN_ONE_MESSAGE: usize = 1000;

impl<P: Ports> Sequences<P> {
    /// Notifies every open execution of a context that its flags changed.
    pub(crate) async fn conform(&self, project: &ProjectName, context: &Context, after: &str) -> Result<Handled, PortError> {
        let partition = keys::context_partition(project, context);
        let mut query = Query::table(partition.clone(), 100).prefix(keys::EXECUTION);
        query.after = (!after.is_empty()).then(|| Cursor { key: Key::new(partition, after), index_sort: None });
        let flags = self.context(project, context).await?.flags;
        let mut seen = 0;
        loop {
            let page = self.ports.query(&query).await?;
            let mut letters: Vec<Letter> = Vec::new();
            for item in &page.items {
                match Loaded::read(item) {
                    Ok(loaded) => letters.extend(Message::of_flags(&loaded.x, &flags).map(|message| message.letter())),
                    // An execution that this code cannot read does not stop the others; newer code will sweep it.
                    Err(error) => tracing::error!(item = %item.key, %error, "an execution cannot be told of its context's flags"),
                }
            }
            seen += page.items.len();
            let next = page.next;
            if let Some(next) = next.as_ref().filter(|_| seen >= IN_ONE_MESSAGE) {
                let (project, context) = (project.clone(), context.clone());
                letters.push(Message::Conform { project, context, after: next.key.sk.clone() }.letter());
            }
            table::send_all(&self.ports, &letters).await?;
            match next {
                Some(next) if seen < IN_ONE_MESSAGE => query.after = Some(next),
                _ => return Ok(Handled::Committed),
            }
        }
    }
}
