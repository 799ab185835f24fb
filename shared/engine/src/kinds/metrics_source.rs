//! Sources of metrics. An evaluation finds its source by name.

use super::shared;
use crate::evaluations::sources::SOURCES;
use crate::protocol::declare::{Kind, Shelf};
use keelway_domain::evaluation::MetricsSource;

/// The sources of metrics.
#[derive(Debug, Clone, Copy)]
pub struct MetricsSources;

impl Kind for MetricsSources {
    const KIND: &'static str = "MetricsSource";
    type Spec = MetricsSource;

    fn shelf(&self, namespace: &str) -> Shelf {
        shared(SOURCES, namespace)
    }
}
