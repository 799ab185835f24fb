//! Items of the table: a key and named attributes. The codecs beside the types convert values to and from attributes. This level
//! exists so that a writer changes only the attributes it knows (versions of Keelway share the table), and so that sizes are
//! counted in bytes as DynamoDB counts them.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// An attribute's name. Names are short because every byte is billed on every write.
pub type Name = Cow<'static, str>;

/// The largest item DynamoDB takes, in bytes.
pub const MAX_ITEM_BYTES: usize = 400 * 1024;
/// The longest partition key DynamoDB takes, of the table and of an index, in bytes.
pub const MAX_PARTITION_BYTES: usize = 2048;
/// The longest sort key DynamoDB takes, of the table and of an index, in bytes.
pub const MAX_SORT_BYTES: usize = 1024;

/// The primary key of an item.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Partition.
    pub pk: String,
    /// Sort key in the partition; items are sorted by its UTF-8 bytes.
    pub sk: String,
}

impl Key {
    /// From its two parts.
    pub fn new(pk: impl Into<String>, sk: impl Into<String>) -> Self {
        Self { pk: pk.into(), sk: sk.into() }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} / {}", self.pk, self.sk)
    }
}

/// An attribute's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attr {
    /// A string.
    S(String),
    /// A whole number.
    N(i64),
    /// Bytes.
    B(Vec<u8>),
    /// A boolean.
    Flag(bool),
}

impl Attr {
    /// Bytes as DynamoDB counts them (a number: one byte for two significant digits, and one).
    pub fn size(&self) -> usize {
        match self {
            Attr::S(s) => s.len(),
            Attr::B(b) => b.len(),
            Attr::Flag(_) => 1,
            Attr::N(n) => {
                let digits = n.unsigned_abs().to_string();
                digits.trim_end_matches('0').len().max(1).div_ceil(2) + 1 + usize::from(*n < 0)
            }
        }
    }
}

/// Attributes by name, without the key.
pub type Attrs = BTreeMap<Name, Attr>;

/// An item: its key and the other attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The checkpoint.
    pub key: Key,
    /// Its attributes without the key.
    pub attrs: Attrs,
}

impl Item {
    /// An item with no attributes yet.
    pub fn new(key: Key) -> Self {
        Self { key, attrs: Attrs::new() }
    }
    /// Sets one attribute.
    pub fn with(mut self, name: &'static str, value: impl Into<Attr>) -> Self {
        self.attrs.insert(Cow::Borrowed(name), value.into());
        self
    }
    /// Sets one attribute if there is a value.
    pub fn with_some(self, name: &'static str, value: Option<impl Into<Attr>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }
    /// A string attribute.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.attrs.get(name) {
            Some(Attr::S(s)) => Some(s),
            _ => None,
        }
    }
    /// A number attribute.
    pub fn number(&self, name: &str) -> Option<i64> {
        match self.attrs.get(name) {
            Some(Attr::N(n)) => Some(*n),
            _ => None,
        }
    }
    /// A bytes attribute; empty when absent.
    pub fn bytes(&self, name: &str) -> &[u8] {
        match self.attrs.get(name) {
            Some(Attr::B(b)) => b,
            _ => &[],
        }
    }
    /// A boolean attribute; `false` when absent.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.attrs.get(name), Some(Attr::Flag(true)))
    }
    /// The item's version, `v`: 0 when it carries none.
    pub fn version(&self) -> i64 {
        self.number("v").unwrap_or(0)
    }
    /// Bytes as DynamoDB counts them, names and key included.
    pub fn size(&self) -> usize {
        let key = 2 + self.key.pk.len() + 2 + self.key.sk.len();
        key + self.attrs.iter().map(|(name, value)| name.len() + value.size()).sum::<usize>()
    }
}

impl From<String> for Attr {
    fn from(s: String) -> Self {
        Attr::S(s)
    }
}
impl From<&str> for Attr {
    fn from(s: &str) -> Self {
        Attr::S(s.to_owned())
    }
}
impl From<i64> for Attr {
    fn from(n: i64) -> Self {
        Attr::N(n)
    }
}
impl From<Vec<u8>> for Attr {
    fn from(b: Vec<u8>) -> Self {
        Attr::B(b)
    }
}
impl From<bool> for Attr {
    fn from(b: bool) -> Self {
        Attr::Flag(b)
    }
}
