//! Refusals as problem details: every answer that is not a success explains what is wrong, where, and what to do.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use keelway_domain::time::Span;
use keelway_engine::ports::PortError;
use keelway_engine::refusal::Refusal;
use keelway_wire::cloudevent::CloudEventError;
use keelway_wire::http::Problem;
use keelway_wire::http::deployments::FieldError;
use serde::Serialize;

/// A refusal. The fence writes it, because only the fence knows the path.
#[derive(Debug, Clone)]
pub struct Refused {
    /// The problem for the client.
    pub problem: Box<Problem>,
    /// After how many seconds the client may try again.
    retry_after: Option<i64>,
    /// The detail without names of projects, if it contains some.
    discreet: Option<String>,
}

/// A problem as it is sent.
#[derive(Debug, Default, Serialize, utoipa::ToSchema)]
#[schema(as = Problem)]
pub struct Body {
    #[serde(flatten)]
    problem: Problem,
    /// The status again: Keptn's clients read this and `message`, and nothing else.
    code: u16,
    /// The detail with all findings.
    message: String,
}

/// The result of a handler.
pub type Answer<T> = Result<T, Refused>;

impl Refused {
    /// A refusal of the kind `title`.
    pub fn new(status: StatusCode, title: &str, detail: impl Into<String>) -> Self {
        let retry_after = (status == StatusCode::SERVICE_UNAVAILABLE).then_some(1);
        Self { problem: Box::new(Problem::new(status.as_u16(), title, detail)), retry_after, discreet: None }
    }
    /// 429 to a client that may try again after this time.
    pub fn too_many(detail: impl Into<String>, after: Span) -> Self {
        let seconds = (after.0 + 999) / 1000;
        Self { retry_after: Some(seconds), ..Self::new(StatusCode::TOO_MANY_REQUESTS, "too many requests", detail) }
    }
    /// 400 about one field.
    pub fn field(field: &str, message: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid request", format!("{field}: {message}"))
    }
    /// 422 about everything that is wrong with a request, at once.
    pub fn invalid(errors: Vec<FieldError>) -> Self {
        let told = errors.iter().map(|error| format!("{}: {}", error.field, error.message));
        let mut refused = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", told.collect::<Vec<_>>().join("; "));
        refused.problem.errors = errors;
        refused
    }
    /// 404 about a project. `hint`, which begins with its separator, names projects that exist.
    pub fn unknown_project(detail: String, hint: &str) -> Self {
        let whole = format!("{detail}{hint}");
        Self { discreet: Some(detail), ..Self::new(StatusCode::NOT_FOUND, "unknown project", whole) }
    }
    /// Leaves the names of projects out.
    pub fn be_discreet(&mut self) {
        if let Some(detail) = self.discreet.take() {
            self.problem.detail = detail;
        }
    }
    /// 413
    pub fn too_large(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too large", detail)
    }
    /// The problem for a status that has none of its own.
    pub fn of_status(status: StatusCode) -> Self {
        Self::new(status, &status.canonical_reason().unwrap_or("refused").to_lowercase(), "")
    }
    /// 500; the cause is in the log and not in the answer.
    pub fn internal() -> Self {
        let detail = "the request could not be handled; the function's log says why";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal error", detail)
    }

    /// The finished response.
    pub fn render(mut self, path: &str) -> Response {
        self.problem.instance = Some(path.chars().take(300).collect());
        let status = StatusCode::from_u16(self.problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = Body { code: status.as_u16(), message: self.problem.to_string(), problem: *self.problem };
        let body = serde_json::to_string(&body).unwrap_or_default();
        let mut response = (status, [(header::CONTENT_TYPE, Problem::CONTENT_TYPE)], body).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("x-token"));
        }
        response
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<PortError> for Refused {
    fn from(error: PortError) -> Self {
        match &error {
            PortError::Retry { .. } | PortError::Contended { .. } => {
                tracing::warn!(%error, "a request could not be served for now");
                let detail = "a service behind the API is busy or away: send the same again in a moment, it counts once";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "try again", detail)
            }
            PortError::Refused { .. } => {
                tracing::error!(%error, "a request could not be served");
                Self::internal()
            }
        }
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        let detail = refusal.to_string();
        match refusal {
            Refusal::Port(error) => error.into(),
            Refusal::Unknown { kind: "project", name, hint } => {
                Self::unknown_project(format!("project {name:?} does not exist"), &format!(": {hint}"))
            }
            Refusal::Unknown { kind, .. } => Self::new(StatusCode::NOT_FOUND, &format!("unknown {kind}"), detail),
            Refusal::Invalid { .. } => Self::new(StatusCode::BAD_REQUEST, "invalid request", detail),
            Refusal::Conflict(_) => Self::new(StatusCode::CONFLICT, "conflict", detail),
            Refusal::NotInForce(_) => Self::new(StatusCode::PRECONDITION_FAILED, "precondition failed", detail),
            Refusal::TooLarge(_) => Self::too_large(detail),
        }
    }
}

impl From<CloudEventError> for Refused {
    fn from(error: CloudEventError) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid event", error.to_string())
    }
}
