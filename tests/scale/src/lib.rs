//! Loads that meet the quotas of AWS, played through in an account of one region: deliveries at once, a window that opens for many,
//! one context with many executions, pipelines that are observed, an executor that comes back, a day that is replayed.
//!
//! A load may be smaller by a factor. Then the quotas are smaller by the same factor, so it takes the same time.

mod deliveries;
mod executor;
pub mod flat;
pub mod page;
mod pipelines;
mod result;

pub use deliveries::{burst, one_context, outage, replay, window};
pub use pipelines::observed;
pub use result::Outcome;

use keelway_domain::time::{Span, Timestamp};
use keelway_world::account::{MESSAGE, REQUEST, Settings};
use keelway_world::quota::Quotas;

/// When every load begins: a Wednesday in the evening.
const BEGIN: Timestamp = Timestamp(1_795_000_000_000);
/// In which nothing is throttled: what a load costs without quotas.
const BOUNDLESS: f64 = 1e6;

/// Where a load is played, and how large it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    /// The region.
    pub region: &'static str,
    /// How many times smaller than in full.
    pub factor: usize,
    /// `SequencesConcurrency` in full.
    pub concurrency: usize,
    /// Whether quotas bind.
    pub bound: bool,
}

impl Place {
    /// With quotas, and `SequencesConcurrency` as the template has it.
    pub fn new(region: &'static str, factor: usize) -> Self {
        Self { region, factor, concurrency: 100, bound: true }
    }
    /// The same without quotas.
    pub fn boundless(self) -> Self {
        Self { bound: false, ..self }
    }

    fn share(&self, of: usize) -> usize {
        of.div_ceil(self.factor)
    }

    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    fn quotas(&self) -> Quotas {
        let quotas = Quotas::of(self.region).expect("infra/quotas.json has it");
        if self.bound { quotas.times(1.0 / self.factor as f64) } else { quotas.times(BOUNDLESS) }
    }

    /// Less than one environment is one that takes longer.
    fn settings(&self) -> Settings {
        let concurrency = self.share(self.concurrency);
        let slower = i64::try_from((concurrency * self.factor).div_ceil(self.concurrency)).unwrap_or(1).max(1);
        Settings { concurrency, batch: 10, request: Span(REQUEST.0 * slower), message: Span(MESSAGE.0 * slower) }
    }
}

/// The longest that a load is waited for.
const LONGEST: Span = Span::minutes(14 * 24 * 60);
