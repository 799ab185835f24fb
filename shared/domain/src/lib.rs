//! The pure core of Keelway: names, events, manifests as valid types, and the engines' decisions.
//!
//! Nothing here is asynchronous, reads a clock, draws a random number, looks at the environment or knows AWS: time and
//! ids come in as arguments, effects go out as data. Entry point of the sequences engine: [`sequences::decide`].

pub mod access;
pub mod address;
pub mod border;
pub mod cause;
pub mod condition;
pub mod deployments;
pub mod diff;
pub mod evaluation;
pub mod evaluations;
pub mod event;
pub mod ids;
pub mod json;
pub mod level;
pub mod names;
pub mod note;
pub mod pattern;
pub mod payload;
pub mod promotions;
pub mod record;
pub mod schedules;
pub mod sequences;
pub mod shipyard;
pub mod stored;
pub mod time;
pub mod webhooks;
pub mod windows;
