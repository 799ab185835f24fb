//! The subject of a delivery, for logs.

use keelway_engine::promotions::Observe;
use keelway_engine::promotions::observer::Incoming;
use keelway_engine::protocol::Body;
use keelway_lambda::incoming::About;

/// The subject of this delivery. Deliveries need no order: two concurrent readings of a cluster do not disturb each other.
pub fn about(incoming: &Incoming) -> About {
    match &incoming.body {
        Body::Own(Observe::Observe { cluster, .. }) => {
            About { kind: "observe", subject: Some(cluster.clone()), ..About::default() }
        }
        Body::Event(_) => About { kind: "event", ..About::default() },
        Body::Invalid { .. } => About { kind: "invalid", ..About::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keelway_domain::time::Timestamp;
    use keelway_lambda::incoming::incoming;

    #[test]
    fn a_message_names_its_cluster() {
        let message = Observe::Observe { cluster: "shop/prod".into(), after: None };
        let read: Incoming = incoming(&message.letter().body, Timestamp(1), false).unwrap();
        assert_eq!(read.body, Body::Own(message));
        let about = about(&read);
        assert_eq!((about.kind, about.subject.as_deref(), about.together()), ("observe", Some("shop/prod"), None));
    }
}
