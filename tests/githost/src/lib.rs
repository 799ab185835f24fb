//! A strict git host for tests and for a machine of one's own: bare repositories with real objects in a directory, behind the REST forms of
//! GitHub, Gitea, GitLab and Bitbucket Server, as their public documentation describes them.
//!
//! Strict: a path, a field, a header, a token or a scope that the real host would not take is answered with the real host's error and is
//! entered into [`Host::violations`], which a test asserts to be empty. Merges, archives and clones are git's own. [`Host::people`] does what
//! people do, [`Host::fail`] makes requests go wrong, [`Host::calls`] lists them.

// A merge request of GitLab's has more fields than the macro for JSON may recurse by default.
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

/// What a host is started with.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it listens; port 0: a free one.
    pub listen: SocketAddr,
    /// Where it keeps everything. A host that is started again on the same directory goes on where it was.
    pub directory: PathBuf,
    /// Whose webhooks it sends, and whose pages it has. All forms are served whatever this is.
    pub form: Form,
    /// Who may do what.
    pub tokens: Vec<Token>,
    /// Whether requests, violations and webhooks are printed to stderr.
    pub log: bool,
}

impl Options {
    /// On a free loopback port, as a Gitea, with one token that may do everything; prints nothing.
    pub fn new(directory: impl Into<PathBuf>, token: &str) -> Self {
        let tokens = vec![Token::new(token, "keelway")];
        Self { listen: SocketAddr::from(([127, 0, 0, 1], 0)), directory: directory.into(), form: Form::Gitea, tokens, log: false }
    }
}

/// A git host that runs until it is stopped or dropped, on threads of its own: who uses it may block.
pub struct Host {
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Host {
    /// Starts a host, which answers when this returns. An error: the address is not free, or the directory is not usable.
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

    /// Stops it, after the requests that it is answering. Its port is free when this returns.
    pub fn stop(mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It ends by itself; whether it panicked does not matter any more.
            drop(thread.join());
        }
    }

    /// `http://host:port`, without a slash at the end.
    pub fn url(&self) -> &str {
        &self.shared.origin
    }

    /// The base of a form's API, without a slash at the end.
    pub fn api(&self, form: Form) -> String {
        format!("{}{}", self.shared.origin, form.base())
    }

    /// People, to do what people do.
    pub fn people(&self) -> People {
        People { shared: self.shared.clone(), user: "somebody".into() }
    }

    /// Makes requests go wrong. Faults are looked at in the order in which they were set.
    pub fn fail(&self, fault: Fault) {
        lock(&self.shared.faults).0.push(fault);
    }

    /// Loses about three of ten answers, at places that the seed decides about. For some 400 requests.
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

    /// The faults that have not been used up.
    pub fn faults(&self) -> Vec<Fault> {
        lock(&self.shared.faults).0.clone()
    }

    /// Takes back all faults.
    pub fn heal(&self) {
        lock(&self.shared.faults).0.clear();
    }

    /// Every request to a form since the start, or since they were last taken.
    pub fn calls(&self) -> Vec<Call> {
        lock(&self.shared.calls).clone()
    }

    /// The same, and forgets them.
    pub fn take_calls(&self) -> Vec<Call> {
        std::mem::take(&mut lock(&self.shared.calls))
    }

    /// How many of those calls changed something.
    pub fn writes(&self) -> usize {
        lock(&self.shared.calls).iter().filter(|call| call.wrote).count()
    }

    /// Requests that no well-made client makes.
    pub fn violations(&self) -> Vec<Violation> {
        lock(&self.shared.violations).clone()
    }

    /// The same, and forgets them: for tests that provoke some.
    pub fn take_violations(&self) -> Vec<Violation> {
        std::mem::take(&mut lock(&self.shared.violations))
    }

    /// The webhooks that were sent.
    pub fn deliveries(&self) -> Vec<Delivery> {
        lock(&self.shared.deliveries).clone()
    }
}
