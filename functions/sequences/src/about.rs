//! The subject of a delivery: for logs, and to handle the messages of one context in order.

use keelway_domain::event::{CloudEvent, EventType, Kind};
use keelway_domain::ids::{ExecutionId, RecordId};
use keelway_domain::names::ProjectName;
use keelway_engine::sequences::{Address, Body, Incoming, Message};
use keelway_lambda::incoming::About;

/// The subject of this delivery.
pub fn about(incoming: &Incoming) -> About {
    match &incoming.body {
        Body::Event(event) => of_event(event),
        Body::Own(message) => of_message(message),
        Body::Invalid { .. } => About { kind: "invalid", ..About::default() },
    }
}

fn of_event(event: &CloudEvent) -> About {
    let project = event.text("project");
    let triggered = event.triggered_id.as_deref().and_then(RecordId::from_uuid).map(|record| record.subject);
    let (kind, execution) = match EventType::parse(&event.ty) {
        EventType::Sequence(_, _, Kind::Triggered) => {
            let project = project.and_then(|project| ProjectName::new(project).ok());
            let execution = project.map(|project| ExecutionId::of_trigger(&project, &event.context, &event.source, &event.id));
            ("sequence.triggered", execution)
        }
        EventType::Sequence(..) => ("sequence.other", None),
        EventType::Task(_, Kind::Triggered) => ("task.triggered", None),
        EventType::Task(_, Kind::Started) => ("task.started", triggered),
        EventType::Task(_, Kind::StatusChanged) => ("task.status.changed", triggered),
        EventType::Task(_, Kind::Finished) => ("task.finished", triggered),
        EventType::Other(_) => ("event", None),
    };
    About {
        kind,
        project: project.map(str::to_owned),
        context: Some(event.context.to_string()),
        subject: execution.map(|execution| execution.to_string()),
    }
}

fn of_schedule(kind: &'static str, project: &ProjectName, name: &str) -> About {
    About { kind, project: Some(project.to_string()), context: None, subject: Some(name.to_owned()) }
}

fn of_message(message: &Message) -> About {
    let to = |kind: &'static str, to: &Address| About {
        kind,
        project: Some(to.project.to_string()),
        context: Some(to.context.to_string()),
        subject: Some(to.execution.to_string()),
    };
    match message {
        Message::Granted { to: x, .. } => to("granted", x),
        Message::Follow { to: x, .. } => to("follow", x),
        Message::Start { to: x, .. } => to("start", x),
        Message::Wake { to: x, .. } => to("wake", x),
        Message::Obey { to: x } => to("obey", x),
        Message::Decide { to: x, .. } => to("decide", x),
        Message::Retry { to: x, .. } => to("retry", x),
        Message::Abort { to: x } => to("abort", x),
        Message::Settle { to: x } => to("settle", x),
        Message::Supersede { to: x, .. } => to("supersede", x),
        Message::Fire { to: x, .. } => to("fire", x),
        Message::Planned { project, schedule } => of_schedule("planned", project, schedule),
        Message::Due { project, schedule, .. } => of_schedule("due", project, schedule),
        Message::Windows { project } => About { kind: "windows", project: Some(project.to_string()), context: None, subject: None },
        Message::Conform { project, context, .. } => {
            About { kind: "conform", project: Some(project.to_string()), context: Some(context.to_string()), subject: None }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keelway_domain::names::Context;
    use keelway_domain::time::Timestamp;
    use keelway_lambda::incoming::incoming;

    const SENT: Timestamp = Timestamp(1_795_222_266_686);

    #[test]
    fn our_own_messages_come_back_as_they_were_sent() {
        let to = Address {
            project: ProjectName::new("shop").unwrap(),
            context: Context::new("0b9e7a44-1f7e-4abc-8123-5d2a5ef11ecf").unwrap(),
            execution: ExecutionId::parse("222222222233a").unwrap(),
        };
        let message = Message::Wake { to: to.clone(), at: SENT };
        let incoming: Incoming = incoming(&message.to_body(), SENT, false).unwrap();
        assert_eq!(incoming, Incoming { sent: SENT, again: false, body: Body::Own(message) });
        let about = about(&incoming);
        assert_eq!((about.kind, about.project.as_deref()), ("wake", Some("shop")));
        assert_eq!(about.subject, Some(to.execution.to_string()));
        assert_eq!(about.together().as_deref(), Some("shop/0b9e7a44-1f7e-4abc-8123-5d2a5ef11ecf"));
    }

    #[test]
    fn an_event_tells_its_execution() {
        let envelope = r#"{"detail-type":"sh.keptn.event.dev.delivery.triggered","source":"me","detail":{"specversion":"1.0","id":"1",
            "source":"me","type":"sh.keptn.event.dev.delivery.triggered","shkeptncontext":"c-1",
            "data":{"project":"shop","stage":"dev","service":"cart"}}}"#;
        let about = about(&incoming(envelope, SENT, false).unwrap());
        assert_eq!((about.kind, about.context.as_deref()), ("sequence.triggered", Some("c-1")));
        assert!(about.subject.is_some());
    }
}
