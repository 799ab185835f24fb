//! What a delivery is about, for logs and for keeping the steps of one config apart from another's.

use keelway_engine::deployers::Delivery;
use keelway_engine::deployments::Job;
use keelway_engine::protocol::Body;
use keelway_lambda::delivery::About;

/// What this delivery is about.
pub fn about(delivery: &Delivery) -> About {
    match &delivery.body {
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
