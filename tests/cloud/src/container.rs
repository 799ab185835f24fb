//! The local cloud in a container: the image of `infra/local/Containerfile`, started and removed through the Docker API.
//!
//! The container has the loopback address and the temporary directory of this machine, under the same names: functions call
//! receivers, git hosts and clusters that tests start at 127.0.0.1, tests call functions there, and both write to folders that the
//! other one reads.

use crate::patience::until;
use crate::problem::Problem;
use crate::processes;
use serde_json::{Value, json};
use std::error::Error;
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use testcontainers::bollard::models::HostConfig;
use testcontainers::core::Mount;
use testcontainers::core::client::docker_client_instance;
use testcontainers::runners::AsyncRunner;
use testcontainers::{ContainerAsync, ContainerRequest, GenericImage, ImageExt};
use tokio::runtime::Handle;

/// Label with the temporary directory that a container shares: by it `container.py` finds what an interrupted run has left.
const LABEL: &str = "dev.keelway.temp";
/// Variable with the container's name, by which its first process is known from outside.
const NAME: &str = "KEELWAY_CONTAINER";
/// The engine is asked less often than a file is looked at.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// A running container. It is removed by [`Container::end`], or when this is dropped: outside of asynchronous code only.
pub struct Container {
    /// Where its cloud answers.
    pub url: String,
    inner: Mutex<Option<ContainerAsync<GenericImage>>>,
    handle: Handle,
    name: String,
}

impl Container {
    /// Starts the image, and waits until its cloud answers here.
    ///
    /// # Errors
    /// When it does not start, with what it said; then there is no container any more.
    pub fn start(image: &str, state: &Path, handle: &Handle) -> Result<Self, Problem> {
        let name = state.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // Known to whoever ends the cloud before there is anything to end.
        let record = json!({"name": name, "engine": std::env::var("DOCKER_HOST").ok()});
        std::fs::write(state.join("container.json"), record.to_string())
            .map_err(|error| Problem::of("the state directory", error))?;
        let wrong = |error: &dyn Error| Problem::of(&format!("image {image} does not start in a container"), with_causes(error));
        let request = request(image, state, &name);
        let request = match handle.block_on(user(state))? {
            Some(user) => request.with_user(user),
            None => request,
        };
        let inner = handle.block_on(request.start()).map_err(|error| wrong(&error))?;
        let mut container = Self { url: String::new(), inner: Mutex::new(Some(inner)), handle: handle.clone(), name };
        container.url = container.ready(state)?;
        Ok(container)
    }

    /// Whether the processes inside can be seen and ended from here: where containers run in a machine of their own, they cannot.
    pub fn shows_processes(&self) -> bool {
        !processes::with_variable(NAME, &self.name).is_empty()
    }

    /// Removes the container with all that is in it. Once is enough.
    pub fn end(&self) {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(inner) = inner
            && let Err(error) = self.handle.block_on(inner.rm())
        {
            eprintln!("container {} stays: {}", self.name, with_causes(&error));
        }
    }

    /// Waits for the cloud inside, and for its port here; the URL.
    fn ready(&self, state: &Path) -> Result<String, Problem> {
        let url = until(
            "the local cloud in its container",
            || {
                if let Some(url) = endpoint(state) {
                    return Ok(Some(url));
                }
                if !self.ask(async |inner| inner.is_running().await)? {
                    return Err(format!("the local cloud in its container has ended; it said:\n{}", self.said()).into());
                }
                std::thread::sleep(ASK_EVERY);
                Ok(None)
            },
            || self.said(),
        )?;
        let address = url.trim_start_matches("http://");
        TcpStream::connect(address).map_err(|error| {
            let out = "the container must share this machine's loopback address (with Docker Desktop: turn host networking on)";
            Problem(format!("the local cloud answers in its container, and not here at {address} ({error}): {out}"))
        })?;
        Ok(url)
    }

    fn ask<T>(
        &self,
        about: impl AsyncFn(&ContainerAsync<GenericImage>) -> testcontainers::core::error::Result<T>,
    ) -> Result<T, Problem> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let inner = inner.as_ref().ok_or("the container has been removed")?;
        self.handle.block_on(about(inner)).map_err(|error| Problem::of("the container", with_causes(&error)))
    }

    /// What its process printed.
    fn said(&self) -> String {
        let said = self.ask(async |inner| inner.stderr_to_vec().await);
        said.map_or_else(|problem| problem.0, |said| String::from_utf8_lossy(&said).trim().to_owned())
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        self.end();
    }
}

fn request(image: &str, state: &Path, name: &str) -> ContainerRequest<GenericImage> {
    let (image, tag) = image.rsplit_once(':').unwrap_or((image, "latest"));
    let shared = std::env::temp_dir().to_string_lossy().into_owned();
    GenericImage::new(image, tag)
        .with_container_name(name)
        .with_label(LABEL, &shared)
        .with_env_var(NAME, name)
        .with_mount(Mount::bind_mount(&shared, &shared))
        .with_cmd(["serve".to_owned(), "--state".to_owned(), state.to_string_lossy().into_owned()])
        .with_host_config_modifier(beside_the_tests)
}

/// This machine's own network, of which the cloud takes one port of the loopback address, and no port published anywhere.
fn beside_the_tests(host: &mut HostConfig) {
    host.network_mode = Some("host".into());
    host.publish_all_ports = Some(false);
    host.port_bindings = None;
    // The shared directory keeps its label for everything else on this machine.
    host.security_opt = Some(vec!["label=disable".into()]);
}

/// Whom the processes run as, so that their files belong to whoever runs the tests. Where the engine itself runs without root, the
/// container's root is that user already.
async fn user(state: &Path) -> Result<Option<String>, Problem> {
    let engine = docker_client_instance().await.map_err(|error| Problem::of("the Docker API", with_causes(&error)))?;
    let info = engine.info().await.map_err(|error| Problem::of("the Docker API does not answer", with_causes(&error)))?;
    let url = std::env::var("DOCKER_HOST").unwrap_or_default();
    let socket = url.strip_prefix("unix://").and_then(|path| std::fs::metadata(path).ok());
    if is_rootless(&info.security_options.unwrap_or_default(), socket.map(|socket| socket.uid())) {
        return Ok(None);
    }
    let owner = std::fs::metadata(state).map_err(|error| Problem::of("the state directory", error))?;
    Ok(Some(format!("{}:{}", owner.uid(), owner.gid())))
}

/// Docker says so among its options. Podman does not, but its socket then belongs to the user.
fn is_rootless(options: &[String], owner_of_socket: Option<u32>) -> bool {
    options.iter().any(|option| option.contains("rootless")) || owner_of_socket.is_some_and(|owner| owner != 0)
}

/// Where the cloud answers, once it does. Its first record has process ids, which mean something inside only.
fn endpoint(state: &Path) -> Option<String> {
    let record: Value = serde_json::from_slice(&std::fs::read(state.join("cloud.json")).ok()?).ok()?;
    record["pid"].is_null().then(|| record["endpoint"].as_str().map(str::to_owned)).flatten()
}

/// An error with the causes that it does not tell by itself.
fn with_causes(error: &dyn Error) -> String {
    let (mut text, mut next) = (error.to_string(), error.source());
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_shares_the_loopback_address_and_publishes_no_port() {
        let mut host = HostConfig { publish_all_ports: Some(true), ..HostConfig::default() };
        beside_the_tests(&mut host);
        assert_eq!((host.network_mode.as_deref(), host.publish_all_ports), (Some("host"), Some(false)));
        assert!(host.port_bindings.is_none());
    }

    #[test]
    fn an_engine_without_root_is_known_by_its_word_or_its_socket() {
        let docker = |option: &str| ["name=seccomp,profile=default".to_owned(), option.to_owned()];
        assert!(is_rootless(&docker("name=rootless"), None));
        assert!(is_rootless(&[], Some(1000)));
        assert!(!is_rootless(&docker("name=cgroupns"), Some(0)));
        assert!(!is_rootless(&[], None));
    }

    #[test]
    fn a_record_with_process_ids_is_not_for_those_outside() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(endpoint(state.path()), None);
        for (record, expected) in [
            (json!({"endpoint": "http://127.0.0.1:1", "pid": 7}), None),
            (json!({"endpoint": "http://127.0.0.1:1"}), Some("http://127.0.0.1:1")),
        ] {
            std::fs::write(state.path().join("cloud.json"), record.to_string()).unwrap();
            assert_eq!(endpoint(state.path()).as_deref(), expected);
        }
    }

    #[test]
    fn an_error_tells_its_causes_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("it fails: {0}")]
        struct Outer(#[source] Inner);
        #[derive(Debug, thiserror::Error)]
        #[error("no such file")]
        struct Inner(#[source] std::io::Error);
        let error = Outer(Inner(std::io::Error::other("the disk")));
        assert_eq!(with_causes(&error), "it fails: no such file: the disk");
    }
}
