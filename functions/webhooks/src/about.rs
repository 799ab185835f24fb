//! The subject of a message: for logs, and to handle the attempts of one webhook delivery in order.

use keelway_engine::protocol::Body;
use keelway_engine::webhooks::{Incoming, Message};
use keelway_lambda::incoming::About;

/// The subject of this message. Messages to one webhook delivery are handled in order.
pub fn about(parcel: &Incoming) -> About {
    let (kind, to) = match &parcel.body {
        Body::Event(event) => {
            let project = event.text("project").map(str::to_owned);
            return About { kind: "event", project, ..About::default() };
        }
        Body::Own(Message::Deliver { to, .. }) => {
            return About {
                kind: "deliver",
                project: Some(to.namespace.clone()),
                subject: Some(to.name.clone()),
                ..About::default()
            };
        }
        Body::Own(Message::Wake { to, .. }) => ("wake", to),
        Body::Own(Message::Now { to, .. }) => ("now", to),
        Body::Invalid { .. } => return About { kind: "invalid", ..About::default() },
    };
    About { kind, context: Some(to.to_string()), ..About::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keelway_domain::ids::SubjectId;
    use keelway_domain::time::Timestamp;
    use keelway_lambda::incoming::incoming;

    #[test]
    fn messages_to_one_delivery_belong_together() {
        let wake = Message::Wake { to: SubjectId(7), at: Timestamp(1) };
        let read: Incoming = incoming(&wake.letter().body, Timestamp(1), false).unwrap();
        assert_eq!(read.body, Body::Own(wake));
        assert_eq!(about(&read).together(), Some(format!("/{}", SubjectId(7))));
    }
}
