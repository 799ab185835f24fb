//! Tasks of sequences that name a config: `deployment` and `rollback`. The engine answers them itself.
//!
//! `data.<task>.deploymentConfig` names the config, as `<name>` in the project of the sequence or `<namespace>:<name>`; another
//! namespace than the sequence's must consent. A deployment deploys `data.configurationChange.values.image`, if there is one, or
//! the newest images.
//!
//! The state of the task is read from the execution ([`Awaited`]): a task that is not open there is not carried out, and its
//! deployment is cancelled when the sequence gives the task up
//! ([decision 58](../../../../docs/decisions/0058-a-task-is-carried-out-while-its-sequence-waits.md)).

use super::{Address, Deployments, NOBODY, NOT_LET_IN, is_refused_by, keys};
use crate::border::let_in;
use crate::item::Key;
use crate::ports::{Condition, PortError, Ports, Write, Written};
use crate::protocol::{Handled, invalid};
use crate::sequences::awaited::Awaited;
use keelway_domain::border::{Act, NoConsent, Reached};
use keelway_domain::cause::Cause;
use keelway_domain::deployments::{Back, Command, Config, Input, Latest, Task, missing, unanswered};
use keelway_domain::event::{CANCELLED, CloudEvent, EventType, Kind, SOURCE};
use keelway_domain::ids::hash64;
use keelway_domain::note::Note;
use keelway_domain::shipyard::DEPLOYMENT_CONFIG;
use serde_json::Value;

impl<P: Ports> Deployments<P> {
    /// A task's trigger from the bus.
    pub(super) async fn task(&self, event: &CloudEvent, cause: Cause) -> Result<Handled, PortError> {
        // Executors may put events on the bus, too. The rule excludes them; this check also holds if the rule is changed.
        if event.source != SOURCE {
            let reason = "forged: only the sequences engine triggers tasks";
            return invalid::record(&self.ports, self.limits.retention, cause.sent, reason, &event.to_bytes()).await;
        }
        if event.ty == CANCELLED {
            return self.cancelled(event, cause).await;
        }
        let EventType::Task(name, Kind::Triggered) = EventType::parse(&event.ty) else { return Ok(Handled::Recorded) };
        let name = name.to_string();
        let Some((namespace, config)) = config_of(event, &name) else { return Ok(Handled::Recorded) };
        let triggered = keys::task(&event.id);
        let task = Box::new(task(event, &name, &event.id));
        let message = task.delivery().to_string();
        let Some(awaited) = awaited(&task) else {
            let reason = "the id of the trigger leads to no task of a sequence";
            return invalid::record(&self.ports, self.limits.retention, cause.sent, reason, &event.to_bytes()).await;
        };
        let command = match name.as_str() {
            "deployment" => {
                let values = event.data.get("configurationChange").and_then(|change| change.get("values"));
                let image = values.and_then(|values| values.get("image")).and_then(Value::as_str).unwrap_or_default().to_owned();
                Command::Latest(Latest { image, task: Some(task), ..Latest::default() })
            }
            "rollback" => {
                let back = Back {
                    release: None,
                    config: false,
                    application: true,
                    parts: None,
                    allow_failed: false,
                    by_steps: false,
                    again: false,
                    group: String::new(),
                    task: Some(task),
                };
                Command::Rollback(back)
            }
            _ => return Ok(Handled::Recorded),
        };
        // Every copy of the trigger is the same command.
        let id = hash64(&[b"task", event.id.as_bytes()]).max(1);
        let note = Note { by: "keelway-sequences".into(), at: cause.sent, message, id, run: 0 };
        let project = event.text("project").unwrap_or_default();
        let to = match let_in(&self.ports, project, Act::Deploy, (&namespace, &config)).await? {
            Ok(to) => to,
            Err(_) => {
                if !awaited.is_open(self.ports.get(&awaited.key()).await?.as_ref())? {
                    return Ok(Handled::Stale);
                }
                // The decision is made once for all copies of the trigger, because the consent may change between two of them.
                let decided = self.for_nobody(triggered.clone(), NOT_LET_IN, cause);
                let first = self.ports.write(&Write::Put(decided, Condition::Absent)).await? == Written::Done;
                let refused = first || self.ports.get(&triggered).await?.is_some_and(|item| is_refused_by(&item, cause));
                // An earlier copy had consent, and its version was cut; or another copy was answered.
                if !refused {
                    return Ok(Handled::Stale);
                }
                self.tell_why(&triggered, (project, &namespace, &config), &command, event).await?;
                return Ok(Handled::Recorded);
            }
        };
        match self.command(&to, (&command, &note), cause).await? {
            // The config does not exist, or is being deleted. Nothing else answers the task, so the reason is published here.
            Handled::Invalid => {
                self.tell_why(&triggered, (project, &namespace, &config), &command, event).await?;
                Ok(Handled::Recorded)
            }
            handled => Ok(handled),
        }
    }

    /// Publishes why no config carries a task out. The first decision counts, so that every delivery of the trigger gets the same
    /// answer, even if a consent or the config has changed meanwhile.
    async fn tell_why(
        &self,
        triggered: &Key,
        (from, namespace, name): (&str, &str, &str),
        command: &Command,
        event: &CloudEvent,
    ) -> Result<(), PortError> {
        let events = match self.ports.get(triggered).await?.and_then(|item| item.number(NOBODY)) {
            Some(NOT_LET_IN) => {
                let [from, namespace, name] = [from, namespace, name].map(str::to_owned);
                let why = NoConsent { from, namespace: namespace.clone(), name: name.clone(), act: Act::Deploy }.to_string();
                unanswered((&namespace, &name), command, &why, event.time)
            }
            _ => missing(namespace, name, command, event.time),
        };
        crate::table::publish(&self.ports, &events).await
    }

    /// A sequence has given a task up. The event is only a hint: the state of the execution decides.
    async fn cancelled(&self, event: &CloudEvent, cause: Cause) -> Result<Handled, PortError> {
        let (Some(name), Some(triggered)) = (event.text("task"), &event.triggered_id) else { return Ok(Handled::Recorded) };
        let Some((namespace, name_of_config)) = config_of(event, name) else { return Ok(Handled::Recorded) };
        let Some(awaited) = awaited(&task(event, name, triggered)) else { return Ok(Handled::Recorded) };
        if awaited.is_open(self.ports.get(&awaited.key()).await?.as_ref())? {
            return Ok(Handled::Stale);
        }
        self.turn(&Address { namespace, name: name_of_config }, Input::Over(triggered), cause).await
    }

    /// Sends a command to a config, for a project that has its consent.
    async fn command(&self, to: &Reached, (command, note): (&Command, &Note), cause: Cause) -> Result<Handled, PortError> {
        let to = Address { namespace: to.namespace().to_owned(), name: to.name().to_owned() };
        self.turn(&to, Input::Command(command, note), cause).await
    }
}

/// The config that an event names for a task: its namespace and its name.
fn config_of(event: &CloudEvent, task: &str) -> Option<(String, String)> {
    let named = event.data.get(task)?.get(DEPLOYMENT_CONFIG)?.as_str()?;
    let own = || (event.text("project").unwrap_or_default().to_owned(), named.to_owned());
    Some(named.split_once(':').map_or_else(own, |(namespace, name)| (namespace.to_owned(), name.to_owned())))
}

/// The task with this trigger that an event is about.
fn task(event: &CloudEvent, name: &str, triggered: &str) -> Task {
    let place = ["project", "stage", "service"].map(|name| event.text(name).unwrap_or_default().to_owned());
    Task { name: name.to_owned(), context: event.context.to_string(), triggered: triggered.to_owned(), place }
}

/// The task as the sequence waits for it.
pub(super) fn awaited(task: &Task) -> Option<Awaited> {
    Awaited::of((&task.place[0], &task.context), &task.name, &task.triggered)
}

/// The tasks that a config carries out, or will carry out next.
pub(super) fn all(x: &Config) -> impl Iterator<Item = &Task> {
    x.in_flight().into_iter().chain(&x.pending).filter_map(|d| d.task.as_ref())
}
