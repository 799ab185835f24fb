//! What deliveries say about their subscription: that nothing reaches the receiver, that it works again, that it is disabled.

use super::subscriptions::{BEGAN, FAILING, OFF, is_there, off, touch};
use super::{Address, Off, Sender, Webhooks, keys};
use crate::item::Attrs;
use crate::ports::{Condition, PortError, Ports, Write, Written};
use crate::table;
use keelway_domain::event::{CloudEvent, Object};
use keelway_domain::ids::{SubjectId, context_of, event_id, hash64};
use keelway_domain::names::Context;
use keelway_domain::stored::Stored;
use keelway_domain::webhooks::{DISABLED, Delivery, Health, SOURCE};

impl<P: Ports, S: Sender> Webhooks<P, S> {
    /// Notes it at the subscription. Every write has a condition, so doing it again changes nothing.
    pub(super) async fn note(&self, x: &Delivery, health: Health) -> Result<(), PortError> {
        let of = Address { namespace: x.of.0.clone(), name: x.of.1.clone() };
        let key = keys::subscription(&of);
        match health {
            Health::Failing(at) => {
                let condition = Condition::Match { equal: is_there(), absent: vec![FAILING] };
                // This may come late, or again, and another delivery may have succeeded since the attempt.
                let set = Attrs::from([(FAILING, self.ports.now().max(at).0.into())]);
                let write = Write::Update { key, condition, set, remove: vec![], raise: false };
                self.ports.write(&write).await.map(drop)
            }
            Health::Working(since) => {
                let equal = Attrs::from([(FAILING, since.0.into())]);
                let condition = Condition::Match { equal, absent: vec![] };
                let write = Write::Update { key, condition, set: Attrs::new(), remove: vec![FAILING], raise: false };
                self.ports.write(&write).await.map(drop)
            }
            Health::Gone(at) => self.disable(x, Off { reason: "gone".into(), at, by: x.id.to_string(), since: None }).await,
            Health::Dead(since, at) => {
                let off = Off { reason: "failing".into(), at, by: x.id.to_string(), since: Some(since) };
                self.disable(x, off).await
            }
        }
    }

    /// Disables a subscription, and tells it. Of several deliveries that find the same, the first one does. If the subscription was
    /// created anew or resumed since the attempt, this does nothing, however often it is done.
    async fn disable(&self, x: &Delivery, wanted: Off) -> Result<(), PortError> {
        let of = &Address { namespace: x.of.0.clone(), name: x.of.1.clone() };
        let (mut equal, mut absent) = (is_there(), vec![OFF]);
        match x.since {
            Some(since) => drop(equal.insert(BEGAN, since.0.into())),
            None => absent.push(BEGAN),
        }
        let condition = Condition::Match { equal, absent };
        let set = Attrs::from([(OFF, wanted.to_json().into())]);
        let write = Write::Update { key: keys::subscription(of), condition, set, remove: vec![], raise: false };
        let present = match self.ports.write(&write).await? {
            Written::Done => Some(wanted.clone()),
            Written::Conflict(item) => item.as_ref().map(off).transpose()?.flatten(),
        };
        if present.as_ref() != Some(&wanted) {
            return Ok(());
        }
        touch(&self.ports).await?;
        tracing::warn!(webhook = %of, reason = wanted.reason, "webhook disabled");
        table::publish(&self.ports, &[disabled(of, &wanted)]).await
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
        authors: vec![],
        triggered_id: None,
        git_commit_id: None,
        data,
    }
}
