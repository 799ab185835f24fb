//! Classifies AWS errors for the engines, in one place: retry later, or never repeat this request.

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::config::interceptors::InterceptorContext;
use aws_sdk_dynamodb::config::retry::{ClassifyRetry, RetryAction};
use aws_sdk_dynamodb::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::RequestId;
use keelway_engine::ports::PortError;

/// The temporary errors with status 400. All errors with status 429 or 500 and above are temporary, too.
const PASSING: [&str; 20] = [
    // Two have changed a rule at the same time.
    "ConcurrentModificationException",
    "ThrottlingException",
    "Throttling",
    "ThrottledException",
    "RequestThrottled",
    "RequestThrottledException",
    "TooManyRequestsException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "LimitExceededException",
    "LimitExceeded",
    "OverLimit",
    "ServiceQuotaExceededException",
    "KmsThrottled",
    "SlowDown",
    "TransactionConflictException",
    "TransactionInProgressException",
    "ReplicatedWriteConflictException",
    "ExpiredTokenException",
    "RequestExpired",
];

/// Two writers used the same item during a transaction. The error does not say how the item is, so the engine cannot treat it as a
/// conflict; a few milliseconds later, the item is either written or in conflict.
const CONTENTION: &str = "TransactionConflictException";

/// The error of a request in the engines' terms.
pub(crate) fn port_error<E>(request: &'static str, error: SdkError<E, HttpResponse>) -> PortError
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    let reason = match (error.code(), error.message()) {
        (Some(code), message) => {
            let id = error.request_id().unwrap_or("-");
            format!("{code}: {} (request {id})", message.unwrap_or("no message"))
        }
        (None, _) => DisplayErrorContext(&error).to_string(),
    };
    match error.code() {
        Some(CONTENTION) => PortError::Contended { request, reason },
        _ if passes(&error) => PortError::Retry { request, reason },
        _ => PortError::Refused { request, reason },
    }
}

/// Whether the same request may succeed later.
fn passes<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> bool {
    match error {
        SdkError::ConstructionFailure(_) => false,
        SdkError::ServiceError(service) => {
            let status = service.raw().status().as_u16();
            status >= 500 || status == 429 || service.err().code().is_some_and(passes_by_code)
        }
        // Timed out, no connection, half an answer: the request may or may not have taken effect.
        _ => true,
    }
}

/// Whether an error with this code is temporary.
pub(crate) fn passes_by_code(code: &str) -> bool {
    PASSING.contains(&code)
}

/// The error of a request that may succeed later.
pub(crate) fn retry(request: &'static str, reason: impl Into<String>) -> PortError {
    PortError::Retry { request, reason: reason.into() }
}

/// The error of a request that the service would refuse, before it is sent.
pub(crate) fn refused(request: &'static str, reason: impl Into<String>) -> PortError {
    PortError::Refused { request, reason: reason.into() }
}

/// Makes the client retry [`CONTENTION`] like throttling, because nothing was written.
#[derive(Debug)]
pub(crate) struct Contention;

impl ClassifyRetry for Contention {
    fn classify_retry(&self, context: &InterceptorContext) -> RetryAction {
        use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
        use aws_sdk_dynamodb::operation::put_item::PutItemError;
        use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
        let Some(Err(error)) = context.output_or_error() else { return RetryAction::NoActionIndicated };
        let Some(error) = error.as_operation_error() else { return RetryAction::NoActionIndicated };
        let code = error
            .downcast_ref::<UpdateItemError>()
            .map(ProvideErrorMetadata::code)
            .or_else(|| error.downcast_ref::<PutItemError>().map(ProvideErrorMetadata::code))
            .or_else(|| error.downcast_ref::<DeleteItemError>().map(ProvideErrorMetadata::code));
        match code {
            Some(Some(CONTENTION)) => RetryAction::transient_error(),
            _ => RetryAction::NoActionIndicated,
        }
    }
    fn name(&self) -> &'static str {
        "two writers met on one item"
    }
}
