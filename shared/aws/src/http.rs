//! One HTTP client for all services. By default the client of each service makes its own, and reads the system's root certificates
//! twice, which takes a good part of a function's start.

use aws_smithy_http_client::ConnectorBuilder;
use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_runtime_api::client::http::{HttpConnectorSettings, SharedHttpClient, SharedHttpConnector, http_client_fn};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use std::sync::OnceLock;

/// A client that makes its connector for the first request, and keeps it with its connections.
pub(crate) fn client() -> SharedHttpClient {
    let connector = OnceLock::new();
    http_client_fn(move |settings, components| connector.get_or_init(|| make(settings, components)).clone())
}

/// A connector for requests without a client.
pub(crate) fn connector() -> SharedHttpConnector {
    let mut builder = ConnectorBuilder::default().tls_provider(Provider::Rustls(CryptoMode::AwsLc));
    builder.set_proxy_config(Some(ProxyConfig::from_env()));
    SharedHttpConnector::new(builder.build())
}

/// Makes a connector like the clients' default.
fn make(settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
    let mut builder = ConnectorBuilder::default().tls_provider(Provider::Rustls(CryptoMode::AwsLc));
    builder.set_connector_settings(Some(settings.clone()));
    builder.set_sleep_impl(components.sleep_impl());
    builder.set_proxy_config(Some(ProxyConfig::from_env()));
    SharedHttpConnector::new(builder.build())
}
