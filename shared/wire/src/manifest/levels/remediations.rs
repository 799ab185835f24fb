//! `kind: Remediation`.

use super::shape::Shape;
use super::shipyards::METADATA;
use super::{Level, document, entry, field, needed, required, under};

use Shape::{Any, Constant, Entries, Needed, Of, Pattern, Text};

pub static LEVELS: [&Level; 4] = [&REMEDIATION, &SPEC, &PROBLEM_TYPE, &ACTION];

const VERSION: Shape = Pattern("^(spec\\.keptn\\.sh/)?[0-9]+(\\.[0-9]+)*$", 100);

pub static REMEDIATION: Level = Level {
    head: document("Remediation", "a Remediation").any_of(&[&["apiVersion"], &["version"]]),
    fields: &[
        field("apiVersion", VERSION),
        field("version", VERSION),
        required("kind", Constant("Remediation")),
        field("metadata", Of(&METADATA)),
        required("spec", Of(&SPEC)),
    ],
};

pub static SPEC: Level = Level {
    head: under("RemediationSpec", &REMEDIATION, "spec").called("a Remediation's `spec`"),
    fields: &[needed(
        "remediations",
        Entries(&PROBLEM_TYPE, 0),
        "write a list of entries like `- problemType: Response time degradation`",
    )],
};

pub static PROBLEM_TYPE: Level = Level {
    head: entry("ProblemType", &SPEC, "remediations", "problemType: default"),
    fields: &[
        needed("problemType", Needed, "name a problem's root cause or title, or `default`"),
        needed("actionsOnOpen", Entries(&ACTION, 0), "write a list of entries like `- action: toggle-feature`"),
    ],
};

pub static ACTION: Level = Level {
    head: entry("RemediationAction", &PROBLEM_TYPE, "actionsOnOpen", "action: toggle-feature"),
    fields: &[
        needed("action", Needed, "name what the executor of `action` knows it by"),
        field("name", Text),
        field("description", Text),
        field("value", Any),
    ],
};
