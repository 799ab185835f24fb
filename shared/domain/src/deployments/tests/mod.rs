//! The transition table, examples, and properties of long random lives.

mod asked;
mod drift;
mod edges;
mod examples;
mod late;
mod part;
pub mod stand;
mod walk;

use super::Status::{self, Complete, Failed, New, Pending, Running};

#[test]
fn a_status_leads_to_later_ones_only() {
    let allowed: [(Status, &[Status]); 5] = [
        (New, &[Pending, Running, Complete, Failed]),
        (Pending, &[Running, Complete, Failed]),
        (Running, &[Complete, Failed]),
        (Complete, &[]),
        (Failed, &[]),
    ];
    for (from, to) in allowed {
        for next in [New, Pending, Running, Complete, Failed] {
            assert_eq!(from.leads_to(next), to.contains(&next), "{from} to {next}");
        }
    }
}
