//! The subject of a delivery: for logs, and to handle the attempts of one pipeline in order.

use keelway_engine::promotions::Job;
use keelway_engine::promotions::attempts::Incoming;
use keelway_engine::protocol::Body;
use keelway_lambda::incoming::About;

/// The subject of this delivery. Looks at one repository are handled in order, so that the second one finds the result of the
/// first.
pub fn about(incoming: &Incoming) -> About {
    let job = match &incoming.body {
        Body::Own(job) => job,
        Body::Event(_) => return About { kind: "event", ..About::default() },
        Body::Invalid { .. } => return About { kind: "invalid", ..About::default() },
    };
    let (kind, of) = match job {
        Job::Attempt { of, .. } => ("attempt", of),
        Job::Close { of, .. } => ("close", of),
        Job::Follow { of, .. } => ("follow", of),
        Job::Look { repository, .. } => return About { kind: "look", context: Some(repository.clone()), ..About::default() },
    };
    About { kind, project: Some(of.namespace.clone()), context: Some(of.name.clone()), subject: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keelway_domain::time::Timestamp;
    use keelway_lambda::incoming::incoming;

    #[test]
    fn looks_at_one_repository_belong_together() {
        let look = Job::Look { repository: "https://git.example.com/a/b".into(), at: Timestamp(1) };
        let read: Incoming = incoming(&look.letter().body, Timestamp(1), false).unwrap();
        assert_eq!(read.body, Body::Own(look));
        assert_eq!(about(&read).together().as_deref(), Some("/https://git.example.com/a/b"));
    }
}
