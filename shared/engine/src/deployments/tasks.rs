//! Tasks of sequences that name a config: `deployment` and `rollback`. The engine answers them itself.
//!
//! `data.<task>.deploymentConfig` names the config, as `<name>` in the project of the sequence or `<namespace>:<name>`; another namespace than
//! the sequence's must consent. A deployment deploys `data.configurationChange.values.image`, if there is one, or the newest images.

use super::{Address, Deployments, NOBODY, keys};
use crate::border::let_in;
use crate::ports::{Condition, PortError, Ports, Write, Written};
use crate::protocol::{Handled, invalid};
use keelway_domain::border::{Act, Reached};
use keelway_domain::cause::Cause;
use keelway_domain::deployments::{Back, Command, Input, Latest, Task, missing, unanswered};
use keelway_domain::event::{CloudEvent, EventType, Kind, SOURCE};
use keelway_domain::ids::hash64;
use keelway_domain::promotions::Note;
use keelway_domain::shipyard::DEPLOYMENT_CONFIG;
use serde_json::Value;

impl<P: Ports> Deployments<P> {
    /// A task's trigger from the bus.
    pub(super) async fn task(&self, event: &CloudEvent, cause: Cause) -> Result<Handled, PortError> {
        // Executors may put events on the bus, too. The rule keeps theirs out; this holds if somebody changes the rule.
        if event.source != SOURCE {
            let reason = "forged: only the sequences engine triggers tasks";
            return invalid::record(&self.ports, self.limits.retention, cause.sent, reason, &event.to_bytes()).await;
        }
        let EventType::Task(name, Kind::Triggered) = EventType::parse(&event.ty) else { return Ok(Handled::Recorded) };
        let name = name.to_string();
        let member = |of: &str, member: &str| event.data.get(of).and_then(|of| of.get(member));
        let Some(config) = member(&name, DEPLOYMENT_CONFIG).and_then(Value::as_str) else { return Ok(Handled::Recorded) };
        let place = ["project", "stage", "service"].map(|name| event.text(name).unwrap_or_default().to_owned());
        let (namespace, config) = config.split_once(':').unwrap_or((&place[0], config));
        let triggered = keys::task(&event.id);
        let task = Box::new(Task {
            name: name.clone(),
            context: event.context.to_string(),
            triggered: event.id.clone(),
            place: place.clone(),
        });
        let command = match name.as_str() {
            "deployment" => {
                let values = member("configurationChange", "values");
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
                    group: String::new(),
                    task: Some(task),
                };
                Command::Rollback(back)
            }
            _ => return Ok(Handled::Recorded),
        };
        // Every copy of the trigger is the same command.
        let id = hash64(&[b"task", event.id.as_bytes()]).max(1);
        let message = format!("task {name} of {}", event.context);
        let note = Note { by: "keelway-sequences".into(), at: cause.sent, message, id, run: 0 };
        let to = match let_in(&self.ports, &place[0], Act::Deploy, (namespace, config)).await? {
            Ok(to) => to,
            Err(why) => {
                // Every copy of the trigger gets the same answer, although the consent may come or go between two of them.
                let decided = self.decided(triggered.clone()).with(NOBODY, 1);
                let first = self.ports.write(&Write::Put(decided, Condition::Absent)).await? == Written::Done;
                let refused = first || self.ports.get(&triggered).await?.is_some_and(|item| item.number(NOBODY).is_some());
                // An earlier copy was let in, and its version is cut.
                if !refused {
                    return Ok(Handled::Stale);
                }
                crate::table::publish(&self.ports, &unanswered((namespace, config), &command, &why.to_string(), event.time))
                    .await?;
                return Ok(Handled::Recorded);
            }
        };
        match self.command(&to, (&command, &note), cause).await? {
            // There is no such config, or it is being deleted: nobody else answers the task, so the reason is told. Every copy of the trigger
            // gets the same answer.
            Handled::Invalid => {
                crate::table::publish(&self.ports, &missing(to.namespace(), to.name(), &command, event.time)).await?;
                Ok(Handled::Recorded)
            }
            handled => Ok(handled),
        }
    }

    /// Commands a config on behalf of a project that was let in.
    async fn command(&self, to: &Reached, (command, note): (&Command, &Note), cause: Cause) -> Result<Handled, PortError> {
        let to = Address { namespace: to.namespace().to_owned(), name: to.name().to_owned() };
        self.turn(&to, Input::Command(command, note), cause).await
    }
}
