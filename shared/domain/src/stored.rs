//! What is stored or sent as JSON.
//!
//! Code that is generic over what it stores uses these traits instead of serde's: serde's functions are generic, and every crate
//! that calls them for a type compiles all of that type's code once more (docs/decisions/0113). These are compiled once, with the
//! type.

use crate::record::Record;
use serde_json::{Error, Value};

/// A type with a text. Implemented by [`stored!`](crate::stored).
pub trait Stored: Sized {
    /// Reads the text.
    ///
    /// # Errors
    /// It is not JSON, or not of this type.
    fn from_json(text: &str) -> Result<Self, Error>;
    /// Reads its text, of which this is the value.
    ///
    /// # Errors
    /// It is not of this type.
    fn from_value(value: &Value) -> Result<Self, Error> {
        Self::from_json(&value.to_string())
    }
    /// The text. Empty if there is none, which for these types does not happen.
    fn to_json(&self) -> String;
}

/// An effect that transition records hold. Implemented by [`recorded!`](crate::recorded).
pub trait Recorded: Sized {
    /// Reads a record.
    ///
    /// # Errors
    /// It is not JSON, or no record.
    fn record_from_json(text: &str) -> Result<Record<Self>, Error>;
    /// The record as JSON.
    ///
    /// # Errors
    /// None that these types have.
    fn record_to_value(record: &Record<Self>) -> Result<Value, Error>;
}

/// Implements [`Stored`] for types with serde's traits.
#[macro_export]
macro_rules! stored {
    ($($of:ty),+ $(,)?) => {$(
        impl $crate::stored::Stored for $of {
            fn from_json(text: &str) -> Result<Self, ::serde_json::Error> {
                ::serde_json::from_str(text)
            }
            fn to_json(&self) -> String {
                ::serde_json::to_string(self).unwrap_or_default()
            }
        }
    )+};
}

/// Implements [`Recorded`] for types with serde's traits.
#[macro_export]
macro_rules! recorded {
    ($($of:ty),+ $(,)?) => {$(
        impl $crate::stored::Recorded for $of {
            fn record_from_json(text: &str) -> Result<$crate::record::Record<Self>, ::serde_json::Error> {
                ::serde_json::from_str(text)
            }
            fn record_to_value(record: &$crate::record::Record<Self>) -> Result<::serde_json::Value, ::serde_json::Error> {
                ::serde_json::to_value(record)
            }
        }
    )+};
}
