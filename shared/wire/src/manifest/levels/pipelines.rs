//! `kind: Pipeline`, and what pipelines refer to: `kind: Cluster` and `kind: GitHost`.

use super::projects::API_VERSION;
use super::shape::{PROJECT_NAME, Shape, WORDS, name};
use super::{Level, document, entry, field, needed, required, under};
use serde_json::{Value, json};

/// The `apiVersion` of pipelines, as Weave has it.
pub const PIPELINE_VERSION: &str = "pipelines.weave.works/v1alpha1";

/// The hosts of pull requests, as `type` names them, and how Keelway knows them.
pub const HOSTS: [(&str, &str); 5] = [
    ("github", "github"),
    ("gitlab", "gitlab"),
    ("gitea", "gitea"),
    ("forgejo", "gitea"),
    ("bitbucket-server", "bitbucket-server"),
];

use Shape::{Any, Constant, Duration, Entries, Flag, Needed, Of, Pattern, Schema, Text, Texts, Url, Whole, Word};

pub static LEVELS: [&Level; 20] = [
    &PIPELINE,
    &OBJECT_METADATA,
    &SPEC,
    &APP_REF,
    &ENVIRONMENT,
    &EVALUATION,
    &TARGET,
    &CLUSTER_REF,
    &PROMOTION,
    &STRATEGY,
    &NOTIFICATION,
    &PULL_REQUEST,
    &SEQUENCE_REF,
    &SECRET_REF,
    &APPROVAL,
    &WINDOW,
    &CLUSTER,
    &CLUSTER_SPEC,
    &GIT_HOST,
    &GIT_HOST_SPEC,
];

pub static PIPELINE: Level = Level {
    head: document("Pipeline", "a Pipeline"),
    fields: &[
        required("apiVersion", Constant(PIPELINE_VERSION)),
        required("kind", Constant("Pipeline")),
        required("metadata", Of(&OBJECT_METADATA)),
        needed("spec", Of(&SPEC), "write `spec:` with `appRef` and `environments`"),
        field("status", Any),
    ],
};

/// Of clusters, git hosts, artifact sources and webhook subscriptions, too: as Kubernetes objects have it.
pub static OBJECT_METADATA: Level = Level {
    head: under("ObjectMetadata", &PIPELINE, "metadata"),
    fields: &[
        // Image streams, and so artifact sources, may have `_` in their names.
        required("name", Pattern("^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$", 63)),
        field("namespace", PROJECT_NAME),
        field("labels", Texts),
        field("annotations", Texts),
        field("creationTimestamp", Any),
        field("finalizers", Any),
        field("generation", Any),
        field("managedFields", Any),
        field("ownerReferences", Any),
        field("resourceVersion", Any),
        field("uid", Any),
    ],
};

pub static SPEC: Level = Level {
    head: under("PipelineSpec", &PIPELINE, "spec").called("a Pipeline's `spec`"),
    fields: &[
        needed("appRef", Of(&APP_REF), "name the object that every target runs, with `apiVersion`, `kind` and `name`"),
        needed("environments", Entries(&ENVIRONMENT, 1), "list the environments in the order of promotion, like `- name: dev`")
            .about("In the order of promotion."),
        field("promotion", Of(&PROMOTION)).about("How revisions get into the environments that do not say it themselves."),
        field("inFlight", Word(&["restart", "finish"])).about("What a newer revision does to one that is on its way."),
        field("compare", Word(&["exact", "digest"])),
    ],
};

pub static APP_REF: Level = Level {
    head: under("AppRef", &SPEC, "appRef"),
    fields: &[
        needed("apiVersion", Needed, "write for example `apiVersion: helm.toolkit.fluxcd.io/v2`"),
        needed("kind", Needed, "write for example `kind: HelmRelease`"),
        needed("name", Needed, "write for example `name: podinfo`"),
    ],
};

pub static ENVIRONMENT: Level = Level {
    head: entry("Environment", &SPEC, "environments", "name: staging").called("an environment"),
    fields: &[
        required("name", Pattern("^[A-Za-z0-9][A-Za-z0-9._-]*$", 63)),
        needed("targets", Entries(&TARGET, 1), "name at least one target, like `- namespace: shop-staging`"),
        field("promotion", Of(&PROMOTION)),
        field("soak", Duration).about("How long a revision stays healthy here before it goes on: `1h`."),
        field("evaluation", Of(&EVALUATION)).about("How what is measured over that time is judged, before it goes on."),
    ],
};

pub static EVALUATION: Level = Level {
    head: under("PipelineEvaluation", &ENVIRONMENT, "evaluation").written("under the environment's `evaluation`"),
    fields: &[
        needed("service", Text, "name the service whose objectives (`slo.yaml`) count"),
        field("stage", Text).about("The stage with the service's files; absent: the environment's name."),
        field("warning", Word(&["pass", "fail"])).about("What a warning is. Absent: `pass`."),
    ],
};

pub static TARGET: Level = Level {
    head: entry("Target", &ENVIRONMENT, "targets", "namespace: shop-staging").called("a target"),
    fields: &[needed("namespace", Needed, "name the namespace the application runs in"), field("clusterRef", Of(&CLUSTER_REF))],
};

pub static CLUSTER_REF: Level = Level {
    head: under("ClusterRef", &TARGET, "clusterRef").written("under the target's `clusterRef`"),
    fields: &[field("apiVersion", Text), field("kind", Text), required("name", name(63)), field("namespace", Text)],
};

pub static PROMOTION: Level = Level {
    head: under("Promotion", &SPEC, "promotion"),
    fields: &[
        field("manual", Flag).about("Whether a person approves each promotion."),
        needed("strategy", Of(&STRATEGY), "write `notification`, `pull-request` or `sequence` below it"),
        field("approval", Of(&APPROVAL)),
        field("windows", Entries(&WINDOW, 0)).about("When promotions may happen, and when not."),
    ],
};

pub static STRATEGY: Level = Level {
    head: under("Strategy", &PROMOTION, "strategy").written("under `strategy`, which stands under `promotion`").one_of(&[
        &["notification"],
        &["pull-request"],
        &["pullRequest"],
        &["sequence"],
    ]),
    fields: &[
        field("notification", Of(&NOTIFICATION)),
        // Weave's own key, and another spelling of it.
        field("pull-request", Of(&PULL_REQUEST)).also(&["pullrequest"]),
        field("pullRequest", Of(&PULL_REQUEST)),
        field("sequence", Of(&SEQUENCE_REF)),
        field("secretRef", Of(&SECRET_REF)),
    ],
};

pub static NOTIFICATION: Level = Level {
    head: under("Notification", &STRATEGY, "notification"),
    fields: &[field("url", Url), field("secretRef", Of(&SECRET_REF))],
};

pub static PULL_REQUEST: Level = Level {
    head: under("PullRequest", &STRATEGY, "pull-request"),
    fields: &[
        required("type", Schema(hosts)),
        required("url", Url),
        needed("baseBranch", Needed, "name the branch to merge into, for example `main`"),
        field("secretRef", Of(&SECRET_REF)),
        field("merge", Flag),
    ],
};

pub static SEQUENCE_REF: Level = Level {
    head: under("SequenceRef", &STRATEGY, "sequence"),
    fields: &[
        field("project", Text),
        field("stage", Text),
        needed("service", Text, "name the service the sequence delivers"),
        field("name", Text),
    ],
};

pub static SECRET_REF: Level =
    Level { head: under("SecretRef", &STRATEGY, "secretRef"), fields: &[needed("name", name(253), "name the secret")] };

pub static APPROVAL: Level = Level {
    head: under("Approval", &PROMOTION, "approval").written("under `approval`, which stands under `promotion`"),
    fields: &[
        field("quorum", Whole(1)).about("How many people must approve."),
        field("approvers", WORDS).about("Only these: `token:ann`, `<provider>/<subject>`, `key:<id>/<name>`."),
        field("separate", Flag).about("Whoever set the revision may not approve it."),
        field("remind", Duration),
    ],
};

/// Of the stages of shipyards, too.
pub static WINDOW: Level = Level {
    head: entry("Window", &PROMOTION, "windows", "kind: allow")
        .called("a window")
        .one_of(&[&["schedule", "duration"], &["from", "until"]]),
    fields: &[
        required("kind", Word(&["allow", "deny"])),
        field("schedule", Needed).about("When it opens: a cron expression with five fields, `0 18 * * FRI`."),
        field("duration", Duration).about("How long it stays open: `62h`."),
        field("from", Needed).about("Of a window that is open once: a time in `zone`, `2026-12-23T18:00`."),
        field("until", Needed).about("Of a window that is open once: a time in `zone`, `2026-12-23T18:00`."),
        field("zone", Needed).about("The IANA time zone, `Europe/Berlin`; absent: UTC.").also(&["timezone", "tz"]),
        field("reason", Needed).about("Shown to whoever has to wait."),
    ],
};

pub static CLUSTER: Level = Level {
    head: document("Cluster", "a Cluster"),
    fields: &[
        required("apiVersion", Constant(API_VERSION)),
        required("kind", Constant("Cluster")),
        required("metadata", Of(&OBJECT_METADATA)),
        needed("spec", Of(&CLUSTER_SPEC), "write `spec:` with `server` and `secretRef`"),
        field("status", Any),
    ],
};

pub static CLUSTER_SPEC: Level = Level {
    head: under("ClusterSpec", &CLUSTER, "spec").called("a Cluster's `spec`"),
    fields: &[
        required("server", Url),
        field("caData", Text),
        needed("secretRef", Of(&SECRET_REF), "name the secret with the cluster's bearer token, `secretRef: {name: …}`"),
        field("interval", Duration),
    ],
};

pub static GIT_HOST: Level = Level {
    head: document("GitHost", "a GitHost"),
    fields: &[
        required("apiVersion", Constant(API_VERSION)),
        required("kind", Constant("GitHost")),
        required("metadata", Of(&OBJECT_METADATA)),
        needed("spec", Of(&GIT_HOST_SPEC), "write `spec:` with `host`, `type` and `api`"),
        field("status", Any),
    ],
};

pub static GIT_HOST_SPEC: Level = Level {
    head: under("GitHostSpec", &GIT_HOST, "spec").called("a GitHost's `spec`"),
    fields: &[
        required("host", Needed),
        required("type", Schema(hosts)),
        required("api", Url),
        field("secretRef", Of(&SECRET_REF)),
        field("webhookSecretRef", Of(&SECRET_REF)),
    ],
};

fn hosts() -> Value {
    json!({"enum": HOSTS.map(|(name, _)| name)})
}
