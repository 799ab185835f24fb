//! After everything else: what the functions did is what the template allows, and the other way round.

use crate::bed::Bed;
use keelway_cloud_tests::problem::ensure;
use keelway_cloud_tests::runner::{Options, Test};
use keelway_cloud_tests::{Ability, Outcome};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Actions by function.
type Actions = BTreeMap<String, BTreeSet<String>>;

/// What a role allows and no test needs, and why.
const UNSEEN: [(&str, &str, &str); 27] = [
    ("keelway-api", "kms:Decrypt", SECRETS),
    ("keelway-attempts", "kms:Decrypt", SECRETS),
    ("keelway-observer", "kms:Decrypt", SECRETS),
    ("keelway-webhooks", "kms:Decrypt", SECRETS),
    ("keelway-evaluations", "kms:Decrypt", SECRETS),
    ("keelway-evaluations", "sqs:GetQueueAttributes", MAPPINGS),
    ("keelway-evaluations", "aps:QueryMetrics", METRICS),
    ("keelway-evaluations", "sts:AssumeRole", METRICS),
    ("keelway-deployers", "kms:Decrypt", SECRETS),
    ("keelway-deployers", "cloudwatch:GetMetricData", METRICS),
    ("keelway-deployers", "aps:QueryMetrics", METRICS),
    ("keelway-deployers", "sts:AssumeRole", METRICS),
    ("keelway-deployers", "secretsmanager:GetSecretValue", METRICS),
    ("keelway-evaluations", "scheduler:CreateSchedule", WINDOWS),
    ("keelway-evaluations", "iam:PassRole", WINDOWS),
    ("keelway-promotions", "sqs:GetQueueAttributes", MAPPINGS),
    ("keelway-attempts", "sqs:GetQueueAttributes", MAPPINGS),
    ("keelway-webhooks", "sqs:GetQueueAttributes", MAPPINGS),
    ("keelway-observer", "sqs:GetQueueAttributes", MAPPINGS),
    ("keelway-deployments", "sqs:GetQueueAttributes", MAPPINGS),
    ("keelway-deployers", "sqs:GetQueueAttributes", MAPPINGS),
    ("keelway-dead-letters", "sqs:GetQueueAttributes", MAPPINGS),
    ("keelway-deployers", "ecr:BatchGetImage", IMAGES),
    ("keelway-deployers", "ecr:GetDownloadUrlForLayer", IMAGES),
    ("keelway-deployers", "ecr:GetRepositoryPolicy", IMAGES),
    (
        "keelway-sweep",
        "dynamodb:DeleteItem",
        "a source that has lost its repository is taken out of those that the sweep asks about",
    ),
    ("keelway-deployers", "codebuild:StopBuild", "the builds of the local cloud have ended before anybody can stop them"),
];
const SECRETS: &str = "Secrets Manager decrypts in the caller's name, and the stacks of the tests have no key of their own";
const MAPPINGS: &str = "Lambda wants it of a function whose queue it is to poll, also while it does not";
const METRICS: &str = "what the deployers ask is a Prometheus without credentials; roles and signed requests are \
                       asserted against twins (shared/metrics, shared/aws)";
const WINDOWS: &str = "an evaluation waits for more than a quarter of an hour only if its window ends then";
const IMAGES: &str = "Lambda reads an image in the name of whoever updates the code; the local cloud reads none";

pub fn tests() -> Vec<Test<Bed>> {
    let needs = &[Ability::Functions, Ability::Permissions, Ability::Records];
    vec![Test::new("permissions::every role allows what its function does, and nothing else", equal).needs(needs).last()]
}

fn keys(value: &Value) -> impl Iterator<Item = &String> {
    value.as_object().into_iter().flat_map(|object| object.keys())
}

fn equal(bed: &Bed) -> Outcome {
    let allowed = bed.cloud.allowed()?;
    let allowed: Actions = keys(&allowed).map(|function| (function.clone(), keys(&allowed[function]).cloned().collect())).collect();
    let (mut used, mut denied) = (Actions::new(), vec![]);
    let stacks = [Some(&bed.stack), bed.second_if_made().map(|second| &second.stack)];
    for stack in stacks.into_iter().flatten() {
        let recorded = bed.cloud.recorded(&stack.name())?;
        for function in keys(&recorded) {
            let actions = used.entry(function.clone()).or_default();
            actions.extend(["allowed", "implied"].iter().flat_map(|verdict| keys(&recorded[function][*verdict]).cloned()));
            let refusals = &recorded[function]["denied"];
            denied.extend(keys(refusals).map(|action| format!("{function} was refused {action} on {}", refusals[action])));
        }
    }
    let mut lines = denied;
    let names: BTreeSet<&String> = allowed.keys().chain(used.keys()).collect();
    let none = BTreeSet::new();
    // A few tests do not use everything; whether they use too much can be said.
    let whole = Options::parse(std::env::args().skip(1));
    let whole = whole.filters.is_empty() && whole.skip.is_empty();
    for (name, action, why) in UNSEEN {
        let has = |actions: &Actions| actions.get(name).is_some_and(|actions| actions.contains(action));
        // The local cloud polls a queue for a moment before its mapping is switched off: some messages come that way.
        if !has(&allowed) || (has(&used) && why != MAPPINGS) {
            lines.push(format!("{name} and {action} need no exception any more: take it out ({why})"));
        }
    }
    for name in names {
        let (allowed, used) = (allowed.get(name).unwrap_or(&none), used.get(name).unwrap_or(&none));
        let unseen = |action: &&String| UNSEEN.iter().any(|(function, unseen, _)| name == function && *action == unseen);
        lines.extend(
            used.difference(allowed).map(|action| format!("{name} used {action}, which its role in the template does not list")),
        );
        if whole {
            lines.extend(
                allowed
                    .difference(used)
                    .filter(|action| !unseen(action))
                    .map(|action| format!("{name} may {action}, and no test needed it: take it out, or test what needs it")),
            );
        }
    }
    ensure(lines.is_empty(), || lines.join("\n"))
}
