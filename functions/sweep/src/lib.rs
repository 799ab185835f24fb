//! The sweep over all engines. [`sweep`] calls them as long as there is time; the program connects them.

mod handler;

pub use handler::{Engines, sweep};
