//! Reads messages of the queue: events, the engine's own messages, and events of AWS services.

use keelway_domain::time::Timestamp;
use keelway_engine::deployments::{Incoming, Message};
use keelway_engine::protocol::Body;
use keelway_lambda::incoming::{NotUnderstood, incoming, shortened};
use keelway_wire::aws::events::notice;

/// Reads a message as [`incoming`] does; an event of an AWS service becomes a [`Message`].
///
/// # Errors
/// The errors of [`incoming`].
pub fn read(body: &str, sent: Timestamp, again: bool) -> Result<Incoming, NotUnderstood> {
    let body = match serde_json::from_str(body).ok().and_then(|envelope| notice(&envelope, sent)) {
        None => return incoming(body, sent, again),
        Some(Ok(notice)) => Body::Own(Message::Notice { notice }),
        Some(Err(error)) => Body::Invalid { reason: error.to_string(), text: shortened(body) },
    };
    Ok(Incoming { sent, again, body })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::about::about;
    use keelway_domain::deployments::notice::{Image, Notice};
    use keelway_domain::deployments::registry::Repository;

    fn envelope(source: &str, action: &str) -> String {
        format!(
            r#"{{"version":"0","id":"13cde686-328b-6117-af20-0e5566167482","detail-type":"ECR Image Action","source":"{source}",
            "account":"123456789012","time":"2019-11-16T01:54:34Z","region":"us-west-2","resources":[],"detail":{{"result":"SUCCESS",
            "repository-name":"shop","image-digest":"sha256:7f5b","{action}":"PUSH","image-tag":"latest"}}}}"#
        )
    }

    #[test]
    fn a_push_to_ecr_becomes_a_message() {
        let incoming = read(&envelope("aws.ecr", "action-type"), Timestamp(1), true).unwrap();
        let repository = Repository { account: Some("123456789012".into()), region: Some("us-west-2".into()), name: "shop".into() };
        let at = Timestamp::parse("2019-11-16T01:54:34Z").unwrap();
        let image = Image { repository, digest: "sha256:7f5b".into(), tag: Some("latest".into()), deleted: false, at };
        assert_eq!(incoming.body, Body::Own(Message::Notice { notice: Notice::Image(image) }));
        assert_eq!((about(&incoming).kind, about(&incoming).together(), incoming.again), ("image", None, true));
    }

    #[test]
    fn what_no_service_tells_is_read_as_everywhere() {
        for (text, says) in [
            (envelope("aws.ecr", "action"), "detail: must have action-type"),
            (envelope("aws.s3", "action-type"), "source: is \"aws.s3\""),
            (envelope("keelway", "action-type"), "specversion: is missing"),
            ("not json".into(), "not JSON"),
        ] {
            let Body::Invalid { reason, text: kept } = read(&text, Timestamp(1), false).unwrap().body else { panic!("{text}") };
            assert!(reason.contains(says), "{reason}");
            assert_eq!(kept, text);
        }
        assert!(read(r#"{"keelway":"newer"}"#, Timestamp(1), false).is_err());
    }
}
