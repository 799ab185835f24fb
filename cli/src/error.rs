//! Why a command did not do what it was asked, and the exit code that says so.

use crate::api_error::ApiError;
use std::process::ExitCode;

/// Why a command ended early.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The command line, the environment or a file is not usable: exit code 2.
    #[error("{0}")]
    Usage(String),
    /// What was asked for did not happen: exit code 1.
    #[error("{0}")]
    Failed(String),
    /// The API refused or did not answer: exit code 1.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// Everything was said already: only the exit code is left.
    #[error("")]
    Said(u8),
    /// Whoever read the output has gone: nothing to report, exit code 0.
    #[error("the output is closed")]
    Closed,
}

impl CliError {
    /// What to print, if anything.
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Said(_) | Self::Closed => None,
            other => Some(other.to_string()),
        }
    }

    /// 0 fine, 1 refused or failed, 2 usage.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Failed(_) | Self::Api(_) => ExitCode::from(1),
            Self::Said(code) => ExitCode::from(*code),
            Self::Closed => ExitCode::SUCCESS,
        }
    }
}

impl From<std::io::Error> for CliError {
    /// Of writing to standard output, the only I/O whose errors are passed on bare.
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Failed(format!("cannot write to standard output: {error}")),
        }
    }
}
