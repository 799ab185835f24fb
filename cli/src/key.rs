//! Keys that sign requests, from files.

use crate::commands::files;
use crate::error::CliError;
use keelway_domain::time::Timestamp;
use keelway_wire::signature::{Keys, ONLY_KEY};
use std::path::Path;

/// A key, its id, and the installation that it signs for. It has no `Debug`: keys are not printed.
#[derive(Clone)]
pub struct Key {
    id: String,
    key: Vec<u8>,
    installation: String,
}

impl Key {
    /// Id and text.
    pub fn parts(&self) -> (&str, &[u8]) {
        (&self.id, &self.key)
    }

    /// For which installation it signs. What the API says of itself does not count: it could name another one, and send it the
    /// request.
    pub fn installation(&self) -> &str {
        &self.installation
    }
}

/// Reads a key: the text of the secret as the API has it, which is a JSON object, or the key alone, without the line break at its
/// end.
///
/// # Errors
/// A file that cannot be read, or has no such key that is still valid; an installation that is not known.
pub fn read(file: &Path, id: Option<&str>, installation: Option<&str>, now: Timestamp) -> Result<Key, CliError> {
    let installation = installation.map(str::trim).filter(|installation| !installation.is_empty()).ok_or_else(|| {
        let why = "a signature names the installation that it is for, and that is not known: give --installation <account>/<region>/<stack>, or set \
                   KEELWAY_INSTALLATION; `keelway doctor` shows it";
        CliError::Usage(why.to_owned())
    })?;
    let installation = installation.to_owned();
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
        return Ok(Key { id: id.to_owned(), key: key.to_owned(), installation });
    }
    let key = text.trim_end_matches(['\r', '\n']);
    if key.is_empty() {
        return Err(usage("is empty: write the key into it"));
    }
    Ok(Key { id: id.unwrap_or(ONLY_KEY).to_owned(), key: key.as_bytes().to_owned(), installation })
}
