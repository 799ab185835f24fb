//! What Keelway adds to a DeploymentConfig's `spec`: `targets`, `concurrency`, `resume`, `onDrift`, `autoRollback` and `deployer`.

use crate::manifest::finding::Report;
use crate::manifest::levels::{self, additions};
use crate::manifest::objects::is_name;
use crate::manifest::tree::Node;
use crate::manifest::values::{duration, flag, mapping, text, word, words};
use keelway_domain::deployments::definition::{AutoRollback, Concurrency, LAMBDA_ALIAS, OnDrift, Resume, Starter, Target};
use std::collections::HashSet;

/// `targets`: `[{name, kind, id, region, account}]`. The id of a `lambda-alias` is `<function>:<alias>`.
pub fn targets(spec: &Node, path: &str, report: &mut Report) -> Vec<Target> {
    let mut names = HashSet::new();
    let mut targets = vec![];
    for (node, path) in levels::entries(spec, "targets", &additions::TARGET, path, report) {
        let mut given = |field: &str| text(node, field, &path, report).filter(|text| !text.trim().is_empty()).unwrap_or_default();
        let (name, kind, id) = (given("name"), given("kind"), given("id"));
        if !name.is_empty() && !is_name(&name, 63) {
            let message = format!("{name:?} is not a name: use at most 63 lower-case letters, digits, `-` and `.`");
            report.error(node.get("name").unwrap_or(node), format!("{path}.name"), message);
        } else if !name.is_empty() && !names.insert(name.clone()) {
            let message = format!("{name:?} is there twice: name each target differently");
            report.error(node.get("name").unwrap_or(node), format!("{path}.name"), message);
        }
        if kind == LAMBDA_ALIAS && !id.is_empty() && !is_alias(&id) {
            let message =
                format!("{id:?} is not an alias of a Lambda function: write `<function>:<alias>`, without `$LATEST` or a version");
            report.error(node.get("id").unwrap_or(node), format!("{path}.id"), message);
        }
        let (region, account) = place(node, &path, report);
        targets.push(Target { name, kind, id, region, account });
    }
    targets
}

/// `region` and `account` of a node.
pub fn place(node: &Node, path: &str, report: &mut Report) -> (Option<String>, Option<String>) {
    let region = text(node, "region", path, report).filter(|region| !region.is_empty());
    let letters = |region: &str| region.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if let Some(region) = region.as_ref().filter(|region| !letters(region) || region.matches('-').count() < 2) {
        let message = format!("{region:?} is not a region: write it like `eu-central-1`, or leave it out");
        report.error(node.get("region").unwrap_or(node), format!("{path}.region"), message);
    }
    let account = text(node, "account", path, report).filter(|account| !account.is_empty());
    let digits = |account: &str| account.len() == 12 && account.chars().all(|c| c.is_ascii_digit());
    if let Some(account) = account.as_ref().filter(|account| !digits(account)) {
        let message = format!("{account:?} is not an account: write its 12 digits in quotes, or leave it out");
        report.error(node.get("account").unwrap_or(node), format!("{path}.account"), message);
    }
    (region, account)
}

/// `<function>:<alias>`; an alias is not a number.
fn is_alias(id: &str) -> bool {
    let word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    id.split_once(':').is_some_and(|(function, alias)| {
        word(function) && word(alias) && function.len() <= 64 && alias.len() <= 128 && !alias.chars().all(|c| c.is_ascii_digit())
    })
}

/// `concurrency`: `supersede` or `queue`.
pub fn concurrency(spec: &Node, path: &str, report: &mut Report) -> Concurrency {
    match word(spec, "concurrency", path, &["supersede", "queue"], report) {
        Some(1) => Concurrency::Queue,
        _ => Concurrency::Supersede,
    }
}

/// `resume`: `explicit` or `onNewerImage`.
pub fn resume(spec: &Node, path: &str, report: &mut Report) -> Resume {
    match word(spec, "resume", path, &["explicit", "onNewerImage"], report) {
        Some(1) => Resume::OnNewerImage,
        _ => Resume::Explicit,
    }
}

/// `onDrift`: `tell`, `restore` or `adopt`.
pub fn on_drift(spec: &Node, path: &str, report: &mut Report) -> OnDrift {
    match word(spec, "onDrift", path, &["tell", "restore", "adopt"], report) {
        Some(1) => OnDrift::Restore,
        Some(2) => OnDrift::Adopt,
        _ => OnDrift::Tell,
    }
}

/// `autoRollback`: `{onFailure, alarms, bake}`.
pub fn auto_rollback(spec: &Node, path: &str, report: &mut Report) -> Option<AutoRollback> {
    let (node, path) = levels::mapping(spec, "autoRollback", &additions::AUTO_ROLLBACK, path, report)?;
    let on_failure = flag(node, "onFailure", &path, report);
    let alarms = words(node, "alarms", &path, report);
    let mut known = HashSet::new();
    if let Some(twice) = alarms.iter().find(|alarm| !known.insert(*alarm)) {
        let at = node.get("alarms").unwrap_or(node);
        report.error(at, format!("{path}.alarms"), format!("has {twice:?} twice: leave one out"));
    }
    let bake = duration(node, "bake", &path, report).unwrap_or_default();
    if !on_failure && alarms.is_empty() {
        report.error(
            node,
            path.clone(),
            "never rolls back: write `onFailure: true`, or name CloudWatch alarms under `alarms`".into(),
        );
    }
    if let Some(at) = node.get("bake").filter(|_| bake.0 > 0 && alarms.is_empty()) {
        let message = "is never used: only alarms can end it; name them under `alarms`";
        report.warning(at, format!("{path}.bake"), message.into());
    }
    Some(AutoRollback { on_failure, alarms, bake })
}

/// `deployer`: `{ecs: {…}}`, the parameters of `RunTask`, or `{codeBuild: {…}}`, those of `StartBuild`.
pub fn deployer(spec: &Node, path: &str, report: &mut Report) -> Option<Starter> {
    let (node, path) = levels::mapping(spec, "deployer", &additions::DEPLOYER, path, report)?;
    let named: Vec<&str> = ["ecs", "codeBuild"].into_iter().filter(|name| node.get(name).is_some()).collect();
    let (field, needed) = match named[..] {
        ["ecs"] => ("ecs", "taskDefinition"),
        ["codeBuild"] => ("codeBuild", "projectName"),
        _ => {
            let message = "is one of two: write `ecs` with the parameters of RunTask, or `codeBuild` with those of StartBuild";
            report.error(node, path, message.into());
            return None;
        }
    };
    let path = format!("{path}.{field}");
    let params = mapping(node, field, &path, report);
    let given = params.and_then(|params| params.get(needed)).and_then(Node::scalar).is_some_and(|text| !text.is_empty());
    if !given {
        let at = params.or_else(|| node.get(field)).unwrap_or(node);
        report.error(at, format!("{path}.{needed}"), format!("is missing: the request cannot be made without `{needed}`"));
    }
    let params = params.map(Node::to_object).unwrap_or_default();
    Some(if field == "ecs" { Starter::Ecs(params) } else { Starter::CodeBuild(params) })
}
