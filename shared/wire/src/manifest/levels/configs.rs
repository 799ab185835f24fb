//! `kind: DeploymentConfig`, in today's form and in that of the proposal.

use super::additions::{AUTO_ROLLBACK, DEPLOYER, ROLLBACK, TARGET};
use super::shape::{PROJECT_NAME, Shape, name};
use super::strategies::STRATEGY;
use super::triggers::TRIGGER;
use super::{Field, Level, document, field, needed, required, under};

/// The `apiVersion` of today's form.
pub const API_VERSION: &str = "apps.openshift.io/v1";
/// The `apiVersion` of the same form before API groups: it keeps the whole history unless told otherwise.
pub const LEGACY_VERSION: &str = "v1";
/// The `apiVersion` that manifests in the proposal's form may have.
pub const PROPOSED_VERSION: &str = "v1beta1";

use Shape::{Any, Constant, Entries, Flag, Of, Open, Pattern, Texts, Whole, Word};

pub static LEVELS: [&Level; 8] =
    [&CONFIG, &METADATA, &SPEC, &PROPOSED, &PROPOSED_TEMPLATE, &CONTROLLER, &POD_TEMPLATE, &POD_METADATA];

pub static CONFIG: Level = Level {
    head: document("DeploymentConfig", "a DeploymentConfig").strict(),
    fields: &[
        required("apiVersion", Word(&[API_VERSION, LEGACY_VERSION])),
        required("kind", Constant("DeploymentConfig")),
        required("metadata", Of(&METADATA)),
        needed("spec", Of(&SPEC), "write `spec:` with `template` below it"),
        field("status", Any),
    ],
};

const METADATA_FIELDS: &[Field] = &[
    required("name", name(63)),
    field("namespace", PROJECT_NAME),
    field("labels", Texts),
    field("annotations", Texts),
    field("clusterName", Any),
    field("creationTimestamp", Any),
    field("deletionGracePeriodSeconds", Any),
    field("deletionTimestamp", Any),
    field("finalizers", Any),
    field("generateName", Any),
    field("generation", Any),
    field("initializers", Any),
    field("managedFields", Any),
    field("ownerReferences", Any),
    field("resourceVersion", Any),
    field("selfLink", Any),
    field("uid", Any),
];

pub static METADATA: Level = Level { head: under("DeploymentMetadata", &CONFIG, "metadata").strict(), fields: METADATA_FIELDS };

/// What is deployed, in both forms.
const TEMPLATE_REMEDY: &str = "write what is deployed, a pod template (`metadata` and `spec`) or any document with `containers`";
const CONCURRENCY: Shape = Word(&["supersede", "queue"]);
const RESUME: Shape = Word(&["explicit", "onNewerImage"]);
const ON_DRIFT: Shape = Word(&["tell", "restore", "adopt"]);

pub static SPEC: Level = Level {
    head: under("DeploymentSpec", &CONFIG, "spec").called("a DeploymentConfig's `spec`").strict(),
    fields: &[
        needed("template", Open, TEMPLATE_REMEDY).about("What is deployed: a pod template, or any document with `containers`."),
        field("replicas", Whole(0)),
        field("selector", Texts),
        field("strategy", Of(&STRATEGY)),
        field("triggers", Entries(&TRIGGER, 0))
            .about("What cuts a new version. Absent: a change of the template; an empty list: only people."),
        field("targets", Entries(&TARGET, 0)).about("Where it is deployed to."),
        field("paused", Flag).about("Nothing new is deployed."),
        field("revisionHistoryLimit", Whole(0)).about("How many old versions are kept."),
        field("concurrency", CONCURRENCY).about("What a new version does to one that is being deployed."),
        field("resume", RESUME),
        field("onDrift", ON_DRIFT),
        field("autoRollback", Of(&AUTO_ROLLBACK)).about("When to go back without being asked."),
        field("deployer", Of(&DEPLOYER)),
        field("minReadySeconds", Whole(0)),
        field("test", Flag),
    ],
};

/// The proposal's form, with Keelway's additions at the top.
pub static PROPOSED: Level = Level {
    head: document("DeploymentProposed", "a DeploymentConfig").strict(),
    fields: &[
        field("id", Pattern("^([a-z]([a-z0-9-]*[a-z0-9])?:)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", 114)),
        required("kind", Constant("DeploymentConfig")),
        field("apiVersion", Constant(PROPOSED_VERSION)),
        field("namespace", PROJECT_NAME),
        field("metadata", Of(&METADATA)),
        field("labels", Texts),
        field("annotations", Texts),
        field("template", Of(&PROPOSED_TEMPLATE)),
        field("triggers", Entries(&TRIGGER, 0)),
        field("latestVersion", Whole(0)),
        field("details", Any),
        field("rollback", Of(&ROLLBACK)),
        field("targets", Entries(&TARGET, 0)),
        field("paused", Flag),
        field("revisionHistoryLimit", Whole(0)),
        field("concurrency", CONCURRENCY),
        field("resume", RESUME),
        field("onDrift", ON_DRIFT),
        field("autoRollback", Of(&AUTO_ROLLBACK)),
        field("deployer", Of(&DEPLOYER)),
        field("minReadySeconds", Whole(0)),
        field("test", Flag),
        field("creationTimestamp", Any),
        field("resourceVersion", Any),
        field("selfLink", Any),
        field("uid", Any),
    ],
};

pub static PROPOSED_TEMPLATE: Level = Level {
    head: under("DeploymentProposedTemplate", &PROPOSED, "template").strict(),
    fields: &[
        field("strategy", Of(&STRATEGY)),
        needed("controllerTemplate", Of(&CONTROLLER), "write `controllerTemplate:` with `podTemplate` below it"),
    ],
};

pub static CONTROLLER: Level = Level {
    head: under("DeploymentController", &PROPOSED_TEMPLATE, "controllerTemplate").strict(),
    fields: &[
        field("replicas", Whole(0)),
        field("replicaSelector", Texts).also(&["selector"]),
        needed("podTemplate", Open, TEMPLATE_REMEDY).also(&["template"]),
    ],
};

pub static POD_TEMPLATE: Level = Level {
    head: under("DeploymentPodTemplate", &SPEC, "template").called("a pod template").written("under the pod template").strict(),
    fields: &[field("metadata", Any), field("spec", Any)],
};

pub static POD_METADATA: Level = Level {
    head: under("DeploymentPodMetadata", &POD_TEMPLATE, "metadata")
        .called("a pod template's `metadata`")
        .written("under the pod template's `metadata`")
        .strict(),
    fields: METADATA_FIELDS,
};
