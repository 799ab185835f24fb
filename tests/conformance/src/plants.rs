//! Faults that are planted to show that the tests find them.

use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Looks for every planted fault, two at a time, and prints what each spoils: a seed, and a case. `KEELWAY_PLANT` names one of them.
///
/// # Panics
/// If one spoils neither.
pub fn find<P: Copy + Debug + Ord + Send + Sync>(all: &[P], found: impl Fn(P) -> (Option<String>, Option<String>) + Sync) {
    let only = std::env::var("KEELWAY_PLANT").ok();
    let wanted = |plant: &&P| only.as_ref().is_none_or(|name| *name == format!("{plant:?}"));
    let plants: Vec<P> = all.iter().filter(wanted).copied().collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut all = vec![];
        while let Some(plant) = plants.get(next.fetch_add(1, Ordering::Relaxed)) {
            all.push((*plant, found(*plant)));
        }
        all
    };
    let mut all = std::thread::scope(|scope| {
        let other = scope.spawn(work);
        let mut all = work();
        all.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        all
    });
    all.sort_by_key(|(plant, _)| *plant);
    let short = |what: &Option<String>| what.as_deref().unwrap_or("-").chars().take(140).collect::<String>().replace('\n', " ");
    for (plant, (seed, case)) in &all {
        println!("{plant:?}: {} | {}", short(seed), short(case));
    }
    let missed: Vec<P> = all.iter().filter(|(_, found)| *found == (None, None)).map(|(plant, _)| *plant).collect();
    assert!(missed.is_empty(), "not found: {missed:?}");
}
