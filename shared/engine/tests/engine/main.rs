//! Tests of what the engines share, without a world: names of items, pages, pauses, texts in fewer bytes. They are here and not
//! beside the code because a library with tests is compiled twice, and this one takes longest.

mod commands;
mod keys;
mod messages;
mod packed;
mod pages;
mod places;
mod register;
mod remembered;
mod words;
