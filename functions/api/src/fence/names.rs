//! Names in paths: of what is in a namespace, of deployment configs and of their versions.

use keelway_domain::names::ProjectName;
use keelway_engine::promotions::Address;

/// The namespace of an id that names none.
pub const DEFAULT_NAMESPACE: &str = "default";
/// Whether a text follows the rule for names, or is at least no longer than one: then it can be looked for.
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= 63 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
}

/// The address that a path names, if it can be one.
pub fn of(namespace: &str, name: &str) -> Option<Address> {
    let namespace = ProjectName::new(namespace).ok()?.to_string();
    is_name(name).then(|| Address { namespace, name: name.to_owned() })
}

/// The address that an id names, if it can be one.
pub fn config(id: &str) -> Option<Address> {
    let (namespace, name) = id.split_once(':').unwrap_or((DEFAULT_NAMESPACE, id));
    of(namespace, name)
}

/// The config and the number that the name of a version has.
pub fn version(name: &str) -> Option<(Address, u64)> {
    let (config, n) = name.rsplit_once('-')?;
    let digits = n.bytes().all(|byte| byte.is_ascii_digit()) && !n.starts_with('0');
    Some((self::config(config)?, n.parse().ok().filter(|_| digits)?))
}
