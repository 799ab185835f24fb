//! The ports, with the mistake.

use super::{Plant, Planted, extras, first_ask, is_entry, is_execution};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::item::{Item, Key};
use keelway_engine::ports::{
    Bus, BusEntry, Clock, Condition, Leftover, Page, PortError, Query, Queue, Store, Transacted, Write, Written,
};
use keelway_engine::sequences::Message;

impl Store for Planted {
    async fn get(&self, key: &Key) -> Result<Option<Item>, PortError> {
        if key.pk == "SWEEP" {
            self.state().sweeps = true;
        }
        Ok(self.inner.get(key).await?.map(|item| self.read(item)))
    }

    async fn get_batch(&self, keys: &[Key]) -> Result<(Vec<Item>, Vec<Key>), PortError> {
        let (mut items, mut left) = self.inner.get_batch(keys).await?;
        if self.has(Plant::UnprocessedKeysIgnored) {
            left.clear();
        }
        if self.has(Plant::ContextNotRead) && matches!(self.state().message, Some(Message::Granted { .. })) {
            items.retain(|item| !(item.key.pk.starts_with("C#") && item.key.sk == "!"));
        }
        Ok((items.into_iter().map(|item| self.read(item)).collect(), left))
    }

    async fn query(&self, query: &Query) -> Result<Page, PortError> {
        let page = self.inner.query(query).await?;
        self.note_runs(query);
        let held = self.state().entry.take();
        if let Some(entry) = held {
            self.inner.write(&Write::Put(entry, Condition::Always)).await.map(drop)?;
        }
        if !query.partition.starts_with("K#") {
            return Ok(page);
        }
        let now = self.inner.core().request_count();
        self.state().looked.insert(query.partition.clone(), now);
        Ok(self.mistaken_lane(&query.partition, page))
    }

    async fn put_batch(&self, puts: &[Item], deletes: &[Key]) -> Result<Leftover, PortError> {
        if self.plant.is_none() {
            return self.inner.put_batch(puts, deletes).await;
        }
        let mut puts = puts.to_vec();
        let mut deletes = deletes.to_vec();
        match self.plant {
            Some(Plant::LaneBeforeEntry) => {
                if let Some(place) = puts.iter().position(|item| is_entry(&item.key)) {
                    let entry = puts.remove(place);
                    self.state().entry = Some(entry);
                }
            }
            Some(Plant::StaleUnmarked) => puts.iter_mut().for_each(|item| {
                if item.text("vd") == Some("stale") {
                    drop(item.attrs.remove("vd"));
                }
            }),
            Some(Plant::AcceptedWhenHandled) => {
                puts.iter_mut().filter(|item| is_entry(&item.key)).for_each(|item| self.reaccept(item))
            }
            Some(Plant::FollowUpsByOwnTime) => {
                puts.iter_mut().filter(|item| is_entry(&item.key)).for_each(|item| self.reaccept(item))
            }
            Some(Plant::PublishedEarly) => self.publish_early(&puts).await?,
            Some(Plant::LetterForgotten) => puts.retain(|item| item.key.pk != "LD"),
            Some(Plant::ActionsBeginAnew) => puts.iter_mut().for_each(extras::forget_actions),
            Some(Plant::NoTombstone) => puts.retain(|item| !item.key.pk.starts_with("Z#")),
            Some(Plant::AskNumberConstant) => {
                puts.iter_mut().filter(|item| is_entry(&item.key)).for_each(|item| item.key = first_ask(&item.key));
                deletes.iter_mut().filter(|key| is_entry(key)).for_each(|key| *key = first_ask(key));
            }
            _ => {}
        }
        if puts.is_empty() && deletes.is_empty() {
            return Ok(Leftover::default());
        }
        let left = self.inner.put_batch(&puts, &deletes).await?;
        Ok(if self.has(Plant::LeftoverWritesIgnored) { Leftover::default() } else { left })
    }

    async fn write(&self, write: &Write) -> Result<Written, PortError> {
        self.note_write(write);
        if self.plant.is_none() {
            return self.inner.write(write).await;
        }
        let write = self.bend(write);
        if self.forgets(&write) {
            return Ok(Written::Done);
        }
        let written = self.inner.write(&write).await?;
        if written == Written::Done {
            self.note_commit(&[write]);
        }
        Ok(written)
    }

    async fn transact(&self, writes: &[Write]) -> Result<Transacted, PortError> {
        writes.iter().for_each(|write| self.note_write(write));
        if self.plant.is_none() {
            return self.inner.transact(writes).await;
        }
        let mut writes: Vec<Write> = writes.iter().map(|write| self.bend(write)).collect();
        if self.has(Plant::CheckStripped) {
            for write in &mut writes {
                if let Write::Add { condition, .. } = write {
                    *condition = Condition::Always;
                }
            }
        }
        let ends = matches!(writes.first(), Some(Write::Update { key, .. }) if is_execution(key));
        let done = if self.has(Plant::FollowUpSplit) && ends {
            self.split(writes.clone()).await?
        } else {
            self.inner.transact(&writes).await?
        };
        if done == Transacted::Done {
            self.note_commit(&writes);
        }
        Ok(done)
    }
}

impl Bus for Planted {
    async fn publish(&self, entries: &[BusEntry]) -> Result<Vec<Option<String>>, PortError> {
        if self.has(Plant::DuplicateSilent) && self.settles() {
            return Ok(vec![None; entries.len()]);
        }
        if self.has(Plant::TimeOfPublication) {
            let now = format!("\"time\":\"{}\"", self.now().rfc3339());
            let retimed = |entry: &BusEntry| {
                let at = entry.detail.rfind("\"time\":\"").unwrap_or(0);
                let end = at + now.len();
                let detail = format!("{}{now}{}", &entry.detail[..at], entry.detail.get(end..).unwrap_or_default());
                BusEntry { detail, ..entry.clone() }
            };
            let entries: Vec<BusEntry> = entries.iter().map(retimed).collect();
            return self.inner.publish(&entries).await;
        }
        let answers = self.inner.publish(entries).await?;
        Ok(if self.has(Plant::FailedEntriesIgnored) { vec![None; answers.len()] } else { answers })
    }
}

impl Queue for Planted {
    async fn send(&self, engine: &str, bodies: &[String]) -> Result<Vec<Option<String>>, PortError> {
        let done = Ok(vec![None; bodies.len()]);
        let conforms = matches!(self.state().message, Some(Message::Conform { .. }));
        match self.plant {
            Some(Plant::DuplicateSilent) if self.settles() && self.state().message.is_none() => done,
            Some(Plant::PauseNotRechecked) if !conforms && bodies.iter().all(|body| body.contains("\"obey\"")) => done,
            Some(Plant::AskNumberConstant) => {
                let zero = |body: &String| match serde_json::from_str(body) {
                    Ok(Message::Granted { to, payload, .. }) => Message::Granted { to, ask: 0, payload }.to_body(),
                    _ => body.clone(),
                };
                self.inner.send(engine, &bodies.iter().map(zero).collect::<Vec<_>>()).await
            }
            Some(_) if bodies.iter().all(|body| self.is_unsaid(body)) => done,
            Some(Plant::OlderStays) => {
                let said: Vec<String> = bodies.iter().filter(|body| !self.is_unsaid(body)).cloned().collect();
                self.inner.send(engine, &said).await.map(|_| vec![None; bodies.len()])
            }
            Some(_) => self.inner.send(engine, &bodies.iter().map(|body| self.resaid(body)).collect::<Vec<_>>()).await,
            None => self.inner.send(engine, bodies).await,
        }
    }

    async fn send_at(&self, engine: &str, name: &str, body: &str, at: Timestamp) -> Result<(), PortError> {
        let message = self.state().message.clone();
        match (self.plant, message) {
            (Some(Plant::HeldWakeLost), _) if self.wakes_held(body) => Ok(()),
            (Some(Plant::EarlyWakeDropped), Some(Message::Wake { at: own, .. })) if self.settles() && own == at => Ok(()),
            (Some(Plant::WakeNotResent), other)
                if self.settles() && !matches!(other, Some(Message::Wake { at: own, .. }) if own == at) =>
            {
                Ok(())
            }
            _ => self.inner.send_at(engine, name, body, at).await,
        }
    }
}

impl Clock for Planted {
    fn now(&self) -> Timestamp {
        self.inner.now() + Span(0)
    }
    async fn pause(&self, length: Span) {
        self.inner.pause(length).await;
    }
}
