//! Values of the command line: read once, with what is wrong and what to write instead.

use crate::error::CliError;
use keelway_domain::deployments::variables::is_reserved;
use keelway_domain::names::{Context, NameError, ProjectName, TaskName};
use keelway_domain::time::Span;
use std::time::Duration;

pub fn name<N: TryFrom<String, Error = NameError>>(text: &str) -> Result<N, NameError> {
    N::try_from(text.to_owned())
}

/// The name of a variable that a deployer's command may get from a manifest.
pub fn variable(text: &str) -> Result<String, String> {
    if is_reserved(text) {
        return Err("changes how programs start, or is Keelway's own: no manifest may choose it".into());
    }
    let named = !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if named { Ok(text.to_owned()) } else { Err("is not the name of a variable: use letters, digits and `_`".into()) }
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

/// A share in percent.
pub fn percent(text: &str) -> Result<u8, String> {
    let number = text.trim().trim_end_matches('%').trim_end().parse().ok().filter(|percent| *percent <= 100);
    number.ok_or_else(|| "is no share in percent: write 0% to 100%".into())
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
        false => Err("is no revision: give the 40 hexadecimal digits that `keelway apply` printed, and that \
                      `keelway get shipyard PROJECT --revisions -o wide` lists"
            .into()),
    }
}

pub fn answerable(text: &str) -> Result<TaskName, String> {
    if text == keelway_domain::shipyard::APPROVAL {
        return Err("is answered by the engine and by people: see `keelway approve`".into());
    }
    TaskName::new(text).map_err(|error| error.to_string())
}

/// Something in a namespace: `carts`, or `shop/carts` whatever the namespace is otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The namespace, if it was given with the name.
    pub namespace: Option<ProjectName>,
    /// The name.
    pub name: String,
}

impl Place {
    pub fn parse(text: &str) -> Result<Self, String> {
        let (namespace, name) = text.split_once('/').map_or((None, text), |(namespace, name)| (Some(namespace), name));
        if name.is_empty() || name.contains('/') {
            return Err("write it as NAME or PROJECT/NAME".into());
        }
        let namespace = namespace.map(ProjectName::new).transpose().map_err(|error| error.to_string())?;
        Ok(Self { namespace, name: name.to_owned() })
    }
}

/// A version of a deployment config: `carts-3`, or `shop/carts-3`.
pub fn version(text: &str) -> Result<(Place, u64), String> {
    let wrong = || "write it as CONFIG-N or PROJECT/CONFIG-N, for example carts-3".to_owned();
    let (config, n) = text.rsplit_once('-').ok_or_else(wrong)?;
    let n = n.parse::<u64>().ok().filter(|n| *n > 0).ok_or_else(wrong)?;
    Ok((Place::parse(config)?, n))
}

/// A version of the config that a command names: `3`, `carts-3`, `shop/carts-3` or `shop:carts-3`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbered {
    config: Option<String>,
    n: u64,
}

impl Numbered {
    pub fn parse(text: &str) -> Result<Self, String> {
        let (config, n) = text.rsplit_once('-').map_or((None, text), |(config, n)| (Some(config), n));
        let wrong = || "is no version: write its number, or CONFIG-N, for example 3 or carts-3".to_owned();
        let n = n.parse::<u64>().ok().filter(|n| *n > 0 && config != Some("")).ok_or_else(wrong)?;
        Ok(Self { config: config.map(|config| config.replace(':', "/")), n })
    }

    /// Its number, if it is a version of this config.
    pub fn of(&self, namespace: &str, name: &str) -> Result<u64, CliError> {
        let same = |config: &String| *config == name || *config == format!("{namespace}/{name}");
        match &self.config {
            Some(other) if !same(other) => {
                Err(CliError::Usage(format!("{other}-{} is no version of {namespace}/{name}: leave out its name", self.n)))
            }
            _ => Ok(self.n),
        }
    }
}

/// What waits for approval: a context, or an environment of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Awaiting {
    /// A sequence's.
    Sequence(Context),
    /// `shop/carts/production@1.4.0`: the revision may be left out.
    Promotion { namespace: ProjectName, name: String, environment: String, revision: Option<String> },
}

impl Awaiting {
    pub fn parse(text: &str) -> Result<Self, String> {
        // No context contains a slash.
        if !text.contains('/') {
            return Context::new(text).map(Self::Sequence).map_err(|error| error.to_string());
        }
        let (place, revision) = text.split_once('@').map_or((text, None), |(place, revision)| (place, Some(revision)));
        let [namespace, name, environment] = place.split('/').collect::<Vec<_>>()[..] else {
            return Err("write it as PROJECT/PIPELINE/ENVIRONMENT, or PROJECT/PIPELINE/ENVIRONMENT@REVISION".into());
        };
        if name.is_empty() || environment.is_empty() || revision == Some("") {
            return Err("has an empty part: write it as PROJECT/PIPELINE/ENVIRONMENT@REVISION".into());
        }
        let namespace = ProjectName::new(namespace).map_err(|error| error.to_string())?;
        let [name, environment] = [name, environment].map(str::to_owned);
        Ok(Self::Promotion { namespace, name, environment, revision: revision.map(str::to_owned) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_named_with_its_config_or_without() {
        for text in ["1", "cart-1", "shop/cart-1", "shop:cart-1"] {
            assert_eq!(Numbered::parse(text).unwrap().of("shop", "cart").unwrap(), 1, "{text}");
        }
        assert_eq!(Numbered::parse("cart-v2-3").unwrap().of("shop", "cart-v2").unwrap(), 3);
        assert!(Numbered::parse("other:cart-1").unwrap().of("shop", "cart").is_err(), "another namespace's");
        for text in ["", "0", "cart", "cart-", "cart-0", "cart-one", "-1", "1.5"] {
            assert!(Numbered::parse(text).unwrap_err().contains("write its number"), "{text}");
        }
    }

    #[test]
    fn places_and_what_waits_there() {
        let place = |namespace: Option<&str>, name: &str| Place {
            namespace: namespace.map(|namespace| ProjectName::new(namespace).unwrap()),
            name: name.into(),
        };
        assert_eq!(Place::parse("carts"), Ok(place(None, "carts")));
        assert_eq!(Place::parse("shop/carts"), Ok(place(Some("shop"), "carts")));
        for bad in ["", "shop/", "a/b/c", "No Good/carts"] {
            assert!(Place::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(Awaiting::parse("139a703f"), Ok(Awaiting::Sequence(Context::new("139a703f").unwrap())));
        let promotion = |revision: Option<&str>| Awaiting::Promotion {
            namespace: ProjectName::new("shop").unwrap(),
            name: "carts".into(),
            environment: "production".into(),
            revision: revision.map(str::to_owned),
        };
        assert_eq!(Awaiting::parse("shop/carts/production"), Ok(promotion(None)));
        // A revision may contain both separators.
        assert_eq!(Awaiting::parse("shop/carts/production@feature/x@sha1:abc"), Ok(promotion(Some("feature/x@sha1:abc"))));
        for bad in ["shop/carts", "shop//production", "shop/carts/production@", "a/b/c/d"] {
            assert!(Awaiting::parse(bad).is_err(), "{bad}");
        }
    }
}
