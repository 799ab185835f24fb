//! A double of AWS for the clients: prepared answers in order, and the requests that received them. Both pass through the clients'
//! own serialisation, so a test sees what the service would have received.

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use serde_json::Value;
use std::sync::{Arc, Mutex};

/// A service with prepared answers to one operation. It panics at another operation. Clones share their state.
#[derive(Debug, Clone)]
pub(super) struct Double {
    operation: &'static str,
    answers: Arc<[(u16, Value)]>,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl Double {
    /// Answers to an operation, which is named as in `x-amz-target` or by method and path. The last answer is repeated; `Null` has
    /// no body.
    pub(super) fn new(operation: &'static str, answers: impl IntoIterator<Item = (u16, Value)>) -> Self {
        let answers: Arc<[_]> = answers.into_iter().collect();
        assert!(!answers.is_empty(), "nothing to answer with");
        Self { operation, answers, requests: Arc::default() }
    }

    /// The bodies of all requests so far. Each attempt is one.
    pub(super) fn requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap().clone()
    }
}

impl HttpConnector for Double {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let header = |name: &str| request.headers().get(name).map(str::to_owned);
        let path = request.uri().splitn(4, '/').last().unwrap_or_default();
        let operation = header("x-amz-target").unwrap_or_else(|| format!("{} /{path}", request.method()));
        assert_eq!(operation, self.operation);
        let bytes = request.body().bytes().expect("a body that is no stream");
        let mut requests = self.requests.lock().unwrap();
        let (status, answer) = self.answers.get(requests.len()).or(self.answers.last()).unwrap();
        requests.push(serde_json::from_slice(bytes).expect("a body of JSON"));
        let body = if answer.is_null() { SdkBody::empty() } else { SdkBody::from(answer.to_string()) };
        HttpConnectorFuture::ready(Ok(HttpResponse::new((*status).try_into().unwrap(), body)))
    }
}

impl HttpClient for Double {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}
