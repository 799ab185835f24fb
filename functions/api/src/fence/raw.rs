//! Passes the event of a function URL to the router. `lambda_http` converts the event to a request, and panics if the result is not
//! a URI, before the router could answer. So invalid parts are removed from the event first, and the fence refuses the remaining
//! request.

use crate::fence::client::Client;
use crate::fence::{NoUri, without_prefix};
use axum::http::{Uri, header};
use lambda_http::aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use lambda_http::request::LambdaRequest;
use lambda_http::{Adapter, IntoResponse, LambdaEvent, Request, Service};
use serde::Serialize;
use tower::ServiceExt;

/// The longest path and query string together, in bytes. A path grows up to threefold when it is encoded, and `http` takes URIs
/// below 64 KB.
const MAX_BYTES: usize = 20_000;

/// Answers a function URL's event with this service.
///
/// # Errors
/// Of the service.
pub async fn answer<S>(service: S, event: LambdaEvent<LambdaRequest>) -> Result<impl Serialize + std::fmt::Debug, S::Error>
where
    S: Service<Request, Response: IntoResponse, Future: Send + 'static>,
{
    let LambdaEvent { mut payload, context } = event;
    // The local cloud sets this variable.
    let emulated = std::env::var_os("AWS_ENDPOINT_URL").is_some();
    let (odd, client) = match &mut payload {
        LambdaRequest::ApiGatewayV2(event) => {
            let client = event.request_context.http.source_ip.as_deref().map(Client::at);
            (mended(event), client)
        }
        _ => (None, None),
    };
    let service = service.map_request(move |mut request: Request| {
        if let Some(odd) = &odd {
            request.extensions_mut().insert(odd.clone());
        }
        if let Some(client) = &client {
            request.extensions_mut().insert(client.clone());
        }
        without_prefix(request, emulated)
    });
    Adapter::from(service).call(LambdaEvent { payload, context }).await
}

/// Removes from the event what cannot be part of a URI, and returns what was wrong. The host is removed, because nothing needs it.
fn mended(event: &mut ApiGatewayV2httpRequest) -> Option<NoUri> {
    event.headers.remove(header::HOST);
    event.request_context.domain_name = None;
    let path = event.raw_path.get_or_insert_default();
    if !path.starts_with('/') {
        path.insert(0, '/');
    }
    let bytes = path.len() + event.raw_query_string.as_ref().map_or(0, String::len);
    if bytes > MAX_BYTES {
        event.raw_path = None;
        event.raw_query_string = None;
        return Some(NoUri(format!("the path and the query string have {bytes} bytes: at most {MAX_BYTES} are allowed")));
    }
    let query = event.raw_query_string.as_ref().filter(|query| format!("/?{query}").parse::<Uri>().is_err())?;
    let odd = query.chars().find(|c| format!("/?{c}").parse::<Uri>().is_err());
    let odd = odd.map_or_else(|| "something".to_owned(), |c| format!("{c:?}"));
    event.raw_query_string = None;
    Some(NoUri(format!("the query string contains {odd}, which no URL may contain: percent-encode the values of its parameters")))
}
