//! What the checks read. They look at the same states after every request, so each item is decoded once.

use keelway_engine::item::Item;
use keelway_engine::protocol::{Loaded, Subject};
use std::cell::RefCell;
use std::sync::Arc;

/// Enough for the states of one seed; an item that falls out is decoded again.
const SLOTS: usize = 256;

type Slot<S> = Option<(Arc<Item>, Arc<S>)>;

/// The states that one thread has decoded, by the place of their items in memory. A slot keeps its item, so that no other one gets
/// its place.
pub struct Decoded<S>(RefCell<Vec<Slot<S>>>);

impl<S: Subject> Default for Decoded<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Subject> Decoded<S> {
    /// Nothing yet.
    pub const fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }

    /// The state that an item holds.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn state(&self, item: &Arc<Item>) -> Result<Arc<S>, String> {
        let mut slots = self.0.borrow_mut();
        if slots.is_empty() {
            slots.resize(SLOTS, None);
        }
        let slot = &mut slots[(Arc::as_ptr(item).addr() >> 4) % SLOTS];
        if let Some((known, state)) = slot
            && Arc::ptr_eq(known, item)
        {
            return Ok(state.clone());
        }
        let state = Arc::new(Loaded::<S>::read(item).map_err(|error| error.to_string())?.x);
        *slot = Some((item.clone(), state.clone()));
        Ok(state)
    }
}
