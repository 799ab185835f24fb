//! `spec.consents` and `spec.policy` of `kind: Project`: what others may do there, and what the project may use of the
//! installation.

use super::finding::Report;
use super::levels::{self, projects};
use super::names::nearest;
use super::tree::Node;
use super::values::{self, text, words};
use keelway_domain::border::{Act, Consent, Consents, Pattern, Policy, Quotas, ResourceKind, Update};

/// Most consents of a project.
const CONSENTS: usize = 100;
/// Most names in a consent, and in its `to`.
const NAMES: usize = 50;
/// Most patterns of a kind.
const PATTERNS: usize = 200;
/// The longest pattern of a resource, in bytes.
const LONGEST: usize = 512;
/// Letters of names that are no projects: of configs, sources, clusters and stages.
const LETTERS: &str = "-._";

/// What other projects may do in this one. Absent: nothing.
pub fn consents(spec: &Node, report: &mut Report) -> Consents {
    let Some(list) = spec.get("consents").filter(|list| !list.is_null()) else { return Consents::default() };
    let entries = levels::items(list, "spec.consents", &projects::CONSENT, report).unwrap_or_default();
    at_most(list, "spec.consents", (entries.len(), CONSENTS), report);
    let read = |(place, entry): (usize, &&Node)| consent(entry, &format!("spec.consents[{place}]"), report);
    Consents(entries.iter().enumerate().filter_map(read).collect())
}

fn at_most(at: &Node, path: &str, (given, most): (usize, usize), report: &mut Report) {
    if given > most {
        report.error(at, path, format!("has {given} entries: at most {most} are taken; `*` in a name stands for any text"));
    }
}

fn consent(entry: &Node, path: &str, report: &mut Report) -> Option<Consent> {
    if entry.entries().is_none() {
        let message = format!("is {}, not a mapping: write it like `- to: [team-a]` with `may: [deploy]` below it", entry.what());
        report.error(entry, path, message);
        return None;
    }
    levels::check(entry, &projects::CONSENT, path, report);
    let to = names(entry, "to", path, "-", report);
    let may = acts(entry, path, report);
    // An empty list would let them act on everything, where somebody may have meant nothing.
    if entry.get("names").is_some_and(|list| list.list().is_some_and(<[Node]>::is_empty)) {
        let message = "is empty: write names, or leave it out for all of them";
        report.error(entry.get("names").unwrap_or(entry), format!("{path}.names"), message.into());
    }
    Some(Consent { to, may, names: names(entry, "names", path, LETTERS, report) })
}

/// Whether a list is missing or has no entry.
fn is_blank(entry: &Node, field: &str) -> bool {
    entry.get(field).is_none_or(|list| list.is_null() || list.list().is_some_and(<[Node]>::is_empty))
}

fn names(entry: &Node, field: &str, path: &str, further: &str, report: &mut Report) -> Vec<String> {
    let given = words(entry, field, path, report);
    let at = entry.get(field).unwrap_or(entry);
    at_most(at, &format!("{path}.{field}"), (given.len(), NAMES), report);
    for (place, name) in given.iter().enumerate() {
        let letter = |c: char| c.is_ascii_alphanumeric() || further.contains(c) || "*?".contains(c);
        if name.len() > 100 || !name.chars().all(letter) {
            let at = at.list().and_then(|list| list.get(place)).unwrap_or(at);
            let letters = further.chars().map(|c| format!("`{c}`")).collect::<Vec<_>>().join(", ");
            let message = format!("{name:?} is not the pattern of a name: use letters, digits, {letters}, and `*` for any text");
            report.error(at, format!("{path}.{field}[{place}]"), message);
        }
    }
    given
}

fn acts(entry: &Node, path: &str, report: &mut Report) -> Vec<Act> {
    let known = Act::ALL.map(Act::as_str);
    let all = known.join("`, `");
    let at = entry.get("may").unwrap_or(entry);
    if is_blank(entry, "may") {
        report.error(at, format!("{path}.may"), format!("is missing: write what they may do, of `{all}`"));
    }
    let mut acts = vec![];
    for (place, word) in words(entry, "may", path, report).iter().enumerate() {
        let act = Act::ALL.into_iter().find(|act| act.as_str() == word);
        acts.extend(act.filter(|act| !acts.contains(act)));
        if act.is_none() {
            let at = at.list().and_then(|list| list.get(place)).unwrap_or(at);
            let instead = nearest(word, known).map_or_else(|| format!("write one of `{all}`"), |act| format!("write `{act}`"));
            report.error(at, format!("{path}.may[{place}]"), format!("{word:?} is nothing that others may do: {instead}"));
        }
    }
    acts
}

/// The policy of a project. Absent: the stored policy stays; `null`: the project has none.
pub fn policy(spec: &Node, report: &mut Report) -> Update<Option<Policy>> {
    let Some(given) = spec.get("policy") else { return Update::Keep };
    if given.is_null() {
        return Update::Set(None);
    }
    let Some((node, path)) = levels::mapping(spec, "policy", &projects::POLICY, "spec", report) else { return Update::Keep };
    let mut policy = Policy::default();
    if let Some((allows, _)) = levels::mapping(node, "allows", &projects::ALLOWS, &path, report) {
        for kind in ResourceKind::ALL {
            if let Some(list) = allows.get(kind.field()).filter(|list| !list.is_null()) {
                policy.allows.insert(kind, patterns(list, kind, report));
            }
        }
    }
    if let Some((quotas, path)) = levels::mapping(node, "quotas", &projects::QUOTAS, &path, report) {
        policy.quotas = self::quotas(quotas, &path, report);
    }
    Update::Set(Some(policy))
}

fn quotas(node: &Node, path: &str, report: &mut Report) -> Quotas {
    let mut number = |field: &str| values::whole(node, field, path, 1, report).and_then(|number| u32::try_from(number).ok());
    Quotas {
        webhooks: number("webhooks"),
        integrations: number("integrations"),
        pipelines: number("pipelines"),
        deployment_configs: number("deploymentConfigs"),
        schedules: number("schedules"),
    }
}

fn patterns(list: &Node, kind: ResourceKind, report: &mut Report) -> Vec<Pattern> {
    let path = format!("spec.policy.allows.{}", kind.field());
    let Some(entries) = list.list() else {
        report.error(list, path, format!("is {}, not a list: put `- ` before each entry", list.what()));
        return vec![];
    };
    at_most(list, &path, (entries.len(), PATTERNS), report);
    let read = |(place, entry): (usize, &Node)| pattern(entry, kind, &format!("{path}[{place}]"), report);
    entries.iter().enumerate().filter_map(read).collect()
}

/// A name, or a mapping with `name`, `region` and `account`.
fn pattern(entry: &Node, kind: ResourceKind, path: &str, report: &mut Report) -> Option<Pattern> {
    if entry.entries().is_none() {
        let Some(name) = entry.scalar().filter(|name| !name.is_empty()) else {
            report.error(entry, path, format!("is {}: write a name, in which `*` stands for any text", entry.what()));
            return None;
        };
        check_name(name, kind, (entry, path), report);
        return Some(Pattern::named(name));
    }
    levels::check(entry, &projects::RESOURCE_PATTERN, path, report);
    let name = text(entry, "name", path, report).filter(|name| !name.trim().is_empty())?;
    check_name(&name, kind, (entry.get("name").unwrap_or(entry), &format!("{path}.name")), report);
    let mut place = |field: &str, letters: fn(char) -> bool, example: &str| {
        let given = text(entry, field, path, report)?;
        let at = entry.get(field).unwrap_or(entry);
        if !kind.has_place() {
            let message = format!("says nothing about {}: leave it out", kind.field());
            report.error(at, format!("{path}.{field}"), message);
        } else if given.is_empty() || !given.chars().all(|c| letters(c) || "*?".contains(c)) {
            let message = format!("{given:?} is the {field} of no resource: write it like `{example}`; `*` stands for any text");
            report.error(at, format!("{path}.{field}"), message);
        }
        Some(given)
    };
    let region = place("region", |c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-', "eu-*");
    let account = place("account", |c| c.is_ascii_digit(), "123456789012");
    Some(Pattern { name, region, account })
}

/// Refuses a name that no resource of the kind has, because it is written in another form.
fn check_name(name: &str, kind: ResourceKind, (at, path): (&Node, &str), report: &mut Report) {
    let odd = name.len() > LONGEST || !name.chars().all(|c| c.is_ascii_graphic());
    let (first, rest) = name.split_once('/').unwrap_or((name, ""));
    let wrong = match kind {
        _ if odd => Some(format!("use at most {LONGEST} printable characters without blanks")),
        _ if name == "*" => None,
        ResourceKind::Functions | ResourceKind::HookFunctions | ResourceKind::Builds => {
            let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_*?".contains(c));
            (!plain).then(|| "write the name only; `{name: …, region: …, account: …}` names another place".into())
        }
        ResourceKind::Tasks => {
            let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_*?/".contains(c));
            let both = !first.is_empty() && !rest.is_empty() && !rest.contains('/');
            (!plain || !both).then(|| "write `<cluster>/<family>`, without ARN and revision".into())
        }
        ResourceKind::Packages => {
            let both = !first.is_empty() && !rest.is_empty() && !first.contains(':');
            (!both).then(|| "write `<bucket>/<key>`, without `s3://`".into())
        }
        ResourceKind::Images => {
            let both = !first.is_empty() && !rest.is_empty() && !rest.contains([':', '@']);
            (!both).then(|| "write `<registry>/<repository>`, without tag and digest".into())
        }
        ResourceKind::Repositories | ResourceKind::Servers => url(name),
        ResourceKind::Metrics => {
            let known = first.contains(['*', '?']) || ["cloudwatch", "prometheus"].contains(&first);
            let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "+=,.@_-/*?".contains(c));
            (!known || !plain).then(|| "write `cloudwatch` or `prometheus`, and `/<role>` behind it for one that is assumed".into())
        }
    };
    if let Some(wrong) = wrong {
        report.error(at, path, format!("{name:?} is the name of no {}: {wrong}", kind.word()));
    }
}

/// What is wrong with the pattern of a URL.
fn url(name: &str) -> Option<String> {
    let rest = name.strip_prefix("https://").or_else(|| name.strip_prefix("http://"));
    let host = rest.map(|rest| rest.split('/').next().unwrap_or_default());
    match host {
        None => Some("write a URL, like `https://git.example/team-b/*`".into()),
        Some("") => Some("it has no host: write it like `https://git.example/team-b/*`".into()),
        Some(host) if host != "*" && host.ends_with('*') => {
            Some("its host may end in anything: write the whole host, or `*` for its beginning only".into())
        }
        Some(_) if name.contains(['@', '#', '%', '\\']) => Some("leave out the user, the fragment and what is encoded".into()),
        Some(_) => None,
    }
}
