//! `kind: Shipyard`, in today's form and in that of version 0.1.

use super::pipelines::WINDOW;
use super::shape::{SEQUENCE_NAME, STAGE_NAME, Shape};
use super::{Level, document, entry, field, required, under};
use serde_json::{Value, json};

/// The version that is written where one is missing or unknown.
pub const NEWEST: &str = "spec.keptn.sh/0.2.3";

/// What a stage had in version 0.1.
pub const OLD_STAGE_FIELDS: [&str; 4] = ["deployment_strategy", "test_strategy", "approval_strategy", "remediation_strategy"];

use Shape::{Any, Constant, Duration, Either, Entries, Flag, List, Of, Open, Pattern, Schema, String, Text, Texts};

pub static LEVELS: [&Level; 12] =
    [&SHIPYARD, &METADATA, &SPEC, &STAGE, &SEQUENCE, &TASK, &PROPERTIES, &TRIGGER, &SELECTOR, &MATCH, &OLD_SHIPYARD, &OLD_STAGE];

pub static SHIPYARD: Level = Level {
    head: document("Shipyard", "a Shipyard").any_of(&[&["apiVersion"], &["version"]]),
    fields: &[
        field("apiVersion", Schema(version)),
        field("version", Schema(version)),
        required("kind", Constant("Shipyard")),
        field("metadata", Of(&METADATA)),
        required("spec", Of(&SPEC)),
    ],
};

/// Of remediations, too.
pub static METADATA: Level = Level {
    head: under("Metadata", &SHIPYARD, "metadata"),
    fields: &[field("name", Text), field("annotations", Texts), field("labels", Texts)],
};

pub static SPEC: Level = Level {
    head: under("Spec", &SHIPYARD, "spec").called("a Shipyard's `spec`"),
    fields: &[
        required("stages", Entries(&STAGE, 1)).about("In the order in which they are shown; `triggeredOn` says what follows what.")
    ],
};

pub static STAGE: Level = Level {
    head: entry("Stage", &SPEC, "stages", "name: dev").called("a stage").former(&OLD_STAGE_FIELDS),
    fields: &[
        required("name", STAGE_NAME),
        field("windows", Entries(&WINDOW, 0)).about("When sequences may begin here, and when not."),
        // What sequences were called before version 0.2 was released.
        field("sequences", Entries(&SEQUENCE, 0))
            .about("What can run in this stage. Every stage has `evaluation` as well, unless it defines its own.")
            .also(&["workflow", "workflows"]),
    ],
};

pub static SEQUENCE: Level = Level {
    head: entry("Sequence", &STAGE, "sequences", "name: delivery").called("a sequence"),
    fields: &[
        required("name", SEQUENCE_NAME),
        field("triggeredOn", List(&Either(&[Of(&TRIGGER), String]), 0))
            .about("What starts it in addition to its own `.triggered` event: any one entry.")
            .also(&["trigger", "triggers", "triggered", "triggeron", "triggerson", "on", "events", "dependson"]),
        required("tasks", Entries(&TASK, 1)).about("Run in this order until one fails.").also(&["steps", "jobs"]),
        field("timeout", Duration).about("From the first task's trigger to the end, waiting for an approval included: `2h`."),
        field("supersede", Flag),
        field("ignoreWindows", Flag).about("Whether it begins although the windows of its stage are closed."),
    ],
};

pub static TASK: Level = Level {
    head: entry("Task", &SEQUENCE, "tasks", "name: deployment")
        .called("a task")
        .hint("; a task's own settings go under `properties`")
        .further(approval),
    fields: &[
        required("name", SEQUENCE_NAME),
        field("triggeredAfter", Duration).about("How long to wait before the task is triggered: `10m`.").also(&[
            "after",
            "delay",
            "wait",
            "waittime",
            "triggerafter",
        ]),
        field("properties", Open).about("Passed to the executor as `data.<task>`.").also(&[
            "props",
            "property",
            "parameters",
            "params",
            "config",
            "with",
        ]),
        field("startDeadline", Duration).about("How long executors have to answer the trigger: `10m`."),
        field("timeout", Duration)
            .about("How long it may take from its `.started`; of an approval, how long a person has. 0 is for ever."),
    ],
};

pub static PROPERTIES: Level = Level {
    head: under("Properties", &TASK, "properties").written("under the task's `properties`"),
    fields: &[
        field("deploymentstrategy", Any),
        field("teststrategy", Any),
        field("timeframe", Any),
        field("pass", Any),
        field("warning", Any),
    ],
};

pub static TRIGGER: Level = Level {
    head: entry("Trigger", &SEQUENCE, "triggeredOn", "event: dev.delivery.finished"),
    fields: &[
        required("event", Pattern("^[^\\s<>\"'`{}|,]+$", 128))
            .about("`<stage>.<sequence>.finished`, `<stage>.<task>.finished`, or the name of a domain event.")
            .also(&["name", "on", "type", "sequence"]),
        field("selector", Of(&SELECTOR)).about("Without one, a sequence or task must have ended with `pass`.").also(&[
            "matches",
            "condition",
            "when",
            "if",
        ]),
    ],
};

pub static SELECTOR: Level = Level {
    head: under("Selector", &TRIGGER, "selector").called("a `selector`"),
    fields: &[field("match", Schema(matches)).about("`result: fail`, or `<task>.result: fail`; every entry must match.")],
};

pub static MATCH: Level = Level {
    head: under("Match", &SELECTOR, "match").written("under `match`, which stands under `selector`"),
    fields: &[field("result", Any)],
};

pub static OLD_SHIPYARD: Level = Level {
    head: document("OldShipyard", "a shipyard of version 0.1"),
    fields: &[
        field("apiVersion", Any),
        field("version", Any),
        field("kind", Any),
        field("metadata", Any),
        field("spec", Any),
        field("stages", Any),
        field("project", Any),
    ],
};

pub static OLD_STAGE: Level = Level {
    head: document("OldStage", "a stage of version 0.1").written("in an entry of `stages`").example("name: dev"),
    fields: &[
        field("name", Any),
        field(OLD_STAGE_FIELDS[0], Any),
        field(OLD_STAGE_FIELDS[1], Any),
        field(OLD_STAGE_FIELDS[2], Any),
        field(OLD_STAGE_FIELDS[3], Any),
    ],
};

/// From 0.2 on.
fn version() -> Value {
    let pattern = "^(spec\\.keptn\\.sh/)?(0\\.[2-9][0-9]*|0\\.1[0-9]+|[1-9][0-9]*)(\\.[0-9]+){0,2}$";
    json!({"type": ["string", "number"], "pattern": pattern, "minimum": 0.2, "default": NEWEST})
}

/// What a selector wants: results of the sequence or of tasks, at least one.
fn matches() -> Value {
    let result = json!({"enum": ["pass", "warning", "fail", "failed"]});
    let by_task = json!({"^[A-Za-z0-9_-]+\\.result$": result});
    json!({
        "type": "object", "properties": {"result": result}, "patternProperties": by_task, "additionalProperties": false,
        "minProperties": 1
    })
}

/// The properties of a task `approval`: a person's answer for each result.
fn approval() -> Value {
    let answer = json!({"enum": ["automatic", "manual", null]});
    let separate = json!({"type": ["boolean", "null"]});
    let properties = json!({
        "type": ["object", "null"], "properties": {"pass": answer, "warning": answer, "separate": separate}
    });
    json!({"if": {"properties": {"name": {"const": "approval"}}}, "then": {"properties": {"properties": properties}}})
}
