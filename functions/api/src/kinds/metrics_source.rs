//! Sources of metrics, which evaluations ask for values.

use super::border::Outside;
use super::routes::{Plain, kind_routes};
use super::{Kept, Kind, Said};
use crate::Api;
use crate::fence::pages::Wanted;
use keelway_domain::border::Home;
use keelway_domain::evaluation::MetricsSource;
use keelway_engine::evaluations::sources;
use keelway_engine::protocol::Inbox;
use keelway_wire::http::promotions::{Registered, RegisteredPage};
use keelway_wire::manifest::MetricsSourceManifest;

impl Kind for MetricsSourceManifest {
    const KIND: &'static str = "MetricsSource";
    const NOUN: &'static str = "metrics source";
    type Spec = MetricsSource;

    fn said(&self) -> Said<'_, MetricsSource> {
        Said { namespace: self.namespace.as_str(), name: &self.name, spec: Some(&self.metrics), source: &self.source }
    }

    fn spec(&mut self) -> Option<&mut MetricsSource> {
        Some(&mut self.metrics)
    }

    fn kept(api: &Api) -> impl Kept<Spec = MetricsSource> {
        sources::declared(api.deployments().ports(), api.engine().limits().retention)
    }

    /// The server that its secret is sent to, and the metrics that are read with the installation's credentials.
    fn outside<'a>(namespace: &'a str, source: &MetricsSource, _: &Home) -> Outside<'a> {
        let mut outside = Outside { namespace, vouched: source.vouched, ..Outside::default() };
        for (field, resource) in source.resources() {
            match resource {
                Ok(resource) => outside.resources.push((field.to_owned(), resource)),
                Err(unreadable) => outside.refused.push((field.to_owned(), unreadable.to_string())),
            }
        }
        outside
    }
}

impl Plain for MetricsSourceManifest {}

kind_routes! {
    MetricsSourceManifest, "definitions";
    /// Lists the sources of metrics.
    list Anywhere<Wanted> "/v1/metricsSources" -> RegisteredPage;
    /// A source of metrics.
    one "/v1/metricsSources/{namespace}/{name}" -> Registered;
    /// The manifest as it was applied.
    manifest "/v1/metricsSources/{namespace}/{name}/manifest";
    /// Deletes a source of metrics.
    delete "/v1/metricsSources/{namespace}/{name}";
}
