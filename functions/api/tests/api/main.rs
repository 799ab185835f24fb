//! The API as its clients see it, on the in-memory world: no AWS, no sockets.

mod apply;
mod commands;
mod environments;
mod gateway;
mod reads;
mod stand;
mod texts;
mod waits;
