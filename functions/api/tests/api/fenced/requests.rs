//! Requests as they are sent.

use axum::body::Body;
use axum::http::Request;

/// A request: method, URI, content type and body.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sent {
    pub method: String,
    pub uri: String,
    pub kind: String,
    pub body: String,
}

impl Sent {
    pub fn request(&self, header: (&str, &str)) -> Request<Body> {
        let builder = Request::builder().method(self.method.as_str()).uri(&self.uri).header(header.0, header.1);
        let builder = if self.kind.is_empty() { builder } else { builder.header("content-type", &self.kind) };
        builder.body(Body::from(self.body.clone())).unwrap()
    }
}
