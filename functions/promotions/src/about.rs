//! The subject of a delivery: for logs, and to handle the messages of one pipeline in order.

use keelway_engine::promotions::{Address, Incoming, Message};
use keelway_engine::protocol::Body;
use keelway_lambda::incoming::About;

/// The subject of this delivery.
pub fn about(incoming: &Incoming) -> About {
    match &incoming.body {
        Body::Event(event) => {
            let kind = if event.ty.ends_with(".finished") { "sequence.finished" } else { "observed" };
            About { kind, context: Some(event.context.to_string()), ..About::default() }
        }
        Body::Own(message) => of_message(message),
        Body::Invalid { .. } => About { kind: "invalid", ..About::default() },
    }
}

fn of_message(message: &Message) -> About {
    let (kind, to) = match message {
        Message::Evaluate { to, .. } => ("evaluate", to),
        Message::Wake { to, .. } => ("wake", to),
        Message::Ended { to, .. } => ("ended", to),
        Message::Seen { to, .. } => ("seen", to),
        Message::Closed { to, .. } => ("closed", to),
        Message::Evaluated { to, .. } => ("evaluated", to),
        Message::Command { to, .. } => ("command", to),
    };
    of_pipeline(kind, to)
}

fn of_pipeline(kind: &'static str, to: &Address) -> About {
    About { kind, project: Some(to.namespace.clone()), context: Some(to.name.clone()), subject: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keelway_domain::time::Timestamp;
    use keelway_lambda::incoming::incoming;

    #[test]
    fn messages_of_one_pipeline_belong_together() {
        let to = Address { namespace: "shop".into(), name: "cart".into() };
        let message = Message::Wake { to, at: Timestamp(1_795_222_266_686) };
        let read: Incoming = incoming(&message.letter().body, Timestamp(1), false).unwrap();
        assert_eq!(read.body, Body::Own(message));
        let about = about(&read);
        assert_eq!((about.kind, about.together().as_deref()), ("wake", Some("shop/cart")));
    }

    #[test]
    fn an_observation_from_the_bus_is_an_event() {
        let envelope = r#"{"detail-type":"dev.keelway.target.observed","source":"me","detail":{"specversion":"1.0","id":"1",
            "source":"me","type":"dev.keelway.target.observed","data":{"facts":[]}}}"#;
        assert_eq!(about(&incoming(envelope, Timestamp(1), false).unwrap()).kind, "observed");
    }
}
