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
        with_whole_revision(without_prefix(request, emulated))
    });
    Adapter::from(service).call(LambdaEvent { payload, context }).await
}

/// The request with a revision as one part of its path. Whoever stands before the function may have decoded `%2F`; a revision is
/// the only name in a path that may contain a slash.
fn with_whole_revision(request: Request) -> Request {
    let path = request.uri().path();
    let parts: Vec<&str> = path.split('/').collect();
    let ["", "v1", "pipelines", _, _, "environments", _, "revisions", revision @ .., "approval"] = parts.as_slice() else {
        return request;
    };
    if revision.len() < 2 {
        return request;
    }
    let before = path.len() - revision.iter().map(|part| part.len() + 1).sum::<usize>() - "approval".len();
    let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
    let whole = format!("{}{}/approval{query}", &path[..before], revision.join("%2F"));
    let Ok(uri) = whole.parse::<Uri>() else { return request };
    let (mut parts, body) = request.into_parts();
    parts.uri = uri;
    Request::from_parts(parts, body)
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

#[cfg(test)]
mod tests {
    use super::*;
    use lambda_http::Body;

    #[test]
    fn a_revision_is_one_part_of_a_path_also_if_its_slashes_were_decoded() {
        let prod = "/v1/pipelines/shop/carts/environments/prod/revisions";
        for (given, kept) in [
            (format!("{prod}/1.4.0/approval"), format!("{prod}/1.4.0/approval")),
            (format!("{prod}/a%2Fb/approval"), format!("{prod}/a%2Fb/approval")),
            (format!("{prod}/a/b/approval?x=1"), format!("{prod}/a%2Fb/approval?x=1")),
            (format!("{prod}/r.example/shop/carts:1.4.0/approval"), format!("{prod}/r.example%2Fshop%2Fcarts:1.4.0/approval")),
            (format!("{prod}/a/b/other"), format!("{prod}/a/b/other")),
            ("/v1/project/a/b".to_owned(), "/v1/project/a/b".to_owned()),
        ] {
            let request = axum::http::Request::builder().uri(given).body(Body::Empty).unwrap();
            assert_eq!(with_whole_revision(request).uri().to_string(), kept);
        }
    }
}
