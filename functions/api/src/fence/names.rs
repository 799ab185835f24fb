//! Names in paths: of definitions in a namespace, of deployment configs and of their versions.

use keelway_domain::names::ProjectName;
use keelway_engine::promotions::Address;

/// The default namespace of an id.
pub const DEFAULT_NAMESPACE: &str = "default";
/// Whether a text follows the rule for names, or is at least short enough to be part of a key.
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= 63 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
}

/// The address in a path, if it is valid.
pub fn of(namespace: &str, name: &str) -> Option<Address> {
    let namespace = ProjectName::new(namespace).ok()?.to_string();
    is_name(name).then(|| Address { namespace, name: name.to_owned() })
}

/// The address in an id, if it is valid.
pub fn config(id: &str) -> Option<Address> {
    let (namespace, name) = id.split_once(':').unwrap_or((DEFAULT_NAMESPACE, id));
    of(namespace, name)
}

/// The config and the number in the name of a version.
pub fn version(name: &str) -> Option<(Address, u64)> {
    let (config, n) = name.rsplit_once('-')?;
    let digits = n.bytes().all(|byte| byte.is_ascii_digit()) && !n.starts_with('0');
    Some((self::config(config)?, n.parse().ok().filter(|_| digits)?))
}
