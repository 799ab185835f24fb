//! The signatures of Standard Webhooks: HMAC-SHA256 over `<id>.<timestamp>.<body>`.

use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD as BASE64};
use base64::engine::{DecodePaddingMode, Engine};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The prefix of a secret. The rest is the key in Base64.
const PREFIX: &str = "whsec_";
/// Keys are accepted with and without padding.
const KEYS: GeneralPurpose =
    GeneralPurpose::new(&ALPHABET, GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent));

/// The header `webhook-signature`. `secret`: one key, or several during a rotation, separated by white space; each key makes a
/// signature. A key is Base64 with or without `whsec_` in front, as in the reference libraries of Standard Webhooks. `at`: seconds
/// since 1970. `None`: there is no key, or one is not Base64.
pub fn sign(secret: &str, id: &str, at: i64, body: &str) -> Option<String> {
    let signatures: Option<Vec<String>> = secret.split_ascii_whitespace().map(|key| one(key, id, at, body)).collect();
    signatures.filter(|all| !all.is_empty()).map(|all| all.join(" "))
}

fn one(key: &str, id: &str, at: i64, body: &str) -> Option<String> {
    let key = KEYS.decode(key.strip_prefix(PREFIX).unwrap_or(key)).ok().filter(|key| !key.is_empty())?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
    mac.update(format!("{id}.{at}.{body}").as_bytes());
    Some(format!("v1,{}", BASE64.encode(mac.finalize().into_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";

    /// The test vector of the reference libraries of Standard Webhooks.
    #[test]
    fn the_published_vector() {
        let signature = sign(KEY, ID, 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signature.as_deref(), Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
    }

    /// The reference libraries accept both spellings.
    #[test]
    fn a_key_is_the_same_with_and_without_its_prefix() {
        let bare = KEY.trim_start_matches(PREFIX);
        assert_eq!(sign(bare, ID, 1, "{}"), sign(KEY, ID, 1, "{}"));
        assert_eq!(sign("whsec_cGxhaW4=", ID, 1, "{}"), sign("cGxhaW4", ID, 1, "{}"), "padding");
    }

    #[test]
    fn while_keys_are_rotated_there_is_a_signature_with_each() {
        let two = sign(&format!("{KEY}\n whsec_AAAA\n"), ID, 1, "{}").unwrap();
        let (one, other) = two.split_once(' ').unwrap();
        assert_eq!((Some(one.to_owned()), Some(other.to_owned())), (sign(KEY, ID, 1, "{}"), sign("whsec_AAAA", ID, 1, "{}")));
        assert_ne!(one, other);
    }

    #[test]
    fn whatever_is_signed_changes_the_signature() {
        let signature = |id: &str, at, body: &str| sign(KEY, id, at, body).unwrap();
        let all = [signature(ID, 1, "{}"), signature("other", 1, "{}"), signature(ID, 2, "{}"), signature(ID, 1, "{ }")];
        assert!(all.iter().enumerate().all(|(n, one)| !all[..n].contains(one)));
    }

    #[test]
    fn what_is_no_key_signs_nothing() {
        for secret in ["", "whsec_%", "whsec_", "plain text", "whsk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_AAAA no-key"] {
            assert_eq!(sign(secret, ID, 1, ""), None, "{secret:?}");
        }
    }
}
