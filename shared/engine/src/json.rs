//! Attributes that hold JSON.

use crate::item::Item;
use crate::ports::PortError;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The value of an attribute as JSON.
pub(crate) fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// The value of an attribute that is stored as JSON. Absent: the default.
pub(crate) fn member<T: DeserializeOwned + Default>(item: &Item, name: &str) -> Result<T, PortError> {
    let Some(text) = item.text(name) else { return Ok(T::default()) };
    serde_json::from_str(text)
        .map_err(|error| PortError::Refused { request: "decode", reason: format!("{}: attribute {name}: {error}", item.key) })
}
