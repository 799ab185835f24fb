//! Which fields the manifests of deployments have at which level.

use crate::manifest::fields::{self, Level};
use crate::manifest::finding::Report;
use crate::manifest::outline::items;
use crate::manifest::project;
use crate::manifest::tree::Node;

/// A kind of mapping in a manifest of deployments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Config,
    Metadata,
    Spec,
    Proposed,
    ProposedTemplate,
    Controller,
    PodTemplate,
    PodMetadata,
    Strategy,
    Custom,
    Rolling,
    Recreate,
    Canary,
    Step,
    Hook,
    Exec,
    Env,
    TagImage,
    Reference,
    Trigger,
    ImageChange,
    ProposedImageChange,
    Target,
    AutoRollback,
    Deployer,
    Rollback,
    List,
    Template,
    Parameter,
    Source,
    SourceSpec,
    Ecr,
    Webhook,
    SourceTag,
}

use Part::{
    AutoRollback, Canary, Config, Controller, Custom, Deployer, Ecr, Env, Exec, Hook, ImageChange, List, Metadata, Parameter,
    PodMetadata, PodTemplate, Proposed, ProposedImageChange, ProposedTemplate, Recreate, Reference, Rollback, Rolling, Source,
    SourceSpec, SourceTag, Spec, Step, Strategy, TagImage, Target, Template, Trigger, Webhook,
};

/// All of them.
pub const ALL: [Part; 34] = [
    Config,
    Metadata,
    Spec,
    Proposed,
    ProposedTemplate,
    Controller,
    PodTemplate,
    PodMetadata,
    Strategy,
    Custom,
    Rolling,
    Recreate,
    Canary,
    Step,
    Hook,
    Exec,
    Env,
    TagImage,
    Reference,
    Trigger,
    ImageChange,
    ProposedImageChange,
    Target,
    AutoRollback,
    Deployer,
    Rollback,
    List,
    Template,
    Parameter,
    Source,
    SourceSpec,
    Ecr,
    Webhook,
    SourceTag,
];

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
    pub fn fields(self) -> &'static [&'static str] {
        match self {
            Config => &["apiVersion", "kind", "metadata", "spec", "status"],
            Metadata | PodMetadata => &[
                "name",
                "namespace",
                "labels",
                "annotations",
                "clusterName",
                "creationTimestamp",
                "deletionGracePeriodSeconds",
                "deletionTimestamp",
                "finalizers",
                "generateName",
                "generation",
                "initializers",
                "managedFields",
                "ownerReferences",
                "resourceVersion",
                "selfLink",
                "uid",
            ],
            Spec => &[
                "template",
                "replicas",
                "selector",
                "strategy",
                "triggers",
                "targets",
                "paused",
                "revisionHistoryLimit",
                "concurrency",
                "resume",
                "autoRollback",
                "deployer",
                "minReadySeconds",
                "test",
            ],
            Proposed => &[
                "id",
                "kind",
                "apiVersion",
                "namespace",
                "metadata",
                "labels",
                "annotations",
                "template",
                "triggers",
                "latestVersion",
                "details",
                "rollback",
                "targets",
                "paused",
                "revisionHistoryLimit",
                "concurrency",
                "resume",
                "autoRollback",
                "deployer",
                "minReadySeconds",
                "test",
                "creationTimestamp",
                "resourceVersion",
                "selfLink",
                "uid",
            ],
            ProposedTemplate => &["strategy", "controllerTemplate"],
            Controller => &["replicas", "replicaSelector", "podTemplate"],
            PodTemplate => &["metadata", "spec"],
            Strategy => &[
                "type",
                "rollingParams",
                "recreateParams",
                "canaryParams",
                "customParams",
                "activeDeadlineSeconds",
                "labels",
                "annotations",
                "resources",
            ],
            Custom => &["image", "command", "environment"],
            Rolling => &["updatePeriodSeconds", "intervalSeconds", "timeoutSeconds", "maxUnavailable", "maxSurge", "pre", "post"],
            Recreate => &["timeoutSeconds", "pre", "mid", "post"],
            Canary => &["steps", "timeoutSeconds", "pre", "post"],
            Step => &["weight", "bake"],
            Hook => &["failurePolicy", "execNewPod", "tagImages", "invoke"],
            Exec => &["containerName", "command", "env", "volumes"],
            Env => &["name", "value", "valueFrom"],
            TagImage => &["containerName", "to"],
            Reference => &["kind", "name", "namespace", "apiVersion", "uid", "resourceVersion", "fieldPath"],
            Trigger => &["type", "imageChangeParams"],
            ImageChange => &["automatic", "containerNames", "from", "lastTriggeredImage"],
            ProposedImageChange => &["automatic", "containerNames", "repositoryName", "tag", "from", "lastTriggeredImage"],
            Target => &["name", "kind", "id", "region", "account"],
            AutoRollback => &["onFailure", "alarms", "bake"],
            Deployer => &["ecs", "codeBuild"],
            Rollback => &["release", "config", "application", "strategy", "notes"],
            List => &["apiVersion", "kind", "metadata", "items"],
            Template => &["apiVersion", "kind", "metadata", "labels", "message", "objects", "parameters"],
            Parameter => &["name", "displayName", "description", "value", "generate", "from", "required"],
            Source => &["apiVersion", "kind", "metadata", "spec", "status"],
            SourceSpec => &["ecr", "webhook", "tags"],
            Ecr => &["repository", "account", "region"],
            Webhook => &["secret"],
            SourceTag => &["name", "pattern"],
        }
    }

    pub fn parent(self) -> Option<Part> {
        match self {
            Config | Proposed | List | Template | Source => None,
            Metadata | Spec => Some(Config),
            ProposedTemplate | Rollback => Some(Proposed),
            Controller => Some(ProposedTemplate),
            PodTemplate | Strategy | Trigger | Target | AutoRollback | Deployer => Some(Spec),
            PodMetadata => Some(PodTemplate),
            Custom | Rolling | Recreate | Canary => Some(Strategy),
            Step => Some(Canary),
            // Of the parameters that have hooks, those whose hooks stand in most manifests.
            Hook => Some(Rolling),
            Exec | TagImage => Some(Hook),
            Env => Some(Exec),
            ImageChange | ProposedImageChange => Some(Trigger),
            Reference => Some(ImageChange),
            Parameter => Some(Template),
            SourceSpec => Some(Source),
            Ecr | Webhook | SourceTag => Some(SourceSpec),
        }
    }

    /// "a hook", for messages, and where its fields are written.
    pub fn words(self) -> (&'static str, &'static str) {
        match self {
            Config | Proposed => ("a DeploymentConfig", "at the top of the document, beside `kind`"),
            Metadata => ("`metadata`", "under `metadata`"),
            Spec => ("a DeploymentConfig's `spec`", "under `spec`"),
            ProposedTemplate => ("`template`", "under `template`"),
            Controller => ("`controllerTemplate`", "under `controllerTemplate`"),
            PodTemplate => ("a pod template", "under the pod template"),
            PodMetadata => ("a pod template's `metadata`", "under the pod template's `metadata`"),
            Strategy => ("`strategy`", "under `strategy`"),
            Custom => ("`customParams`", "under `customParams`"),
            Rolling => ("`rollingParams`", "under `rollingParams`"),
            Recreate => ("`recreateParams`", "under `recreateParams`"),
            Canary => ("`canaryParams`", "under `canaryParams`"),
            Step => ("a step", "in an entry of `steps`"),
            Hook => ("a hook", "under `pre`, `mid` or `post`"),
            Exec => ("`execNewPod`", "under `execNewPod`"),
            Env => ("an environment variable", "in an entry of the environment"),
            TagImage => ("an entry of `tagImages`", "in an entry of `tagImages`"),
            Reference => ("a reference to an image tag", "under `from`"),
            Trigger => ("a trigger", "in an entry of `triggers`"),
            ImageChange | ProposedImageChange => ("`imageChangeParams`", "under `imageChangeParams`"),
            Target => ("a target", "in an entry of `targets`"),
            AutoRollback => ("`autoRollback`", "under `autoRollback`"),
            Deployer => ("`deployer`", "under `deployer`"),
            Rollback => ("`rollback`", "under `rollback`"),
            List => ("a List", "at the top of the List"),
            Template => ("a Template", "at the top of the Template"),
            Parameter => ("a parameter", "in an entry of `parameters`"),
            Source => ("an ArtifactSource", "at the top of the document, beside `kind`"),
            SourceSpec => ("an ArtifactSource's `spec`", "under `spec`"),
            Ecr => ("`ecr`", "under `ecr`"),
            Webhook => ("`webhook`", "under `webhook`"),
            SourceTag => ("an entry of `tags`", "in an entry of `tags`"),
        }
    }

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
