//! Many seeds, for tests of any scenario.

use super::stats::{Stats, Violation};

/// A number from the environment.
pub fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs the seeds below `count` on two threads; the smallest violated one, or what happened.
///
/// # Errors
/// The violation.
pub fn seeds(count: u64, simulate: impl Fn(u64) -> Result<Stats, Violation> + Sync) -> Result<Stats, Violation> {
    let run = |first: u64| {
        let mut stats = Stats::default();
        for seed in (first..count).step_by(2) {
            stats.merge(&simulate(seed)?);
        }
        Ok::<_, Violation>(stats)
    };
    let (even, odd) = std::thread::scope(|scope| {
        let odd = scope.spawn(|| run(1));
        (run(0), odd.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    match (even, odd) {
        (Ok(mut stats), Ok(other)) => {
            stats.merge(&other);
            Ok(stats)
        }
        (Err(a), Err(b)) => Err(if a.seed < b.seed { a } else { b }),
        (Err(violation), _) | (_, Err(violation)) => Err(violation),
    }
}
