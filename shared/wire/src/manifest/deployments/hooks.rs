//! `pre`, `mid` and `post`: what runs around a deployment.

use super::triggers::{Around, image_tag};
use crate::manifest::finding::Report;
use crate::manifest::levels::{self, strategies};
use crate::manifest::tree::Node;
use crate::manifest::values::{text, word, words};
use keelway_domain::deployments::definition::{Action, Definition, FailurePolicy, Hook, Hooks, Tagged};
use serde_json::Value;
use std::collections::HashSet;

const POLICIES: [&str; 3] = ["Abort", "Retry", "Ignore"];
const ACTIONS: [&str; 3] = ["execNewPod", "tagImages", "invoke"];

/// The hooks of a strategy's parameters.
pub fn read(params: &Node, path: &str, around: &Around, report: &mut Report) -> Hooks {
    let mut read = |field: &str| hook(params, field, path, around, report);
    Hooks { pre: read("pre"), mid: read("mid"), post: read("post") }
}

fn hook(params: &Node, field: &str, path: &str, around: &Around, report: &mut Report) -> Option<Hook> {
    let (node, path) = levels::mapping(params, field, &strategies::HOOK, path, report)?;
    let policy = match word(node, "failurePolicy", &path, &POLICIES, report) {
        Some(0) => Some(FailurePolicy::Abort),
        Some(1) => Some(FailurePolicy::Retry),
        Some(_) => Some(FailurePolicy::Ignore),
        None => None,
    };
    let named: Vec<&str> = ACTIONS.into_iter().filter(|action| node.get(action).is_some_and(|action| !action.is_null())).collect();
    let action = match named[..] {
        ["execNewPod"] => exec(node, &path, around, report),
        ["tagImages"] => tag_images(node, &path, around, report),
        ["invoke"] => invoke(node, &path, report),
        [] => {
            report.error(node, path.clone(), format!("does nothing: write one of `{}`", ACTIONS.join("`, `")));
            None
        }
        _ => {
            report.error(node, path.clone(), format!("has `{}`: write one of them", named.join("` and `")));
            None
        }
    };
    Some(Hook { failure_policy: policy?, action: action? })
}

fn exec(hook: &Node, path: &str, around: &Around, report: &mut Report) -> Option<Action> {
    let (node, path) = levels::mapping(hook, "execNewPod", &strategies::EXEC, path, report)?;
    words(node, "command", &path, report);
    if let Some(name) = container(node, &path, report)
        && let Some(template) = around.template.filter(|template| !template.has(&name))
    {
        let message = format!("{name:?} is no container of the template: the hook would find no image; {}", template.names());
        report.warning(node.get("containerName").unwrap_or(node), format!("{path}.containerName"), message);
    }
    for (variable, path) in levels::entries(node, "env", &strategies::VARIABLE, &path, report) {
        // Its value is the deployer's matter, and may come from elsewhere.
        drop(self::variable(variable, &path, report));
    }
    words(node, "volumes", &path, report);
    Some(Action::ExecNewPod(Value::Object(node.to_object())))
}

/// The name of an environment variable: a name as in C.
pub fn variable(node: &Node, path: &str, report: &mut Report) -> Option<String> {
    let name = text(node, "name", path, report).unwrap_or_default();
    let inside = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(inside) {
        let message = format!("{name:?} is not the name of a variable: use letters, digits and `_`, first no digit");
        report.error(node.get("name").unwrap_or(node), format!("{path}.name"), message);
        return None;
    }
    Some(name)
}

fn container(node: &Node, path: &str, report: &mut Report) -> Option<String> {
    text(node, "containerName", path, report).filter(|name| !name.trim().is_empty())
}

fn tag_images(hook: &Node, path: &str, around: &Around, report: &mut Report) -> Option<Action> {
    let mut tagged = vec![];
    let mut known = HashSet::new();
    for (node, path) in levels::entries(hook, "tagImages", &strategies::TAG_IMAGE, path, report) {
        let container = container(node, &path, report);
        if let Some((name, template)) = container.as_ref().zip(around.template)
            && !template.has(name)
        {
            let message = format!("{name:?} is no container of the template: {}", template.names());
            report.error(node.get("containerName").unwrap_or(node), format!("{path}.containerName"), message);
        }
        let to = image_tag(node, "to", &path, around, report);
        if let Some(to) = to.as_ref().filter(|to| !known.insert((*to).clone())) {
            report.error(node, format!("{path}.to"), format!("{to} is there twice: it can point to one image only"));
        }
        tagged.extend(container.zip(to).map(|(container, to)| Tagged { container, to }));
    }
    if hook.get("tagImages").and_then(Node::list).is_none_or(<[Node]>::is_empty) {
        let message = "is empty: list the containers, and the tags that their images get";
        report.error(hook.get("tagImages").unwrap_or(hook), format!("{path}.tagImages"), message.into());
    }
    Some(Action::TagImages(tagged))
}

fn invoke(hook: &Node, path: &str, report: &mut Report) -> Option<Action> {
    let function = text(hook, "invoke", path, report)?;
    let inside = |c: char| c.is_ascii_alphanumeric() || "-_:$".contains(c);
    if function.is_empty() || function.len() > 170 || !function.chars().all(inside) {
        let message = format!("{function:?} is not a Lambda function: write its name or ARN, with or without `:<alias>`");
        report.error(hook.get("invoke").unwrap_or(hook), format!("{path}.invoke"), message);
    }
    Some(Action::Invoke(function))
}

/// Containers cannot be run where Keelway itself deploys to Lambda aliases.
pub fn check_runnable(definition: &Definition, params: (&Node, &str), report: &mut Report) {
    let hooks = &definition.strategy.hooks;
    if !definition.deploys_to_aliases() {
        return;
    }
    for (field, hook) in [("pre", &hooks.pre), ("mid", &hooks.mid), ("post", &hooks.post)] {
        if matches!(hook, Some(Hook { action: Action::ExecNewPod(_), .. })) {
            let (node, path) = params;
            let at = node.get(field).and_then(|hook| hook.get("execNewPod")).unwrap_or(node);
            let message = "needs a deployer that runs containers, but all targets are Lambda aliases: write `invoke: <function>` to call \
                           a Lambda function, or name a `deployer`";
            report.error(at, format!("{path}.{field}.execNewPod"), message.into());
        }
    }
}
