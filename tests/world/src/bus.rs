//! The bus's twin: keeps what was published, and refuses what EventBridge refuses.

use keelway_domain::event::HANDLED;
use keelway_domain::time::Timestamp;
use keelway_engine::ports::{BusEntry, PortError};
use std::collections::HashMap;
use std::sync::Arc;

/// One entry the bus accepted.
#[derive(Debug, Clone)]
pub struct Publication {
    /// When, by the world's clock.
    pub at: Timestamp,
    /// The CloudEvent's id.
    pub id: String,
    /// What was published.
    pub entry: Arc<BusEntry>,
    /// Published before under the same id.
    pub again: bool,
}

/// Everything published, in order.
#[derive(Debug, Clone, Default)]
pub struct BusTwin {
    /// All of it, repetitions included.
    pub log: Vec<Publication>,
    /// What clients have told, for others only.
    pub announced: Vec<Arc<BusEntry>>,
    first: HashMap<String, usize>,
    /// Rules that somebody has disabled.
    pub disabled: Vec<String>,
    /// Two different contents under one id: never allowed. Filled by publication, read by tests.
    pub contradictions: Vec<String>,
}

/// What one request may carry, in bytes.
const REQUEST_BYTES: usize = 256 * 1024;

/// The top-level `id` of an event as our writer orders its attributes (sorted, `data` before `id`, no object after it).
fn id_of(detail: &str) -> &str {
    let Some(at) = detail.rfind("\"id\":\"") else { return "" };
    let rest = &detail[at + 6..];
    &rest[..rest.find('"').unwrap_or(rest.len())]
}

fn fault(entry: &BusEntry) -> Option<String> {
    match () {
        () if entry.source.is_empty() || entry.source.starts_with("aws.") => {
            Some(format!("source {:?} is not allowed", entry.source))
        }
        () if entry.detail_type.is_empty() || entry.detail_type.chars().count() > 128 => {
            Some("detail type has not 1 to 128 characters".into())
        }
        () if !entry.detail.starts_with('{') => Some("detail is not a JSON object".into()),
        () => None,
    }
}

impl BusTwin {
    /// `PutEvents`; when `busy`, the last half of the entries fails.
    pub fn publish(&mut self, now: Timestamp, entries: &[BusEntry], busy: bool) -> Result<Vec<Option<String>>, PortError> {
        let taken = if busy { entries.len() / 2 } else { entries.len() };
        self.publish_some(now, entries, (taken, "InternalFailure"))
    }

    /// `PutEvents`; those behind the first `taken` entries fail with this code.
    pub fn publish_some(
        &mut self,
        now: Timestamp,
        entries: &[BusEntry],
        (taken, code): (usize, &str),
    ) -> Result<Vec<Option<String>>, PortError> {
        let bytes: usize = entries.iter().map(BusEntry::size).sum();
        if entries.is_empty() || entries.len() > 10 || bytes > REQUEST_BYTES {
            let reason = format!("{} entries of {bytes} bytes: 1 to 10 of {REQUEST_BYTES} together are allowed", entries.len());
            return Err(PortError::Refused { request: "PutEvents", reason });
        }
        let mut answers: Vec<Option<String>> = entries.iter().map(fault).collect();
        for (i, entry) in entries.iter().enumerate() {
            if i >= taken && answers[i].is_none() {
                answers[i] = Some(code.into());
            }
            if answers[i].is_none() && entry.detail.contains(HANDLED) {
                self.announced.push(Arc::new(entry.clone()));
            } else if answers[i].is_none() {
                self.keep(now, entry.clone());
            }
        }
        Ok(answers)
    }

    fn keep(&mut self, at: Timestamp, entry: BusEntry) {
        let id = id_of(&entry.detail).to_owned();
        let again = match self.first.get(&id) {
            Some(first) => {
                if *self.log[*first].entry != entry {
                    self.contradictions
                        .push(format!("id {id}\n  first {}\n  then  {}", self.log[*first].entry.detail, entry.detail));
                }
                true
            }
            None => {
                self.first.insert(id.clone(), self.log.len());
                false
            }
        };
        self.log.push(Publication { at, id, entry: Arc::new(entry), again });
    }

    /// Whether the same was published first, in the same order at the same times.
    pub(crate) fn said_what(&self, other: &Self) -> bool {
        let firsts = |bus: &Self| bus.firsts().map(|one| (one.at, one.entry.clone())).collect::<Vec<_>>();
        self.disabled == other.disabled && self.contradictions == other.contradictions && firsts(self) == firsts(other)
    }
    /// First publications only, in their order.
    pub fn firsts(&self) -> impl Iterator<Item = &Publication> {
        self.log.iter().filter(|publication| !publication.again)
    }
    /// Whether an event of that id was ever published.
    pub fn knows(&self, id: &str) -> bool {
        self.first.contains_key(id)
    }
}
