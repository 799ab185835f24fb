//! Ports with a planted mistake, and what mistakes do with items and writes.

use keelway_engine::item::{Attrs, Item};
use keelway_engine::ports::{Condition, Write};
use keelway_world::queue::Received;
use keelway_world::worker::Worker;
use serde_json::Value;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

pub use keelway_world::bend::{Bend, By, Left};

/// A mistake, or none, and the ports that have it.
#[derive(Debug)]
pub struct Bent<B> {
    mistake: Arc<B>,
    ports: Worker,
}

impl<B> Clone for Bent<B> {
    fn clone(&self) -> Self {
        Self { mistake: self.mistake.clone(), ports: self.ports.clone() }
    }
}

impl<B> Deref for Bent<B> {
    type Target = B;

    fn deref(&self) -> &B {
        &self.mistake
    }
}

impl<B: Bend + 'static> Bent<B> {
    /// These ports with this mistake.
    pub fn with(ports: &Worker, mistake: B) -> Self {
        let mistake = Arc::new(mistake);
        Self { ports: ports.bent(mistake.clone()), mistake }
    }

    /// Work begins: a message, or (`None`) something else.
    pub fn begin(&self, received: Option<&Received>) {
        self.mistake.begin(received);
    }

    /// The ports, as engines take them: all mistakes have one type there, so that each engine is compiled once.
    pub fn ports(&self) -> &Worker {
        &self.ports
    }
}

/// JSON that an item has as text; null if it has none.
pub fn json(text: Option<&str>) -> Value {
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// An item whose JSON in an attribute is changed, if it has any.
pub fn changed(item: Item, name: &'static str, change: impl FnOnce(&mut Value)) -> Item {
    let mut value = json(item.text(name));
    if value.is_null() {
        return item;
    }
    change(&mut value);
    item.with(name, value.to_string())
}

/// What piles up in an item.
pub type Pile = Arc<Mutex<Vec<u64>>>;

/// A commit leaves something in an item that nobody takes away.
pub fn pile_up(pile: &Pile, set: &mut Attrs) {
    let mut pile = pile.lock().unwrap_or_else(PoisonError::into_inner);
    let next = pile.len() as u64;
    pile.extend(next..next + 15);
    set.insert("pile".into(), format!("{pile:?}").into());
}

/// An item without an attribute.
pub fn without(mut item: Item, name: &str) -> Item {
    item.attrs.remove(name);
    item
}

/// A write that is made whatever is there.
pub fn unconditional(mut write: Write) -> Write {
    match &mut write {
        Write::Put(_, condition) | Write::Update { condition, .. } | Write::Add { condition, .. } => *condition = Condition::Always,
        Write::Delete(_, condition) | Write::Check(_, condition) => *condition = Condition::Always,
    }
    write
}
