//! `strategy.analysis`: how metrics judge a version.

use crate::manifest::finding::Report;
use crate::manifest::levels::{self, strategies};
use crate::manifest::tree::Node;
use crate::manifest::values::{positive, text, whole, word};
use keelway_domain::deployments::analysis::{
    Analysis, DEADLINE, Distribution, INTERVAL, MIN_SAMPLES, OBJECTIVES, OnInconclusive, SAMPLES,
};
use keelway_domain::deployments::definition::StrategyKind;
use keelway_domain::evaluation::mann_whitney::Direction;

/// What inconclusive windows mean, in the order of their words.
pub const MEANINGS: [OnInconclusive; 3] = [OnInconclusive::Pause, OnInconclusive::Pass, OnInconclusive::Fail];

/// Directions, in the order of their words.
pub const DIRECTIONS: [Direction; 3] = [Direction::Increase, Direction::Decrease, Direction::Either];

/// The analysis of a strategy, if it has one.
pub fn read(strategy: &Node, kind: StrategyKind, path: &str, report: &mut Report) -> Option<Analysis> {
    let (node, path) = levels::mapping(strategy, "analysis", &strategies::ANALYSIS, path, report)?;
    if matches!(kind, StrategyKind::Recreate | StrategyKind::Custom) {
        let message = "judges a version that shares the requests with the one before: write `type: Canary` or `type: Rolling`";
        report.error(node, path.clone(), message.into());
    }
    let named = |field: &str, report: &mut Report| text(node, field, &path, report).filter(|text| !text.is_empty());
    let place = match (named("stage", report), named("service", report)) {
        (Some(stage), Some(service)) => Some((stage, service)),
        (None, None) => None,
        (stage, _) => {
            let lacks = if stage.is_some() { "service" } else { "stage" };
            let message = "is missing: files are those of a service in a stage, or without `stage` and `service` the project's";
            report.error(node, format!("{path}.{lacks}"), message.into());
            None
        }
    };
    let number = |field: &str, report: &mut Report| {
        whole(node, field, &path, 0, report).map(|number| u64::try_from(number).unwrap_or_default())
    };
    let min_samples = number("minSamples", report).unwrap_or(MIN_SAMPLES);
    let failure_limit = number("failureLimit", report).unwrap_or(0);
    let interval = positive(node, "interval", &path, report).unwrap_or(INTERVAL);
    let written = positive(node, "deadline", &path, report);
    if let Some(deadline) = written.filter(|deadline| *deadline < interval) {
        let at = node.get("deadline").unwrap_or(node);
        let message = format!("is {deadline}, and a window takes {interval} (`interval`): write a longer one");
        report.error(at, format!("{path}.deadline"), message);
    }
    let mann_whitney = levels::entries(node, "mannWhitney", &strategies::DISTRIBUTION, &path, report)
        .into_iter()
        .filter_map(|(entry, path)| {
            let direction = word(entry, "direction", &path, &strategies::DIRECTIONS, report);
            let direction = direction.and_then(|place| DIRECTIONS.get(place)).copied().unwrap_or_default();
            Some(Distribution { sli: text(entry, "sli", &path, report)?, direction })
        })
        .collect();
    let meaning = word(node, "onInconclusive", &path, &strategies::ON_INCONCLUSIVE, report);
    Some(Analysis {
        slo: named("slo", report).unwrap_or_else(|| OBJECTIVES.to_owned()),
        place,
        source: named("source", report),
        interval,
        samples: named("samples", report).unwrap_or_else(|| SAMPLES.to_owned()),
        min_samples,
        failure_limit: u32::try_from(failure_limit).unwrap_or(u32::MAX),
        deadline: written.unwrap_or_else(|| DEADLINE.max(interval)),
        mann_whitney,
        on_inconclusive: meaning.and_then(|place| MEANINGS.get(place)).copied().unwrap_or_default(),
    })
}
