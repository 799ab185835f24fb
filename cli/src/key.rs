//! Keys that sign requests, from files.

use crate::commands::files;
use crate::error::CliError;
use keelway_domain::time::Timestamp;
use keelway_wire::signature::{Keys, ONLY_KEY};
use std::path::Path;

/// A key and its id. It has no `Debug`: keys are not printed.
#[derive(Clone)]
pub struct Key {
    id: String,
    key: Vec<u8>,
}

impl Key {
    /// Id and text.
    pub fn parts(&self) -> (&str, &[u8]) {
        (&self.id, &self.key)
    }
}

/// Reads a key: the text of the secret as the API has it, which is a JSON object, or the key alone, without the line break at its end.
///
/// # Errors
/// A file that cannot be read, or has no such key that is still valid.
pub fn read(file: &Path, id: Option<&str>, now: Timestamp) -> Result<Key, CliError> {
    let files::Text { name, text } = files::read(file)?;
    let usage = |why: &str| CliError::Usage(format!("{name} {why}"));
    if text.trim_start().starts_with('{') {
        let form = "write it as {\"keys\": [{\"id\": …, \"key\": …}]} or {\"hmac-key\": …}, or the key alone";
        let keys = Keys::read(&text).ok_or_else(|| usage(&format!("holds no keys: {form}")))?;
        let found = match id {
            Some(id) => keys.named(id, now),
            None => keys.current(now),
        };
        let which = id.map_or_else(|| "no key".to_owned(), |id| format!("no key {id:?}"));
        let (id, key) =
            found.ok_or_else(|| usage(&format!("holds {which} that is still valid: look at `id` and `notAfter` in it")))?;
        return Ok(Key { id: id.to_owned(), key: key.to_owned() });
    }
    let key = text.trim_end_matches(['\r', '\n']);
    if key.is_empty() {
        return Err(usage("is empty: write the key into it"));
    }
    Ok(Key { id: id.unwrap_or(ONLY_KEY).to_owned(), key: key.as_bytes().to_owned() })
}
