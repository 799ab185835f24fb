//! Values of the command line: read once, with what is wrong and what to write instead.

use keelway_domain::names::{NameError, TaskName};
use keelway_domain::time::Span;
use std::time::Duration;

pub fn name<N: TryFrom<String, Error = NameError>>(text: &str) -> Result<N, NameError> {
    N::try_from(text.to_owned())
}

pub fn length(text: &str) -> Result<Duration, String> {
    let span = Span::parse(text).map_err(|error| error.to_string())?;
    match u64::try_from(span.0) {
        Ok(millis) if millis > 0 => Ok(Duration::from_millis(millis)),
        _ => Err("must be longer than 0, for example 30s".into()),
    }
}

/// The API waits in whole seconds.
pub fn wait(text: &str) -> Result<Duration, String> {
    let span = Span::parse(text).map_err(|error| error.to_string())?;
    match u64::try_from(span.0) {
        Ok(millis) if millis <= 20_000 && millis % 1000 == 0 => Ok(Duration::from_millis(millis)),
        _ => Err("must be whole seconds from 0s to 20s".into()),
    }
}

/// The name becomes the `source` of what the executor sends.
pub fn executor_name(text: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.:/".contains(c);
    if text.is_empty() || text.len() > 100 || !text.chars().all(allowed) {
        return Err("use 1 to 100 letters, digits, `-`, `_`, `.`, `:` and `/`".into());
    }
    let engines = [keelway_domain::event::SOURCE, keelway_domain::event::APPROVAL_SOURCE];
    if engines.contains(&text) {
        return Err("is the engine's own: choose a name of your own".into());
    }
    keelway_wire::cloudevent::check_source(text).map_err(|error| error.message)?;
    Ok(text.to_owned())
}

pub fn revision(text: &str) -> Result<String, String> {
    let revision = text.trim_matches('"');
    match revision.len() == 40 && revision.chars().all(|c| c.is_ascii_hexdigit()) {
        true => Ok(revision.to_ascii_lowercase()),
        false => Err("is no revision: give the 40 hexadecimal digits that `keelway apply` printed".into()),
    }
}

pub fn answerable(text: &str) -> Result<TaskName, String> {
    if text == keelway_domain::shipyard::APPROVAL {
        return Err("is answered by the engine and by people: see `keelway approve`".into());
    }
    TaskName::new(text).map_err(|error| error.to_string())
}
