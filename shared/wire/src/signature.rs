//! Signed requests: who holds a key proves it without sending it.
//!
//! The signature is an HMAC over a canonical text of the whole request: for which installation it is, method, path, query, time,
//! nonce and the body's digest. So it is of no use for another request, at another time, a second time (the receiver remembers
//! nonces), or at another installation that has the same key. A request has four headers:
//!
//! | header | value |
//! |---|---|
//! | [`KEY`] | the id of the key |
//! | [`TIMESTAMP`] | seconds since 1970 |
//! | [`NONCE`] | 16 to 128 letters, digits, `-` and `_`, never used before with this key |
//! | [`SIGNATURE`] | `sha256=`, `sha384=` or `sha512=` and the HMAC in lower-case hexadecimal |

use hmac::{Hmac, KeyInit, Mac};
use keelway_domain::ids::sha256_hex;
use keelway_domain::time::{Span, Timestamp};
use serde_json::Value;
use sha2::{Sha256, Sha384, Sha512};

/// The header with the key's id.
pub const KEY: &str = "x-keelway-key";
/// The header with the time.
pub const TIMESTAMP: &str = "x-keelway-timestamp";
/// The header with the nonce.
pub const NONCE: &str = "x-keelway-nonce";
/// The header with the signature.
pub const SIGNATURE: &str = "x-keelway-signature";
/// The four headers.
pub const HEADERS: [&str; 4] = [KEY, TIMESTAMP, NONCE, SIGNATURE];
/// How far the time of a request may be from the receiver's.
pub const SKEW: Span = Span::minutes(5);
/// The id of the key in a secret as Weave has it, which holds only one.
pub const ONLY_KEY: &str = "hmac-key";

/// The first line of the canonical text: the version of its form.
const VERSION: &str = "keelway-signature-v2";

/// The hash function of the HMAC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// HMAC-SHA256.
    #[default]
    Sha256,
    /// HMAC-SHA384.
    Sha384,
    /// HMAC-SHA512.
    Sha512,
}

impl Algorithm {
    const ALL: [Self; 3] = [Self::Sha256, Self::Sha384, Self::Sha512];

    /// As the header names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
        }
    }

    fn mac(self, key: &[u8], text: &[u8]) -> Vec<u8> {
        fn of<M: Mac + KeyInit>(key: &[u8], text: &[u8]) -> Vec<u8> {
            // Keys of any length are taken.
            <M as KeyInit>::new_from_slice(key)
                .map(|mac| mac.chain_update(text).finalize().into_bytes().to_vec())
                .unwrap_or_default()
        }
        match self {
            Self::Sha256 => of::<Hmac<Sha256>>(key, text),
            Self::Sha384 => of::<Hmac<Sha384>>(key, text),
            Self::Sha512 => of::<Hmac<Sha512>>(key, text),
        }
    }

    /// Compares in constant time.
    fn verifies(self, key: &[u8], text: &[u8], mac: &[u8]) -> bool {
        fn of<M: Mac + KeyInit>(key: &[u8], text: &[u8], mac: &[u8]) -> bool {
            <M as KeyInit>::new_from_slice(key).is_ok_and(|known| known.chain_update(text).verify_slice(mac).is_ok())
        }
        match self {
            Self::Sha256 => of::<Hmac<Sha256>>(key, text, mac),
            Self::Sha384 => of::<Hmac<Sha384>>(key, text, mac),
            Self::Sha512 => of::<Hmac<Sha512>>(key, text, mac),
        }
    }
}

/// What is signed of a request.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// For which installation: `<account>/<region>/<stack>`. Whoever signs knows it from elsewhere: what a receiver says of itself
    /// may be another's name.
    pub installation: &'a str,
    /// In upper case.
    pub method: &'a str,
    /// From `/v1/` on, percent-encoded as it is sent.
    pub path: &'a str,
    /// Without `?`, percent-encoded as it is sent; its parameters are signed in sorted order.
    pub query: &'a str,
    /// As it is sent.
    pub body: &'a [u8],
}

impl Request<'_> {
    /// The text that is signed.
    fn canonical(&self, timestamp: &str, nonce: &str) -> String {
        let mut query: Vec<&str> = self.query.split('&').filter(|part| !part.is_empty()).collect();
        query.sort_unstable();
        [VERSION, self.installation, self.method, self.path, &query.join("&"), timestamp, nonce, &sha256_hex(self.body)].join("\n")
    }
}

/// The values of the four headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// [`KEY`]
    pub key: String,
    /// [`TIMESTAMP`]
    pub timestamp: String,
    /// [`NONCE`]
    pub nonce: String,
    /// [`SIGNATURE`]
    pub signature: String,
}

impl Signed {
    /// Signs a request.
    pub fn new(request: &Request<'_>, key: (&str, &[u8]), algorithm: Algorithm, at: Timestamp, nonce: &str) -> Self {
        let timestamp = at.0.div_euclid(1000).to_string();
        let mac = algorithm.mac(key.1, request.canonical(&timestamp, nonce).as_bytes());
        let digits: String = mac.iter().map(|byte| format!("{byte:02x}")).collect();
        let signature = format!("{}={digits}", algorithm.name());
        Self { key: key.0.to_owned(), timestamp, nonce: nonce.to_owned(), signature }
    }

    /// The headers of a request; `value` gives a header's value if it is there exactly once.
    pub fn read<'h>(value: impl Fn(&str) -> Option<&'h str>) -> Option<Self> {
        let [key, timestamp, nonce, signature] = HEADERS.map(|name| value(name).map(str::to_owned));
        Some(Self { key: key?, timestamp: timestamp?, nonce: nonce?, signature: signature? })
    }

    /// Name and value of each header.
    pub fn headers(&self) -> [(&'static str, &str); 4] {
        [(KEY, &self.key), (TIMESTAMP, &self.timestamp), (NONCE, &self.nonce), (SIGNATURE, &self.signature)]
    }

    /// When it was signed, if that is near enough to `now` and the nonce has its form.
    pub fn in_time(&self, now: Timestamp) -> Option<Timestamp> {
        let digits = self.timestamp.len() <= 12 && self.timestamp.bytes().all(|byte| byte.is_ascii_digit());
        let at = self.timestamp.parse::<i64>().ok().filter(|_| digits).map(|seconds| Timestamp(seconds * 1000))?;
        let form = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let nonce = (16..=128).contains(&self.nonce.len()) && self.nonce.bytes().all(form);
        (nonce && (now.0 - at.0).abs() <= SKEW.0).then_some(at)
    }

    /// Whether one of the keys signed this request. The caller also checks the time ([`Self::in_time`]) and remembers the nonce.
    pub fn verify(&self, request: &Request<'_>, keys: &Keys, now: Timestamp) -> bool {
        let Some((algorithm, mac)) = self.mac() else { return false };
        let text = request.canonical(&self.timestamp, &self.nonce);
        let verifies = |key: &Key| algorithm.verifies(&key.key, text.as_bytes(), &mac);
        keys.0.iter().filter(|key| key.id == self.key && key.not_after.is_none_or(|end| now <= end)).any(verifies)
    }

    fn mac(&self) -> Option<(Algorithm, Vec<u8>)> {
        let (name, digits) = self.signature.split_once('=')?;
        let algorithm = Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name)?;
        let nibble = |digit: u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        let pairs = digits.as_bytes().chunks(2);
        let mac = pairs.map(|pair| if let [high, low] = pair { Some(nibble(*high)? << 4 | nibble(*low)?) } else { None });
        Some((algorithm, mac.collect::<Option<Vec<u8>>>()?))
    }
}

/// The keys of a secret. While a key is replaced, both are in it.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys(Vec<Key>);

#[derive(Clone, PartialEq, Eq)]
struct Key {
    id: String,
    key: Vec<u8>,
    not_after: Option<Timestamp>,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} keys", self.0.len())
    }
}

impl Keys {
    /// Reads the text of a secret: `{"keys": [{"id": …, "key": …, "notAfter": …}, …]}`, `notAfter` in RFC 3339 and optional; or
    /// `{"hmac-key": …}` as Weave has it, whose key has the id [`ONLY_KEY`]. Keys that cannot be read or are empty are left out;
    /// `None`: no key is left.
    pub fn read(secret: &str) -> Option<Self> {
        let secret: Value = serde_json::from_str(secret).ok()?;
        let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let key = |entry: &Value| {
            let not_after = match entry.get("notAfter") {
                None | Some(Value::Null) => None,
                Some(end) => Some(Timestamp::parse(end.as_str()?)?),
            };
            Some(Key { id: text(entry, "id")?, key: text(entry, "key")?.into_bytes(), not_after })
        };
        let listed = secret.get("keys").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let only = text(&secret, ONLY_KEY).map(|key| Key { id: ONLY_KEY.into(), key: key.into_bytes(), not_after: None });
        let keys: Vec<Key> = listed.iter().filter_map(key).chain(only).filter(|key| !key.key.is_empty()).collect();
        (!keys.is_empty()).then_some(Self(keys))
    }

    /// The key of this id that is still valid, to sign with: its id and text.
    pub fn named(&self, id: &str, now: Timestamp) -> Option<(&str, &[u8])> {
        let valid = self.0.iter().find(|key| key.id == id && key.not_after.is_none_or(|end| now <= end))?;
        Some((&valid.id, &valid.key))
    }

    /// The first key that is still valid, to sign with: its id and text.
    pub fn current(&self, now: Timestamp) -> Option<(&str, &[u8])> {
        let valid = self.0.iter().find(|key| key.not_after.is_none_or(|end| now <= end))?;
        Some((&valid.id, &valid.key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_795_000_000_000);
    const HERE: &str = "123456789012/eu-central-1/keelway";
    const PATH: &str = "/v1/pipelines/shop/carts/environments/prod/revisions/feature%2Fx%40sha1%3Aabc/approval";

    fn request(body: &[u8]) -> Request<'_> {
        Request { installation: HERE, method: "POST", path: PATH, query: "b=2&a=1", body }
    }

    #[test]
    fn the_canonical_text_is_what_the_page_says() {
        let text = request(b"{}").canonical("1795000000", "n0nce");
        let digest = sha256_hex(b"{}");
        assert_eq!(text, format!("keelway-signature-v2\n{HERE}\nPOST\n{PATH}\na=1&b=2\n1795000000\nn0nce\n{digest}"));
        // As any other implementation computes it:
        // printf '%s' "$text" | openssl dgst -sha256 -hmac key
        let signed = Signed::new(
            &Request { path: "/", query: "", ..request(b"") },
            ("k", b"key"),
            Algorithm::Sha256,
            NOW,
            "0123456789abcdef",
        );
        assert_eq!(signed.signature, "sha256=9aeeb5f097922c77149987aa339d7a1c4875dfedcef991ae8adf47cccf367e8e");
    }

    #[test]
    fn every_algorithm_and_key_id_verifies_until_it_ends() {
        let keys = Keys::read(
            r#"{"keys": [{"id": "new", "key": "k2"}, {"id": "old", "key": "k1", "notAfter": "2026-11-20T00:00:00Z"}, {"id": "broken", "key": "k3", "notAfter": "soon"}, {"id": "empty", "key": ""}]}"#,
        )
        .unwrap();
        assert_eq!(format!("{keys:?}"), "2 keys");
        let before = Timestamp::parse("2026-11-19T23:59:00Z").unwrap();
        assert_eq!(keys.current(before), Some(("new", "k2".as_bytes())));
        let after = Timestamp::parse("2026-11-20T00:00:01Z").unwrap();
        assert_eq!((keys.named("old", before), keys.named("old", after)), (Some(("old", "k1".as_bytes())), None));
        for algorithm in Algorithm::ALL {
            for (id, key, now, ok) in [
                ("new", "k2", NOW, true),
                ("old", "k1", before, true),
                ("old", "k1", Timestamp::parse("2026-11-20T00:00:01Z").unwrap(), false),
                ("new", "k1", NOW, false),
                ("broken", "k3", NOW, false),
                ("empty", "", NOW, false),
            ] {
                let signed = Signed::new(&request(b"x"), (id, key.as_bytes()), algorithm, now, "0123456789abcdef");
                assert_eq!(signed.verify(&request(b"x"), &keys, now), ok, "{algorithm:?} {id} {key}");
                assert!(!signed.verify(&request(b"y"), &keys, now));
            }
        }
        assert_eq!((Keys::read("{}"), Keys::read("hmac"), Keys::read(r#"{"hmac-key": ""}"#)), (None, None, None));
        let weave = Keys::read(r#"{"hmac-key": "k"}"#).unwrap();
        let signed = Signed::new(&request(b""), (ONLY_KEY, b"k"), Algorithm::Sha512, NOW, "0123456789abcdef");
        assert!(signed.verify(&request(b""), &weave, NOW));
    }

    #[test]
    fn a_signature_is_of_no_use_at_another_installation_that_has_the_key() {
        let keys = Keys::read(r#"{"hmac-key": "key"}"#).unwrap();
        let signed = Signed::new(&request(b""), (ONLY_KEY, b"key"), Algorithm::Sha256, NOW, "0123456789abcdef");
        assert!(signed.verify(&request(b""), &keys, NOW));
        for installation in
            ["", "123456789012/eu-central-1/staging", "210987654321/eu-central-1/keelway", "123456789012/eu-west-1/keelway"]
        {
            assert!(!signed.verify(&Request { installation, ..request(b"") }, &keys, NOW), "{installation}");
        }
    }

    #[test]
    fn time_and_nonce_have_their_bounds() {
        let signed = Signed::new(&request(b""), ("k", b"key"), Algorithm::Sha256, NOW, "0123456789abcdef");
        assert_eq!(signed.in_time(NOW + SKEW), Some(NOW));
        assert_eq!(signed.in_time(Timestamp(NOW.0 - SKEW.0)), Some(NOW));
        assert_eq!((signed.in_time(Timestamp(NOW.0 + SKEW.0 + 1)), signed.in_time(Timestamp(NOW.0 - SKEW.0 - 1))), (None, None));
        for timestamp in ["", "+1795000000", "1795000000.0", " 1795000000", "99999999999999999999"] {
            assert_eq!(Signed { timestamp: timestamp.into(), ..signed.clone() }.in_time(NOW), None, "{timestamp}");
        }
        for nonce in ["short", "0123456789abcde\n", &"x".repeat(129)] {
            assert_eq!(Signed { nonce: nonce.into(), ..signed.clone() }.in_time(NOW), None, "{nonce}");
        }
    }

    #[test]
    fn a_signature_has_one_form() {
        let keys = Keys::read(r#"{"hmac-key": "key"}"#).unwrap();
        let signed = Signed::new(&request(b""), (ONLY_KEY, b"key"), Algorithm::Sha256, NOW, "0123456789abcdef");
        for other in [
            signed.signature.to_uppercase(),
            signed.signature.replace("sha256", "sha512"),
            signed.signature.replace("sha256", "md5"),
            signed.signature[..signed.signature.len() - 1].to_owned(),
            signed.signature[..30].to_owned(),
            "sha256=".to_owned(),
            format!("{}00", signed.signature),
            signed.signature.replace('=', ""),
        ] {
            assert!(!Signed { signature: other.clone(), ..signed.clone() }.verify(&request(b""), &keys, NOW), "{other}");
        }
        assert!(signed.verify(&request(b""), &keys, NOW));
        let values = signed.headers();
        let found = |name: &str| values.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        assert_eq!(Signed::read(found), Some(signed.clone()));
        assert_eq!(Signed::read(|name| found(name).filter(|_| name != NONCE)), None);
    }
}
