//! `kind: Schedule`.

use super::projects::{API_VERSION, METADATA};
use super::shape::{PROJECT_NAME, SEQUENCE_NAME, STAGE_NAME, Shape};
use super::{Level, document, field, needed, required, under};

use Shape::{Constant, Flag, List, Needed, Of, Open, Texts, Word};

pub static LEVELS: [&Level; 2] = [&SCHEDULE, &SPEC];

pub static SCHEDULE: Level = Level {
    head: document("Schedule", "a Schedule"),
    fields: &[
        required("apiVersion", Constant(API_VERSION)),
        required("kind", Constant("Schedule")),
        required("metadata", Of(&METADATA)),
        needed("spec", Of(&SPEC), "write `spec:` with `project`, `stage`, `services`, `sequence` and `cron`"),
    ],
};

pub static SPEC: Level = Level {
    head: under("ScheduleSpec", &SCHEDULE, "spec").called("a Schedule's `spec`").example("carts").one_of(&[&["cron"], &["at"]]),
    fields: &[
        needed("project", PROJECT_NAME, "name the project"),
        needed("stage", STAGE_NAME, "name the stage"),
        needed("services", List(&Needed, 1), "name at least one service, `services: [carts]`").also(&["service"]),
        needed("sequence", SEQUENCE_NAME, "name the sequence"),
        field("cron", Needed).about("When: a cron expression with five fields, `30 2 * * MON-FRI`.").also(&["schedule"]),
        field("at", Needed).about("Once: a time in `zone`, `2026-12-23T18:00`."),
        field("zone", Needed).about("The IANA time zone, `Europe/Berlin`; absent: UTC.").also(&["timezone", "tz"]),
        field("start", Needed).about("Nothing is triggered before `start`, or from `end` on."),
        field("end", Needed).about("Nothing is triggered before `start`, or from `end` on."),
        field("suspended", Flag).about("Nothing is triggered until this is taken out.").also(&["suspend"]),
        field("concurrency", Word(&["queue", "skip"]))
            .about("What happens while the run before is open: `skip`, or `queue` behind it.")
            .also(&["concurrencypolicy"]),
        field("labels", Texts),
        field("data", Open).about("The data of the trigger."),
    ],
};
