//! Commands and approvals, through the API.

use super::PromotionsCloud;
use crate::problem::Problem;
use crate::stand::said;
use keelway_domain::note::Note;
use keelway_domain::promotions::{At, Command};
use keelway_engine::promotions::views::Forecast;
use keelway_engine::promotions::{Address, Limits, Promotions};
use keelway_engine::protocol::Handled;
use keelway_world::case::Answer;
use serde_json::json;

impl PromotionsCloud<'_> {
    fn engine(&self) -> Promotions<keelway_aws::Aws> {
        Promotions::new(self.stack.ports().clone(), Limits::default())
    }

    /// Asks something of a pipeline, and waits until the engine has handled it.
    pub(super) fn command(&self, to: &Address, command: &Command, note: &Note) -> Result<Answer, Problem> {
        let path = format!("/v1/pipelines/{}/{}", to.namespace, to.name);
        let approval = |at: &At| format!("{path}/environments/{}/revisions/{}/approval", at.environment, encoded(&at.revision));
        let commands = format!("{path}/commands");
        let (path, mut body) = match command {
            Command::Approve(at) => (approval(at), json!({"decision": "approve"})),
            Command::Reject(at) => (approval(at), json!({"decision": "reject"})),
            Command::GiveUp(at) => (approval(at), json!({"decision": "abandon"})),
            Command::Accept(at) => (approval(at), json!({"decision": "accept"})),
            Command::Hold(at) => (commands, json!({"command": "hold", "environment": at.environment, "revision": at.revision})),
            Command::Suspend => (commands, json!({"command": "suspend"})),
            Command::Resume => (commands, json!({"command": "resume"})),
            Command::Release(environment) => (commands, json!({"command": "release", "environment": environment})),
            Command::Retry(environment) => (commands, json!({"command": "retry", "environment": environment})),
            Command::Abort(environment) => (commands, json!({"command": "abort", "environment": environment})),
            Command::Abandon(revision) => (commands, json!({"command": "abandon", "revision": revision})),
        };
        let name = note.by.strip_prefix("token:").unwrap_or(&note.by);
        body["by"] = name.into();
        body["message"] = note.message.as_str().into();
        let view = self.stack.wait(self.engine().view(to)).map_err(|error| Problem(error.to_string()))?;
        let changes = view.is_some_and(|view| matches!(view.forecast(command, note), Forecast::Changes));
        let before = self.known("command");
        let api = self.stack.wait(self.stack.api().of_person(name))?;
        let reply = self.stack.wait(api.post(&path, &body))?;
        match reply.status {
            // What is so already is not handed in.
            ..300 if !changes => Ok(Answer::unknown()),
            ..300 => Ok(Answer { said: said(&*self.handled("command", &before, 1)?), problem: String::new() }),
            400..500 => {
                let detail = reply.body["detail"].as_str().map_or_else(|| reply.body.to_string(), str::to_owned);
                Ok(Answer { problem: detail, ..Answer::handled(Handled::Invalid) })
            }
            status => Ok(Answer::status(status, reply.problem())),
        }
    }
}

/// One segment of a path.
fn encoded(text: &str) -> String {
    let byte = |byte: u8| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(byte).collect()
}
