//! Random secrets.

use crate::fence::problem::{Answer, Refused};

/// 32 random bytes in hexadecimal.
pub fn random_hex() -> Answer<String> {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        tracing::error!(%error, "the system gives no random bytes");
        Refused::internal()
    })?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
