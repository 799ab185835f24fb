//! Why a request is refused, and the names that the user may have meant.

use crate::ports::PortError;

/// The most names listed when the given name is unknown.
const TOLD: usize = 20;

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A port failed.
    #[error(transparent)]
    Port(#[from] PortError),
    /// It does not exist; `hint` says what exists.
    #[error("{kind} {name:?} does not exist: {hint}")]
    Unknown {
        /// "project", "stage", …
        kind: &'static str,
        /// The name that was given.
        name: String,
        /// What was probably meant, and what exists.
        hint: String,
    },
    /// A field cannot be used as it is.
    #[error("{field}: {message}")]
    Invalid {
        /// The field at fault.
        field: &'static str,
        /// What is wrong and what to do.
        message: String,
    },
    /// It contradicts the present state.
    #[error("{0}")]
    Conflict(String),
    /// What it requires to be in force is not.
    #[error("{0}")]
    NotInForce(String),
    /// It is larger than the limit.
    #[error("{0}")]
    TooLarge(String),
}

impl Refusal {
    /// There is no `kind` of that name among `known`.
    pub fn unknown<'a>(kind: &'static str, name: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        let near = nearest(name, &known).map(|near| format!("did you mean {near:?}? ")).unwrap_or_default();
        let hint = match known.len() {
            0 => "there is none yet".to_owned(),
            n if n > TOLD => format!("{near}there are {}, … ({n} together)", known[..TOLD].join(", ")),
            1 => format!("{near}there is {}", known[0]),
            _ => format!("{near}there are {}", known.join(", ")),
        };
        Self::Unknown { kind, name: name.chars().take(100).collect(), hint }
    }
}

/// The name that was probably meant: ignoring case, it differs by at most one change in up to five letters, and two in longer
/// names.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let lower = |name: &str| name.chars().flat_map(char::to_lowercase).collect::<String>();
    let wanted = lower(&name.chars().take(100).collect::<String>());
    let letters = wanted.chars().count();
    let allowed = if letters <= 5 { 1 } else { 2 };
    let near = |candidate: &&str| candidate.starts_with(&wanted) && letters >= 3;
    let distance = |candidate: &str| strsim::osa_distance(&wanted, &lower(candidate));
    let best = known.iter().map(|candidate| (distance(candidate), *candidate)).min_by_key(|(distance, _)| *distance);
    let best = best.filter(|(distance, _)| *distance <= allowed && *distance < letters);
    best.map(|(_, candidate)| candidate).or_else(|| known.iter().copied().find(near))
}
