//! The strict git host: each form through raw HTTP, and beside what a real host said. A client that others
//! wrote is in `octocrab`, a workspace of its own.

mod forms;
mod recorded;
