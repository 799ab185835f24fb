//! What holds for every request.

mod collisions;
mod cursors;
mod documented;
pub mod identity;
mod limited;
mod openapi;
mod paces;
mod page;
mod people;
mod raw;
mod repeated;
mod texts;
