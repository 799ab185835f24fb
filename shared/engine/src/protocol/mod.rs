//! What every engine does with a message, written once: load the subject, decide, record, commit, settle, acknowledge.
//!
//! An engine supplies its queue and messages ([`Inbox`]), its state and codec ([`Subject`]), its duties ([`Engine`]) and, for each
//! kind of input, what to read and a pure decision ([`Handler`]). [`run`] is the whole path of one message; read it first. Beside
//! it: `owed` (what a commit owes, and who performs it after a crash), `wake` (wake-ups), [`record`] (transition records),
//! [`sweep`] (open work), [`dead_letter`], [`letters`] (what people do with those), [`invalid`], [`page`] (lists in pages).
//!
//! An inbox is no subject: whoever only carries out what engines have decided has a queue too, and keeps no state
//! (`promotions::attempts`, `promotions::observer`, [`deployers`](crate::deployers)). What they do outside has one order of steps:
//! [`work`].
//!
//! What is no subject has verbs of its own: [`declare`] (what people apply), [`fact`] (what somebody has seen), and below both
//! [`change`] (one item, one conditional write).

pub mod change;
pub mod dead_letter;
pub mod declare;
pub mod fact;
mod inbox;
pub mod incoming;
pub mod invalid;
mod kind;
pub mod letters;
pub(crate) mod level;
pub(crate) mod messages;
pub mod open;
mod owed;
pub mod packed;
pub mod page;
pub mod record;
mod run;
mod subject;
pub mod sweep;
mod tick;
mod wake;
pub mod work;

pub use inbox::{Inbox, Letter};
pub use incoming::{Body, Handled, Incoming, OwnMessage, Sameness};
pub(crate) use owed::publish;
pub use owed::settle;
pub use run::{COMMIT_TRIES, Change, Handler, VISIBLE, Verdict, commit, contended, run};
pub use subject::{Effect, Engine, Loaded, Place, RecordOf, Subject, check_format, create, fresh};
pub use wake::{pause, wake};
