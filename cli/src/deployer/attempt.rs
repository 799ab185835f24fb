//! One attempt of a deployment: the command, the heartbeats while it runs, and how it ended.

use super::exchange::Exchange;
use super::guard::Guard;
use super::{Worker, path_name};
use crate::api::Api;
use crate::api_error::ApiError;
use crate::executor::answer::Ended;
use crate::executor::command::withhold_authority;
use crate::executor::job::Pauses;
use crate::executor::process::{self, Keep, Output, exit};
use crate::executor::{Phase, log};
use crate::output::one_line;
use keelway_wire::http::deployments::{ClaimAnswer, FinishRequest, HeartbeatRequest, ReportAnswer, TargetState, VersionState};
use rustix::process::Pid;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::sleep;

/// In front of the names of a manifest's variables.
const PARAMETER: &str = "PARAM_";
/// So much of the end of the log is told.
const TAIL: usize = 2048;
/// The longest message.
const MESSAGE: usize = 500;
/// Between two heartbeats, at most: a cancellation is told with them.
const BEAT: Duration = Duration::from_secs(5);
/// The exit code of what was ended by a signal is this and the signal's number, as shells have it.
const SIGNALLED: i64 = 128;

/// An attempt that was claimed.
struct Attempt<'a> {
    worker: &'a Worker,
    /// The API, with the attempt's token.
    api: Api,
    token: &'a str,
    deployment: &'a VersionState,
    path: String,
    exchange: Exchange,
}

/// Why a command is ended before it ends by itself.
enum Stop {
    /// The deployment is cancelled.
    Cancelled,
    /// The attempt is no longer this deployer's.
    Lost(ApiError),
    /// This process is told to drop everything.
    Dropped,
}

/// Runs the command for a deployment, and tells how it went. `true`: it is complete.
pub async fn carry_out(worker: &Worker, claimed: ClaimAnswer, mut phase: watch::Receiver<Phase>) -> bool {
    let deployment = &claimed.deployment;
    let exchange = match Exchange::open(&claimed.desired) {
        Ok(exchange) => exchange,
        // Its lease ends, and somebody else may do better.
        Err(error) => {
            let VersionState { namespace, name, .. } = deployment;
            log(&format!("{namespace}/{name} cannot be carried out here, as there is no place for temporary files: {error}"));
            return false;
        }
    };
    let path = path_name(deployment);
    let attempt = Attempt { worker, api: worker.api.bearing(&claimed.token), token: &claimed.token, deployment, path, exchange };
    attempt.line(&format!("claimed: {}", one_line(&deployment.message, MESSAGE)));
    let began = Instant::now();
    let output = Output::new(Keep::End { echo: worker.echo });
    let (ended, stop) = match attempt.start(&claimed) {
        Err(why) => (Ended::NotStarted(why), None),
        Ok((child, guard)) => {
            let ran = attempt.run(child, guard.group(), &output, &mut phase).await;
            guard.release().await;
            ran
        }
    };
    let took = crate::words::span(i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX));
    if let Some(Stop::Lost(error)) = stop {
        attempt.line(&format!("lost after {took}: {error}"));
        return false;
    }
    let (exit_code, why) = match &ended {
        Ended::Code(code) => (Some(i64::from(*code)), last_line(&attempt.tail(&output))),
        Ended::Signal(signal) => (Some(SIGNALLED + i64::from(*signal)), format!("ended by signal {signal}")),
        Ended::NotStarted(why) => (None, why.clone()),
        Ended::TimedOut(_) | Ended::TooMuch => (Some(1), String::new()),
    };
    let message = match stop {
        Some(Stop::Dropped) => "the deployer was told to stop at once".to_owned(),
        _ if exit_code == Some(0) => String::new(),
        _ => why,
    };
    let told = match (&message, exit_code) {
        (_, Some(code)) if message.is_empty() => format!("exit code {code}"),
        (message, Some(code)) => format!("exit code {code}: {message}"),
        (message, None) => format!("it did not run: {message}"),
    };
    attempt.line(&format!("ended after {took} with {told}"));
    let (targets, tail) = (attempt.targets(true), attempt.tail(&output));
    let request = FinishRequest { exit_code, message, targets, tail, log: attempt.log_url(), ..FinishRequest::default() };
    attempt.finish(&json!(request), &mut phase).await && exit_code == Some(0)
}

fn last_line(tail: &str) -> String {
    one_line(tail.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default(), MESSAGE)
}

impl Attempt<'_> {
    fn line(&self, what: &str) {
        let VersionState { namespace, name, attempt, .. } = self.deployment;
        log(&format!("{namespace}/{name} attempt {attempt} {what}"));
    }

    /// The end of the log. A command may print its environment: its token is nobody else's.
    fn tail(&self, output: &Output) -> String {
        output.tail(TAIL).replace(self.token, "***")
    }

    /// How far the command says it is, by target.
    fn targets(&self, all: bool) -> BTreeMap<String, TargetState> {
        self.exchange.targets(all, |why| self.line(&why))
    }

    /// Passes on what Keelway wants.
    fn pass_on(&self, desired: &str) {
        match self.exchange.tell(desired) {
            Ok(true) if desired == "pause" => self.line("is to pause"),
            Ok(true) if desired == "run" => self.line("goes on"),
            Ok(_) => {}
            Err(error) => self.line(&format!("the command cannot be told to {desired}: {error}")),
        }
    }

    fn log_url(&self) -> String {
        let url = self.worker.log_url.clone().unwrap_or_default();
        url.replace("{name}", &self.deployment.name).replace("{attempt}", &self.deployment.attempt.to_string())
    }

    /// The environment. What the manifest says comes from whoever may apply it, and this command runs with the operator's rights:
    /// so its variables have a prefix, and only those that the operator lists have their own names, too.
    fn variables(&self, claimed: &ClaimAnswer) -> Vec<(String, String)> {
        let VersionState { namespace, name, config, version, attempt, deadline, progress, .. } = self.deployment;
        let file = |path: std::path::PathBuf| path.display().to_string();
        let own = [
            ("KEELWAY_DESIRED_FILE", file(self.exchange.desired_file())),
            ("KEELWAY_PROGRESS_FILE", file(self.exchange.progress_file())),
            ("DEPLOYMENT_NAMESPACE", namespace.clone()),
            ("DEPLOYMENT_NAME", name.clone()),
            ("DEPLOYMENT_CONFIG", config.clone()),
            ("DEPLOYMENT_VERSION", version.to_string()),
            ("DEPLOYMENT_ATTEMPT", attempt.to_string()),
            ("DEPLOYMENT_FROM", claimed.from.as_ref().map(|from| from.name.clone()).unwrap_or_default()),
            ("DEPLOYMENT_DEADLINE", deadline.clone().unwrap_or_default()),
            ("DEPLOYMENT_CHECKPOINT", progress.checkpoint.clone()),
            ("DEPLOYMENT_CALLBACK", format!("{}/deployments/{}", self.api.base().trim_end_matches('/'), self.path)),
            ("DEPLOYMENT_TOKEN", claimed.token.clone()),
            ("OPENSHIFT_DEPLOYMENT_NAMESPACE", namespace.clone()),
            ("OPENSHIFT_DEPLOYMENT_NAME", name.clone()),
        ];
        let said = self.deployment.snapshot.pointer("/spec/strategy/customParams/environment").and_then(Value::as_array);
        let text = |one: &Value, field: &str| one[field].as_str().unwrap_or_default().to_owned();
        let mut all = vec![];
        for (name, value) in said.into_iter().flatten().map(|one| (text(one, "name"), text(one, "value"))) {
            all.push((format!("{PARAMETER}{name}"), value.clone()));
            if self.worker.variables.contains(&name) {
                all.push((name, value));
            }
        }
        // Keelway's own come last, and win.
        all.extend(own.into_iter().map(|(name, value)| (name.to_owned(), value)));
        all
    }

    fn start(&self, claimed: &ClaimAnswer) -> Result<(Child, Guard), String> {
        let Some((program, arguments)) = self.worker.command.split_first() else { return Err("there is no command".into()) };
        // Everything has ended before the lease has, if this process is killed now.
        let guard = Guard::start(self.worker.grace.min(self.worker.lease / 3));
        let guard = guard.map_err(|error| format!("the guard of the command does not start: {error}"))?;
        let mut command = Command::new(program);
        command.args(arguments).envs(self.variables(claimed)).kill_on_drop(true);
        command.process_group(guard.group().map_or(0, |group| group.as_raw_nonzero().get()));
        // A deployment's command has nothing to do with other deployments.
        withhold_authority(&mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("the command {program:?} does not start: {error}"))?;
        if let Some(mut stdin) = child.stdin.take() {
            let input = json!({"deployment": claimed.deployment, "from": claimed.from}).to_string();
            // A command need not read its input; then writing fails, which is fine.
            tokio::spawn(async move { stdin.write_all(input.as_bytes()).await.ok() });
        }
        Ok((child, guard))
    }

    /// Waits for the command's end, or ends it.
    async fn run(
        &self,
        mut child: Child,
        group: Option<Pid>,
        output: &Output,
        phase: &mut watch::Receiver<Phase>,
    ) -> (Ended, Option<Stop>) {
        let readers = [child.stdout.take().map(|pipe| output.read(pipe)), child.stderr.take().map(|pipe| output.read(pipe))];
        let mut dropping = phase.clone();
        let stop = tokio::select! {
            status = child.wait() => {
                process::read_the_rest(readers).await;
                return (exit(status), None);
            }
            stop = self.beat(output) => stop,
            () = dropped(&mut dropping) => Stop::Dropped,
        };
        match &stop {
            Stop::Cancelled => {
                self.line("is cancelled: SIGTERM");
                tokio::select! {
                    () = process::end(&mut child, group, self.worker.grace, dropped(phase)) => (),
                    // The claim is kept while it stops.
                    () = self.keep(output) => (),
                }
            }
            Stop::Lost(_) | Stop::Dropped => process::kill(&mut child, group).await,
        }
        let ended = exit(child.wait().await);
        process::read_the_rest(readers).await;
        (ended, Some(stop))
    }

    /// Heartbeats, until the deployment is to stop.
    async fn beat(&self, output: &Output) -> Stop {
        loop {
            match self.heartbeat(output).await {
                Ok(answer) => {
                    self.pass_on(&answer.desired);
                    if answer.desired == "cancel" {
                        return Stop::Cancelled;
                    }
                }
                Err(error) if error.is_transient() => self.line(&format!("no heartbeat: {error}")),
                Err(error) => return Stop::Lost(error),
            }
            sleep(BEAT.min(self.worker.lease / 3)).await;
        }
    }

    /// Heartbeats for as long as this is waited for.
    async fn keep(&self, output: &Output) {
        loop {
            self.heartbeat(output).await.ok();
            sleep(BEAT.min(self.worker.lease / 3)).await;
        }
    }

    async fn heartbeat(&self, output: &Output) -> Result<ReportAnswer, ApiError> {
        let lease = Some(format!("{}ms", self.worker.lease.as_millis()));
        let (targets, tail) = (self.targets(false), self.tail(output));
        let request = HeartbeatRequest { running: true, lease, targets, tail, log: self.log_url(), ..HeartbeatRequest::default() };
        self.api.post(&["deployments", &self.path, "heartbeat"], &json!(request)).await
    }

    /// Tells how it ended, until somebody takes it. `false`: it did not count.
    async fn finish(&self, request: &Value, phase: &mut watch::Receiver<Phase>) -> bool {
        let mut pauses = Pauses::new();
        loop {
            match self.api.post::<ReportAnswer>(&["deployments", &self.path, "finish"], request).await {
                Ok(_) => return true,
                Err(error) if error.is_transient() => {
                    self.line(&format!("its end is not told yet: {error}"));
                    if !pauses.wait(phase, Phase::Drop).await {
                        return false;
                    }
                }
                Err(error) => {
                    self.line(&format!("its end does not count: {error}"));
                    return false;
                }
            }
        }
    }
}

/// Until this process is told to drop everything.
async fn dropped(phase: &mut watch::Receiver<Phase>) {
    if phase.wait_for(|phase| *phase == Phase::Drop).await.is_err() {
        std::future::pending::<()>().await;
    }
}
