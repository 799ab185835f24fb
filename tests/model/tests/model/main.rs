//! Random shipyards with random answers, on the engine in the in-memory world and on the model: both must send the same events.

mod judgements;
mod shipyards;
mod stats;
mod story;

use std::sync::atomic::{AtomicU64, Ordering};

/// The mistakes that can be planted in the model.
const WRONG: [&str; 6] = [
    "a warning fires without selector",
    "follow-ups queue like triggers",
    "an approval keeps the lane",
    "an errored sequence goes on",
    "answers merge as they come",
    "what ran into a deadline starts nothing",
];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn the_engine_does_what_the_model_says() {
    let seeds = number("KEELWAY_MODEL_SEED").map_or(0..number("KEELWAY_MODEL_SEEDS").unwrap_or(2_500), |seed| seed..seed + 1);
    let next = AtomicU64::new(seeds.start);
    let work = || {
        let mut stats = stats::Stats::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return stats;
            }
            let shipyard = shipyards::random(seed);
            match story::tell(seed, &shipyard, "") {
                Ok(told) => stats.add(&told),
                Err(_) => panic!("{}", smallest(seed, shipyard)),
            }
        }
    };
    let stats = std::thread::scope(|scope| {
        let other = scope.spawn(work);
        let mut stats = work();
        stats.add(&other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        stats
    });
    println!("{} random shipyards: {stats:?}", seeds.end - seeds.start);
    // A few stories need not contain everything.
    assert!(seeds.end - seeds.start < 1_000 || stats.is_varied(), "the stories are too plain: {stats:?}");
}

/// Removes parts of the shipyard as long as the seed's story still differs, and returns the difference for a person.
fn smallest(seed: u64, mut shipyard: serde_json::Value) -> String {
    let mut failed = story::tell(seed, &shipyard, "").err().unwrap_or_default();
    while let Some((smaller, error)) = shipyards::smaller(&shipyard)
        .into_iter()
        .find_map(|smaller| story::tell(seed, &smaller, "").err().map(|error| (smaller, error)))
    {
        (shipyard, failed) = (smaller, error);
    }
    format!("KEELWAY_MODEL_SEED={seed}, with the shipyard made smaller:\n{}\n{failed}", shipyards::yaml(&shipyard))
}

#[test]
fn a_mistake_in_the_model_is_noticed() {
    for wrong in WRONG {
        let told = |seed: u64| story::tell(seed, &shipyards::random(seed), wrong).err();
        let found = (0..1_000).find(|seed| told(*seed).is_some());
        let seed = found.unwrap_or_else(|| panic!("{wrong:?} is not noticed"));
        println!("{wrong}: seed {seed}");
    }
}

/// As in the conformance tests: the stories allocate and free small objects all the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
