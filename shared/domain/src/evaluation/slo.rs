//! A file of objectives, as the lighthouse understands it.

use super::{Aggregate, Criterion};
use crate::event::TaskResult;
use std::collections::BTreeMap;

/// With what an evaluation is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompareWith {
    /// `single_result`: the last one, whatever the number says.
    Single,
    /// `several_results`: as many as the number says.
    Several,
    /// Any other word, and none: three.
    Unknown,
}

/// Which earlier evaluations count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Include {
    /// `all`, and any other word.
    All,
    /// `pass`
    Pass,
    /// `pass_or_warn`
    PassOrWarning,
}

impl Include {
    /// The words that there are.
    pub const WORDS: [(&str, Self); 3] = [("all", Self::All), ("pass", Self::Pass), ("pass_or_warn", Self::PassOrWarning)];

    /// What a word means; upper and lower case are the same.
    pub fn of_word(word: &str) -> Self {
        let word = word.to_lowercase();
        Self::WORDS.iter().find(|(known, _)| *known == word).map_or(Self::All, |(_, include)| *include)
    }
}

impl CompareWith {
    /// The words that there are.
    pub const WORDS: [(&str, Self); 2] = [("single_result", Self::Single), ("several_results", Self::Several)];

    /// What a word means.
    pub fn of_word(word: &str) -> Self {
        Self::WORDS.iter().find(|(known, _)| *known == word).map_or(Self::Unknown, |(_, with)| *with)
    }
}

/// `comparison`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comparison {
    /// `compare_with`
    pub with: CompareWith,
    /// `number_of_comparison_results`
    pub number: i64,
    /// `include_result_with_score`
    pub include: Include,
    /// `aggregate_function`
    pub aggregate: Aggregate,
}

/// As if the file had no `comparison`.
impl Default for Comparison {
    fn default() -> Self {
        Self::ABSENT
    }
}

impl Comparison {
    /// Whether an evaluation with this result counts.
    pub fn counts(&self, result: TaskResult) -> bool {
        match self.include {
            Include::All => true,
            Include::Pass => result == TaskResult::Pass,
            Include::PassOrWarning => result != TaskResult::Fail,
        }
    }

    /// What a file without `comparison` means.
    pub const ABSENT: Self = Self { with: CompareWith::Single, number: 1, include: Include::All, aggregate: Aggregate::Average };

    /// At most so many earlier evaluations are compared with.
    pub fn wanted(&self) -> usize {
        match self.with {
            CompareWith::Single => 1,
            CompareWith::Several => usize::try_from(self.number).unwrap_or(0),
            CompareWith::Unknown => 3,
        }
    }
}

/// One entry of `pass` or `warning`: criteria that must all hold, as written.
pub type Criteria = Vec<String>;

/// An entry of `objectives`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Objective {
    /// The indicator that it is about.
    pub sli: String,
    /// `displayName`; empty if absent.
    pub display_name: String,
    /// One of these must hold. Without any, the objective is for information.
    pub pass: Vec<Criteria>,
    /// One of these must hold for half of the weight.
    pub warning: Vec<Criteria>,
    /// What it counts.
    pub weight: i64,
    /// `key_sli`: whether the whole evaluation fails if this one does.
    pub key: bool,
}

/// `total_score`, as written; empty if absent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "named as the fields of the file are")]
pub struct TotalScore {
    pub pass: String,
    pub warning: String,
}

/// A file of objectives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "named as the fields of the file are")]
pub struct Slo {
    /// What queries may use beside the names of project, stage and service.
    pub filter: BTreeMap<String, String>,
    pub comparison: Comparison,
    pub objectives: Vec<Objective>,
    pub total_score: TotalScore,
}

impl Slo {
    /// The indicators to ask a provider for: one for each objective, so that one that two objectives are about is asked for twice.
    pub fn indicators(&self) -> impl Iterator<Item = &str> {
        self.objectives.iter().map(|objective| objective.sli.as_str())
    }

    /// Whether a criterion needs a value to compare with.
    pub fn compares(&self) -> bool {
        let sets = self.objectives.iter().flat_map(|objective| objective.pass.iter().chain(&objective.warning));
        sets.flatten().any(|text| Criterion::parse(text).is_ok_and(|criterion| criterion.kind.compares()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_to_compare_with_are_needed_only_where_a_criterion_names_a_change() {
        let slo = |pass: &[&str], warning: &[&str]| {
            let sets = |texts: &[&str]| texts.iter().map(|text| vec![(*text).to_owned()]).collect();
            let (sli, pass, warning) = ("errors".into(), sets(pass), sets(warning));
            let objective = Objective { sli, display_name: String::new(), pass, warning, weight: 1, key: false };
            Slo { objectives: vec![objective], ..Slo::default() }
        };
        for (pass, warning, compares) in [
            (&["<600"][..], &["<=800"][..], false),
            (&[], &[], false),
            (&["no criterion"], &[], false),
            (&["<=+10%"], &[], true),
            (&["<600"], &["<=800", "<+50"], true),
        ] {
            assert_eq!(slo(pass, warning).compares(), compares, "{pass:?} {warning:?}");
        }
    }
}
