//! Keptn's files of objectives and indicators. They have no `kind`, and the writing of their fields is Keptn's.

use super::shape::Shape;
use super::{Level, document, entry, field, needed, under};

use Shape::{Entries, Flag, List, Needed, Of, Text, Texts, Whole, Word};

pub static LEVELS: [&Level; 6] = [&SLO, &COMPARISON, &OBJECTIVE, &CRITERIA, &TOTAL_SCORE, &SLI];

const TOP: &str = "at the top of the file";

pub static SLO: Level = Level {
    head: document("ServiceLevelObjectives", "a file of objectives").written(TOP),
    fields: &[
        field("spec_version", Text),
        field("filter", Texts).about("Names and texts that queries use as $name"),
        field("comparison", Of(&COMPARISON)).about("With which earlier evaluations values are compared"),
        needed(
            "objectives",
            Entries(&OBJECTIVE, 1),
            "every evaluation would fail; write a list of entries like `- sli: error_rate`",
        ),
        needed("total_score", Of(&TOTAL_SCORE), "no evaluation could be made; write `pass: 90%` below it"),
    ],
};

pub static COMPARISON: Level = Level {
    head: under("SloComparison", &SLO, "comparison"),
    fields: &[
        field("compare_with", Word(&["single_result", "several_results"])),
        field("number_of_comparison_results", Whole(1)).about("How many earlier evaluations, with several_results; default 3"),
        field("include_result_with_score", Word(&["all", "pass", "pass_or_warn"]))
            .about("Which earlier evaluations count; default all"),
        field("aggregate_function", Word(&["avg", "p50", "p90", "p95"])).about("What the earlier values come to; default avg"),
    ],
};

pub static OBJECTIVE: Level = Level {
    head: entry("SloObjective", &SLO, "objectives", "sli: error_rate"),
    fields: &[
        needed("sli", Needed, "name an indicator, for example `error_rate`"),
        field("displayName", Text),
        field("pass", Entries(&CRITERIA, 0))
            .about("One of the entries must hold; without it, the objective is for information")
            .also(&["criteria", "passcriteria"]),
        field("warning", Entries(&CRITERIA, 0))
            .about("One of the entries must hold for a warning in place of a failure")
            .also(&["warn", "warningcriteria"]),
        field("weight", Whole(0)).about("What a pass scores; default 1"),
        field("key_sli", Flag).about("Whether the evaluation fails if this objective does"),
    ],
};

pub static CRITERIA: Level = Level {
    head: entry("SloCriteria", &OBJECTIVE, "pass", "criteria: [\"<600\"]").called("an entry of `pass` or `warning`"),
    fields: &[field("criteria", List(&Needed, 1)).about("All of them must hold: <600, <=+10%, >=-5")],
};

pub static TOTAL_SCORE: Level = Level {
    head: under("SloTotalScore", &SLO, "total_score"),
    fields: &[needed("pass", Text, "no evaluation could be made; write a share of 100, for example `90%`"), field("warning", Text)],
};

pub static SLI: Level = Level {
    head: document("ServiceLevelIndicators", "a file of indicators").written(TOP),
    fields: &[field("spec_version", Text), needed("indicators", Texts, "write a name and a query for each, `error_rate: sum(…)`")],
};
