//! What several kinds have: versions, metadata, names, secrets, URLs.

use super::finding::Report;
use super::levels::{self, pipelines};
use super::tree::Node;
use super::values::text;
use keelway_domain::names::ProjectName;

/// The longest name, as for labels in Kubernetes.
const LONGEST_NAME: usize = 63;
/// The longest name of a secret, as in Kubernetes.
const LONGEST_SECRET: usize = 253;
/// The namespace of objects that name none.
pub const DEFAULT_NAMESPACE: &str = "default";

/// Checks `apiVersion`.
pub fn version(root: &Node, kind: &str, wanted: &str, report: &mut Report) {
    let version = root.get("apiVersion");
    let given = version.and_then(Node::scalar);
    if given != Some(wanted) {
        let wrong = given.map_or("is missing".to_owned(), |other| format!("{other:?} is not a version of {kind}"));
        report.error(version.unwrap_or(root), "apiVersion", format!("{wrong}: write `apiVersion: {wanted}`"));
    }
}

/// `metadata` as Kubernetes objects have it.
pub fn metadata<'n>(root: &'n Node, report: &mut Report) -> Option<&'n Node> {
    levels::mapping(root, "metadata", &pipelines::OBJECT_METADATA, "", report).map(|(metadata, _)| metadata)
}

/// `metadata.namespace`; absent: `default`.
pub fn namespace(root: &Node, metadata: Option<&Node>, report: &mut Report) -> Option<ProjectName> {
    let given = metadata.and_then(|metadata| text(metadata, "namespace", "metadata", report)).filter(|text| !text.is_empty());
    ProjectName::new(given.unwrap_or_else(|| DEFAULT_NAMESPACE.into()))
        .map_err(|error| {
            let at = metadata.and_then(|metadata| metadata.get("namespace")).unwrap_or(root);
            report.error(at, "metadata.namespace", error.to_string());
        })
        .ok()
}

/// A name as Kubernetes allows it.
pub fn name(node: &Node, path: &str, report: &mut Report) -> Option<String> {
    let given = node.get("name");
    let path = format!("{path}.name");
    let Some(text) = given.and_then(Node::scalar).filter(|text| !text.is_empty()) else {
        let message = "is missing: write `name:` with lower-case letters, digits and `-`";
        report.error(given.unwrap_or(node), path, message.into());
        return None;
    };
    if is_name(text, LONGEST_NAME) {
        return Some(text.to_owned());
    }
    let example = super::names::repaired(text, true, "-").filter(|name| is_name(name, LONGEST_NAME));
    let rule = format!(
        "{text:?} is not a name: use at most {LONGEST_NAME} lower-case letters, digits, `-` and `.`, a letter or digit at both ends"
    );
    report.error(given.unwrap_or(node), path, with_example(rule, example));
    None
}

/// Whether a text is a name as Kubernetes allows it.
pub fn is_name(text: &str, longest: usize) -> bool {
    let inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.len() <= longest
        && text.chars().all(|c| inside(c) || "-.".contains(c))
        && text.starts_with(inside)
        && text.ends_with(inside)
}

/// The name of an environment: as a name, but Weave allows more letters.
pub fn environment_name(node: &Node, path: &str, report: &mut Report) -> Option<String> {
    let given = node.get("name");
    let text = given.and_then(Node::scalar).unwrap_or_default();
    let valid = text.len() <= LONGEST_NAME
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        && text.starts_with(|c: char| c.is_ascii_alphanumeric());
    if !valid {
        let what = if text.is_empty() { "is missing".to_owned() } else { format!("{text:?} is not a name") };
        let message = format!("{what}: use at most {LONGEST_NAME} letters, digits, `-`, `_` and `.`, first a letter or digit");
        report.error(given.unwrap_or(node), format!("{path}.name"), message);
    }
    valid.then(|| text.to_owned())
}

/// The name under `secretRef` or another field of that form.
pub fn secret(node: &Node, field: &str, path: &str, report: &mut Report) -> Option<String> {
    let (reference, path) = levels::mapping(node, field, &pipelines::SECRET_REF, path, report)?;
    let name = text(reference, "name", &path, report).filter(|name| !name.trim().is_empty())?;
    if !is_name(&name, LONGEST_SECRET) {
        let message = format!(
            "{name:?} is not the name of a secret: use at most {LONGEST_SECRET} lower-case letters, digits, `-` and `.`, without its namespace"
        );
        report.error(reference.get("name").unwrap_or(reference), format!("{path}.name"), message);
        return None;
    }
    Some(name)
}

/// Which URLs a field takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// `https` only.
    Https,
    /// `https`, and `http` for an address of this machine.
    HttpsOrLoopback,
    /// `https`, and `http` with a warning: the operator has to allow the host.
    HttpsOrAllowed,
}

/// The URL under `field`.
pub fn url(node: &Node, field: &str, path: &str, scheme: Scheme, report: &mut Report) -> Option<String> {
    let given = node.get(field).and_then(Node::scalar).unwrap_or_default().trim();
    let rest = given.strip_prefix("https://").or_else(|| {
        let rest = given.strip_prefix("http://").filter(|_| scheme != Scheme::Https)?;
        (scheme == Scheme::HttpsOrAllowed || is_loopback(authority(rest))).then_some(rest)
    });
    let wrong = match rest.map(authority) {
        _ if given.is_empty() => "is missing: write the `https` URL".to_owned(),
        None if scheme != Scheme::HttpsOrLoopback => {
            format!("{:?} does not begin with `https://`: other schemes are not used", shown(given))
        }
        None => format!("{:?} does not begin with `https://`: `http` is for 127.0.0.1 and localhost only", shown(given)),
        Some(authority) if authority.contains('@') => "names a user: credentials belong in the secret".to_owned(),
        Some(authority)
            if !is_authority(authority) || given.contains(|c: char| !c.is_ascii_graphic() || "<>\"\\^`{|}".contains(c)) =>
        {
            format!("{given:?} is not a URL: write it like https://host/path, other characters percent-encoded")
        }
        Some(_) => {
            if scheme == Scheme::HttpsOrAllowed {
                unencrypted(given, node.get(field).unwrap_or(node), &format!("{path}.{field}"), report);
            }
            return Some(given.to_owned());
        }
    };
    report.error(node.get(field).unwrap_or(node), format!("{path}.{field}"), wrong);
    None
}

/// Warns of a URL that nothing is sent to unless the operator allows its host.
pub fn unencrypted(url: &str, at: &Node, path: &str, report: &mut Report) {
    if url.starts_with("http://") {
        let message =
            "is reached only if the operator allows the host (parameter AllowedHosts or WebhookAllowedHosts): write `https://`";
        report.warning(at, path.to_owned(), message.into());
    }
}

/// The URL without the part before `@`, which may hold a password.
fn shown(url: &str) -> &str {
    url.rsplit_once('@').map_or(url, |(_, rest)| rest)
}

fn authority(rest: &str) -> &str {
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// A host with or without a port.
pub fn is_authority(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':').filter(|_| !text.ends_with(']')) {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = bracketed.map_or_else(|| is_host(host), |address| address.parse::<std::net::Ipv6Addr>().is_ok());
    host && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
}

/// A host name: labels of letters, digits, `-` and `_`, separated by dots.
pub fn is_host(text: &str) -> bool {
    let label = |label: &str| !label.is_empty() && label.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    text.len() <= 253 && text.split('.').all(label)
}

/// Whether an authority is an address of this machine.
pub fn is_loopback(authority: &str) -> bool {
    let host = authority.rsplit_once(':').filter(|_| !authority.ends_with(']')).map_or(authority, |(host, _)| host);
    let v4 = host.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback());
    v4 || host.eq_ignore_ascii_case("localhost") || host == "[::1]"
}

/// A refusal that proposes a valid name.
pub fn with_example(refusal: String, example: Option<String>) -> String {
    match example {
        Some(example) => format!("{refusal}, for example `{example}`"),
        None => refusal,
    }
}
