//! `multipart/form-data`, for the one interface that takes a file this way (RFC 7578).

use sha2::{Digest, Sha256};

/// The content type and the body for text fields.
pub(crate) fn encode(fields: &[(&str, &str)]) -> (String, Vec<u8>) {
    // A boundary that follows from the content does not occur in it, short of a broken hash.
    let mut hash = Sha256::new();
    fields.iter().for_each(|(name, value)| {
        hash.update(name.as_bytes());
        hash.update(value.as_bytes());
    });
    let boundary: String = hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let mut body = String::new();
    for (name, value) in fields {
        body += &format!("--{boundary}\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
    }
    body += &format!("--{boundary}--\r\n");
    (format!("multipart/form-data; boundary={boundary}"), body.into_bytes())
}
