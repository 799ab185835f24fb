//! Where the cloud is: an endpoint somebody names, a container, or the emulator of the checkout's own environment. In this order.

use crate::problem::Problem;
use std::collections::HashMap;
use std::net::IpAddr;
use testcontainers::bollard::models::{HostConfig, PortBinding};
use testcontainers::core::wait::WaitFor;
use testcontainers::core::{ContainerPort, IntoContainerPort};
use testcontainers::runners::AsyncRunner;
use testcontainers::{ContainerAsync, GenericImage, ImageExt};

/// Port of LocalStack and what is like it.
const PORT: ContainerPort = ContainerPort::Tcp(4566);

/// Where the cloud is.
pub enum Place {
    /// `AWS_ENDPOINT_URL`.
    Given {
        /// The URL.
        url: String,
        /// It is not on this machine, and that is meant.
        remote: bool,
    },
    /// An image in a container of its own, which ends with this value.
    Container {
        /// Its URL.
        url: String,
        /// The container.
        container: Box<ContainerAsync<GenericImage>>,
    },
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
        None if insist => Err("KEELWAY_TEST_CONTAINER=1 needs an image: set KEELWAY_TEST_IMAGE=<name>:<tag>".into()),
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

/// Fulfils the wish as far as that needs doing here.
///
/// # Errors
/// When a container is insisted on and does not start.
pub async fn place(wish: Wish) -> Result<Place, Problem> {
    match wish {
        Wish::Given(url, remote) => Ok(Place::Given { url, remote }),
        Wish::Own => Ok(Place::Own),
        Wish::Container(image, insist) => match container(&image).await {
            Ok(place) => Ok(place),
            Err(problem) if insist => Err(problem),
            Err(problem) => {
                eprintln!("{problem}; using the checkout's own emulator instead");
                Ok(Place::Own)
            }
        },
    }
}

async fn container(image: &str) -> Result<Place, Problem> {
    let wrong =
        |error: testcontainers::TestcontainersError| Problem::of(&format!("image {image} does not start in a container"), error);
    let (name, tag) = image.rsplit_once(':').unwrap_or((image, "latest"));
    let container = GenericImage::new(name, tag)
        .with_exposed_port(PORT)
        .with_wait_for(WaitFor::Nothing)
        .with_env_var("AUTH", "true")
        .with_env_var("AWS_ENDPOINT_URL", "http://127.0.0.1:4566")
        .with_host_config_modifier(loopback_only)
        .start()
        .await
        .map_err(wrong)?;
    let port = container.get_host_port_ipv4(4566.tcp()).await.map_err(wrong)?;
    Ok(Place::Container { url: format!("http://127.0.0.1:{port}"), container: Box::new(container) })
}

/// Publishes the port at a free one of this machine's loopback address; the library's own default is every address.
fn loopback_only(host: &mut HostConfig) {
    let binding = PortBinding { host_ip: Some("127.0.0.1".into()), host_port: None };
    host.publish_all_ports = Some(false);
    host.port_bindings = Some(HashMap::from([(PORT.to_string(), Some(vec![binding]))]));
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

    #[test]
    fn a_container_is_reached_from_this_machine_only() {
        let mut host = HostConfig { publish_all_ports: Some(true), ..HostConfig::default() };
        loopback_only(&mut host);
        assert_eq!(host.publish_all_ports, Some(false));
        let bindings = host.port_bindings.unwrap_or_default();
        let addresses = bindings.values().flatten().flatten().map(|binding| binding.host_ip.as_deref());
        assert_eq!(addresses.collect::<Vec<_>>(), [Some("127.0.0.1")]);
        assert!(bindings.contains_key("4566/tcp"));
    }
}
