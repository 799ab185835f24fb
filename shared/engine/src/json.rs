//! Attributes that hold JSON.

use crate::item::Item;
use crate::ports::PortError;
use keelway_domain::stored::Stored;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The value of an attribute as JSON.
pub(crate) fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// The value of an attribute that is stored as JSON, of a type that is not [`Stored`]. Absent: the default.
pub(crate) fn member<T: DeserializeOwned + Default>(item: &Item, name: &str) -> Result<T, PortError> {
    let Some(text) = item.text(name) else { return Ok(T::default()) };
    serde_json::from_str(text).map_err(|error| unreadable(item, name, &error))
}

/// The value of an attribute that is stored as JSON, of a type that is read where it is declared; `None` if it is absent.
pub(crate) fn stored<T: Stored>(item: &Item, name: &str) -> Result<Option<T>, PortError> {
    item.text(name).map(T::from_json).transpose().map_err(|error| unreadable(item, name, &error))
}

/// An attribute is not the JSON that it should be.
fn unreadable(item: &Item, name: &str, error: &serde_json::Error) -> PortError {
    PortError::Refused { request: "decode", reason: format!("{}: attribute {name}: {error}", item.key) }
}
