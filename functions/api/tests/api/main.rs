//! The API as its clients see it, on the in-memory world: no AWS, no sockets.

mod answers;
mod apply;
mod commands;
mod environments;
mod gateway;
mod raw;
mod reads;
mod stand;
mod texts;
mod triggered;
mod waits;
