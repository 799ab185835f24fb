//! Where the cloud is: an endpoint somebody names, a container, or the emulator of the checkout's own environment. In this order.

use crate::container::Container;
use crate::problem::Problem;
use std::net::IpAddr;
use std::path::Path;
use tokio::runtime::Handle;

/// Where the cloud is.
pub enum Place {
    /// `AWS_ENDPOINT_URL`.
    Given {
        /// The URL.
        url: String,
        /// It is not on this machine, and that is meant.
        remote: bool,
    },
    /// The same emulator in a container of its own, which ends with this value.
    Container(Box<Container>),
    /// The emulator that `infra/local/cloud.py` starts.
    Own,
}

/// Reads the variables of the environment; anything else may be handed in by a test.
pub trait Variables: Fn(&str) -> Option<String> {}
impl<T: Fn(&str) -> Option<String>> Variables for T {}

/// What the environment asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// This endpoint; whether it may be on another machine.
    Given(String, bool),
    /// A container of this image; whether nothing else will do.
    Container(String, bool),
    /// The checkout's own emulator.
    Own,
}

/// What the environment asks for.
///
/// # Errors
/// An endpoint that tests must not touch, or a container without an image.
pub fn wish(variables: &impl Variables) -> Result<Wish, Problem> {
    let set = |name: &str| variables(name).filter(|value| !value.is_empty());
    if let Some(url) = set("AWS_ENDPOINT_URL") {
        return given(url, set("AWS_ACCESS_KEY_ID"), set("KEELWAY_ALLOW_ENDPOINT"));
    }
    let insist = set("KEELWAY_TEST_CONTAINER").is_some_and(|value| value == "1");
    match set("KEELWAY_TEST_IMAGE") {
        Some(image) => Ok(Wish::Container(image, insist)),
        None if insist => {
            Err("KEELWAY_TEST_CONTAINER=1 needs an image: set KEELWAY_TEST_IMAGE=<name>:<tag>, or run `make test-container`".into())
        }
        None => Ok(Wish::Own),
    }
}

fn given(url: String, key: Option<String>, allowed: Option<String>) -> Result<Wish, Problem> {
    let host = host(&url);
    if allowed.as_deref().is_some_and(|allowed| allowed == url || allowed == host) {
        return Ok(Wish::Given(url, true));
    }
    let near = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    if !near {
        let out = "tests write to a loopback address only; if you mean it, set KEELWAY_ALLOW_ENDPOINT to the same URL";
        return Err(format!("AWS_ENDPOINT_URL is {url}: {out}").into());
    }
    // Keys of accounts begin so; an endpoint on this machine may still be a tunnel to one.
    if key.as_deref().is_some_and(|key| key.starts_with("AKIA") || key.starts_with("ASIA")) {
        let out =
            "set AWS_ACCESS_KEY_ID=test and AWS_SECRET_ACCESS_KEY=test, or KEELWAY_ALLOW_ENDPOINT to the same URL if you mean it";
        return Err(format!("AWS_ACCESS_KEY_ID is that of an account, and tests are about to use {url}: {out}").into());
    }
    Ok(Wish::Given(url, false))
}

/// The host as a client of the URL takes it; empty if it is no URL.
fn host(url: &str) -> String {
    let url = reqwest::Url::parse(url);
    let host = url.as_ref().ok().and_then(reqwest::Url::host_str).unwrap_or_default();
    host.trim_start_matches('[').trim_end_matches(']').to_owned()
}

/// Fulfils the wish as far as that needs doing here; a container shares the state directory.
///
/// # Errors
/// When a container is insisted on and does not start.
pub fn place(wish: Wish, state: &Path, handle: &Handle) -> Result<Place, Problem> {
    match wish {
        Wish::Given(url, remote) => Ok(Place::Given { url, remote }),
        Wish::Own => Ok(Place::Own),
        Wish::Container(image, insist) => match Container::start(&image, state, handle) {
            Ok(container) => Ok(Place::Container(Box::new(container))),
            Err(problem) if insist => Err(problem),
            Err(problem) => {
                eprintln!("{problem}; using the checkout's own emulator instead");
                Ok(Place::Own)
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish_of(pairs: &[(&str, &str)]) -> Result<Wish, Problem> {
        wish(&|name: &str| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn the_order_of_preference() {
        assert_eq!(wish_of(&[]), Ok(Wish::Own));
        let both = [("AWS_ENDPOINT_URL", "http://127.0.0.1:4566"), ("KEELWAY_TEST_IMAGE", "a/b:1")];
        assert_eq!(wish_of(&both), Ok(Wish::Given("http://127.0.0.1:4566".into(), false)));
        assert_eq!(wish_of(&both[1..]), Ok(Wish::Container("a/b:1".into(), false)));
        assert!(wish_of(&[("KEELWAY_TEST_CONTAINER", "1")]).is_err());
    }

    #[test]
    fn an_account_is_never_touched_by_accident() {
        let away = [
            "https://dynamodb.us-east-1.amazonaws.com",
            "http://8.8.8.8:4566",
            "http://10.0.0.7:4566",
            "http://172.16.0.1:4566",
            "http://192.168.1.2:4566",
            "http://[fd00::1]:4566",
            "http://localhost.evil.example",
            "http://localhost:4566@evil.example",
            "nonsense",
        ];
        for url in away {
            assert!(wish_of(&[("AWS_ENDPOINT_URL", url)]).is_err(), "{url}");
            let allowed = [("AWS_ENDPOINT_URL", url), ("KEELWAY_ALLOW_ENDPOINT", url)];
            assert_eq!(wish_of(&allowed), Ok(Wish::Given(url.into(), true)));
        }
        for url in ["http://localhost:4566", "http://[::1]:4566/", "http://127.0.0.1:4566"] {
            assert!(wish_of(&[("AWS_ENDPOINT_URL", url)]).is_ok(), "{url}");
            assert!(wish_of(&[("AWS_ENDPOINT_URL", url), ("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")]).is_err(), "{url}");
        }
    }
}
