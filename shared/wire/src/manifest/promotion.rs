//! `promotion`: of a pipeline, and of an environment in its place.

use super::finding::Report;
use super::levels;
use super::levels::pipelines::{self, HOSTS};
use super::objects::{self, Scheme};
use super::tree::Node;
use super::values::{flag, positive, text};
use super::windows;
use keelway_domain::access::approver;
use keelway_domain::names::{ProjectName, SequenceName, ServiceName, StageName};
use keelway_domain::promotions::definition::{Approval, Notification, PromotionSpec, PullRequest, Sequence, Strategy};

const STRATEGIES: &str = "`notification`, `pull-request` or `sequence`";
/// The key of the strategy that opens pull requests: Weave's own, and another spelling of it.
const PULL_REQUEST: [&str; 2] = ["pull-request", "pullRequest"];

/// The `promotion` under a node, if there is one.
pub fn read(parent: &Node, path: &str, report: &mut Report) -> Option<PromotionSpec> {
    let (node, path) = levels::mapping(parent, "promotion", &pipelines::PROMOTION, path, report)?;
    let manual = flag(node, "manual", &path, report);
    let (strategy, secret) = strategy(node, &path, report);
    let approval = approval(node, &path, secret, report);
    if let Some(at) = node.get("approval").filter(|at| !at.is_null() && !manual) {
        report.warning(at, format!("{path}.approval"), "is never asked for: write `manual: true` beside it".into());
    }
    let windows = windows::read(node, &path, report);
    Some(PromotionSpec { manual, strategy: strategy?, approval, windows })
}

fn strategy(node: &Node, path: &str, report: &mut Report) -> (Option<Strategy>, Option<String>) {
    let Some((strategy, path)) = levels::mapping(node, "strategy", &pipelines::STRATEGY, path, report) else {
        return (None, None);
    };
    let secret = objects::secret(strategy, "secretRef", &path, report);
    let known = ["notification", "sequence"].into_iter().chain(PULL_REQUEST);
    let named: Vec<&str> = known.filter(|name| strategy.get(name).is_some()).collect();
    let found = match named[..] {
        ["notification"] => notification(strategy, &path, report),
        ["sequence"] => sequence(strategy, &path, report),
        [key] => pull_request(strategy, key, &path, report),
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
    let Some((node, path)) = levels::mapping(strategy, "notification", &pipelines::NOTIFICATION, path, report) else {
        return Some(Strategy::Notification(Notification::default()));
    };
    let url = node.get("url").is_some().then(|| objects::url(node, "url", &path, Scheme::HttpsOrAllowed, report));
    let secret = objects::secret(node, "secretRef", &path, report);
    if url.is_some() && secret.is_none() {
        let message = "is missing: the request to `url` is signed; name the secret with `secretRef: {name: …}`";
        report.error(node, format!("{path}.secretRef"), message.into());
    }
    Some(Strategy::Notification(Notification { url: url.flatten(), secret }))
}

/// `key` is the manifest's spelling of `pull-request`.
fn pull_request(strategy: &Node, key: &str, path: &str, report: &mut Report) -> Option<Strategy> {
    let Some((node, path)) = levels::mapping(strategy, key, &pipelines::PULL_REQUEST, path, report) else {
        let message = "is empty: write `type`, `url`, `baseBranch` and `secretRef` below it";
        report.error(strategy, format!("{path}.{key}"), message.into());
        return None;
    };
    let names = HOSTS.map(|(name, _)| name).join("`, `");
    let given = text(node, "type", &path, report).filter(|text| !text.is_empty());
    let host = given.as_deref().and_then(|given| HOSTS.iter().find(|(name, _)| *name == given)).map(|(_, host)| (*host).to_owned());
    if host.is_none() {
        let message = given.map_or("is missing".to_owned(), |given| format!("{given:?} is not a host that is known here"));
        report.error(node.get("type").unwrap_or(node), format!("{path}.type"), format!("{message}: write one of `{names}`"));
    }
    let url = repository(node, &path, report);
    let base_branch = text(node, "baseBranch", &path, report);
    let secret = match node.get("secretRef").filter(|given| !given.is_null()) {
        Some(_) => objects::secret(node, "secretRef", &path, report),
        None => {
            let message = "is missing: pull requests need credentials; name their secret with `secretRef: {name: …}`, or register the host \
                           with one (`kind: GitHost`)";
            report.warning(node, format!("{path}.secretRef"), message.into());
            Some(String::new())
        }
    };
    let merge = flag(node, "merge", &path, report);
    Some(Strategy::PullRequest(PullRequest { host: host?, url: url?, base_branch: base_branch?, secret: secret?, merge }))
}

/// The URL of a repository, without `.git`.
fn repository(node: &Node, path: &str, report: &mut Report) -> Option<String> {
    let url = objects::url(node, "url", path, Scheme::Https, report)?;
    let short = url.trim_end_matches('/');
    let short = short.strip_suffix(".git").unwrap_or(short);
    let parts = short.trim_start_matches("https://").split('/').skip(1).filter(|part| !part.is_empty()).count();
    if parts < 2 || short.contains(['?', '#']) {
        let message = format!("{url:?} does not name a repository: write it like https://github.com/owner/repository");
        report.error(node.get("url").unwrap_or(node), format!("{path}.url"), message);
        return None;
    }
    Some(short.to_owned())
}

fn sequence(strategy: &Node, path: &str, report: &mut Report) -> Option<Strategy> {
    let Some((node, path)) = levels::mapping(strategy, "sequence", &pipelines::SEQUENCE_REF, path, report) else {
        let given = strategy.get("sequence").unwrap_or(strategy);
        levels::missing(given, &pipelines::SEQUENCE_REF, "service", &format!("{path}.sequence"), report);
        return None;
    };
    let mut named = |field: &str, check: &dyn Fn(&str) -> Option<String>| {
        let text = text(node, field, &path, report).filter(|text| !text.is_empty())?;
        if let Some(wrong) = check(&text) {
            report.error(node.get(field).unwrap_or(node), format!("{path}.{field}"), wrong);
        }
        Some(text)
    };
    let project = named("project", &|text| ProjectName::new(text).err().map(|error| error.to_string()));
    let stage = named("stage", &|text| StageName::new(text).err().map(|error| error.to_string()));
    let service = named("service", &|text| ServiceName::new(text).err().map(|error| error.to_string()));
    let name = named("name", &|text| SequenceName::new(text).err().map(|error| error.to_string()));
    Some(Strategy::Sequence(Sequence { project, stage, service: service?, name: name.unwrap_or_else(|| "delivery".into()) }))
}

fn approval(node: &Node, path: &str, secret: Option<String>, report: &mut Report) -> Approval {
    let Some((node, path)) = levels::mapping(node, "approval", &pipelines::APPROVAL, path, report) else {
        return Approval { secret, ..Approval::default() };
    };
    let quorum = match text(node, "quorum", &path, report).map(|text| text.parse::<u32>().ok().filter(|n| (1..=100).contains(n))) {
        None => 1,
        Some(Some(n)) => n,
        Some(None) => {
            report.error(node.get("quorum").unwrap_or(node), format!("{path}.quorum"), "is not a number from 1 to 100".into());
            1
        }
    };
    let approvers = approvers(node, &path, report);
    if !approvers.is_empty() && (approvers.len() as u64) < u64::from(quorum) {
        let message = format!("is {quorum}, but there are {} approvers: no revision could ever be approved", approvers.len());
        report.error(node.get("quorum").unwrap_or(node), format!("{path}.quorum"), message);
    }
    Approval {
        quorum,
        approvers,
        separate: flag(node, "separate", &path, report),
        remind: positive(node, "remind", &path, report),
        secret,
    }
}

/// The approvers as they are written. A plain name means the API token of that name: older manifests had no other form.
fn approvers(node: &Node, path: &str, report: &mut Report) -> Vec<String> {
    const FORMS: &str = "write `token:ann` for an API token, `<provider>/<subject>` for a person of an identity provider, or `key:<id>/<name>` for \
                         whom the holder of a signing key vouches; `keelway whoami` shows it";
    let list = node.get("approvers").filter(|list| !list.is_null());
    if let Some(list) = list.filter(|list| list.list().is_none()) {
        report.error(
            list,
            format!("{path}.approvers"),
            format!("is {}, not a list: write `- token:ann` for each person", list.what()),
        );
    }
    let (mut written, mut known) = (vec![], vec![]);
    for (place, entry) in list.and_then(Node::list).unwrap_or_default().iter().enumerate() {
        let path = format!("{path}.approvers[{place}]");
        let Some(name) = entry.scalar().filter(|name| !name.is_empty()) else {
            report.error(entry, path, format!("is {}: {FORMS}", entry.what()));
            continue;
        };
        let Some(person) = approver(name) else {
            report.error(entry, path, format!("{name:?} is nobody who is known here: {FORMS}"));
            continue;
        };
        if known.contains(&person) {
            report.error(entry, path, format!("{name:?} is there twice: everybody approves once"));
            continue;
        }
        if person != name {
            let message = format!("{name:?} stands for the API token of that name, and for nobody else: write `{person}`");
            report.warning(entry, path, message);
        }
        written.push(name.to_owned());
        known.push(person);
    }
    written
}
