//! The subject of a delivery: for logs, and to handle the messages of one config in order.

use keelway_domain::deployments::notice::Notice;
use keelway_engine::deployments::{Incoming, Message};
use keelway_engine::protocol::Body;
use keelway_lambda::incoming::About;

/// The subject of this delivery.
pub fn about(incoming: &Incoming) -> About {
    match &incoming.body {
        Body::Event(event) => {
            let kind = if event.ty.ends_with(".cancelled") { "task.cancelled" } else { "task.triggered" };
            About { kind, context: Some(event.context.to_string()), ..About::default() }
        }
        Body::Own(message) => {
            let (kind, to) = match message {
                Message::Evaluate { to, .. } => ("evaluate", to),
                Message::Wake { to, .. } => ("wake", to),
                Message::Alarm { to, .. } => ("alarm", to),
                Message::Command { to, .. } => ("command", to),
                Message::Over { to, .. } => ("over", to),
                Message::Saw { to, .. } => ("saw", to),
                Message::Notice { notice } => return About { kind: told(notice), ..About::default() },
            };
            About { kind, project: Some(to.namespace.clone()), context: Some(to.name.clone()), subject: None }
        }
        Body::Invalid { .. } => About { kind: "invalid", ..About::default() },
    }
}

fn told(notice: &Notice) -> &'static str {
    match notice {
        Notice::Image(_) => "image",
        Notice::Alarm(_) => "alarm",
        Notice::Run(_) | Notice::Other => "deployer",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keelway_domain::time::Timestamp;
    use keelway_engine::deployments::Address;
    use keelway_lambda::incoming::incoming;

    #[test]
    fn messages_of_one_config_belong_together() {
        let to = Address { namespace: "shop".into(), name: "cart".into() };
        let message = Message::Wake { to, at: Timestamp(1_795_222_266_686) };
        let read: Incoming = incoming(&message.letter().body, Timestamp(1), false).unwrap();
        assert_eq!(read.body, Body::Own(message));
        let about = about(&read);
        assert_eq!((about.kind, about.together().as_deref()), ("wake", Some("shop/cart")));
    }
}
