//! What goes wrong in a test, for people.

/// One sentence, or several lines.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Problem(pub String);

/// What a test comes to.
pub type Outcome = Result<(), Problem>;

impl From<String> for Problem {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Problem {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl Problem {
    /// An error and what was being done.
    pub fn of(what: &str, error: impl std::fmt::Display) -> Self {
        Self(format!("{what}: {error}"))
    }
}

/// Fails unless it is so; `say` is only called then.
///
/// # Errors
/// What `say` says.
pub fn ensure(so: bool, say: impl FnOnce() -> String) -> Outcome {
    if so { Ok(()) } else { Err(Problem(say())) }
}

/// Fails unless both are the same.
///
/// # Errors
/// What was looked at, and both.
pub fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: T, expected: T) -> Outcome {
    ensure(got == expected, || format!("{what}: expected {expected:?}, got {got:?}"))
}
