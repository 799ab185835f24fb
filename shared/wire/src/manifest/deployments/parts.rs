//! Which fields the manifests of deployments have at which level.

use crate::manifest::fields::{self, Level};
use crate::manifest::finding::Report;
use crate::manifest::outline::items;
use crate::manifest::project;
use crate::manifest::tree::Node;

/// The parts: in which one it stands, what it is called in messages, where its fields are written, and which it has.
macro_rules! parts {
    ($($part:ident in $parent:expr, $what:literal, $place:literal: [$($field:literal),*],)*) => {
        /// A kind of mapping in a manifest of deployments.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Part {
            $($part),*
        }

        use Part::{$($part),*};

        /// All of them.
        pub const ALL: &[Part] = &[$($part),*];

        impl Part {
            pub fn fields(self) -> &'static [&'static str] {
                match self {
                    $($part => &[$($field),*],)*
                }
            }

            pub fn parent(self) -> Option<Part> {
                match self {
                    $($part => $parent,)*
                }
            }

            /// "a hook", for messages.
            pub fn what(self) -> &'static str {
                match self {
                    $($part => $what,)*
                }
            }

            /// Where its fields are written.
            pub fn place(self) -> &'static str {
                match self {
                    $($part => $place,)*
                }
            }
        }
    };
}

parts! {
    Config in None, "a DeploymentConfig", "at the top of the document, beside `kind`":
        ["apiVersion", "kind", "metadata", "spec", "status"],
    Metadata in Some(Config), "`metadata`", "under `metadata`": [
        "name", "namespace", "labels", "annotations", "clusterName", "creationTimestamp", "deletionGracePeriodSeconds",
        "deletionTimestamp", "finalizers", "generateName", "generation", "initializers", "managedFields", "ownerReferences",
        "resourceVersion", "selfLink", "uid"
    ],
    Spec in Some(Config), "a DeploymentConfig's `spec`", "under `spec`": [
        "template", "replicas", "selector", "strategy", "triggers", "targets", "paused", "revisionHistoryLimit", "concurrency",
        "resume", "onDrift", "autoRollback", "deployer", "minReadySeconds", "test"
    ],
    Proposed in None, "a DeploymentConfig", "at the top of the document, beside `kind`": [
        "id", "kind", "apiVersion", "namespace", "metadata", "labels", "annotations", "template", "triggers", "latestVersion",
        "details", "rollback", "targets", "paused", "revisionHistoryLimit", "concurrency", "resume", "onDrift", "autoRollback",
        "deployer", "minReadySeconds", "test", "creationTimestamp", "resourceVersion", "selfLink", "uid"
    ],
    ProposedTemplate in Some(Proposed), "`template`", "under `template`": ["strategy", "controllerTemplate"],
    Controller in Some(ProposedTemplate), "`controllerTemplate`", "under `controllerTemplate`":
        ["replicas", "replicaSelector", "podTemplate"],
    PodTemplate in Some(Spec), "a pod template", "under the pod template": ["metadata", "spec"],
    PodMetadata in Some(PodTemplate), "a pod template's `metadata`", "under the pod template's `metadata`": [
        "name", "namespace", "labels", "annotations", "clusterName", "creationTimestamp", "deletionGracePeriodSeconds",
        "deletionTimestamp", "finalizers", "generateName", "generation", "initializers", "managedFields", "ownerReferences",
        "resourceVersion", "selfLink", "uid"
    ],
    Strategy in Some(Spec), "`strategy`", "under `strategy`": [
        "type", "rollingParams", "recreateParams", "canaryParams", "customParams", "activeDeadlineSeconds", "labels",
        "annotations", "resources"
    ],
    Custom in Some(Strategy), "`customParams`", "under `customParams`": ["image", "command", "environment"],
    Rolling in Some(Strategy), "`rollingParams`", "under `rollingParams`":
        ["updatePeriodSeconds", "intervalSeconds", "timeoutSeconds", "maxUnavailable", "maxSurge", "pre", "post"],
    Recreate in Some(Strategy), "`recreateParams`", "under `recreateParams`": ["timeoutSeconds", "pre", "mid", "post"],
    Canary in Some(Strategy), "`canaryParams`", "under `canaryParams`": ["steps", "timeoutSeconds", "pre", "post"],
    Step in Some(Canary), "a step", "in an entry of `steps`": ["weight", "bake"],
    // Of the parameters that have hooks, those whose hooks stand in most manifests.
    Hook in Some(Rolling), "a hook", "under `pre`, `mid` or `post`": ["failurePolicy", "execNewPod", "tagImages", "invoke"],
    Exec in Some(Hook), "`execNewPod`", "under `execNewPod`": ["containerName", "command", "env", "volumes"],
    Env in Some(Exec), "an environment variable", "in an entry of the environment": ["name", "value", "valueFrom"],
    TagImage in Some(Hook), "an entry of `tagImages`", "in an entry of `tagImages`": ["containerName", "to"],
    Reference in Some(ImageChange), "a reference to an image tag", "under `from`":
        ["kind", "name", "namespace", "apiVersion", "uid", "resourceVersion", "fieldPath"],
    Trigger in Some(Spec), "a trigger", "in an entry of `triggers`": ["type", "imageChangeParams"],
    ImageChange in Some(Trigger), "`imageChangeParams`", "under `imageChangeParams`":
        ["automatic", "containerNames", "from", "lastTriggeredImage"],
    ProposedImageChange in Some(Trigger), "`imageChangeParams`", "under `imageChangeParams`":
        ["automatic", "containerNames", "repositoryName", "tag", "from", "lastTriggeredImage"],
    Target in Some(Spec), "a target", "in an entry of `targets`": ["name", "kind", "id", "region", "account"],
    AutoRollback in Some(Spec), "`autoRollback`", "under `autoRollback`": ["onFailure", "alarms", "bake"],
    Deployer in Some(Spec), "`deployer`", "under `deployer`": ["ecs", "codeBuild"],
    Rollback in Some(Proposed), "`rollback`", "under `rollback`": ["release", "config", "application", "strategy", "notes"],
    List in None, "a List", "at the top of the List": ["apiVersion", "kind", "metadata", "items"],
    Template in None, "a Template", "at the top of the Template":
        ["apiVersion", "kind", "metadata", "labels", "message", "objects", "parameters"],
    Parameter in Some(Template), "a parameter", "in an entry of `parameters`":
        ["name", "displayName", "description", "value", "generate", "from", "required"],
    Source in None, "an ArtifactSource", "at the top of the document, beside `kind`":
        ["apiVersion", "kind", "metadata", "spec", "status"],
    SourceSpec in Some(Source), "an ArtifactSource's `spec`", "under `spec`": ["ecr", "webhook", "images", "tags"],
    Ecr in Some(SourceSpec), "`ecr`", "under `ecr`": ["repository", "account", "region"],
    Webhook in Some(SourceSpec), "`webhook`", "under `webhook`": ["secret"],
    SourceTag in Some(SourceSpec), "an entry of `tags`", "in an entry of `tags`": ["name", "pattern"],
}

/// Reports every field that `node` has and `part` has not.
pub fn check(node: &Node, part: Part, path: &str, report: &mut Report) {
    fields::check(node, Level::Deployment(part), path, report);
}

/// The entries of the list under `field`, with their paths; whatever has no fields is a finding.
pub fn entries<'n>(node: &'n Node, field: &str, part: Part, path: &str, report: &mut Report) -> Vec<(&'n Node, String)> {
    let path = format!("{path}.{field}");
    let Some(list) = node.get(field).filter(|list| !list.is_null()) else { return vec![] };
    let mut all = vec![];
    for (place, entry) in items(list, &path, Level::Deployment(part), report).unwrap_or_default().into_iter().enumerate() {
        let path = format!("{path}[{place}]");
        if entry.entries().is_none() {
            report.error(entry, path, format!("is {}, not a mapping: write for example `- {}`", entry.what(), part.example()));
            continue;
        }
        check(entry, part, &path, report);
        all.push((entry, path));
    }
    all
}

/// The mapping under `field`, with its path, if there is one.
pub fn mapping<'n>(node: &'n Node, field: &str, part: Part, path: &str, report: &mut Report) -> Option<(&'n Node, String)> {
    let path = format!("{path}.{field}");
    let node = project::mapping(node, field, &path, report)?;
    check(node, part, &path, report);
    Some((node, path))
}

impl Part {
    /// The beginning of an entry, for parts that stand in lists.
    pub fn example(self) -> &'static str {
        match self {
            Step => "weight: 10",
            Trigger => "type: ConfigChange",
            Target => "name: eu",
            TagImage => "containerName: app",
            List => "kind: DeploymentConfig",
            Parameter => "name: IMAGE_TAG",
            SourceTag => "name: stable",
            _ => "name: app",
        }
    }

    /// Words that mean a field without resembling it. `key` is in lower case, without `-` and `_`.
    pub fn alias(self, key: &str) -> Option<&'static str> {
        match (self, key) {
            (Exec, "args") => Some("command"),
            (Custom, "env") => Some("environment"),
            (Custom, "args") => Some("command"),
            (Exec, "environment") => Some("env"),
            (Controller, "selector") => Some("replicaSelector"),
            (Controller, "template") => Some("podTemplate"),
            (Strategy, "rollingupdate") => Some("rollingParams"),
            (Template, "items") => Some("objects"),
            (List, "objects") => Some("items"),
            (Hook, "lambda" | "function") => Some("invoke"),
            _ => None,
        }
    }
}
