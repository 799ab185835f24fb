//! What the lighthouse passes over in silence.

use super::{Aggregate, CompareWith, CriterionError};

/// Something that decided, and that the result does not show.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Note {
    /// A criterion compares, and there is nothing to compare with.
    #[error("{sli}: nothing to compare with yet, so {criterion:?} holds")]
    First {
        /// The indicator.
        sli: String,
        /// As written.
        criterion: String,
    },
    /// A criterion that Keptn leaves out.
    #[error("{sli}: {criterion:?} is left out: {error}")]
    LeftOut {
        /// The indicator.
        sli: String,
        /// As written.
        criterion: String,
        /// What is wrong with it.
        error: CriterionError,
    },
    /// The warning criteria of an objective are not looked at because one of them cannot be read.
    #[error("{sli}: no warning criterion counts, because one cannot be read: {error}")]
    NoWarning {
        /// The indicator.
        sli: String,
        /// What is wrong with it.
        error: CriterionError,
    },
    /// The value of an indicator was taken by an objective before.
    #[error("{0}: an objective before this one has taken the value; a provider sends one for each objective")]
    Taken(String),
    /// An objective passes, and its score is not counted because it has no criterion.
    #[error("{0}: `pass` has no criterion, so it passes and adds nothing to the score")]
    Uncounted(String),
    /// A percentage of a value below zero.
    #[error("{sli}: {aggregate} is below zero, so {criterion:?} moves the target the other way")]
    BelowZero {
        /// The indicator.
        sli: String,
        /// As written.
        criterion: String,
        /// What the earlier values come to.
        aggregate: String,
    },
    /// The value is not a number, or has no end.
    #[error("{0}: the value is not a finite number, and counts as none")]
    NotFinite(String),
    /// The function is not known.
    #[error("`aggregate_function` is none that there is, so earlier values count as 0: write one of {}", words(&Aggregate::WORDS))]
    Aggregate,
    /// What to compare with is not known.
    #[error("`compare_with` is missing or none that there is, so up to three results count: write one of {}", words(&CompareWith::WORDS))]
    CompareWith,
}

fn words<T>(of: &[(&str, T)]) -> String {
    of.iter().map(|(word, _)| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}
