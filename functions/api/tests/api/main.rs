//! The API as its clients see it, on the in-memory world: no AWS, no sockets.

mod apply;
mod commands;
mod gateway;
mod reads;
mod stand;
mod texts;
mod triggered;
