//! The throughput of a table on demand: of all of it, of each index, and of each partition key.

use super::{Bucket, Quotas};
use keelway_domain::time::Timestamp;
use keelway_engine::ports::Index;
use std::collections::HashMap;

/// The direction of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Write units.
    Write,
    /// Read units.
    Read,
}

/// The table and both indexes.
const PLACES: usize = 3;

fn place(index: Option<Index>) -> usize {
    match index {
        None => 0,
        Some(Index::ByWork) => 1,
        Some(Index::ByAge) => 2,
    }
}

/// What is left of one direction.
#[derive(Debug, Clone)]
struct Side {
    key_rate: f64,
    whole: [Bucket; PLACES],
    keys: [HashMap<String, Bucket>; PLACES],
}

impl Side {
    fn new(whole: f64, key_rate: f64, now: Timestamp) -> Self {
        Self { key_rate, whole: std::array::from_fn(|_| Bucket::new(whole, now)), keys: Default::default() }
    }
    fn key(&mut self, place: usize, partition: &str, now: Timestamp) -> Option<&mut Bucket> {
        let keys = &mut self.keys[place];
        if !keys.contains_key(partition) {
            keys.insert(partition.to_owned(), Bucket::new(self.key_rate, now));
        }
        keys.get_mut(partition)
    }
    fn hottest(&self) -> Option<(&str, &Bucket)> {
        let all = self.keys.iter().flatten().map(|(partition, bucket)| (partition.as_str(), bucket));
        all.max_by(|one, other| one.1.seconds().total_cmp(&other.1.seconds()))
    }
    fn fullest(&self) -> &Bucket {
        self.whole.iter().fold(&self.whole[0], |most, bucket| if bucket.seconds() > most.seconds() { bucket } else { most })
    }
    fn refused(&self) -> u64 {
        self.whole.iter().chain(self.keys.iter().flat_map(HashMap::values)).map(|bucket| bucket.refused).sum()
    }
}

/// The throughput of a table and of its indexes.
#[derive(Debug, Clone)]
pub struct Throughput {
    /// The time, set before each request.
    pub now: Timestamp,
    writes: Side,
    reads: Side,
}

impl Throughput {
    /// With these quotas.
    pub fn new(quotas: &Quotas, now: Timestamp) -> Self {
        Self {
            now,
            writes: Side::new(quotas.table_writes, quotas.key_writes, now),
            reads: Side::new(quotas.table_reads, quotas.key_reads, now),
        }
    }

    fn side(&mut self, flow: Flow) -> &mut Side {
        match flow {
            Flow::Write => &mut self.writes,
            Flow::Read => &mut self.reads,
        }
    }

    /// Whether a partition of the table or of an index takes a request now.
    pub fn admits(&mut self, flow: Flow, index: Option<Index>, partition: &str) -> bool {
        let (now, place) = (self.now, place(index));
        let side = self.side(flow);
        side.whole[place].admits(now) && side.key(place, partition, now).is_none_or(|bucket| bucket.admits(now))
    }

    /// Takes the units that a request has used.
    pub fn spend(&mut self, flow: Flow, index: Option<Index>, partition: &str, units: f64) {
        let (now, place) = (self.now, place(index));
        let side = self.side(flow);
        side.whole[place].spend(units);
        if let Some(bucket) = side.key(place, partition, now) {
            bucket.spend(units);
        }
    }

    /// The partition key that took the most of what it may take, in seconds; and the seconds of the table or index of which most
    /// was taken.
    pub fn seconds(&self, flow: Flow) -> ((String, f64), f64) {
        let side = if flow == Flow::Write { &self.writes } else { &self.reads };
        let key = side.hottest().map_or_else(Default::default, |(key, bucket)| (key.to_owned(), bucket.seconds()));
        (key, side.fullest().seconds())
    }

    /// Counts what is used from here on.
    pub fn count_anew(&mut self) {
        for side in [&mut self.writes, &mut self.reads] {
            side.whole.iter_mut().chain(side.keys.iter_mut().flat_map(HashMap::values_mut)).for_each(Bucket::count_anew);
        }
    }

    /// Requests that were refused.
    pub fn refused(&self) -> u64 {
        self.writes.refused() + self.reads.refused()
    }
}
