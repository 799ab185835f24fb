//! Every field of every manifest that takes a text, and what it names.

/// What a field names.
pub enum Names {
    /// Nothing: why it reaches no other project and nothing of the installation's.
    Nothing(&'static str),
    /// A project, what is in one, or what belongs to the installation. In each document `~` stands for the name: the own project
    /// may apply the document with its own name there, and gets 403 with another one's.
    Outside(&'static [&'static str]),
    /// Something that is looked for in the manifest's own project: with another project's name there it is applied, and reaches
    /// nothing there.
    Within(&'static [&'static str]),
}
use Names::{Nothing, Outside, Within};

/// What a document of project `alfa` has before its `spec`.
pub const HEAD: &str = "metadata: {name: alfanew, namespace: alfa}, spec: ";
pub(super) const LABELS: &str = "labels and annotations: they are kept, and nothing is found by them";
pub(super) const SERVER: &str = "written by servers of Kubernetes, and ignored";
const TEXT: &str = "a text for people";
const TIME: &str = "a time, a window or a zone";
const EXTERNAL_ID: &str = "told to the account of the role, which decides by it; the role itself is asked for: see role";
pub(super) const OWN_PARTS: &str = "a part of the same document";
pub(super) const TOLD: &str = "told to the project's own executors, deployers and pull requests, and used by nobody else";

/// Fields of a level of the schema, and what they name.
pub type Row = (&'static str, &'static [&'static str], Names);

/// Every field that takes a text, by the level of the schema in which it stands; those of deployment configs are in `configs.rs`.
pub const FIELDS: &[Row] = &[
    (
        "ObjectMetadata",
        &["namespace"],
        Outside(&[
            "{apiVersion: keelway.dev/v1, kind: Cluster, metadata: {name: alfanew, namespace: ~}, spec: {server: 'https://alfa.k8s.test', secretRef: {name: t}}}",
            "{apiVersion: keelway.dev/v1, kind: ArtifactSource, metadata: {name: alfanew, namespace: ~}, spec: {webhook: {secret: s}}}",
            "{apiVersion: keelway.dev/v1, kind: WebhookSubscription, metadata: {name: alfanew, namespace: ~}, spec: {events: [sh.keptn.event.test.finished], url: 'https://a.test'}}",
            "{apiVersion: pipelines.weave.works/v1alpha1, kind: Pipeline, metadata: {name: alfanew, namespace: ~}, spec: {appRef: {apiVersion: x.io/v1, \
         kind: Thing, name: t}, environments: [{name: dev, targets: [{namespace: a}]}]}}",
        ]),
    ),
    (
        "ObjectMetadata",
        &["name"],
        Nothing("its own name, in its own namespace; a git host's is for administrators of the installation"),
    ),
    ("ObjectMetadata", &["labels", "annotations"], Nothing(LABELS)),
    (
        "ObjectMetadata",
        &["creationTimestamp", "finalizers", "generation", "managedFields", "ownerReferences", "resourceVersion", "uid"],
        Nothing(SERVER),
    ),
    ("ArtifactSource", &["status"], Nothing(SERVER)),
    ("Cluster", &["status"], Nothing(SERVER)),
    ("MetricsSource", &["status"], Nothing(SERVER)),
    ("Pipeline", &["status"], Nothing(SERVER)),
    ("GitHost", &["status"], Nothing(SERVER)),
    ("WebhookSubscription", &["status"], Nothing(SERVER)),
    ("DeploymentConfig", &["status"], Nothing(SERVER)),
    ("GitHostSpec", &["api", "host"], Nothing("a git host belongs to the installation, and only its administrators apply one")),
    // Where images come from.
    (
        "DeploymentEcr",
        &["repository"],
        Outside(&["{apiVersion: keelway.dev/v1, kind: ArtifactSource, HEAD{ecr: {repository: ~/app}}}"]),
    ),
    ("DeploymentSourceSpec", &["images"], Nothing("which images may be pushed into the own source")),
    ("DeploymentEcr", &["account", "region"], Nothing("parts of the repository's name: see repository")),
    ("DeploymentSourceTag", &["name", "pattern"], Nothing("tags of the same source")),
    (
        "DeploymentWebhook",
        &["secret"],
        Within(&["{apiVersion: keelway.dev/v1, kind: ArtifactSource, HEAD{webhook: {secret: ~registry}}}"]),
    ),
    // Clusters.
    (
        "ClusterSpec",
        &["server"],
        Outside(&["{apiVersion: keelway.dev/v1, kind: Cluster, HEAD{server: 'https://~.k8s.test', secretRef: {name: t}}}"]),
    ),
    ("ClusterSpec", &["caData"], Nothing("a certificate: whom to trust at the server")),
    (
        "SecretRef",
        &["name"],
        Within(&["{apiVersion: keelway.dev/v1, kind: Cluster, HEAD{server: 'https://alfa.k8s.test', secretRef: {name: ~token}}}"]),
    ),
    // Sources of metrics.
    (
        "MetricsPrometheus",
        &["url"],
        Outside(&["{apiVersion: keelway.dev/v1, kind: MetricsSource, HEAD{prometheus: {url: 'https://~.k8s.test'}}}"]),
    ),
    (
        "MetricsPrometheus",
        &["secret"],
        Within(&[
            "{apiVersion: keelway.dev/v1, kind: MetricsSource, HEAD{prometheus: {url: 'https://alfa.k8s.test', secret: ~token}}}",
        ]),
    ),
    ("MetricsPrometheus", &["region", "role"], Nothing("whose metrics are read: as those of cloudwatch, see there")),
    ("MetricsPrometheus", &["externalId"], Nothing(EXTERNAL_ID)),
    (
        "MetricsCloudWatch",
        &["role"],
        Outside(&[
            "{apiVersion: keelway.dev/v1, kind: MetricsSource, HEAD{cloudwatch: {role: 'arn:aws:iam::111122223333:role/~'}}}",
        ]),
    ),
    ("MetricsCloudWatch", &["region"], Nothing("a part of the name of what is read: see role")),
    ("MetricsCloudWatch", &["externalId"], Nothing(EXTERNAL_ID)),
    // Pipelines.
    (
        "AppRef",
        &["apiVersion", "kind", "name"],
        Nothing("what is looked at in the targets: see namespace and clusterRef of a target"),
    ),
    (
        "Target",
        &["namespace"],
        Outside(&[
            "{apiVersion: pipelines.weave.works/v1alpha1, kind: Pipeline, HEAD{appRef: {apiVersion: keelway.dev/v1, kind: DeploymentConfig, name: quuxcart}, \
         environments: [{name: dev, targets: [{namespace: ~}]}]}}",
        ]),
    ),
    (
        "ClusterRef",
        &["namespace"],
        Outside(&[
            "{apiVersion: pipelines.weave.works/v1alpha1, kind: Pipeline, HEAD{appRef: {apiVersion: x.io/v1, kind: Thing, name: t}, \
         environments: [{name: dev, targets: [{namespace: a, clusterRef: {name: quuxcluster, namespace: ~}}]}]}}",
        ]),
    ),
    (
        "ClusterRef",
        &["name"],
        Within(&[
            "{apiVersion: pipelines.weave.works/v1alpha1, kind: Pipeline, HEAD{appRef: {apiVersion: x.io/v1, kind: Thing, name: t}, environments: [{name: dev, \
         targets: [{namespace: a, clusterRef: {name: ~cluster}}]}]}}",
        ]),
    ),
    ("ClusterRef", &["apiVersion", "kind"], Nothing("that it is a cluster")),
    (
        "SequenceRef",
        &["project"],
        Outside(&[
            "{apiVersion: pipelines.weave.works/v1alpha1, kind: Pipeline, HEAD{appRef: {apiVersion: x.io/v1, kind: Thing, name: t}, environments: [{name: dev, \
         targets: [{namespace: a}]}, {name: prod, targets: [{namespace: b}]}], promotion: {strategy: {sequence: {project: ~, stage: quuxprod, service: quuxweb}}}}}",
        ]),
    ),
    (
        "SequenceRef",
        &["name", "service", "stage"],
        Within(&[
            "{apiVersion: pipelines.weave.works/v1alpha1, kind: Pipeline, HEAD{appRef: {apiVersion: x.io/v1, kind: Thing, name: t}, environments: [{name: dev, \
         targets: [{namespace: a}]}, {name: prod, targets: [{namespace: b}]}], promotion: {strategy: {sequence: {stage: ~prod, service: ~web, name: ~seq}}}}}",
        ]),
    ),
    (
        "PullRequest",
        &["url"],
        Outside(&[
            "{apiVersion: pipelines.weave.works/v1alpha1, kind: Pipeline, HEAD{appRef: {apiVersion: x.io/v1, kind: Thing, name: t}, environments: [{name: dev, \
         targets: [{namespace: a}]}, {name: prod, targets: [{namespace: b}]}], promotion: {strategy: {pullRequest: {type: gitea, url: \
         'https://git.test/~/config', baseBranch: main}}}}}",
        ]),
    ),
    ("PullRequest", &["baseBranch"], Nothing("a branch of that repository: see url")),
    ("Notification", &["url"], Nothing("public addresses only, and without credentials of the installation")),
    ("Approval", &["approvers"], Nothing("who decides about the own promotions")),
    ("Environment", &["name"], Nothing("its own name, in its own pipeline")),
    (
        "PipelineEvaluation",
        &["service", "stage"],
        Within(&[
            "{apiVersion: pipelines.weave.works/v1alpha1, kind: Pipeline, HEAD{appRef: {apiVersion: x.io/v1, kind: Thing, name: t}, environments: [{name: dev, \
         targets: [{namespace: a}], soak: 1h, evaluation: {service: ~cart, stage: ~dev}}, {name: prod, targets: [{namespace: b}]}]}}",
        ]),
    ),
    ("Window", &["from", "reason", "schedule", "until", "zone"], Nothing(TIME)),
    // Projects.
    ("ProjectMetadata", &["name"], Outside(&["{apiVersion: keelway.dev/v1, kind: Project, metadata: {name: ~}}"])),
    ("ProjectMetadata", &["annotations", "labels"], Nothing(LABELS)),
    ("ProjectSpec", &["description"], Nothing(TEXT)),
    ("Consent", &["names", "to"], Nothing("whom the own project lets in, and where: what is given away is its own")),
    (
        "Allows",
        &["builds", "functions", "hookFunctions", "images", "metrics", "packages", "repositories", "servers", "tasks"],
        Nothing("only administrators of the installation write a policy: see no_manifest_writes_a_policy"),
    ),
    ("ResourcePattern", &["account", "name", "region"], Nothing("only administrators of the installation write a policy")),
    // Shipyards, remediations, schedules.
    (
        "Metadata",
        &["name"],
        Outside(&["{apiVersion: spec.keptn.sh/0.2.3, kind: Shipyard, metadata: {name: shipyard-~}, spec: {stages: [STAGES]}}"]),
    ),
    (
        "Metadata",
        &["annotations"],
        Outside(&[
            "{apiVersion: spec.keptn.sh/0.2.3, kind: Shipyard, metadata: {name: s, annotations: {keelway.dev/project: ~}}, spec: {stages: [STAGES]}}",
            "{apiVersion: spec.keptn.sh/0.1.4, kind: Remediation, metadata: {name: r, annotations: {keelway.dev/project: ~}}, spec: {remediations: []}}",
        ]),
    ),
    ("Metadata", &["labels"], Nothing(LABELS)),
    ("Stage", &["name"], Nothing("its own name, in its own project")),
    ("Sequence", &["name"], Nothing("its own name, in its own stage")),
    ("Sequence", &["triggeredOn"], Nothing("events of the own project: see event of a trigger")),
    ("Trigger", &["event"], Nothing("events of the own project: an event of another one finds this shipyard not at all")),
    ("Task", &["name"], Nothing("who is asked: executors that may execute it in this project")),
    (
        "Task",
        &["properties"],
        Outside(&[
            "{apiVersion: spec.keptn.sh/0.2.3, kind: Shipyard, metadata: {name: shipyard-alfa}, spec: {stages: [STAGES, {name: more, sequences: [{name: d, tasks: \
         [{name: deployment, properties: {deploymentConfig: '~:quuxcart'}}]}]}]}}",
            "{apiVersion: spec.keptn.sh/0.2.3, kind: Shipyard, metadata: {name: shipyard-alfa}, spec: {stages: [STAGES, {name: more, sequences: [{name: d, tasks: \
         [{name: rollback, properties: {deploymentConfig: '~:quuxcart'}}]}]}]}}",
        ]),
    ),
    ("Shipyard", &["apiVersion", "version"], Nothing("which version of the format")),
    ("Remediation", &["apiVersion", "version"], Nothing("which version of the format")),
    ("ProblemType", &["problemType"], Nothing("which problems of the own project")),
    ("RemediationAction", &["action", "description", "name", "value"], Nothing(TOLD)),
    (
        "ScheduleSpec",
        &["project"],
        Outside(&[
            "{apiVersion: keelway.dev/v1, kind: Schedule, metadata: {name: alfanew}, spec: {project: ~, stage: ~dev, services: [alfacart], sequence: delivery, \
         cron: '0 3 * * *'}}",
        ]),
    ),
    ("ScheduleSpec", &["data"], Nothing("data of the trigger: a config that it names counts for nothing, see consents.rs")),
    ("ScheduleSpec", &["stage", "sequence", "services"], Nothing("in the project that it names: see project")),
    ("ScheduleSpec", &["labels"], Nothing(LABELS)),
    ("ScheduleSpec", &["at", "cron", "end", "start", "zone"], Nothing(TIME)),
    // Lists and templates: each object is applied as if it stood alone.
    (
        "List",
        &["items"],
        Outside(&[
            "{apiVersion: v1, kind: List, items: [{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, metadata: {name: alfanew, namespace: ~}, spec: \
         {triggers: [], template: {containers: [{name: web, image: 'r.test/w:1'}]}}}]}",
        ]),
    ),
    (
        "Template",
        &["objects"],
        Outside(&[
            "{apiVersion: template.openshift.io/v1, kind: Template, metadata: {name: t}, objects: [{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, \
         metadata: {name: alfanew, namespace: ~}, spec: {triggers: [], template: {containers: [{name: web, image: 'r.test/w:1'}]}}}]}",
        ]),
    ),
    (
        "DeploymentParameter",
        &["value"],
        Outside(&[
            "{apiVersion: template.openshift.io/v1, kind: Template, metadata: {name: t}, parameters: [{name: IN, value: ~}], objects: [{apiVersion: \
         apps.openshift.io/v1, kind: DeploymentConfig, metadata: {name: alfanew, namespace: '${IN}'}, spec: {triggers: [], template: {containers: [{name: \
         web, image: 'r.test/w:1'}]}}}]}",
        ]),
    ),
    (
        "DeploymentParameter",
        &["description", "displayName", "from", "generate", "name"],
        Nothing("how a value is called or made: see value"),
    ),
    ("List", &["metadata"], Nothing(LABELS)),
    ("Template", &["labels", "metadata"], Nothing(LABELS)),
    ("Template", &["message"], Nothing(TEXT)),
    // Webhooks.
    (
        "WebhookFilter",
        &["projects"],
        Outside(&[
            "{apiVersion: keelway.dev/v1, kind: WebhookSubscription, HEAD{events: [sh.keptn.event.test.finished], filter: {projects: [~]}, url: 'https://a.test'}}",
        ]),
    ),
    ("WebhookFilter", &["services", "stages"], Nothing("of the projects that it names: see projects")),
    (
        "WebhookSpec",
        &["events"],
        Nothing("of the projects that the filter names; the audit goes to nobody but those who see everything"),
    ),
    (
        "WebhookSpec",
        &["url", "body", "headers", "contentType", "attempts"],
        Nothing("what is sent where, to public addresses only; secrets by the names below"),
    ),
    ("WebhookSecret", &["name"], Nothing("what a secret is called in the same document")),
    ("MatchExpression", &["key", "values"], Nothing("which events of those projects")),
];
