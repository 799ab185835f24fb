//! The subject of a message: for logs, and to handle those about one service in order.

use keelway_engine::evaluations::{Incoming, Message};
use keelway_engine::protocol::Body;
use keelway_lambda::incoming::About;

/// The subject of this message.
pub fn about(incoming: &Incoming) -> About {
    match &incoming.body {
        Body::Event(event) => {
            let of = |name| event.text(name).unwrap_or_default();
            About {
                kind: "event",
                project: Some(of("project").to_owned()),
                context: Some(format!("{}/{}", of("stage"), of("service"))),
                subject: None,
            }
        }
        Body::Own(message) => {
            let kind = match message {
                Message::Measure { .. } => "measure",
                Message::Evaluate { .. } => "evaluate",
                Message::Wake { .. } => "wake",
                Message::Over { .. } => "over",
            };
            let [project, stage, service] = message.place();
            About { kind, project: Some(project.clone()), context: Some(format!("{stage}/{service}")), subject: None }
        }
        Body::Invalid { .. } => About { kind: "invalid", ..About::default() },
    }
}
