//! Faults that are planted to show that the tests find them.
//!
//! Which seed and which case find a fault is remembered in `plants.json` and tried first. What no longer finds it, because the
//! engine or its scheduler draws other numbers now, is looked for as if nothing were remembered, and the line to remember is
//! printed.

use crate::sim::{Stats, Violation, number};
use keelway_world::case::{Case, Stand, Tells, run};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The mistakes of a family, each with what is wrong.
macro_rules! plants {
    ($($(#[$wrong:meta])+ $name:ident),+ $(,)?) => {
        /// The mistakes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Plant {
            $($(#[$wrong])+ $name),+
        }

        impl Plant {
            /// All of them.
            pub const ALL: &[Plant] = &[$(Plant::$name),+];
        }
    };
}
pub(crate) use plants;

/// The first seed, and the first case, that a fault spoils.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Finders {
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    case: Option<String>,
}

/// What a fault spoils in a case, if it does.
type Spoiled<P> = Box<dyn Fn(P) -> Option<String> + Send + Sync>;

/// A case that may find a fault.
pub struct Finder<P> {
    id: String,
    spoiled: Spoiled<P>,
}

impl<P: 'static> Finder<P> {
    /// A test by this name, and what a fault spoils in it.
    pub fn new(id: &str, spoiled: impl Fn(P) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { id: id.to_owned(), spoiled: Box::new(spoiled) }
    }

    /// The cases of an engine, told on stands on which it makes a mistake.
    pub fn cases<D, S>(stand: impl Fn(P) -> S + Copy + Send + Sync + 'static) -> Vec<Self>
    where
        D: Tells<S> + Send + Sync + 'static,
        Case<D>: Send + Sync,
        S: Stand,
    {
        let cases: Vec<Case<D>> = keelway_world::case::cases().unwrap_or_else(|error| panic!("{error}"));
        let finder = |case: Case<D>| {
            let id = case.id.clone();
            Self::new(&id, move |plant| run(&case, &mut stand(plant)).err().map(|failure| failure.to_string()))
        };
        cases.into_iter().map(finder).collect()
    }
}

/// Planted faults of one kind, and what may find them.
pub struct Family<'f, P> {
    /// Its name in `plants.json`.
    pub name: &'static str,
    /// The faults.
    pub plants: &'f [P],
    /// A fault must be found in the first so many seeds, or by a case.
    pub seeds: u64,
    /// Runs a seed, with a fault or without.
    pub simulate: &'f (dyn Fn(u64, Option<P>, bool) -> Result<Stats, Violation> + Sync),
    /// The cases.
    pub cases: Vec<Finder<P>>,
}

/// What a fault spoils, and what is wrong there.
struct Found {
    seed: Option<(u64, String)>,
    case: Option<(String, String)>,
    remembered: Option<Finders>,
}

impl Found {
    fn finders(&self) -> Finders {
        Finders { seed: self.seed.as_ref().map(|(seed, _)| *seed), case: self.case.as_ref().map(|(case, _)| case.clone()) }
    }

    /// What to change in `plants.json`, if anything.
    fn to_remember(&self) -> Option<String> {
        let finders = self.finders();
        let new = finders != Finders::default() && self.remembered.as_ref() != Some(&finders);
        new.then(|| serde_json::to_string(&finders).unwrap_or_default())
    }
}

impl<P: Copy + Debug + Ord + Send + Sync> Family<'_, P> {
    /// Looks for every fault, two at a time, and prints what each spoils: a seed, and a case. `KEELWAY_PLANT` names one of them;
    /// `KEELWAY_SURVEY_PLANTS` has all seeds and cases searched from the first.
    ///
    /// # Panics
    /// If one spoils neither.
    pub fn find(&self) {
        let only = std::env::var("KEELWAY_PLANT").ok();
        let plants: Vec<P> =
            self.plants.iter().filter(|plant| only.as_ref().is_none_or(|name| *name == format!("{plant:?}"))).copied().collect();
        let remembered = remembered(self.name);
        let next = AtomicUsize::new(0);
        let work = || {
            let mut all = vec![];
            while let Some(plant) = plants.get(next.fetch_add(1, Ordering::Relaxed)) {
                all.push((*plant, self.found(*plant, remembered.get(&format!("{plant:?}")))));
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
        let short = |text: String| text.chars().take(140).collect::<String>().replace('\n', " ");
        for (plant, found) in &all {
            let seed = found.seed.as_ref().map_or("-".into(), |(seed, rule)| short(format!("seed {seed}: {rule}")));
            let case = found.case.as_ref().map_or("-".into(), |(_, what)| short(what.clone()));
            println!("{plant:?}: {seed} | {case}");
        }
        for (plant, found) in &all {
            if let Some(line) = found.to_remember() {
                println!("plants.json, {}: what is remembered of {plant:?} is stale, write \"{plant:?}\": {line}", self.name);
            }
        }
        let missed: Vec<P> =
            all.iter().filter(|(_, found)| found.finders() == Finders::default()).map(|(plant, _)| *plant).collect();
        assert!(missed.is_empty(), "not found in {} seeds: {missed:?}", self.seeds);
    }

    /// What is remembered, if it still holds; the first seed and the first case otherwise. If it is remembered that no seed, or no
    /// case, finds the fault, none is tried as long as the other one does.
    fn found(&self, plant: P, remembered: Option<&Finders>) -> Found {
        // A seed the engine itself fails on shows nothing.
        let violated =
            |seed| (self.simulate)(seed, Some(plant), false).err().filter(|_| (self.simulate)(seed, None, false).is_ok());
        let in_seed = |seed| violated(seed).map(|violation| (seed, violation.rule));
        let in_case = |case: &Finder<P>| (case.spoiled)(plant).map(|what| (case.id.clone(), what));
        let case_of = |id: &String| self.cases.iter().find(|case| case.id == *id);
        let known = remembered.filter(|_| std::env::var("KEELWAY_SURVEY_PLANTS").is_err()).cloned().unwrap_or_default();
        let mut seed = known.seed.and_then(in_seed);
        let mut case = known.case.as_ref().and_then(case_of).and_then(in_case);
        let found = Finders { seed: seed.as_ref().and(known.seed), case: case.as_ref().and(known.case.clone()) };
        if found != known || known == Finders::default() {
            seed = seed.or_else(|| (0..number("KEELWAY_SEEDS").unwrap_or(self.seeds)).find_map(in_seed));
            case = case.or_else(|| self.cases.iter().find_map(in_case));
        }
        Found { seed, case, remembered: remembered.cloned() }
    }
}

/// What is remembered of a family, by the names of its faults.
fn remembered(family: &str) -> BTreeMap<String, Finders> {
    let all: BTreeMap<String, BTreeMap<String, Finders>> =
        serde_json::from_str(include_str!("../plants.json")).unwrap_or_else(|error| panic!("plants.json: {error}"));
    all.get(family).cloned().unwrap_or_default()
}
