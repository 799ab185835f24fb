//! `keelway deployer`: carries deployments out by running a command, for as long as it runs.
//!
//! A deployment is claimed, and the command is run for it. While it runs, heartbeats tell the end of its log and how far it is at
//! each target, and keep the claim. What they are told goes to the command: a file says whether it is to pause, SIGTERM that the
//! deployment is cancelled. The exit code is how it ended.

mod attempt;
pub mod deploy;
mod exchange;
pub mod guard;

use crate::address::Address;
use crate::api::Api;
use crate::api_error::ApiError;
use crate::args;
use crate::commands::deployments::id;
use crate::error::CliError;
use crate::executor::job::Pauses;
use crate::executor::{Phase, jittered, log, signals};
use crate::pages::Pages;
use keelway_wire::http::deployments::{ClaimAnswer, ClaimRequest, VersionState};
use serde_json::json;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// More pages of open work than this are not read in one go.
const PAGES: usize = 20;

/// What every attempt needs.
pub struct Worker {
    api: Api,
    name: String,
    /// Only these configs; empty: all of the namespace.
    configs: Vec<Address>,
    /// `None`: all.
    namespace: Option<String>,
    command: Vec<String>,
    lease: Duration,
    grace: Duration,
    log_url: Option<String>,
    /// The manifest's variables that the command gets by their own names.
    variables: Vec<String>,
    echo: bool,
}

/// Serves until SIGTERM or SIGINT, then finishes what runs; a second signal kills it.
///
/// # Errors
/// When the API refuses this deployer altogether.
pub async fn run(api: Api, what: args::Deployer) -> Result<ExitCode, CliError> {
    let phase = signals()?;
    let (least, most) = (Duration::from_secs(5), Duration::from_secs(3600));
    if what.lease < least || what.lease > most {
        return Err(CliError::Usage("--lease: must be from 5s to 1h".into()));
    }
    let worker = Worker {
        api: api.without_retries(),
        name: what.name,
        configs: what.configs.iter().map(|name| Address::of(name, what.projects.only())).collect(),
        namespace: what.projects.only_or_default().filter(|_| what.configs.is_empty()).map(str::to_owned),
        command: what.command,
        lease: what.lease,
        grace: what.grace,
        log_url: what.log_url,
        variables: what.variables,
        echo: what.echo,
    };
    log(&format!("{} deploys {} from {}; SIGTERM finishes what runs", worker.name, worker.scope(), worker.api.base()));
    let pool = Pool {
        worker: Arc::new(worker),
        phase,
        room: usize::from(what.concurrency),
        left: what.once,
        jobs: JoinSet::new(),
        failed: false,
    };
    pool.serve(what.poll).await
}

struct Pool {
    worker: Arc<Worker>,
    phase: watch::Receiver<Phase>,
    /// Deployments at the same time.
    room: usize,
    /// How many more are carried out; `None`: no end.
    left: Option<u64>,
    /// `true`: the deployment is complete.
    jobs: JoinSet<bool>,
    failed: bool,
}

impl Pool {
    async fn serve(mut self, poll: Duration) -> Result<ExitCode, CliError> {
        let mut failing: Option<(String, Pauses)> = None;
        let (mut answered, mut phase) = (false, self.phase.clone());
        while *phase.borrow() == Phase::Serve && self.left != Some(0) {
            while let Some(done) = self.jobs.try_join_next() {
                self.note(done);
            }
            let looked = tokio::select! {
                looked = self.look() => looked,
                _ = phase.wait_for(|phase| *phase > Phase::Serve) => break,
            };
            match looked {
                Ok(()) => {
                    answered = true;
                    if failing.take().is_some() {
                        log("the API answers again");
                    }
                }
                Err(error) if !answered && matches!(error.status(), Some(400 | 401 | 403)) => return Err(error.into()),
                Err(error) => {
                    let text = error.to_string();
                    let (told, pauses) = failing.get_or_insert_with(|| (String::new(), Pauses::new()));
                    if *told != text {
                        log(&format!("cannot ask for work, trying again: {text}"));
                        *told = text;
                    }
                    pauses.wait(&mut phase, Phase::Finish).await;
                    continue;
                }
            }
            tokio::select! {
                () = tokio::time::sleep(jittered(poll)) => (),
                Some(done) = self.jobs.join_next(), if !self.jobs.is_empty() => self.note(done),
                _ = phase.wait_for(|phase| *phase > Phase::Serve) => (),
            }
        }
        Ok(self.finish().await)
    }

    fn note(&mut self, done: Result<bool, tokio::task::JoinError>) {
        // A job does not panic; should it, its lease ends.
        self.failed |= !done.unwrap_or(false);
    }

    async fn finish(mut self) -> ExitCode {
        if !self.jobs.is_empty() && *self.phase.borrow() > Phase::Serve {
            log(&format!("stopping: {} still running; a second signal kills", self.jobs.len()));
        }
        while let Some(done) = self.jobs.join_next().await {
            self.note(done);
        }
        log("stopped");
        let failed = *self.phase.borrow() == Phase::Drop || self.left.is_some() && self.failed;
        if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }

    /// Claims what there is room for.
    async fn look(&mut self) -> Result<(), ApiError> {
        if self.jobs.len() >= self.room {
            return Ok(());
        }
        for version in self.worker.open().await? {
            if self.jobs.len() >= self.room || self.left == Some(0) || *self.phase.borrow() > Phase::Serve {
                break;
            }
            if let Some(claimed) = self.worker.claim(&version).await? {
                self.left = self.left.map(|left| left - 1);
                let (worker, phase) = (Arc::clone(&self.worker), self.phase.clone());
                self.jobs.spawn(async move { attempt::carry_out(&worker, claimed, phase).await });
            }
        }
        Ok(())
    }
}

impl Worker {
    fn scope(&self) -> String {
        match (&self.namespace, self.configs.as_slice()) {
            (Some(namespace), _) => format!("project {namespace}"),
            (None, []) => "all projects".into(),
            (None, configs) => configs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        }
    }

    /// What nobody has claimed, and is meant for this deployer; the oldest first.
    async fn open(&self) -> Result<Vec<VersionState>, ApiError> {
        let mut open = vec![];
        let mut pages = Pages::of(&self.api, &["deployments"], &[("status", "New")], usize::MAX).at_most(PAGES);
        while let Some(page) = pages.next().await? {
            open.extend(page.items.into_iter().filter(|version| self.is_mine(version)));
        }
        Ok(open)
    }

    /// Whether it is to be carried out here: Keelway starts the deployers of some, and held ones cannot be claimed.
    fn is_mine(&self, version: &VersionState) -> bool {
        let of = Address { namespace: version.namespace.clone(), name: version.config.clone() };
        let named = self.configs.is_empty() || self.configs.contains(&of);
        let here = self.namespace.as_ref().is_none_or(|namespace| *namespace == version.namespace);
        named && here && !version.starts && version.desired.as_deref() == Some("run")
    }

    /// Claims a version; `None`: somebody else was faster, or it is no longer wanted.
    async fn claim(&self, version: &VersionState) -> Result<Option<ClaimAnswer>, ApiError> {
        let name = path_name(version);
        let lease = Some(format!("{}ms", self.lease.as_millis()));
        let claim = format!("{}/{}", self.name, uuid::Uuid::now_v7());
        let request = json!(ClaimRequest { by: self.name.clone(), claim, lease });
        // The same claim again is the same claim: an answer that got lost is asked for once more.
        for last in [false, true] {
            match self.api.post(&["deployments", &name, "claim"], &request).await {
                Ok(claimed) => return Ok(Some(claimed)),
                Err(error) if matches!(error.status(), Some(404 | 409)) => return Ok(None),
                Err(error) if last || !error.is_transient() => return Err(error),
                Err(_) => {}
            }
        }
        Ok(None)
    }
}

/// A version in paths: `<namespace>:<config>-<n>`.
fn path_name(version: &VersionState) -> String {
    let of = Address { namespace: version.namespace.clone(), name: version.config.clone() };
    format!("{}-{}", id(&of), version.version)
}
