//! Promotions: cost and latency.
//!
//! Costs are counted with all engines in the in-memory world, whose requests and units are those of AWS: for some pipelines with
//! the real client of git hosts against the strict host of the tests, and for many with a host in memory. Only latencies are
//! measured on the deployed stack.

mod cost;
mod hosts;
mod latency;
mod rest;
mod stand;

pub use hosts::SHARING;
pub use latency::attempts;

use crate::report::Report;
use crate::size::Size;
use keelway_cloud_tests::Problem;

/// Counts what can be counted without a stack.
pub fn count(report: &mut Report, size: &Size, say: &dyn Fn(&str)) -> Result<(), Problem> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Problem::of("a runtime", error))?;
    say("counting promotions by notification and by pull request");
    runtime.block_on(cost::measure(report))?;
    say("eight hours of pipelines with open pull requests on a strict git host");
    runtime.block_on(rest::small(report, size.hosted))?;
    say(&format!("the same eight hours for {:?} pipelines", size.pipelines));
    runtime.block_on(rest::many(report, size.pipelines))
}
