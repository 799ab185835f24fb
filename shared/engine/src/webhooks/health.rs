//! What deliveries say about their subscription: that nothing reaches the receiver, that it works again, that it is disabled.

use super::subscriptions::{FAILING, OFF, is_there};
use super::{Address, Off, Sender, Webhooks, keys};
use crate::item::Attrs;
use crate::json::json;
use crate::ports::{Condition, PortError, Ports, Write};
use crate::protocol::{COMMIT_TRIES, contended};
use crate::table;
use keelway_domain::event::{CloudEvent, Object};
use keelway_domain::ids::{SubjectId, context_of, event_id, hash64};
use keelway_domain::names::Context;
use keelway_domain::webhooks::{DISABLED, Delivery, Health, SOURCE};

impl<P: Ports, S: Sender> Webhooks<P, S> {
    /// Notes it at the subscription. Every write has a condition, so doing it again changes nothing.
    pub(super) async fn note(&self, x: &Delivery, health: Health) -> Result<(), PortError> {
        let of = Address { namespace: x.of.0.clone(), name: x.of.1.clone() };
        let key = keys::subscription(&of);
        match health {
            Health::Failing(at) => {
                let condition = Condition::Match { equal: is_there(), absent: vec![FAILING] };
                let set = Attrs::from([(FAILING, at.0.into())]);
                let write = Write::Update { key, condition, set, remove: vec![], raise: false };
                self.ports.write(&write).await.map(drop)
            }
            Health::Working(since) => {
                let equal = Attrs::from([(FAILING, since.0.into())]);
                let condition = Condition::Match { equal, absent: vec![] };
                let write = Write::Update { key, condition, set: Attrs::new(), remove: vec![FAILING], raise: false };
                self.ports.write(&write).await.map(drop)
            }
            Health::Gone(at) => self.disable(&of, Off { reason: "gone".into(), at, by: x.id.to_string(), since: None }).await,
            Health::Dead(since, at) => {
                let off = Off { reason: "failing".into(), at, by: x.id.to_string(), since: Some(since) };
                self.disable(&of, off).await
            }
        }
    }

    /// Disables a subscription, and tells it. Of several deliveries that find the same, the first one does.
    async fn disable(&self, of: &Address, wanted: Off) -> Result<(), PortError> {
        for _ in 0..COMMIT_TRIES {
            match self.subscription(of).await?.map(|found| found.off) {
                Some(None) => {
                    let condition = Condition::Match { equal: is_there(), absent: vec![OFF] };
                    self.mark(of, condition, (Attrs::from([(OFF, json(&wanted).into())]), vec![])).await?;
                }
                Some(Some(present)) if present == wanted => {
                    tracing::warn!(webhook = %of, reason = wanted.reason, "webhook disabled");
                    return table::publish(&self.ports, &[disabled(of, &wanted)]).await;
                }
                // Another delivery has disabled it, or it was deleted.
                Some(Some(_)) | None => return Ok(()),
            }
        }
        Err(contended(keys::subscription(of)))
    }
}

/// The same for every time that it is published.
fn disabled(of: &Address, off: &Off) -> CloudEvent {
    let name = of.to_string();
    let subject = SubjectId(hash64(&[b"subscription", name.as_bytes(), &off.at.0.to_be_bytes()]));
    let mut data = Object::from_iter([
        ("project".into(), of.namespace.as_str().into()),
        ("webhook".into(), of.name.as_str().into()),
        ("reason".into(), off.reason.as_str().into()),
        ("message".into(), off.message().into()),
        ("delivery".into(), off.by.as_str().into()),
    ]);
    data.extend(off.since.map(|since| ("since".to_owned(), since.rfc3339().into())));
    CloudEvent {
        id: event_id(subject, "disabled").to_string(),
        source: SOURCE.into(),
        ty: DISABLED.into(),
        time: off.at,
        context: Context::of(&context_of("webhook", &name).to_string()),
        triggered_id: None,
        git_commit_id: None,
        data,
    }
}
