//! A double of the APIs of Lambda, ECS and CodeBuild, as strict as the services about revisions, versions and weights. Each call is
//! a request in the in-memory world.

use keelway_domain::deployments::definition::Starter;
use keelway_domain::deployments::plan::{Code, Function};
use keelway_domain::deployments::runner::{Look, Which};
use keelway_domain::json::canonical;
use keelway_domain::time::Span;
use keelway_engine::aliases::{Alias, Aliases, Called, Readiness, Route};
use keelway_engine::ports::{Clock, PortError};
use keelway_engine::runners::Runners;
use keelway_wire::aws::runs;
use keelway_world::worker::Worker;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// A function with its versions and aliases.
#[derive(Debug, Default)]
pub struct Deployed {
    pub versions: Vec<String>,
    pub aliases: BTreeMap<String, Alias>,
    code: Option<Code>,
}

#[derive(Default)]
pub struct State {
    pub functions: BTreeMap<String, Deployed>,
    /// Every change of an alias (`<function>:<alias> <route>`) and every published version.
    pub log: Vec<String>,
    /// The payload of each invocation, and the length of the log at that time.
    pub calls: Vec<(Value, usize)>,
    /// How many invocations fail, and the error.
    pub failing: u32,
    pub fails_with: Option<Called>,
    /// How long an invocation takes, and whether one is in progress.
    pub takes: Span,
    pub calling: bool,
    /// How often a new version must be asked for until it is ready.
    pub slow: u32,
    /// If set, new versions never become ready, for this reason.
    pub broken: Option<String>,
    /// If set, the package that Lambda reads has this SHA-256 instead of the expected one.
    pub overwritten: Option<String>,
    /// The alias whose updates are refused.
    pub forbidden: Option<String>,
    /// The requests that started or stopped a task or a build.
    pub started: Vec<String>,
    pub stopped: Vec<String>,
    /// The requests for the state of a task or a build, and the state that is answered.
    pub looks: Vec<String>,
    pub answer: Value,
    /// If set, nothing can be started, for this reason.
    pub unable: Option<String>,
    revision: u32,
}

#[derive(Clone)]
pub struct Lambda {
    worker: Worker,
    state: Arc<Mutex<State>>,
}

/// The text of a route: `1`, or `1 10%2`.
pub fn shown(route: &Route) -> String {
    let canary = route.canary.as_ref().map(|(version, percent)| format!(" {percent}%{version}"));
    format!("{}{}", route.version, canary.unwrap_or_default())
}

fn refused<T>(request: &'static str, reason: &str) -> Result<T, PortError> {
    Err(PortError::Refused { request, reason: reason.into() })
}

fn contended<T>(request: &'static str, reason: &str) -> Result<T, PortError> {
    Err(PortError::Contended { request, reason: reason.into() })
}

impl Lambda {
    pub fn new(worker: Worker) -> Self {
        Self { worker, state: Arc::default() }
    }
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
    async fn request<R: std::fmt::Debug>(
        &self,
        what: &str,
        act: impl Fn(&mut State) -> Result<R, PortError>,
    ) -> Result<R, PortError> {
        let what = what.to_owned();
        self.worker.outside(move || what, |_| act(&mut self.state())).await?
    }
}

impl State {
    pub fn function(&mut self, name: &str, versions: u32) -> &mut Deployed {
        let code = self.functions.entry(name.to_owned()).or_default();
        code.versions = (1..=versions).map(|n| n.to_string()).collect();
        code
    }
    pub fn point(&mut self, function: &str, alias: &str, route: Route) {
        self.revision += 1;
        let revision = format!("revision {}", self.revision);
        self.log.push(format!("{function}:{alias} {}", shown(&route)));
        let code = self.functions.get_mut(function).unwrap();
        code.aliases.insert(alias.to_owned(), Alias { route, revision });
    }
    fn check(&self, request: &'static str, of: &Function, route: &Route) -> Result<(), PortError> {
        let Some(code) = self.functions.get(&of.name) else { return refused(request, "Function not found") };
        let exists = |version: &String| version == "$LATEST" || code.versions.contains(version);
        let canary = route.canary.as_ref();
        if !exists(&route.version) || canary.is_some_and(|(version, _)| !exists(version)) {
            return refused(request, &format!("Function not found: {}:{}", of.name, shown(route)));
        }
        let Some((other, percent)) = canary else { return Ok(()) };
        let numbered = route.version != "$LATEST" && other != "$LATEST";
        if !numbered || *other == route.version || !(1..100).contains(percent) {
            return refused(request, &format!("InvalidParameterValueException: {}", shown(route)));
        }
        Ok(())
    }
}

impl Runners for Lambda {
    /// The same token starts the same task.
    async fn start(&self, starter: &Starter, which: &Which<'_>) -> Result<String, PortError> {
        let request = canonical(&runs::start(starter, which));
        let start = |state: &mut State| {
            if let Some(why) = &state.unable {
                return refused("RunTask", why);
            }
            if state.started.last() != Some(&request) {
                state.started.push(request.clone());
            }
            let kind = match starter {
                Starter::Ecs(_) => "ecs:eu-central-1:1:task/main/",
                Starter::CodeBuild(_) => "codebuild:eu-central-1:1:build/deploy:",
            };
            Ok(format!("arn:aws:{kind}{}", state.started.len()))
        };
        self.request("RunTask", start).await
    }
    async fn look(&self, starter: &Starter, arn: &str) -> Result<Look, PortError> {
        let request = canonical(&runs::look(starter, arn));
        let look = |state: &mut State| {
            state.looks.push(request.clone());
            Ok(runs::seen(starter, &state.answer))
        };
        self.request("DescribeTasks", look).await
    }
    async fn stop(&self, starter: &Starter, arn: &str) -> Result<(), PortError> {
        let request = canonical(&runs::stop(starter, arn));
        let stop = |state: &mut State| {
            state.stopped.push(request.clone());
            Ok(())
        };
        self.request("StopTask", stop).await
    }
}

impl Aliases for Lambda {
    async fn find(&self, of: &Function, alias: &str) -> Result<Option<Alias>, PortError> {
        let look = |state: &mut State| Ok(state.functions.get(&of.name).and_then(|code| code.aliases.get(alias)).cloned());
        self.request("GetAlias", look).await
    }
    async fn create(&self, of: &Function, alias: &str, version: &str) -> Result<(), PortError> {
        let create = |state: &mut State| {
            state.check("CreateAlias", of, &Route::to(version))?;
            if state.functions[&of.name].aliases.contains_key(alias) {
                return contended("CreateAlias", "Alias already exists");
            }
            state.point(&of.name, alias, Route::to(version));
            Ok(())
        };
        self.request("CreateAlias", create).await
    }
    async fn shift(&self, of: &Function, alias: &str, route: &Route, revision: &str) -> Result<(), PortError> {
        let update = |state: &mut State| {
            if state.forbidden.as_deref() == Some(&of.name) {
                return refused("UpdateAlias", "AccessDeniedException: not authorized to perform lambda:UpdateAlias");
            }
            state.check("UpdateAlias", of, route)?;
            let Some(found) = state.functions[&of.name].aliases.get(alias) else { return refused("UpdateAlias", "no such alias") };
            if found.revision != revision {
                return contended("UpdateAlias", "PreconditionFailedException");
            }
            state.point(&of.name, alias, route.clone());
            Ok(())
        };
        self.request("UpdateAlias", update).await
    }
    async fn publish(&self, of: &Function, code: &Code) -> Result<String, PortError> {
        let update = |state: &mut State| {
            let Some(found) = state.functions.get_mut(&of.name) else { return refused("UpdateFunctionCode", "Function not found") };
            if found.code.as_ref() != Some(code) {
                found.code = Some(code.clone());
                found.versions.push((found.versions.len() + 1).to_string());
                let made = format!("{} has version {}", of.name, found.versions.len());
                state.log.push(made);
            }
            if let (Code::Package(_), Some(why)) = (code, &state.overwritten) {
                return refused("UpdateFunctionCode", why);
            }
            Ok(state.functions[&of.name].versions.last().cloned().unwrap())
        };
        self.request("UpdateFunctionCode", update).await
    }
    async fn readiness(&self, of: &Function, version: &str) -> Result<Readiness, PortError> {
        let look = |state: &mut State| {
            if !state.functions.get(&of.name).is_some_and(|code| code.versions.iter().any(|known| known == version)) {
                return refused("GetFunctionConfiguration", &format!("ResourceNotFoundException: {}:{version}", of.name));
            }
            if let Some(why) = &state.broken {
                return Ok(Readiness::Failed(why.clone()));
            }
            state.slow = state.slow.saturating_sub(1);
            Ok(if state.slow == 0 { Readiness::Ready } else { Readiness::Pending })
        };
        self.request("GetFunctionConfiguration", look).await
    }
    async fn call(&self, of: &Function, payload: &str) -> Result<Called, PortError> {
        let call = |state: &mut State| {
            let mut payload: Value = serde_json::from_str(payload).unwrap();
            payload["function"] = of.name.as_str().into();
            let so_far = state.log.len();
            state.calls.push((payload, so_far));
            let fails = state.failing > 0;
            state.failing = state.failing.saturating_sub(1);
            let well = Called { status: 200, error: None, body: "{}".into() };
            Ok(if fails { state.fails_with.clone().unwrap_or(Called { error: Some("Unhandled".into()), ..well }) } else { well })
        };
        let called = self.request("Invoke", call).await;
        let until = self.worker.now() + self.state().takes;
        while self.worker.now() < until {
            self.state().calling = true;
            self.worker.pause(Span::seconds(5)).await;
        }
        self.state().calling = false;
        called
    }
}
