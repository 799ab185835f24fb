//! Identities of people, tokens and keys. Each form names who vouches for the identity, and no form can imitate another: the name
//! of a token has no `:` and no `/`, the identity of a person begins with the provider's host, and an issuer that would produce the
//! form of a token or of a key is refused ([`is_reserved`]).

use super::ADMINISTRATOR;
use crate::names::TokenName;
use std::borrow::Cow;

const TOKEN: &str = "token:";
const KEY: &str = "key:";

/// The identity of the holder of a token.
pub fn of_token(name: &str) -> String {
    format!("{TOKEN}{name}")
}

/// The identity of a person whom a provider vouches for. It contains the whole issuer, because one host may serve several tenants.
pub fn of_person(issuer: &str, subject: &str) -> String {
    format!("{}/{}", provider(issuer), escaped(subject, &[]))
}

/// The identity of a person whom the holder of a signing key vouches for. Without a name: the holder.
pub fn of_key(id: &str, name: &str) -> String {
    let id = escaped(id, &['/']);
    if name.is_empty() { format!("{KEY}{id}") } else { format!("{KEY}{id}/{}", escaped(name, &[])) }
}

/// The issuer as it stands at the beginning of identities: without its scheme.
pub fn provider(issuer: &str) -> &str {
    issuer.split_once("://").map_or(issuer, |(_, rest)| rest).trim_end_matches('/')
}

/// Whether the people of an issuer would get identities in the form of tokens or keys.
pub fn is_reserved(issuer: &str) -> bool {
    [TOKEN, KEY].iter().any(|form| provider(issuer).starts_with(form))
}

/// Replaces the bracket that begins a note, so that no identity contains it.
fn escaped(text: &str, more: &[char]) -> String {
    let odd = |c: char| ['%', '('].contains(&c) || more.contains(&c);
    text.chars().map(|c| if odd(c) { format!("%{:02X}", u32::from(c)) } else { c.to_string() }).collect()
}

/// The identity that an approver in a manifest stands for. A plain name means a token, as in manifests written before there were
/// other forms. `None`: the text stands for nobody.
pub fn approver(written: &str) -> Option<Cow<'_, str>> {
    let token = |name: &str| name != ADMINISTRATOR && TokenName::new(name).is_ok();
    if let Some(name) = written.strip_prefix(TOKEN) {
        return token(name).then_some(Cow::Borrowed(written));
    }
    if let Some(rest) = written.strip_prefix(KEY) {
        return (!rest.is_empty() && !rest.starts_with('/')).then_some(Cow::Borrowed(written));
    }
    match written.split_once('/') {
        Some((host, subject)) => (is_host(host) && !subject.is_empty()).then_some(Cow::Borrowed(written)),
        None if written == ADMINISTRATOR => Some(Cow::Borrowed(written)),
        None => token(written).then(|| Cow::Owned(of_token(written))),
    }
}

fn is_host(text: &str) -> bool {
    let (host, port) = text.split_once(':').unwrap_or((text, "443"));
    let named = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    !host.is_empty() && host.bytes().all(named) && port.parse::<u16>().is_ok()
}

/// Whether two identities may be the same person. Identities stored by older versions do not say who vouched; they match every
/// identity that they may stand for, so that no person is counted twice.
pub fn is_same(earlier: &str, now: &str) -> bool {
    let plain = |end: &str| now.strip_suffix(earlier).is_some_and(|before| before.ends_with(end) && !earlier.is_empty());
    earlier == now || now.strip_prefix(TOKEN) == Some(earlier) || plain("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{by, known};

    #[test]
    fn nobody_has_the_form_of_another_kind() {
        let all = [
            of_token("ann"),
            of_person("https://login.acme.test", "ann"),
            of_person("https://login.acme.test", "administrator"),
            of_person("https://login.acme.test", "token:ann"),
            of_person("https://login.acme.test/tenant-2/", "ann"),
            of_person("https://other.test", "ann"),
            of_key("ci", ""),
            of_key("ci", "ann"),
            of_key("ci/ann", ""),
            of_key("c", "i/ann"),
            ADMINISTRATOR.to_owned(),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(!all[at + 1..].contains(one), "{one} is there twice");
        }
        assert_eq!(all[4], "login.acme.test/tenant-2/ann");
        assert!(is_reserved("https://token:8443") && is_reserved("https://key:1/x") && !is_reserved("https://tokens.test"));
    }

    #[test]
    fn a_subject_with_brackets_is_neither_cut_nor_somebody_else() {
        let mallory = of_person("https://login.acme.test", "mallory (ann");
        assert_eq!(known(&by(&mallory, "bob")), mallory);
        assert_ne!(mallory, of_person("https://login.acme.test", "mallory [ann"));
        assert_ne!(of_person("https://a.test", "a%28"), of_person("https://a.test", "a("));
    }

    #[test]
    fn an_approver_is_one_known_identity() {
        for (written, read) in [
            ("ann", Some("token:ann")),
            ("token:ann", Some("token:ann")),
            ("administrator", Some("administrator")),
            ("key:ci/ann", Some("key:ci/ann")),
            ("login.acme.test/ann", Some("login.acme.test/ann")),
            ("127.0.0.1:8080/ann", Some("127.0.0.1:8080/ann")),
            ("token:administrator", None),
            ("token:Ann", None),
            ("Ann", None),
            ("ann@acme.test", None),
            ("repo:acme/shop:ref:refs/heads/main", None),
            ("/ann", None),
            ("login.acme.test/", None),
            ("key:", None),
        ] {
            assert_eq!(approver(written).as_deref(), read, "{written}");
        }
    }

    #[test]
    fn what_was_stored_without_a_form_counts_for_each_who_may_be_meant() {
        for now in ["ann", "token:ann", "key:ci/ann", "login.acme.test/ann"] {
            assert!(is_same("ann", now), "{now}");
        }
        for (earlier, now) in [("token:ann", "login.acme.test/ann"), ("ann", "token:joann"), ("ann", "a.test/joann"), ("", "a/")] {
            assert!(!is_same(earlier, now), "{earlier} {now}");
        }
    }
}
