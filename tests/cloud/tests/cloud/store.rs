//! The store's contract on the emulator's DynamoDB, in the table the template makes. The in-memory twin keeps the same one.

use crate::bed::Bed;
use keelway_aws::Aws;
use keelway_aws::meter::Meter;
use keelway_cloud_tests::events::fresh;
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Outcome, Problem};
use keelway_engine::item::{Item, Key};
use keelway_engine::ports::{Consistency, Leftover, Page, PortError, Query, Store, Transacted, Write, Written};
use keelway_world::contract::{self, PROPERTIES};

pub fn tests() -> Vec<Test<Bed>> {
    let property = |(number, name): (usize, &&str)| {
        Test::new(format!("store::{name}"), move |bed: &Bed| {
            let prefix = format!("T#{}#", fresh());
            let checked = bed.stack.wait(contract::check(bed.stack.ports(), number, &prefix));
            checked.map_err(|broken| Problem(broken.to_string()))
        })
        .needs(&[])
    };
    let mut tests: Vec<Test<Bed>> = PROPERTIES.iter().enumerate().map(property).collect();
    tests.push(Test::new("store::write units are counted", write_units).needs(&[]));
    tests
}

fn write_units(bed: &Bed) -> Outcome {
    let metered = Metered(bed.stack.ports(), Meter::default());
    let prefix = format!("U#{}#", fresh());
    bed.stack.wait(contract::write_units(&metered, &prefix)).map_err(|broken| Problem(broken.to_string()))
}

/// A store that knows what its writes cost.
struct Metered<'a>(&'a Aws, Meter);

impl contract::Meter for Metered<'_> {
    fn write_units(&self) -> f64 {
        self.1.usage().write_units
    }
}

impl Store for Metered<'_> {
    async fn get(&self, key: &Key) -> Result<Option<Item>, PortError> {
        self.0.get(key).await
    }
    async fn get_batch(&self, keys: &[Key], consistency: Consistency) -> Result<(Vec<Item>, Vec<Key>), PortError> {
        self.0.get_batch(keys, consistency).await
    }
    async fn query(&self, query: &Query) -> Result<Page, PortError> {
        self.0.query(query).await
    }
    async fn put_batch(&self, puts: &[Item], deletes: &[Key]) -> Result<Leftover, PortError> {
        self.0.put_batch(puts, deletes).await
    }
    async fn write(&self, write: &Write) -> Result<Written, PortError> {
        self.1.around(self.0.write(write)).await
    }
    async fn transact(&self, writes: &[Write]) -> Result<Transacted, PortError> {
        self.1.around(self.0.transact(writes)).await
    }
}
