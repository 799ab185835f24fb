//! Quality gates: what Keptn's lighthouse makes of measured values, by a file of service level objectives (`slo.yaml`) and the
//! evaluations before. All of it is arithmetic; who measures, and who keeps earlier evaluations, is elsewhere.
//!
//! Results and messages are the lighthouse's (release 1.4.5). What it passes over in silence is in the [`Note`]s beside them.
//! `docs/evaluation.md` is the user's reference, and says where the two differ.

mod aggregate;
mod built_in;
mod criterion;
mod finish;
mod indicators;
mod judge;
pub mod mann_whitney;
mod missed;
mod note;
mod number;
mod numeric;
mod results;
mod slo;
mod source;

pub use aggregate::Aggregate;
pub use built_in::is_built_in;
pub use criterion::{Criterion, CriterionError, Kind, Operator};
pub use finish::{Objectives, finish};
pub use indicators::{Place, Queries, QueryError, merged, query};
pub use judge::judge;
pub use missed::{Missed, readable};
pub use note::Note;
pub use number::{parse as number, shown};
pub use results::{Details, Earlier, Finished, Indicator, Judged, Judgement, Measured, Provided, Target, Value};
pub use slo::{CompareWith, Comparison, Criteria, Include, Objective, Slo, TotalScore};
pub use source::{CloudWatch, MetricsApi, MetricsSource, Period, Prometheus, Query};
