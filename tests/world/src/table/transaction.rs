//! Transactions: all of their conditions at one moment, and then their items.
//!
//! DynamoDB prepares every item, decides, and only then writes one item after the other; a reader in between sees some of them
//! new and some of them old. A writer that meets an item in that time is told of the conflict. When the coordinator fails, another
//! one completes the transaction: what was decided always happens.
//!
//! The twin does so while [`Table::staged`] is set, and whoever schedules the workers decides when the next item follows. Otherwise
//! a transaction is one step, which hides nothing an engine may rely on, and something it may not.

use super::{Table, limits, paid};
use crate::rng::Rng;
use crate::units;
use keelway_engine::item::{Item, Key};
use keelway_engine::ports::{PortError, Transacted, Write};

/// What became of a transaction at its beginning.
#[derive(Debug, Clone, PartialEq)]
pub enum Begun {
    /// It is over: cancelled, or visible as a whole.
    Over(Transacted),
    /// It will happen: [`Table::advance`] makes the next item of the one with this number visible.
    Pending(u64),
}

/// What is left of a transaction that was decided; the last one is next.
#[derive(Debug, Clone)]
pub(super) struct Pending(Vec<Part>);

/// An item that a transaction is at.
#[derive(Debug, Clone)]
struct Part {
    key: Key,
    new: Option<Item>,
    /// Only checked: it stays as it is.
    check: bool,
}

impl Table {
    /// `TransactWriteItems`; when `busy`, another transaction is in the way.
    pub fn begin(&mut self, writes: &[Write], busy: bool) -> Result<Begun, PortError> {
        const REQUEST: &str = "TransactWriteItems";
        limits::keys(REQUEST, writes.iter().map(Write::key), 100)?;
        writes.iter().try_for_each(limits::write)?;
        // All of them are asked, so that each partition counts what it refused.
        if writes.iter().filter(|write| !self.admits(write)).count() > 0 {
            return paid::throttled(REQUEST);
        }
        let mut failed: Vec<bool> = writes.iter().map(|write| self.is_pending(write.key()) || !self.holds(write)).collect();
        let (mut parts, mut bytes) = (vec![], 0);
        for (write, failed) in writes.iter().zip(&failed) {
            let present = self.items.get(write.key()).map(|item| &**item);
            let new = if *failed { write.result(present) } else { self.after(write)? };
            let size = |item: Option<&Item>| item.map_or(0, Item::size);
            bytes += size(present).max(size(new.as_ref()));
            parts.push(Part { key: write.key().clone(), new, check: matches!(write, Write::Check(..)) });
        }
        if bytes > limits::TRANSACTION_BYTES {
            return limits::refused(REQUEST, format!("{bytes} bytes: {} are allowed", limits::TRANSACTION_BYTES));
        }
        if busy {
            // Somebody is at one of the items, each in its turn.
            let place = self.begun as usize % failed.len();
            failed[place] = true;
        }
        self.begun += 1;
        let cancelled = failed.contains(&true);
        self.charge_transaction(&parts, cancelled);
        if cancelled {
            return Ok(Begun::Over(Transacted::Cancelled(failed)));
        }
        match &mut self.staged {
            Some(rng) => shuffle(&mut parts, rng),
            None => parts.reverse(),
        }
        let transaction = self.begun;
        self.pending.insert(transaction, Pending(parts));
        if self.staged.is_some() {
            return Ok(Begun::Pending(transaction));
        }
        self.finish_transactions();
        Ok(Begun::Over(Transacted::Done))
    }

    /// Each item twice, once for each phase; the indexes once, if it happens.
    fn charge_transaction(&mut self, parts: &[Part], cancelled: bool) {
        if !self.metered {
            return;
        }
        for Part { key, new, .. } in parts {
            let units = 2.0 * units::write(self.items.get(key).map(|item| &**item), new.as_ref());
            self.pay_write(&key.pk, units);
            if !cancelled {
                self.pay_indexes(key, new.as_ref());
            }
        }
    }

    /// Makes the next item of a transaction visible, or lets go of one that was only checked, and says which; `None`: it is over.
    pub fn advance(&mut self, transaction: u64) -> Option<Key> {
        let Pending(parts) = self.pending.get_mut(&transaction)?;
        let part = parts.pop();
        if parts.is_empty() {
            self.pending.remove(&transaction);
        }
        let Part { key, new, check } = part?;
        if !check {
            self.put(key.clone(), new);
        }
        Some(key)
    }

    /// Whether it has nothing left to make visible.
    pub fn is_over(&self, transaction: u64) -> bool {
        !self.pending.contains_key(&transaction)
    }

    /// Some pending transaction.
    pub fn any_pending(&self, rng: &mut Rng) -> Option<u64> {
        self.pending.keys().nth(rng.below(self.pending.len())).copied()
    }

    /// Makes visible whatever is pending.
    pub fn finish_transactions(&mut self) {
        while let Some(transaction) = self.pending.keys().next().copied() {
            self.advance(transaction);
        }
    }

    /// Transactions that are decided and not visible as a whole.
    pub fn pending_transactions(&self) -> usize {
        self.pending.len()
    }

    /// Whether a transaction is at the item. It lets go of it once the item is visible.
    pub(super) fn is_pending(&self, key: &Key) -> bool {
        self.pending.values().any(|Pending(parts)| parts.iter().any(|part| part.key == *key))
    }
}

fn shuffle<T>(of: &mut [T], rng: &mut Rng) {
    for i in (1..of.len()).rev() {
        of.swap(i, rng.below(i + 1));
    }
}
