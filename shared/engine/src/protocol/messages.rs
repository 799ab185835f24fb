//! How messages of queues are declared.

use serde::Deserialize;
use serde_json::Error;

/// Declares the messages of a queue: an enum of structs. In JSON, a message has the members of its struct, and before them the
/// variant's name in lower case as `keelway`.
///
/// serde reads such an enum into a buffer first, and compiles everything that may be in one once more, to be read from there: a
/// quarter of the engine (docs/decisions/0115). What is declared here is looked at for its name, and then read as that struct.
macro_rules! messages {
    ($(#[$about:meta])* pub enum $name:ident {
        $($(#[$variant_about:meta])* $variant:ident { $($(#[$member:meta])* $field:ident: $of:ty),+ $(,)? }),+ $(,)?
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, ::serde::Serialize)]
        #[serde(tag = "keelway", rename_all = "lowercase")]
        pub enum $name {
            $($(#[$variant_about])* $variant { $($(#[$member])* $field: $of),+ }),+
        }

        impl ::keelway_domain::stored::Stored for $name {
            fn from_json(text: &str) -> Result<Self, ::serde_json::Error> {
                let kind = $crate::protocol::messages::kind(text)?;
                $(
                    if kind == stringify!($variant).to_ascii_lowercase() {
                        #[derive(::serde::Deserialize)]
                        struct Members { $($(#[$member])* $field: $of),+ }
                        let Members { $($field),+ } = ::serde_json::from_str(text)?;
                        return Ok(Self::$variant { $($field),+ });
                    }
                )+
                Err($crate::protocol::messages::unknown(&kind, &[$(stringify!($variant)),+]))
            }
            fn to_json(&self) -> String {
                ::serde_json::to_string(self).unwrap_or_default()
            }
        }
    };
}
pub(crate) use messages;

/// The kind of a message.
pub(crate) fn kind(text: &str) -> Result<String, Error> {
    #[derive(Deserialize)]
    struct Kind {
        keelway: String,
    }
    serde_json::from_str(text).map(|Kind { keelway }| keelway)
}

/// There is no message of this kind here, but these.
pub(crate) fn unknown(kind: &str, known: &[&str]) -> Error {
    let known: Vec<String> = known.iter().map(|variant| format!("`{}`", variant.to_ascii_lowercase())).collect();
    serde::de::Error::custom(format!("unknown message `{kind}`, expected one of {}", known.join(", ")))
}
