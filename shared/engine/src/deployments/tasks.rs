//! Tasks of sequences that name a config: `deployment` and `rollback`. The engine answers them itself.
//!
//! `data.<task>.deploymentConfig` names the config, as `<name>` in the project of the sequence or `<namespace>:<name>`. A deployment deploys
//! `data.configurationChange.values.image`, if there is one, or the newest images.

use super::{Address, Deployments};
use crate::ports::{PortError, Ports};
use crate::protocol::{Handled, invalid};
use keelway_domain::cause::Cause;
use keelway_domain::deployments::{Back, Command, Input, Latest, Task, missing};
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
        let to = Address { namespace: namespace.to_owned(), name: config.to_owned() };
        let task = Box::new(Task { name: name.clone(), context: event.context.to_string(), triggered: event.id.clone(), place });
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
        match self.turn(&to, Input::Command(&command, &note), cause).await? {
            // There is no such config, or it is being deleted: nobody else answers the task, so the reason is told. Every copy of the trigger
            // gets the same answer.
            Handled::Invalid => {
                crate::table::publish(&self.ports, &missing(&to.namespace, &to.name, &command, event.time)).await?;
                Ok(Handled::Recorded)
            }
            handled => Ok(handled),
        }
    }
}
