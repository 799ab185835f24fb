//! What every engine does with a message, written once: load the subject, decide, record, commit, settle, acknowledge.
//!
//! An engine supplies its state and codec ([`Subject`]), its messages and duties ([`Engine`]) and, for each kind of input, what to read
//! and a pure decision ([`Handler`]). [`run`] is the whole path of one message; read it first. Beside it: [`record`] (transition
//! records), [`sweep`] (open work), [`dead_letter`], [`letters`] (what people do with those), [`invalid`], [`page`] (lists in pages).
//!
//! What is no subject has verbs of its own: [`declare`] (what people apply), [`fact`] (what somebody has seen), and below both [`change`]
//! (one item, one conditional write).

pub mod change;
pub mod dead_letter;
pub mod declare;
pub mod delivery;
pub mod fact;
pub mod invalid;
mod kind;
pub mod letters;
pub mod page;
pub mod record;
mod run;
mod subject;
pub mod sweep;
mod tick;

pub use delivery::{Body, Delivery, Handled};
pub use run::{COMMIT_TRIES, Change, Handler, VISIBLE, Verdict, commit, contended, run, settle, wake};
pub use subject::{Effect, Engine, Letter, Loaded, Place, RecordOf, Subject, check_format, create, fresh};
