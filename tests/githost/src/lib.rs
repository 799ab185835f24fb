//! A strict git host for tests and for local use: bare repositories with real objects in a directory, behind the REST forms of
//! GitHub, Gitea, GitLab and Bitbucket Server, as their public documentation describes them.
//!
//! Strict: a path, field, header, token or scope that the real host would refuse gets the real host's error, and is recorded in
//! [`Host::violations`], which tests assert to be empty. Merges, archives and clones are made by git. [`Host::people`] performs
//! acts of people, [`Host::fail`] plants faults, [`Host::calls`] lists the requests.

// A merge request of GitLab has more fields than the JSON macro may recurse by default.
#![recursion_limit = "256"]

mod clone;
mod content;
mod control;
mod faults;
mod forms;
mod git;
mod http;
mod model;
mod people;
mod pulls;
mod refused;
mod serve;
mod store;
mod web;
mod webhooks;

pub use faults::{Action, Fault};
pub use git::GitError;
pub use model::{Comment, Form, Method, Pull, Scope, State, Token, Webhook};
pub use people::People;
pub use refused::Refused;
pub use serve::{Call, Violation};
pub use store::NewRepository;
pub use webhooks::{Delivery, signature};

use serve::{Shared, lock};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// The options of a host.
#[derive(Debug, Clone)]
pub struct Options {
    /// The address to listen on. Port 0: a free one.
    pub listen: SocketAddr,
    /// The directory of the store. A host that is started again on the same directory continues where it was.
    pub directory: PathBuf,
    /// The form of the webhooks and web pages. All REST forms are always served.
    pub form: Form,
    /// The tokens and their scopes.
    pub tokens: Vec<Token>,
    /// Whether requests, violations and webhooks are printed to stderr.
    pub log: bool,
}

impl Options {
    /// A Gitea on a free loopback port, with one token that has all scopes. Prints nothing.
    pub fn new(directory: impl Into<PathBuf>, token: &str) -> Self {
        let tokens = vec![Token::new(token, "keelway")];
        Self { listen: SocketAddr::from(([127, 0, 0, 1], 0)), directory: directory.into(), form: Form::Gitea, tokens, log: false }
    }
}

/// A git host that runs until it is stopped or dropped. It has threads of its own, so callers may block.
pub struct Host {
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Host {
    /// Starts a host that answers when this returns. Fails if the address is not free, or the directory is not usable.
    pub fn start(options: Options) -> std::io::Result<Self> {
        if !options.listen.ip().is_loopback() {
            let message = format!("{} is no loopback address: the control API has no password", options.listen);
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, message));
        }
        let store = store::Store::open(options.directory, options.form, options.tokens).map_err(std::io::Error::other)?;
        let listener = std::net::TcpListener::bind(options.listen)?;
        listener.set_nonblocking(true)?;
        let origin = format!("http://{}", listener.local_addr()?);
        let (sender, letters) = tokio::sync::mpsc::unbounded_channel();
        let shared = Arc::new(Shared::new(store, origin, options.log, sender));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let served = shared.clone();
        let thread = std::thread::spawn(move || {
            if let Err(error) = runtime.block_on(serve::serve(served, listener, letters, stopped)) {
                eprintln!("the git host stops: {error}");
            }
        });
        Ok(Self { shared, stop: Some(stop), thread: Some(thread) })
    }

    /// Stops the host after the requests in progress. The port is free when this returns.
    pub fn stop(mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread ends by itself; a panic in it does not matter any more.
            drop(thread.join());
        }
    }

    /// `http://host:port`, without a trailing slash.
    pub fn url(&self) -> &str {
        &self.shared.origin
    }

    /// The base of a form's API, without a trailing slash.
    pub fn api(&self, form: Form) -> String {
        format!("{}{}", self.shared.origin, form.base())
    }

    /// Performs acts of people.
    pub fn people(&self) -> People {
        People { shared: self.shared.clone(), user: "somebody".into() }
    }

    /// Plants a fault. Faults are checked in the order in which they were planted.
    pub fn fail(&self, fault: Fault) {
        lock(&self.shared.faults).0.push(fault);
    }

    /// Loses about three of ten answers for about 400 requests, at places that the seed determines.
    pub fn lose_three_of_ten(&self, seed: u64) {
        let mut dice = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut passed = 0;
        for _ in 0..400 {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            if dice % 10 < 3 {
                self.fail(Fault::next("*", "*", Action::Lose).after(passed));
                passed = 0;
            } else {
                passed += 1;
            }
        }
    }

    /// The faults that remain.
    pub fn faults(&self) -> Vec<Fault> {
        lock(&self.shared.faults).0.clone()
    }

    /// Removes all faults.
    pub fn heal(&self) {
        lock(&self.shared.faults).0.clear();
    }

    /// The requests to the forms since the start, or since the last [`Self::take_calls`].
    pub fn calls(&self) -> Vec<Call> {
        lock(&self.shared.calls).clone()
    }

    /// Returns and forgets these requests.
    pub fn take_calls(&self) -> Vec<Call> {
        std::mem::take(&mut lock(&self.shared.calls))
    }

    /// How many of these requests changed something.
    pub fn writes(&self) -> usize {
        lock(&self.shared.calls).iter().filter(|call| call.wrote).count()
    }

    /// Requests that no correct client makes.
    pub fn violations(&self) -> Vec<Violation> {
        lock(&self.shared.violations).clone()
    }

    /// Returns and forgets these requests, for tests that provoke some.
    pub fn take_violations(&self) -> Vec<Violation> {
        std::mem::take(&mut lock(&self.shared.violations))
    }

    /// The webhooks that were sent.
    pub fn deliveries(&self) -> Vec<Delivery> {
        lock(&self.shared.deliveries).clone()
    }
}
