//! What every [`Store`] must do: the in-memory twin and the one on DynamoDB pass the same properties, so what the simulation proves
//! on the twin holds for the table.
//!
//! Each property works in partitions that begin with the given prefix, so many may run in one table at the same time.

mod limits;
mod reads;
mod units;
mod writes;

pub use units::write_units;

use keelway_engine::item::{Attrs, Key};
use keelway_engine::ports::{Condition, PortError, Store, Write};

/// A store that knows what its writes cost.
pub trait Meter {
    /// Write request units consumed so far.
    fn write_units(&self) -> f64;
}

impl Meter for crate::worker::Worker {
    fn write_units(&self) -> f64 {
        self.core().table.units.write
    }
}

/// Why a property does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// A request failed that should not.
    #[error("a request failed: {0}")]
    Request(#[from] PortError),
    /// The store answered otherwise.
    #[error("{what}: expected {expected}, got {got}")]
    Differs {
        /// What was looked at.
        what: &'static str,
        /// What should have come.
        expected: String,
        /// What came.
        got: String,
    },
}

fn same<T: PartialEq + std::fmt::Debug>(what: &'static str, got: T, expected: T) -> Result<(), Broken> {
    if got == expected {
        return Ok(());
    }
    Err(Broken::Differs { what, expected: format!("{expected:?}"), got: format!("{got:?}") })
}

/// The properties' names, in the order of [`check`]'s numbers.
pub const PROPERTIES: [&str; 17] = [
    "a failed condition returns the old item",
    "a version guards an item, and an item without one has none",
    "an update touches only what it names",
    "a transaction happens whole or not at all, and says why",
    "a partition is read in pages, both ways",
    "an index holds keys only and is read in pages",
    "batches write and read everything once leftovers are sent again",
    "an item that is too large is refused",
    "limits of batches and duplicate keys are refused",
    "a write may compare attributes and raise the version",
    "keys that are empty or too long are refused, in reads as well",
    "a page starts only where one of the same query could have ended",
    "a page ends with the item that reaches 1 MB",
    "a page of an index ends with the entry that reaches 1 MB",
    "a transaction holds at most 4 MB",
    "a whole item's size is refused before its condition is tested, an update's after it",
    "a write may add to a number and leave the version as it is",
];

/// Checks one property by its place in [`PROPERTIES`].
pub async fn check<S: Store>(store: &S, property: usize, prefix: &str) -> Result<(), Broken> {
    let at = |sk: &str| Key::new(format!("{prefix}{property}"), sk);
    let pk = &at("").pk;
    match property {
        0 => writes::old_item(store, at("a")).await,
        1 => writes::versions(store, at("a")).await,
        2 => writes::update(store, at("a")).await,
        3 => writes::transaction(store, pk).await,
        4 => reads::pages(store, pk).await,
        5 => reads::index(store, pk).await,
        6 => reads::batches(store, pk).await,
        7 => limits::sizes(store, at("a")).await,
        8 => limits::counts(store, pk).await,
        9 => writes::matching(store, pk).await,
        10 => limits::keys(store, pk).await,
        11 => limits::starts(store, pk).await,
        12 => limits::page(store, pk).await,
        13 => limits::index_page(store, pk).await,
        14 => limits::large_transaction(store, pk).await,
        15 => limits::size_and_condition(store, at("a")).await,
        _ => writes::adding(store, pk).await,
    }
}

/// What DynamoDB keeps and the local cloud's emulator does not, and what that does instead: asked of the twin only.
pub const TWIN_ONLY: [(&str, &str); 4] = [
    ("an update that names an attribute twice is refused", "the emulator carries out one clause after the other"),
    (
        "bounds of a query and keys in a transaction that are too long are refused",
        "the emulator takes bounds of any length, and in a transaction it looks at the keys of puts only",
    ),
    ("keys of an index that are too long are refused", "the emulator takes index keys of any length that is not 0"),
    ("a batch answers at most 16 MB", "the emulator answers everything at once"),
];

/// Checks one property by its place in [`TWIN_ONLY`].
pub async fn check_twin<S: Store>(store: &S, property: usize, prefix: &str) -> Result<(), Broken> {
    let pk = &format!("{prefix}twin{property}");
    match property {
        0 => writes::named_twice(store, Key::new(pk, "a")).await,
        1 => limits::bounds(store, pk).await,
        2 => limits::index_keys(store, pk).await,
        _ => limits::large_batch(store, pk).await,
    }
}

fn refusal<T: std::fmt::Debug>(what: &'static str, result: Result<T, PortError>) -> Result<(), Broken> {
    match result {
        Err(PortError::Refused { .. }) => Ok(()),
        other => Err(Broken::Differs { what, expected: "a refusal".into(), got: format!("{other:?}") }),
    }
}

/// An update from that version to the next.
fn bump(key: &Key, version: i64) -> Write {
    let set = Attrs::from([("v".into(), (version + 1).into())]);
    Write::Update { key: key.clone(), condition: Condition::Version(version), set, remove: vec![], raise: false }
}
