//! What requests take of a table: counted, and refused beyond its throughput.

use super::Table;
use crate::quota::Flow;
use crate::units;
use keelway_engine::item::{Item, Key};
use keelway_engine::ports::{Index, PortError, Write};

/// The answer to a request beyond the throughput.
pub(super) fn throttled<R>(request: &'static str) -> Result<R, PortError> {
    Err(PortError::Retry { request, reason: "ProvisionedThroughputExceededException".into() })
}

impl Table {
    pub(super) fn admits_read(&mut self, index: Option<Index>, partition: &str) -> bool {
        self.throughput.as_mut().is_none_or(|throughput| throughput.admits(Flow::Read, index, partition))
    }

    /// The keys that may be read now.
    pub(super) fn admitted<'k>(&mut self, keys: &'k [Key]) -> Vec<&'k Key> {
        keys.iter().filter(|key| self.admits_read(None, &key.pk)).collect()
    }

    /// Whether an item may be written now. An index that is out of throughput refuses the writes that would change it.
    pub(super) fn admits_write(&mut self, key: &Key, new: Option<&Item>) -> bool {
        let Some(throughput) = &mut self.throughput else { return true };
        let old = self.items.get(key).map(|item| &**item);
        throughput.admits(Flow::Write, None, &key.pk)
            && units::entries(old, new).all(|(index, partition, _)| throughput.admits(Flow::Write, Some(index), partition))
    }

    pub(super) fn admits(&mut self, write: &Write) -> bool {
        if self.throughput.is_none() {
            return true;
        }
        let new = write.result(self.items.get(write.key()).map(|item| &**item));
        self.admits_write(write.key(), new.as_ref())
    }

    pub(super) fn pay_read(&mut self, index: Option<Index>, partition: &str, units: f64) {
        self.units.read += units;
        if let Some(throughput) = &mut self.throughput {
            throughput.spend(Flow::Read, index, partition, units);
        }
    }

    /// Pays for a write of the table itself.
    pub(super) fn pay_write(&mut self, partition: &str, units: f64) {
        self.units.write += units;
        if let Some(throughput) = &mut self.throughput {
            throughput.spend(Flow::Write, None, partition, units);
        }
    }

    /// Pays for what a change of an item writes in the indexes.
    pub(super) fn pay_indexes(&mut self, key: &Key, new: Option<&Item>) {
        let old = self.items.get(key).map(|item| &**item);
        for (index, partition, units) in units::entries(old, new) {
            self.units.write += units;
            if let Some(throughput) = &mut self.throughput {
                throughput.spend(Flow::Write, Some(index), partition, units);
            }
        }
    }

    pub(super) fn pay_and_put(&mut self, key: Key, new: Option<Item>) {
        if self.metered {
            let present = self.items.get(&key).map(|item| &**item);
            let units = units::write(present, new.as_ref());
            self.pay_write(&key.pk, units);
            self.pay_indexes(&key, new.as_ref());
        }
        self.put(key, new);
    }
}
