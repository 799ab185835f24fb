//! Quotas of AWS: what an account in a region may do in a second, and how requests beyond it are refused.

mod bucket;
mod file;
mod throughput;

pub use bucket::Bucket;
pub use file::{File, Limit};
pub use throughput::{Flow, Throughput};

use keelway_domain::time::Timestamp;

/// The figures that bind in one region.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quotas {
    /// Entries of PutEvents a second.
    pub put_events: f64,
    /// Targets of rules invoked a second.
    pub invocations: f64,
    /// Write units a second of one partition key.
    pub key_writes: f64,
    /// Read units a second of one partition key.
    pub key_reads: f64,
    /// Write units a second of the table, and of each index.
    pub table_writes: f64,
    /// Read units a second of the table, and of each index.
    pub table_reads: f64,
    /// Functions that run at once.
    pub concurrency: f64,
    /// More of one function in ten seconds.
    pub ramp: f64,
    /// Batches at once with which a mapping begins.
    pub mapping_start: f64,
    /// More of them each minute.
    pub mapping_ramp: f64,
    /// The most of them.
    pub mapping_most: f64,
    /// Messages of a queue that are received and not deleted.
    pub in_flight: f64,
    /// Schedules created a second.
    pub created: f64,
    /// Schedules that fire a second.
    pub fired: f64,
}

/// One partition's reads and writes are in this proportion, and so are a new table's.
const READS_PER_WRITE: f64 = 3.0;

impl Quotas {
    /// Those of a region, with a new table.
    ///
    /// # Errors
    /// The file has no figures for it.
    pub fn of(region: &str) -> Result<Self, String> {
        let file = File::read()?;
        let figure = |id: &str| file.figure(id, region);
        let key_writes = figure("contextWrites")?;
        Ok(Self {
            put_events: figure("putEvents")?,
            invocations: figure("ruleInvocations")?,
            key_writes,
            key_reads: READS_PER_WRITE * key_writes,
            table_writes: figure("newTableWrites")?,
            table_reads: figure("newTableReads")?,
            concurrency: figure("lambdaConcurrency")?,
            ramp: figure("lambdaRamp")?,
            mapping_start: figure("mappingStart")?,
            mapping_ramp: figure("mappingRamp")?,
            mapping_most: figure("mappingMost")?,
            in_flight: figure("inFlight")?,
            created: figure("schedulesCreated")?,
            fired: figure("schedulesFired")?,
        })
    }

    /// So many times as much of everything. A load that is as many times as large takes the same time.
    #[must_use]
    pub fn times(self, by: f64) -> Self {
        Self {
            put_events: self.put_events * by,
            invocations: self.invocations * by,
            key_writes: self.key_writes * by,
            key_reads: self.key_reads * by,
            table_writes: self.table_writes * by,
            table_reads: self.table_reads * by,
            concurrency: self.concurrency * by,
            ramp: self.ramp * by,
            mapping_start: self.mapping_start * by,
            mapping_ramp: self.mapping_ramp * by,
            mapping_most: self.mapping_most * by,
            in_flight: self.in_flight * by,
            created: self.created * by,
            fired: self.fired * by,
        }
    }
}

/// What refuses requests of the ports to the bus and to Scheduler.
#[derive(Debug, Clone)]
pub struct Throttle {
    /// Entries of PutEvents, of everybody in the account.
    pub put_events: Bucket,
    /// Schedules created.
    pub created: Bucket,
}

impl Throttle {
    /// With these quotas.
    pub fn new(quotas: &Quotas, now: Timestamp) -> Self {
        Self { put_events: Bucket::new(quotas.put_events, now), created: Bucket::new(quotas.created, now) }
    }
}
