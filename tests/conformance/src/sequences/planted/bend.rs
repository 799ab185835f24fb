//! What each mistake changes in the requests.

use super::{Mistake, Plant, State, by_itself, extras, first_ask, is_entry, is_execution, is_lock, remade, sweeps};
use crate::bent::{Bend, By, Left, unconditional};
use crate::sequences::versions;
use keelway_domain::time::Timestamp;
use keelway_engine::item::{Attr, Item, Key};
use keelway_engine::keys::MAIN;
use keelway_engine::ports::{BusEntry, Clock, Page, Query, Write};
use keelway_engine::sequences::{Body, Incoming, Message};
use keelway_world::queue::Received;

fn is_context(key: &Key) -> bool {
    key.pk.starts_with("C#") && key.sk == MAIN
}

impl Bend for Mistake {
    fn is_mistaken(&self) -> bool {
        self.plant.is_some() || self.state().earlier
    }

    fn begin(&self, received: Option<&Received>) {
        let delivery: Option<Incoming> = received.and_then(Received::incoming);
        let cause = delivery.as_ref().map_or(0, by_itself);
        let (mut message, mut outside) = (None, false);
        match delivery.map(|delivery| (delivery.sent, delivery.body)) {
            Some((sent, Body::Own(own))) => {
                self.note_handed_in(&own, sent);
                message = Some(own);
            }
            Some((sent, Body::Event(event))) => {
                outside = true;
                self.seen().sent.entry(event.id).or_default().insert(sent.0);
            }
            _ => {}
        }
        let earlier = self.rollout.as_ref().is_some_and(|rollout| rollout.is_earlier());
        let mut state = self.state();
        let older = std::mem::take(&mut state.older);
        *state = State { message, outside, cause, earlier, older, reads: state.reads, ..State::default() };
    }
    fn answered(&self, key: &Key) {
        if key.pk == "SWEEP" {
            self.state().sweeps = true;
        }
    }
    fn queried(&self, query: &Query) {
        self.note_runs(query);
        if query.partition.starts_with("K#") {
            let now = self.inner.core().request_count();
            self.state().looked.insert(query.partition.clone(), now);
        }
    }
    fn attempted(&self, write: &Write) {
        self.note_write(write);
    }
    fn done(&self, writes: &[Write]) {
        self.note_commit(writes);
    }

    fn read(&self, item: Item, by: By) -> Option<Item> {
        self.note_revision(&item);
        if self.state().earlier {
            return Some(self.as_earlier(item));
        }
        let granted = || matches!(self.state().message, Some(Message::Granted { .. }));
        Some(match self.plant {
            Some(Plant::ContextNotRead) if by == By::Batch && is_context(&item.key) && granted() => return None,
            Some(Plant::StaleExecution) if is_execution(&item.key) => {
                let mut state = self.state();
                state.reads += 1;
                let old = state.older.insert(item.key.clone(), item.clone());
                old.filter(|_| state.reads.is_multiple_of(5)).unwrap_or(item)
            }
            Some(Plant::AbortNotInherited)
                if is_execution(&item.key) && matches!(self.state().message, Some(Message::Follow { .. })) =>
            {
                let context = Key::new(item.key.pk.as_str(), MAIN);
                let epoch = self.inner.core().table.peek(&context).and_then(|item| item.number("ep")).unwrap_or(0);
                item.with("ep", epoch)
            }
            Some(Plant::ZombieFreesLane) if is_execution(&item.key) => {
                let id = item.key.sk.trim_start_matches("X#").to_owned();
                self.state().asks.entry(id).or_insert(item.number("q").unwrap_or(0));
                item
            }
            Some(Plant::MadeByAnybody) if item.key.sk.starts_with("T#") => remade(item, self.state().cause),
            Some(Plant::MakerForgotten) if item.key.sk.starts_with("T#") => remade(item, 0),
            Some(Plant::OldWindows) => self.outdated(item),
            _ => self.swept(item),
        })
    }
    fn page(&self, query: &Query, page: Page) -> Page {
        if query.partition.starts_with("K#") { self.mistaken_lane(&query.partition, page) } else { page }
    }

    fn write(&self, mut write: Write) -> Option<Write> {
        match (self.plant, &mut write) {
            (Some(Plant::AskNumberConstant), Write::Put(item, _)) if is_entry(&item.key) => item.key = first_ask(&item.key),
            (Some(Plant::AskNumberConstant), Write::Delete(key, _)) if is_entry(key) => *key = first_ask(key),
            (Some(Plant::AskNumberConstant), Write::Update { key, set, .. }) if is_execution(key) || is_lock(key) => {
                if let Some(number) = set.get_mut("q") {
                    *number = Attr::N(0);
                }
            }
            (Some(Plant::LaneBeforeEntry), Write::Put(item, _)) if is_entry(&item.key) && self.state().entry.is_none() => {
                self.state().entry = Some(item.clone());
                return None;
            }
            (Some(Plant::AcceptedWhenHandled), Write::Put(item, _)) if is_execution(&item.key) && item.number("cl") == Some(1) => {
                drop(item.attrs.insert("ac".into(), Attr::N(self.inner.core().now.0)));
            }
            (Some(Plant::FollowUpsByOwnTime), Write::Put(item, _)) if is_execution(&item.key) => {
                let own = item.number("bo");
                item.attrs.extend(own.map(|at| ("ac".into(), Attr::N(at))));
            }
            (Some(Plant::AcceptedWhenHandled | Plant::FollowUpsByOwnTime), Write::Put(item, _)) if is_entry(&item.key) => {
                self.reaccept(item)
            }
            (Some(Plant::HeldKept), Write::Update { key, set, remove, .. }) if is_execution(key) && set.contains_key("en") => {
                remove.retain(|name| name != "hd");
            }
            (Some(Plant::StaleUnmarked), Write::Put(item, _)) if item.text("vd") == Some("stale") => drop(item.attrs.remove("vd")),
            (Some(Plant::AnswerTakenForKept), Write::Put(item, _)) if self.is_taken_for_kept(item) => return None,
            (Some(Plant::ActionsBeginAnew), Write::Put(item, _)) => extras::forget_actions(item),
            (Some(Plant::LockUnconditional), Write::Update { key, .. }) if is_lock(key) => return Some(unconditional(write)),
            (Some(Plant::ContextOverwritten), Write::Put(item, _)) if is_context(&item.key) => return Some(unconditional(write)),
            (Some(Plant::ScheduleUnconditional), Write::Update { key, .. }) if extras::is_schedule(key) => {
                return Some(unconditional(write));
            }
            (Some(Plant::CheckStripped), Write::Add { .. }) => return Some(unconditional(write)),
            _ => {}
        }
        if self.state().earlier {
            return Some(versions::written(write, is_execution));
        }
        (!self.forgets(&write)).then_some(write)
    }
    fn late(&self) -> Option<Item> {
        self.state().entry.take()
    }
    fn early(&self, puts: &[Item]) -> Vec<BusEntry> {
        if self.has(Plant::PublishedEarly) { sweeps::published_early(puts) } else { vec![] }
    }
    fn splits(&self, writes: &[Write]) -> bool {
        self.has(Plant::FollowUpSplit) && matches!(writes.first(), Some(Write::Update { key, .. }) if is_execution(key))
    }
    fn ignores(&self, left: Left) -> bool {
        self.has(match left {
            Left::Keys => Plant::UnprocessedKeysIgnored,
            Left::Writes => Plant::LeftoverWritesIgnored,
            Left::Entries => Plant::FailedEntriesIgnored,
        })
    }

    fn publish(&self, entry: BusEntry) -> Option<BusEntry> {
        match self.plant {
            Some(Plant::DuplicateSilent) if self.settles() => None,
            Some(Plant::TimeOfPublication) => {
                let now = format!("\"time\":\"{}\"", self.inner.now().rfc3339());
                let at = entry.detail.rfind("\"time\":\"").unwrap_or(0);
                let rest = entry.detail.get(at + now.len()..).unwrap_or_default();
                Some(BusEntry { detail: format!("{}{now}{rest}", &entry.detail[..at]), ..entry })
            }
            _ => Some(entry),
        }
    }

    fn send(&self, body: &str) -> Option<String> {
        let conforms = matches!(self.state().message, Some(Message::Conform { .. }));
        match self.plant {
            Some(Plant::DuplicateSilent) if self.settles() && self.state().message.is_none() => None,
            Some(Plant::PauseNotRechecked) if !conforms && body.contains("\"obey\"") => None,
            _ if self.is_unsaid(body) => None,
            _ => Some(self.resaid(body)),
        }
    }
    fn send_at(&self, body: &str, at: Timestamp) -> bool {
        let message = self.state().message.clone();
        let own = matches!(message, Some(Message::Wake { at: own, .. }) if own == at);
        match self.plant {
            Some(Plant::HeldWakeLost) => !self.wakes_held(body),
            Some(Plant::EarlyWakeDropped) => !(self.settles() && own),
            Some(Plant::WakeNotResent) => !self.settles() || own,
            _ => true,
        }
    }
}
