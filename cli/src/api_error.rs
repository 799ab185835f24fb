//! Why the API did not do as asked.

use crate::words::ours;
use keelway_wire::http::Problem;
use reqwest::StatusCode;

/// What makes every variable right at once.
pub const WAY_OUT: &str = "run `eval \"$(make env)\"` where the stack is up";

/// Where a token that is not accepted comes from. What is wrong with it, the API says.
const OF_THE_TOKEN: &str = "; it is that of --token, or else of KEELWAY_TOKEN, or else of the current login (`keelway login list`)";

/// The API has never heard of a token of a stack that was started anew.
const LOCAL: &str = "; for a local stack, run `eval \"$(make env)\"` again";

/// Why the API did not do as asked.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// No answer.
    #[error("the API at {url} does not answer ({reason}): see that the stack is up (`make up`) and KEELWAY_API right ({WAY_OUT})")]
    Unreachable {
        /// Where it should be.
        url: String,
        /// The innermost cause.
        reason: String,
    },
    /// A redirect: nobody gave the token for the address that it names.
    #[error(
        "the API at {url} answered {status} and points to {to}: keelway follows no redirect, so that the token goes to no other address; \
             if that is where the API is, set KEELWAY_API or --api to it"
    )]
    Elsewhere {
        /// The address that was asked.
        url: String,
        /// The HTTP status.
        status: StatusCode,
        /// The address that the answer names.
        to: String,
    },
    /// A refusal of the API's own.
    #[error("{}", told(.0))]
    Refused(Box<Problem>),
    /// An answer that is not of this API.
    #[error("the API at {url} answered {status} in a form that is not its own ({text}): see that KEELWAY_API is right ({WAY_OUT})")]
    Odd {
        /// The address that was asked.
        url: String,
        /// The HTTP status.
        status: StatusCode,
        /// The beginning of the answer, or what is wrong with it.
        text: String,
    },
}

impl ApiError {
    /// The HTTP status, if there was an answer.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Unreachable { .. } => None,
            Self::Refused(problem) => Some(problem.status),
            Self::Odd { status, .. } | Self::Elsewhere { status, .. } => Some(status.as_u16()),
        }
    }

    /// Whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        self.status().is_none_or(|status| status >= 500 || status == 429 || status == 408)
    }
}

fn told(problem: &Problem) -> String {
    let title = if problem.detail.is_empty() { String::new() } else { format!("{}: ", problem.title) };
    let way_out = match (problem.status, problem.title.as_str()) {
        (401, "unknown token") => [OF_THE_TOKEN, LOCAL].concat(),
        (401, _) => OF_THE_TOKEN.to_owned(),
        _ => String::new(),
    };
    format!("{title}{}{way_out}", ours(&problem.to_string()))
}
