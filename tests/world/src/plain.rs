//! A worker's ports as they are: each request is one step of the scheduler.

use crate::core::{Core, Method};
use crate::table::Begun;
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::item::{Item, Key};
use keelway_engine::ports::{
    Bus, BusEntry, Clock, Consistency, Leftover, Page, PortError, Query, Queue, Store, Transacted, Write, Written,
};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

/// The ports of one worker, without a mistake. Each request first gives way once: whoever polls decides when, and whether, it
/// happens.
#[derive(Clone)]
pub struct Plain {
    core: Arc<Mutex<Core>>,
    id: usize,
    /// How far its clock is ahead of the world's.
    pub skew: Span,
}

impl std::fmt::Debug for Plain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Worker({})", self.id)
    }
}

#[derive(Default)]
pub(crate) struct GiveWay(bool);

impl Future for GiveWay {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // Several requests at once are polled again only if they say so.
        context.waker().wake_by_ref();
        if std::mem::replace(&mut self.0, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}

pub(crate) fn lock(core: &Mutex<Core>) -> MutexGuard<'_, Core> {
    core.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Plain {
    pub(crate) fn new(core: Arc<Mutex<Core>>, id: usize, skew: Span) -> Self {
        Self { core, id, skew }
    }
    /// The world behind the ports; for tests that wrap them.
    pub fn core(&self) -> MutexGuard<'_, Core> {
        lock(&self.core)
    }

    /// A request to somebody else's server: a step like any other, with its own faults.
    ///
    /// # Errors
    /// It failed, before or after its effect.
    pub fn outside<R: std::fmt::Debug>(
        &self,
        what: impl FnOnce() -> String,
        mut act: impl FnMut(Timestamp) -> R,
    ) -> impl Future<Output = Result<R, PortError>> {
        self.request(Method::Outside, what, move |core, _| Ok(act(core.now)))
    }

    async fn request<R: std::fmt::Debug>(
        &self,
        method: Method,
        what: impl FnOnce() -> String,
        mut act: impl FnMut(&mut Core, bool) -> Result<R, PortError>,
    ) -> Result<R, PortError> {
        let mut what = Some(what);
        let mut tries = 0;
        loop {
            GiveWay::default().await;
            let mut core = lock(&self.core);
            let what = what.take();
            let result = core.request(self.id, method, || what.map_or_else(|| "again".to_owned(), |what| what()), &mut act);
            tries += 1;
            if !core.tries_again(self.id, &result, tries) {
                return result;
            }
        }
    }
}

fn list<'a>(keys: impl IntoIterator<Item = &'a Key>) -> String {
    keys.into_iter().map(Key::to_string).collect::<Vec<_>>().join(", ")
}

fn describe(write: &Write) -> String {
    let condition = write.condition();
    match write {
        Write::Put(item, _) => format!("put {} if {condition:?} {:?}", item.key, item.attrs),
        Write::Update { key, set, remove, raise, .. } => {
            format!("update {key} if {condition:?} set {set:?} remove {remove:?}{}", if *raise { " raise v" } else { "" })
        }
        Write::Add { key, name, by, .. } => format!("add {by} to {name} of {key} if {condition:?}"),
        Write::Delete(key, _) => format!("delete {key} if {condition:?}"),
        Write::Check(key, _) => format!("check {key} if {condition:?}"),
    }
}

impl Store for Plain {
    fn get(&self, key: &Key) -> impl Future<Output = Result<Option<Item>, PortError>> + Send {
        self.request(Method::Get, move || key.to_string(), move |core, _| core.table.get(key))
    }
    fn get_batch(
        &self,
        keys: &[Key],
        consistency: Consistency,
    ) -> impl Future<Output = Result<(Vec<Item>, Vec<Key>), PortError>> + Send {
        let act = move |core: &mut Core, busy| core.table.get_batch(keys, consistency, busy);
        self.request(Method::GetBatch, move || list(keys), act)
    }
    fn query(&self, query: &Query) -> impl Future<Output = Result<Page, PortError>> + Send {
        self.request(Method::Query, move || format!("{query:?}"), move |core, _| core.table.query(query))
    }
    fn put_batch(&self, puts: &[Item], deletes: &[Key]) -> impl Future<Output = Result<Leftover, PortError>> + Send {
        let what = move || format!("put {} delete {}", list(puts.iter().map(|item| &item.key)), list(deletes));
        self.request(Method::PutBatch, what, move |core, busy| core.table.put_batch(puts, deletes, busy))
    }
    fn write(&self, write: &Write) -> impl Future<Output = Result<Written, PortError>> + Send {
        self.request(Method::Write, move || describe(write), move |core, _| core.table.write(write))
    }
    async fn transact(&self, writes: &[Write]) -> Result<Transacted, PortError> {
        let what = move || writes.iter().map(describe).collect::<Vec<_>>().join(" + ");
        match self.request(Method::Transact, what, move |core, busy| core.table.begin(writes, busy)).await? {
            Begun::Over(transacted) => Ok(transacted),
            // Each item is a step of its own, like a request. Others may be faster.
            Begun::Pending(transaction) => loop {
                GiveWay::default().await;
                let mut core = lock(&self.core);
                core.advance(transaction);
                if core.table.is_over(transaction) {
                    return Ok(Transacted::Done);
                }
            },
        }
    }
}

impl Bus for Plain {
    fn publish(&self, entries: &[BusEntry]) -> impl Future<Output = Result<Vec<Option<String>>, PortError>> + Send {
        let what = move || entries.iter().map(|entry| entry.detail.clone()).collect::<Vec<_>>().join(", ");
        let id = self.id;
        self.request(Method::Publish, what, move |core, busy| core.publish(id, entries, busy))
    }
}

impl Queue for Plain {
    fn send(&self, engine: &str, bodies: &[String]) -> impl Future<Output = Result<Vec<Option<String>>, PortError>> + Send {
        self.request(Method::Send, move || bodies.join(", "), move |core, busy| core.queue.send(core.now, engine, bodies, busy))
    }
    fn send_at(&self, engine: &str, name: &str, body: &str, at: Timestamp) -> impl Future<Output = Result<(), PortError>> + Send {
        let skew = self.skew;
        let act = move |core: &mut Core, _: bool| core.send_at(skew, engine, (name, body), at);
        self.request(Method::SendAt, move || format!("{body} at {}", at.0), act)
    }
}

impl Clock for Plain {
    fn now(&self) -> Timestamp {
        lock(&self.core).now + self.skew
    }
    /// One step of the scheduler; how much time goes by is up to it.
    async fn pause(&self, length: Span) {
        lock(&self.core).pausing = Some((self.id, length));
        GiveWay::default().await;
    }
}
