//! Why a request has no answer.

use std::error::Error;
use std::net::IpAddr;
use std::time::Duration;

/// Why a request has no answer. It contains neither URL nor headers: after a redirect, a URL may contain a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The URL cannot be used.
    #[error("the URL cannot be used: {0}")]
    Url(String),
    /// The address does not belong to the public internet.
    #[error(
        "{0} is not an address of the public internet: nothing was sent; whoever operates the installation may list the host in the \
         parameter AllowedHosts"
    )]
    Address(IpAddr),
    /// The body of the request is too large.
    #[error("the body has {0} bytes: at most {1} are sent")]
    TooLarge(usize, usize),
    /// The name has no address, or nothing listens at the address.
    #[error("the receiver could not be reached: {0}")]
    Unreachable(String),
    /// The server's certificate is not trusted.
    #[error("the receiver could not be reached: {0}")]
    Untrusted(String),
    /// The connection broke.
    #[error("the receiver could not be reached: {0}")]
    Broken(String),
    /// The timeout has passed.
    #[error("there was no answer within {0} seconds")]
    TooSlow(u64),
    /// The client cannot be made with the given certificates.
    #[error("no connection can be made: {0}")]
    Unusable(String),
}

impl Failure {
    pub(crate) fn slow(total: Duration) -> Self {
        Self::TooSlow(total.as_secs())
    }

    pub(crate) fn of(error: reqwest::Error, total: Duration) -> Self {
        let error = error.without_url();
        let mut causes: Vec<String> = vec![];
        let mut at: Option<&(dyn Error + 'static)> = Some(&error);
        while let Some(cause) = at {
            if let Some(Refused(address)) = cause.downcast_ref() {
                return Self::Address(*address);
            }
            let text = cause.to_string();
            causes.extend(Some(text).filter(|text| !causes.contains(text)));
            at = cause.source();
        }
        let why = causes.join(": ");
        match error.is_connect() {
            _ if causes.iter().any(|cause| cause.contains("certificate")) => Self::Untrusted(why),
            true => Self::Unreachable(why),
            false if error.is_timeout() => Self::slow(total),
            false => Self::Broken(why),
        }
    }
}

/// The resolver's error for an address that is not public.
#[derive(Debug, thiserror::Error)]
#[error("{0} is not an address of the public internet")]
pub(crate) struct Refused(pub(crate) IpAddr);
