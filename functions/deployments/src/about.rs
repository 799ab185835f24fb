//! The subject of a delivery: for logs, and to handle the messages of one config in order.

use keelway_engine::deployments::{Delivery, Message};
use keelway_engine::protocol::Body;
use keelway_lambda::delivery::About;

/// The subject of this delivery.
pub fn about(delivery: &Delivery) -> About {
    match &delivery.body {
        Body::Event(event) => {
            let kind = match event.source.as_str() {
                "aws.ecr" => "image",
                "aws.cloudwatch" => "alarm",
                "aws.ecs" | "aws.codebuild" => "deployer",
                _ if event.ty.ends_with(".cancelled") => "task.cancelled",
                _ => "task.triggered",
            };
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
            };
            About { kind, project: Some(to.namespace.clone()), context: Some(to.name.clone()), subject: None }
        }
        Body::Invalid { .. } => About { kind: "invalid", ..About::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keelway_domain::time::Timestamp;
    use keelway_engine::deployments::Address;
    use keelway_lambda::delivery::delivery;

    #[test]
    fn messages_of_one_config_belong_together() {
        let to = Address { namespace: "shop".into(), name: "cart".into() };
        let message = Message::Wake { to, at: Timestamp(1_795_222_266_686) };
        let read: Delivery = delivery(&message.letter().body, Timestamp(1), false).unwrap();
        assert_eq!(read.body, Body::Own(message));
        let about = about(&read);
        assert_eq!((about.kind, about.together().as_deref()), ("wake", Some("shop/cart")));
    }

    #[test]
    fn a_push_to_ecr_is_an_event() {
        let envelope = r#"{"version":"0","id":"13cde686-328b-6117-af20-0e5566167482","detail-type":"ECR Image Action","source":"aws.ecr",
            "account":"123456789012","time":"2019-11-16T01:54:34Z","region":"us-west-2","resources":[],"detail":{"result":"SUCCESS",
            "repository-name":"shop","image-digest":"sha256:7f5b2640fe6fb4f46592dfd3410c4a79dac4f89e4782432e0378abcd1234",
            "action-type":"PUSH","image-tag":"latest"}}"#;
        let read: Delivery = delivery(envelope, Timestamp(1), false).unwrap();
        assert_eq!(about(&read).kind, "image");
        let Body::Event(event) = &read.body else { panic!("{read:?}") };
        assert_eq!((event.text("account"), event.text("region")), (Some("123456789012"), Some("us-west-2")));
        assert_eq!(event.time, Timestamp::parse("2019-11-16T01:54:34Z").unwrap());
    }
}
