//! Executions one by one, in pages: a context may have more of them than its entry in the list of sequences shows.

use super::execution::{self, Shown};
use super::{MAX_PAGE, Position, TimePage, Views, Window};
use crate::item::Key;
use crate::ports::{PortError, Ports, Query};
use crate::protocol::page::PAGE_BYTES;
use crate::refusal::Refusal;
use crate::sequences::{Loaded, keys, retry};
use keelway_domain::ids::{ExecutionId, SubjectId};
use keelway_domain::names::{Context, ProjectName};
use keelway_domain::sequences::Policy;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Executions looked at for one page of a context, and shown of each context in a list over several.
const LOOKED_AT: usize = 1000;
/// Contexts looked at for one page.
const CONTEXTS: usize = 50;
/// An id has 64 bits, and a position as many as every client can read as a number: these are left out.
const LEFT_OUT: u32 = 12;

/// Which executions are wanted.
#[derive(Debug, Clone, Default)]
pub struct ExecutionFilter {
    /// Only those of this context.
    pub context: Option<Context>,
    /// Only those in this stage.
    pub stage: Option<String>,
    /// Only those of this service.
    pub service: Option<String>,
    /// Only those of this sequence.
    pub name: Option<String>,
    /// Only those in this state.
    pub state: Option<String>,
}

impl ExecutionFilter {
    pub(super) fn takes(&self, one: &Shown) -> bool {
        let is = |wanted: &Option<String>, has: &str| wanted.as_ref().is_none_or(|wanted| wanted == has);
        is(&self.stage, &one.x.stage)
            && is(&self.service, one.x.service.as_str())
            && is(&self.name, &one.x.sequence)
            && is(&self.state, execution::state_of(one))
    }
}

impl<P: Ports> Views<'_, P> {
    /// The executions of a context, in the order of their ids, which neither a new execution nor a change of one moves. Without a
    /// context, those of the project: contexts newest first, and of each at most its first 1,000; a page ends with a context then.
    ///
    /// # Errors
    /// An unknown project.
    pub async fn executions_in(
        &self,
        project: &ProjectName,
        filter: &ExecutionFilter,
        size: usize,
        from: Position,
    ) -> Result<TimePage, Refusal> {
        let item = self.engine.projects().item(project).await?;
        let policy = self.engine.project(project, Some(&item)).await?.policy;
        let size = size.clamp(1, MAX_PAGE);
        if let Some(context) = &filter.context {
            let (found, next) = self.executions_of(project, context, filter, (size, from)).await?;
            return Ok(TimePage { items: self.entries(project, &found, &policy).await?, next });
        }
        let (listed, more) = self.contexts(project, Window::default(), from, CONTEXTS).await?;
        let mut page = TimePage { items: vec![], next: 0 };
        let mut bytes = 0;
        for (place, entry) in listed.iter().enumerate() {
            let (found, _) = self.executions_of(project, &entry.context, filter, (LOOKED_AT, 0)).await?;
            let entries = self.entries(project, &found, &policy).await?;
            bytes += entries.iter().map(|entry| entry.to_string().len()).sum::<usize>();
            page.items.extend(entries);
            let next = listed.get(place + 1).map(|next| next.position);
            let left = next.map_or(more, |next| next != entry.position);
            if left && (page.items.len() >= size || bytes > PAGE_BYTES || next.is_none()) {
                page.next = entry.position;
                return Ok(page);
            }
        }
        Ok(page)
    }

    /// A page of a context's executions, and where the next one begins. It ends early when so much was looked at.
    async fn executions_of(
        &self,
        project: &ProjectName,
        context: &Context,
        filter: &ExecutionFilter,
        (size, from): (usize, Position),
    ) -> Result<(Vec<Shown>, Position), PortError> {
        let mut query = Query::table(keys::context_partition(project, context), 200).prefix(keys::EXECUTION);
        if from > 0 {
            query.from = format!("{}{}", keys::EXECUTION, first_behind(from));
        }
        let (mut found, mut looked_at, mut last) = (vec![], 0, from);
        loop {
            let page = self.engine.ports.query(&query).await?;
            for item in &page.items {
                let one = Shown { x: Loaded::read(item)?.x, depth: 0 };
                let at = position(one.x.id);
                // No page ends between executions of the same position.
                if at != last && (found.len() >= size || looked_at >= LOOKED_AT) {
                    return Ok((found, last));
                }
                (last, looked_at) = (at, looked_at + 1);
                found.extend(filter.takes(&one).then_some(one));
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok((found, 0)),
            }
        }
    }

    /// Executions as the list of sequences shows them, each with its place.
    async fn entries(&self, project: &ProjectName, found: &[Shown], policy: &Policy) -> Result<Vec<Value>, PortError> {
        let behind = self.holders(project, found.iter()).await?;
        let heard = self.heard(found.iter().map(|one| &one.x)).await?;
        let ended = found.iter().filter(|one| one.x.outcome.is_some());
        let retries: HashMap<ExecutionId, Key> =
            ended.filter_map(|one| Some((one.x.id, keys::execution(&retry::address(&one.x)?)))).collect();
        let wanted: Vec<Key> = retries.values().cloned().collect();
        let there = if wanted.is_empty() { HashMap::new() } else { self.engine.read(&wanted).await? };
        let mut entries = vec![];
        for one in found {
            let shipyard = self.accepted_with(&one.x).await?;
            let definition = shipyard.as_deref().and_then(|shipyard| execution::definition(&one.x, shipyard));
            let mut entry = execution::shown(one, definition.as_ref(), policy, &behind);
            heard.tell(&one.x, &mut entry);
            entry["project"] = json!(one.x.project.as_str());
            entry["service"] = json!(one.x.service.as_str());
            entry["shkeptncontext"] = json!(one.x.context.as_str());
            if let Some(retry) = retries.get(&one.x.id).and_then(|key| there.get(key)) {
                entry["retriedBy"] = json!(Loaded::read(retry)?.x.id);
            }
            entries.push(entry);
        }
        Ok(entries)
    }
}

/// Where an execution stands in the list of its context's, from 1.
pub fn position(id: ExecutionId) -> Position {
    (id.0 >> LEFT_OUT) as Position + 1
}

/// The smallest id behind a position.
pub fn first_behind(position: Position) -> ExecutionId {
    // A position that no page ends with may be larger than all of them.
    let first = u64::try_from(position).unwrap_or(0).min(1 << (64 - LEFT_OUT));
    SubjectId(u64::try_from(u128::from(first) << LEFT_OUT).unwrap_or(u64::MAX))
}
