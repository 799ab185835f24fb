//! The `strategy` of a DeploymentConfig, with its hooks.

use super::configs::SPEC;
use super::shape::{STAGE_NAME, Shape, WORDS};
use super::triggers::REFERENCE;
use super::{Level, entry, field, needed, required, under};
use serde_json::{Value, json};

use Shape::{Any, Duration, Entries, List, Needed, Of, Open, Pattern, Schema, Share, Text, Texts, Whole, Word};

pub static LEVELS: [&Level; 12] =
    [&STRATEGY, &CUSTOM, &ROLLING, &RECREATE, &CANARY, &STEP, &ANALYSIS, &DISTRIBUTION, &HOOK, &EXEC, &VARIABLE, &TAG_IMAGE];

pub static STRATEGY: Level = Level {
    head: under("DeploymentStrategy", &SPEC, "strategy").strict(),
    fields: &[
        field("type", Word(&["Rolling", "Recreate", "Canary", "Custom", ""])),
        field("rollingParams", Of(&ROLLING)).also(&["rollingupdate"]),
        field("recreateParams", Of(&RECREATE)),
        field("canaryParams", Of(&CANARY)),
        field("customParams", Of(&CUSTOM)),
        field("analysis", Of(&ANALYSIS)).about("How metrics judge the new version while it shares the requests (Rolling, Canary)."),
        field("activeDeadlineSeconds", Whole(1)),
        field("labels", Texts),
        field("annotations", Texts),
        field("resources", Open),
    ],
};

pub static CUSTOM: Level = Level {
    head: under("DeploymentCustom", &STRATEGY, "customParams").strict(),
    fields: &[
        field("image", Any),
        field("command", WORDS).also(&["args"]),
        field("environment", Entries(&VARIABLE, 0)).also(&["env"]),
    ],
};

pub static ROLLING: Level = Level {
    head: under("DeploymentRolling", &STRATEGY, "rollingParams").strict(),
    fields: &[
        field("updatePeriodSeconds", Whole(1)),
        field("intervalSeconds", Whole(1)),
        field("timeoutSeconds", Whole(1)),
        field("maxUnavailable", Share),
        field("maxSurge", Share),
        field("pre", Of(&HOOK)),
        field("post", Of(&HOOK)),
    ],
};

pub static RECREATE: Level = Level {
    head: under("DeploymentRecreate", &STRATEGY, "recreateParams").strict(),
    fields: &[field("timeoutSeconds", Whole(1)), field("pre", Of(&HOOK)), field("mid", Of(&HOOK)), field("post", Of(&HOOK))],
};

pub static CANARY: Level = Level {
    head: under("DeploymentCanary", &STRATEGY, "canaryParams").strict(),
    fields: &[
        needed("steps", Entries(&STEP, 1), "list the parts of the traffic, like `- {weight: 10, bake: 5m}`"),
        field("timeoutSeconds", Whole(1)),
        field("pre", Of(&HOOK)),
        field("post", Of(&HOOK)),
    ],
};

pub static STEP: Level = Level {
    head: entry("DeploymentStep", &CANARY, "steps", "weight: 10").called("a step").strict(),
    fields: &[
        needed("weight", Schema(percentage), "write a percentage from 1 to 100")
            .about("The percentage of the requests that go to the new version."),
        field("bake", Duration).about("How long it stays at this weight; absent: until a person says to go on."),
    ],
};

pub static ANALYSIS: Level = Level {
    head: under("DeploymentAnalysis", &STRATEGY, "analysis").strict(),
    fields: &[
        field("slo", Needed).about("The file of objectives among the project's resources; absent: slo.yaml."),
        field("stage", STAGE_NAME).about("With `service`: files of that service in this stage, instead of the project's."),
        field("service", Needed).about("With `stage`: files of this service in that stage, instead of the project's."),
        field("source", Needed).about("The MetricsSource; absent: the one that the project evaluates by."),
        field("interval", Duration).about("The length of a window; absent: 1m."),
        field("samples", Needed).about("The indicator that counts requests; absent: invocations."),
        field("minSamples", Whole(0)).about("How many requests a window needs; absent: 50."),
        field("failureLimit", Whole(0)).about("How many windows may fail; absent: 0."),
        field("deadline", Duration).about("How long a window may grow that does not tell enough; absent: 10m."),
        field("onInconclusive", Word(&ON_INCONCLUSIVE)).about("What such a window means then; absent: pause."),
        field("mannWhitney", Entries(&DISTRIBUTION, 1))
            .about("Indicators whose values, minute by minute, are compared with those of the version before."),
    ],
};

pub static DISTRIBUTION: Level = Level {
    head: entry("DeploymentDistribution", &ANALYSIS, "mannWhitney", "sli: duration_p95").strict(),
    fields: &[
        needed("sli", Needed, "name an indicator of sli.yaml"),
        field("direction", Word(&DIRECTIONS)).about("Which change fails; absent: either."),
    ],
};

/// Which change of an indicator fails.
pub const DIRECTIONS: [&str; 3] = ["increase", "decrease", "either"];

/// What a window means that does not tell enough.
pub const ON_INCONCLUSIVE: [&str; 3] = ["pause", "pass", "fail"];

/// Of all parameters that have hooks; it hangs below those whose hooks stand in most manifests.
pub static HOOK: Level = Level {
    head: under("DeploymentHook", &ROLLING, "pre")
        .called("a hook")
        .written("under `pre`, `mid` or `post`")
        .one_of(&[&["execNewPod"], &["tagImages"], &["invoke"]])
        .strict(),
    fields: &[
        needed("failurePolicy", Word(&["Abort", "Retry", "Ignore"]), "write what a failure means, `Abort`, `Retry` or `Ignore`"),
        field("execNewPod", Of(&EXEC)),
        field("tagImages", Entries(&TAG_IMAGE, 1)),
        field("invoke", Pattern("^[A-Za-z0-9:$_-]+$", 170)).also(&["lambda", "function"]),
    ],
};

const CONTAINER_REMEDY: &str = "name the container whose image it is about";

pub static EXEC: Level = Level {
    head: under("DeploymentExec", &HOOK, "execNewPod").strict(),
    fields: &[
        needed("containerName", Any, CONTAINER_REMEDY),
        needed("command", List(&Needed, 1), "write the command as a list, like `[/bin/sh, -c, ./migrate.sh]`").also(&["args"]),
        field("env", Entries(&VARIABLE, 0)).also(&["environment"]),
        field("volumes", WORDS),
    ],
};

pub static VARIABLE: Level = Level {
    head: entry("DeploymentEnv", &EXEC, "env", "name: app")
        .called("an environment variable")
        .written("in an entry of the environment")
        .strict(),
    fields: &[required("name", Pattern("^[A-Za-z_][A-Za-z0-9_]*$", 1000)), field("value", Text), field("valueFrom", Any)],
};

pub static TAG_IMAGE: Level = Level {
    head: entry("DeploymentTagImage", &HOOK, "tagImages", "containerName: app").strict(),
    fields: &[needed("containerName", Any, CONTAINER_REMEDY), required("to", Of(&REFERENCE))],
};

fn percentage() -> Value {
    json!({"type": "integer", "minimum": 1, "maximum": 100})
}
