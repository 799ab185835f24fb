//! Encodes `multipart/form-data` (RFC 7578), which one of the four APIs needs for files.

use sha2::{Digest, Sha256};

/// The content type and the body for these fields.
pub(crate) fn encode(fields: &[(&str, &str)]) -> (String, Vec<u8>) {
    // The boundary is a hash of the content, so it does not occur in the content.
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
