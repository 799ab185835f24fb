//! The strict git host: each form through raw HTTP, and through a client that others wrote.

mod forms;
mod recorded;
