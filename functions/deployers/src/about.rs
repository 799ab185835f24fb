//! The subject of a delivery: for logs, and to handle the steps of one config in order.

use keelway_engine::deployers::Incoming;
use keelway_engine::deployments::Job;
use keelway_engine::protocol::Body;
use keelway_lambda::incoming::About;

/// The subject of this delivery.
pub fn about(incoming: &Incoming) -> About {
    match &incoming.body {
        Body::Own(job) => {
            let (kind, of) = match job {
                Job::Start { of, .. } => ("step", of),
                Job::Look { of, .. } => ("look", of),
            };
            About { kind, project: Some(of.namespace.clone()), context: Some(of.name.clone()), subject: None }
        }
        Body::Event(_) => About { kind: "event", ..About::default() },
        Body::Invalid { .. } => About { kind: "invalid", ..About::default() },
    }
}
