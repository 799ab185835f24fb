//! One HTTP client for all services. By default each service's client makes its own, and reads the system's root certificates for it
//! twice: a good part of a function's start.

use aws_smithy_http_client::ConnectorBuilder;
use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_runtime_api::client::http::{HttpConnectorSettings, SharedHttpClient, SharedHttpConnector, http_client_fn};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use std::sync::OnceLock;

/// A client whose connector, with its connections, is made for the first request and kept.
pub(crate) fn client() -> SharedHttpClient {
    let connector = OnceLock::new();
    http_client_fn(move |settings, components| connector.get_or_init(|| make(settings, components)).clone())
}

/// A connector for requests that no client makes.
pub(crate) fn connector() -> SharedHttpConnector {
    let mut builder = ConnectorBuilder::default().tls_provider(Provider::Rustls(CryptoMode::AwsLc));
    builder.set_proxy_config(Some(ProxyConfig::from_env()));
    SharedHttpConnector::new(builder.build())
}

/// As the clients' default is made.
fn make(settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
    let mut builder = ConnectorBuilder::default().tls_provider(Provider::Rustls(CryptoMode::AwsLc));
    builder.set_connector_settings(Some(settings.clone()));
    builder.set_sleep_impl(components.sleep_impl());
    builder.set_proxy_config(Some(ProxyConfig::from_env()));
    SharedHttpConnector::new(builder.build())
}
