//! Sources of metrics, as projects declare them: where they are kept, and how an evaluation finds its own.

use crate::border::Border;
use crate::kinds::MetricsSources;
use crate::partition::{Kind, Partition};
use crate::ports::{PortError, Ports};
use crate::protocol::declare::Declarations;
use keelway_domain::address::Address;
use keelway_domain::border::Home;
use keelway_domain::evaluation::MetricsSource;
use keelway_domain::time::Span;

static DECLARED: Partition = Partition::new(SOURCES, "", &[Kind::of("", "<namespace>/<name>", "source of metrics")]);
/// The partitions of sources of metrics.
pub static PARTITIONS: &[&Partition] = &[&DECLARED];

/// The partition of sources of metrics; their sort keys are `<namespace>/<name>`.
pub const SOURCES: &str = "EM";

/// The most sources of a project that are searched.
const MOST: u32 = 100;

/// The sources of metrics. `retention`: how long the tombstone of a deleted one is kept.
pub fn declared<P: Ports>(ports: &P, retention: Span) -> Declarations<'_, P, MetricsSources> {
    Declarations { ports, kind: MetricsSources, retention }
}

/// A source of a project.
///
/// # Errors
/// A port fails.
pub async fn find<P: Ports>(ports: &P, namespace: &str, name: &str) -> Result<Option<MetricsSource>, PortError> {
    let found = declared(ports, Span::seconds(0)).get(&Address::new(namespace, name)).await?;
    Ok(found.map(|found| found.spec))
}

/// The first sources of a project by name, at most a hundred.
///
/// # Errors
/// A port fails.
pub async fn all<P: Ports>(ports: &P, namespace: &str) -> Result<Vec<(String, MetricsSource)>, PortError> {
    let (found, _) = declared(ports, Span::seconds(0)).page(namespace, None, MOST).await?;
    Ok(found.into_iter().map(|(at, found)| (at.name, found.spec)).collect())
}

/// A source of a project, if it may be asked now; or why not.
///
/// # Errors
/// A port fails.
pub async fn usable<P: Ports>(
    ports: &P,
    (namespace, name): (&str, &str),
    home: &Home,
) -> Result<Result<MetricsSource, String>, PortError> {
    let Some(source) = find(ports, namespace, name).await? else {
        return Ok(Err(format!("project {namespace} has no MetricsSource {name}: apply it, or choose another one")));
    };
    let border = Border::of(ports, namespace).await?;
    for (field, resource) in source.resources() {
        let permitted = resource.map_err(|error| error.to_string());
        let permitted =
            permitted.and_then(|resource| border.permit(resource, source.vouched, home).map_err(|denied| denied.to_string()));
        if let Err(why) = permitted {
            return Ok(Err(format!("MetricsSource {namespace}/{name}: {field}: {why}")));
        }
    }
    Ok(Ok(source))
}
