//! `promotion`: of a pipeline, and of an environment in its place.

use super::fields::{self, Level};
use super::finding::Report;
use super::outline::items;
use super::project::{duration, mapping, positive, text};
use super::tree::{Node, Yaml};
use keelway_domain::promotions::definition::{Approval, Notification, PromotionSpec, PullRequest, Sequence, Strategy};
use keelway_domain::promotions::windows::{Kind, Window};

/// The hosts of pull requests, as `type` names them, and how Keelway knows them.
const HOSTS: [(&str, &str); 5] = [
    ("github", "github"),
    ("gitlab", "gitlab"),
    ("gitea", "gitea"),
    ("forgejo", "gitea"),
    ("bitbucket-server", "bitbucket-server"),
];
const STRATEGIES: &str = "`notification`, `pullRequest` or `sequence`";

/// The `promotion` under a node, if there is one.
pub fn read(parent: &Node, path: &str, report: &mut Report) -> Option<PromotionSpec> {
    let path = format!("{path}.promotion");
    let node = mapping(parent, "promotion", &path, report)?;
    fields::check(node, Level::Promotion, &path, report);
    let manual = flag(node, "manual", &path, report);
    let (strategy, secret) = strategy(node, &path, report);
    let approval = approval(node, &path, secret, report);
    let windows = windows(node, &path, report);
    Some(PromotionSpec { manual, strategy: strategy?, approval, windows })
}

fn strategy(node: &Node, path: &str, report: &mut Report) -> (Option<Strategy>, Option<String>) {
    let path = format!("{path}.strategy");
    let Some(strategy) = mapping(node, "strategy", &path, report) else {
        report.error(node.get("strategy").unwrap_or(node), path, format!("is missing: write {STRATEGIES} below it"));
        return (None, None);
    };
    fields::check(strategy, Level::Strategy, &path, report);
    let secret = secret(strategy, &path, report);
    let named: Vec<&str> =
        ["notification", "pullRequest", "sequence"].into_iter().filter(|name| strategy.get(name).is_some()).collect();
    let found = match named[..] {
        ["notification"] => notification(strategy, &path, report),
        ["pullRequest"] => pull_request(strategy, &path, report),
        ["sequence"] => sequence(strategy, &path, report),
        [] => {
            report.error(strategy, path, format!("names no known strategy: write {STRATEGIES} below it"));
            None
        }
        _ => {
            report.error(strategy, path, format!("names {} strategies: write one of {STRATEGIES}", named.len()));
            None
        }
    };
    (found, secret)
}

fn notification(strategy: &Node, path: &str, report: &mut Report) -> Option<Strategy> {
    let path = format!("{path}.notification");
    let Some(node) = mapping(strategy, "notification", &path, report) else {
        return Some(Strategy::Notification(Notification::default()));
    };
    fields::check(node, Level::Notification, &path, report);
    let url = node.get("url").is_some().then(|| url(node, &path, report));
    let secret = secret(node, &path, report);
    if url.is_some() && secret.is_none() {
        let message = "is missing: the request to `url` is signed; name the secret with `secretRef: {name: …}`";
        report.error(node, format!("{path}.secretRef"), message.into());
    }
    Some(Strategy::Notification(Notification { url: url.flatten(), secret }))
}

fn pull_request(strategy: &Node, path: &str, report: &mut Report) -> Option<Strategy> {
    let path = format!("{path}.pullRequest");
    let Some(node) = mapping(strategy, "pullRequest", &path, report) else {
        report.error(strategy, path, "is empty: write `type`, `url`, `baseBranch` and `secretRef` below it".into());
        return None;
    };
    fields::check(node, Level::PullRequest, &path, report);
    let names = HOSTS.map(|(name, _)| name).join("`, `");
    let given = text(node, "type", &path, report).filter(|text| !text.is_empty());
    let host = given.as_deref().and_then(|given| HOSTS.iter().find(|(name, _)| *name == given)).map(|(_, host)| (*host).to_owned());
    if host.is_none() {
        let message = given.map_or("is missing".to_owned(), |given| format!("{given:?} is not a host that is known here"));
        report.error(node.get("type").unwrap_or(node), format!("{path}.type"), format!("{message}: write one of `{names}`"));
    }
    let url = url(node, &path, report);
    let base_branch = text(node, "baseBranch", &path, report).filter(|branch| !branch.is_empty());
    if base_branch.is_none() {
        let at = node.get("baseBranch").unwrap_or(node);
        report.error(at, format!("{path}.baseBranch"), "is missing: name the branch to merge into, for example `main`".into());
    }
    let secret = secret(node, &path, report);
    if secret.is_none() {
        let message = "is missing: pull requests need credentials; name their secret with `secretRef: {name: …}`";
        report.error(node, format!("{path}.secretRef"), message.into());
    }
    let merge = flag(node, "merge", &path, report);
    Some(Strategy::PullRequest(PullRequest { host: host?, url: url?, base_branch: base_branch?, secret: secret?, merge }))
}

fn sequence(strategy: &Node, path: &str, report: &mut Report) -> Option<Strategy> {
    let path = format!("{path}.sequence");
    let node = mapping(strategy, "sequence", &path, report);
    let service = node.and_then(|node| text(node, "service", &path, report)).filter(|service| !service.is_empty());
    if service.is_none() {
        report.error(
            node.unwrap_or(strategy),
            format!("{path}.service"),
            "is missing: name the service the sequence delivers".into(),
        );
    }
    let node = node?;
    fields::check(node, Level::SequenceRef, &path, report);
    let mut optional = |field: &str| text(node, field, &path, report).filter(|text| !text.is_empty());
    let (project, stage, name) = (optional("project"), optional("stage"), optional("name"));
    Some(Strategy::Sequence(Sequence { project, stage, service: service?, name: name.unwrap_or_else(|| "delivery".into()) }))
}

/// An `https` URL.
fn url(node: &Node, path: &str, report: &mut Report) -> Option<String> {
    let path = format!("{path}.url");
    let at = node.get("url").unwrap_or(node);
    let given = node.get("url").and_then(Node::scalar).unwrap_or_default().trim();
    let rest = given.strip_prefix("https://");
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    let wrong = match rest {
        _ if given.is_empty() => "is missing: write the `https` URL".to_owned(),
        None => format!("{given:?} does not begin with `https://`: other schemes are not used"),
        Some(_) if host.contains('@') => "names a user: credentials belong into the secret".to_owned(),
        Some(_) if host.is_empty() || given.contains(|c: char| c.is_whitespace() || c.is_control()) => {
            format!("{given:?} is no URL")
        }
        Some(_) => return Some(given.trim_end_matches('/').trim_end_matches(".git").to_owned()),
    };
    report.error(at, path, wrong);
    None
}

/// The name under `secretRef`.
fn secret(node: &Node, path: &str, report: &mut Report) -> Option<String> {
    let path = format!("{path}.secretRef");
    let reference = mapping(node, "secretRef", &path, report)?;
    fields::check(reference, Level::SecretRef, &path, report);
    let name = text(reference, "name", &path, report).filter(|name| !name.is_empty());
    if name.is_none() {
        report.error(reference, format!("{path}.name"), "is missing: name the secret".into());
    }
    name
}

fn flag(node: &Node, field: &str, path: &str, report: &mut Report) -> bool {
    match node.get(field).map(|node| (&node.value, node)) {
        None | Some((Yaml::Null, _)) => false,
        Some((Yaml::Bool(flag, _), _)) => *flag,
        Some((_, at)) => {
            report.error(at, format!("{path}.{field}"), format!("is {}: write `true` or `false`", at.what()));
            false
        }
    }
}

fn approval(node: &Node, path: &str, secret: Option<String>, report: &mut Report) -> Approval {
    let path = format!("{path}.approval");
    let Some(node) = mapping(node, "approval", &path, report) else { return Approval { secret, ..Approval::default() } };
    fields::check(node, Level::Approval, &path, report);
    let quorum = match text(node, "quorum", &path, report).map(|text| text.parse::<u32>().ok().filter(|n| (1..=100).contains(n))) {
        None => 1,
        Some(Some(n)) => n,
        Some(None) => {
            report.error(node.get("quorum").unwrap_or(node), format!("{path}.quorum"), "is not a number from 1 to 100".into());
            1
        }
    };
    let list = node.get("approvers").filter(|list| !list.is_null());
    if let Some(list) = list.filter(|list| list.list().is_none()) {
        report.error(list, format!("{path}.approvers"), format!("is {}, not a list: write `- ann` for each person", list.what()));
    }
    let names = list.and_then(Node::list).unwrap_or_default().iter().filter_map(Node::scalar).map(str::to_owned);
    let approvers: Vec<String> = names.collect();
    if !approvers.is_empty() && (approvers.len() as u64) < u64::from(quorum) {
        let message = format!("is {quorum}, but there are {} approvers: no revision could ever be approved", approvers.len());
        report.error(node.get("quorum").unwrap_or(node), format!("{path}.quorum"), message);
    }
    Approval { quorum, approvers, remind: positive(node, "remind", &path, report), secret }
}

fn windows(node: &Node, path: &str, report: &mut Report) -> Vec<Window> {
    let path = format!("{path}.windows");
    let Some(list) = node.get("windows").filter(|list| !list.is_null()) else { return vec![] };
    let entries = items(list, &path, Level::Window, report).unwrap_or_default();
    let read = |(place, node): (usize, &Node)| window(node, &format!("{path}[{place}]"), report);
    entries.into_iter().enumerate().filter_map(read).collect()
}

fn window(node: &Node, path: &str, report: &mut Report) -> Option<Window> {
    fields::check(node, Level::Window, path, report);
    let kind = match text(node, "kind", path, report).as_deref() {
        Some("allow") => Kind::Allow,
        Some("deny") => Kind::Deny,
        _ => {
            report.error(
                node.get("kind").unwrap_or(node),
                format!("{path}.kind"),
                "is neither `allow` nor `deny`: write one of them".into(),
            );
            return None;
        }
    };
    let schedule = text(node, "schedule", path, report).unwrap_or_default();
    let duration = duration(node, "duration", path, report).unwrap_or_default();
    let window = Window { kind, schedule, duration, zone: text(node, "zone", path, report) };
    if let Err((field, message)) = window.check() {
        report.error(node.get(field).unwrap_or(node), format!("{path}.{field}"), message);
        return None;
    }
    Some(window)
}
