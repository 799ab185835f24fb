//! stub
use crate::ports::{PortError, Ports};
use keelway_domain::evaluation::MetricsSource;
pub async fn find<P: Ports>(_: &P, _: &str, _: &str) -> Result<Option<MetricsSource>, PortError> {
    Ok(None)
}
pub async fn all<P: Ports>(_: &P, _: &str) -> Result<Vec<(String, MetricsSource)>, PortError> {
    Ok(vec![])
}
pub async fn usable<P: Ports>(_: &P, _: &str, _: &str) -> Result<Result<MetricsSource, String>, PortError> {
    Ok(Err(String::new()))
}
