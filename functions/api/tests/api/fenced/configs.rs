//! The same for deployment configs.

use super::fields::{
    LABELS,
    Names::{Nothing, Outside, Within},
    OWN_PARTS, Row, SERVER, TOLD,
};

/// A config whose canary is judged, with these fields of its analysis.
macro_rules! judged {
    ($analysis:literal) => {
        concat!(
            "{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, HEAD{CONTAINERS, triggers: [], targets: [{name: live, kind: lambda-alias, id: \
             'alfa-fn:live'}], strategy: {type: Canary, canaryParams: {steps: [{weight: 10}]}, analysis: {",
            $analysis,
            "}}}}"
        )
    };
}

/// Every field of a deployment config that takes a text.
pub const CONFIGS: &[Row] = &[
    (
        "DeploymentMetadata",
        &["namespace"],
        Outside(&[
            "{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, metadata: {name: alfanew, namespace: ~}, spec: {triggers: [], template: {containers: \
         [{name: web, image: 'r.test/w:1'}]}}}",
        ]),
    ),
    ("DeploymentMetadata", &["name"], Nothing("its own name, in its own namespace")),
    ("DeploymentMetadata", &["labels", "annotations"], Nothing(LABELS)),
    (
        "DeploymentMetadata",
        &[
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
        Nothing(SERVER),
    ),
    ("DeploymentProposed", &["id"], Outside(&["{kind: DeploymentConfig, id: '~:alfanew', PROPOSED, triggers: []}"])),
    (
        "DeploymentProposed",
        &["namespace"],
        Outside(&["{kind: DeploymentConfig, id: alfanew, namespace: ~, PROPOSED, triggers: []}"]),
    ),
    ("DeploymentProposed", &["labels", "annotations"], Nothing(LABELS)),
    ("DeploymentProposed", &["creationTimestamp", "details", "resourceVersion", "selfLink", "uid"], Nothing(SERVER)),
    (
        "DeploymentProposedImageChange",
        &["repositoryName"],
        Outside(&[
            "{kind: DeploymentConfig, id: 'alfa:alfanew', PROPOSED, triggers: [{type: ImageChange, imageChangeParams: {automatic: true, containerNames: [web], \
         repositoryName: ~/quuximages, tag: quuxlatest}}]}",
        ]),
    ),
    ("DeploymentProposedImageChange", &["containerNames", "lastTriggeredImage", "tag"], Nothing(OWN_PARTS)),
    ("DeploymentImageChange", &["containerNames", "lastTriggeredImage"], Nothing(OWN_PARTS)),
    (
        "DeploymentReference",
        &["namespace"],
        Outside(&[
            "{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, HEAD{CONTAINERS, triggers: [{type: ImageChange, imageChangeParams: {automatic: true, \
         containerNames: [web], from: {kind: ImageStreamTag, namespace: ~, name: 'quuximages:quuxlatest'}}}]}}",
            "{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, HEAD{CONTAINERS, triggers: [], strategy: {type: Recreate, recreateParams: {post: \
         {failurePolicy: Abort, tagImages: [{containerName: web, to: {kind: ImageStreamTag, namespace: ~, name: 'quuximages:quuxlatest'}}]}}}}}",
        ]),
    ),
    (
        "DeploymentReference",
        &["name"],
        Within(&[
            "{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, HEAD{CONTAINERS, triggers: [{type: ImageChange, imageChangeParams: {automatic: true, \
         containerNames: [web], from: {kind: ImageStreamTag, name: '~images:~latest'}}}]}}",
        ]),
    ),
    ("DeploymentReference", &["apiVersion", "fieldPath", "resourceVersion", "uid"], Nothing("ignored: a tag is found by its name")),
    (
        "DeploymentTarget",
        &["id"],
        Outside(&[
            "{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, HEAD{CONTAINERS, triggers: [], strategy: {type: Recreate}, targets: [{name: live, \
         kind: lambda-alias, id: '~-fn:live'}]}}",
        ]),
    ),
    ("DeploymentTarget", &["account", "region"], Nothing("parts of the function's name: see id")),
    ("DeploymentTarget", &["name", "kind"], Nothing("what it is called in this document, and what it is")),
    (
        "DeploymentHook",
        &["invoke"],
        Outside(&[
            "{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, HEAD{CONTAINERS, triggers: [], strategy: {type: Recreate, recreateParams: {pre: \
         {failurePolicy: Abort, invoke: ~-check}}}, targets: [{name: live, kind: lambda-alias, id: 'alfa-fn:live'}]}}",
        ]),
    ),
    (
        "DeploymentDeployer",
        &["codeBuild"],
        Outside(&[
            "{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, HEAD{CONTAINERS, triggers: [], deployer: {codeBuild: {projectName: ~-build}}}}",
        ]),
    ),
    (
        "DeploymentDeployer",
        &["ecs"],
        Outside(&[
            "{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, HEAD{CONTAINERS, triggers: [], deployer: {ecs: {cluster: ~, taskDefinition: 'deploy:3'}}}}",
            "{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, HEAD{CONTAINERS, triggers: [], deployer: {ecs: {cluster: alfa, taskDefinition: '~:3'}}}}",
        ]),
    ),
    (
        "DeploymentSpec",
        &["template"],
        Outside(&[
            "{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, HEAD{triggers: [], strategy: {type: Recreate}, targets: [{name: live, kind: lambda-alias, \
         id: 'alfa-fn:live'}], template: {containers: [{name: web, image: 'registry.test/~/web@DIGEST'}]}}}",
            "{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, HEAD{triggers: [], strategy: {type: Recreate}, targets: [{name: live, kind: lambda-alias, \
         id: 'alfa-fn:live'}], template: {containers: [{name: web, image: 's3://~/web.zip@DIGEST'}]}}}",
        ]),
    ),
    ("DeploymentController", &["podTemplate"], Nothing("as a config's template: both are read by the same code")),
    ("DeploymentController", &["replicaSelector"], Nothing(LABELS)),
    ("DeploymentSpec", &["selector"], Nothing(LABELS)),
    ("DeploymentStrategy", &["annotations", "labels", "resources"], Nothing(LABELS)),
    (
        "DeploymentAutoRollback",
        &["alarms"],
        Nothing("alarms of CloudWatch: that one is on rolls the own config back, and shows nothing of what it watches"),
    ),
    ("DeploymentCustom", &["command", "image"], Nothing(TOLD)),
    ("DeploymentEnv", &["name", "value", "valueFrom"], Nothing(TOLD)),
    ("DeploymentExec", &["command", "containerName", "volumes"], Nothing(TOLD)),
    ("DeploymentTagImage", &["containerName"], Nothing(OWN_PARTS)),
    ("DeploymentRollback", &["notes", "release", "strategy"], Nothing("a rollback of this very config")),
    // What judges a canary is looked for in the project of the config.
    ("DeploymentAnalysis", &["slo"], Within(&[judged!("slo: ~/slo.yaml")])),
    ("DeploymentAnalysis", &["stage", "service"], Within(&[judged!("stage: ~dev, service: ~cart")])),
    ("DeploymentAnalysis", &["source"], Within(&[judged!("source: ~source")])),
    ("DeploymentAnalysis", &["samples"], Within(&[judged!("samples: ~requests")])),
    ("DeploymentDistribution", &["sli"], Within(&[judged!("mannWhitney: [{sli: ~latency}]")])),
];
