//! Addresses of definitions: a namespace, which is a project, and a name.

use serde::{Deserialize, Serialize};

/// The address of a definition, and of the messages for it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Address {
    /// The project. Empty for a definition that belongs to the installation.
    #[serde(rename = "p")]
    pub namespace: String,
    /// The name in the namespace.
    #[serde(rename = "n")]
    pub name: String,
}

impl Address {
    /// The address of a name in a namespace.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// Parses `<namespace>/<name>`, or the name of a definition that belongs to the installation.
    pub fn parse(text: &str) -> Self {
        let (namespace, name) = text.split_once('/').unwrap_or(("", text));
        Self::new(namespace, name)
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.namespace.as_str() {
            "" => f.write_str(&self.name),
            namespace => write!(f, "{namespace}/{}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_written() {
        for (text, namespace, name) in [("shop/cart", "shop", "cart"), ("github", "", "github")] {
            let address = Address::parse(text);
            assert_eq!((address.namespace.as_str(), address.name.as_str()), (namespace, name));
            assert_eq!(address.to_string(), text);
        }
    }
}
