//! Webhook subscriptions.

use super::routes::{Listed, Listing, Shown, Within, kind_routes};
use super::{Kept, Kind, Said};
use crate::Api;
use crate::fence::pages::Wanted;
use crate::fence::problem::Answer;
use axum::Json;
use keelway_domain::address::Address;
use keelway_domain::border::Counted;
use keelway_domain::webhooks::Subscription;
use keelway_engine::webhooks::{Applied, MOST};
use keelway_wire::http::webhooks::{WebhookDisabled, WebhookPage, WebhookState};
use keelway_wire::manifest::WebhookManifest;

impl Kind for WebhookManifest {
    const KIND: &'static str = "WebhookSubscription";
    const NOUN: &'static str = "webhook subscription";
    const COUNTED: Option<Counted> = Some(Counted::Webhooks);
    const MOST: usize = MOST;
    type Spec = Subscription;

    fn said(&self) -> Said<'_, Subscription> {
        Said { namespace: self.namespace.as_str(), name: &self.name, spec: Some(&self.subscription), source: &self.source }
    }

    fn spec(&mut self) -> Option<&mut Subscription> {
        Some(&mut self.subscription)
    }

    fn kept(api: &Api) -> impl Kept<Spec = Subscription> {
        api.webhooks().declared()
    }

    /// It counts for every event after the answer.
    async fn applied(api: &Api) -> Answer<()> {
        Ok(api.feed_webhooks().await?)
    }

    /// Who deletes one that is gone has nobody told.
    async fn delete(api: &Api, at: &Address) -> Answer<bool> {
        Ok(api.webhooks().subscription(at).await?.is_some() && api.webhooks().remove(at).await?)
    }

    /// One that takes events of other projects concerns all of them.
    fn project(&self) -> Option<&str> {
        Some(self.namespace.as_str()).filter(|namespace| self.subscription.is_within(namespace))
    }
}

/// A subscription, and whether it is disabled.
pub fn shown(of: &Address, applied: &Applied) -> WebhookState {
    WebhookState {
        namespace: of.namespace.clone(),
        name: of.name.clone(),
        spec: serde_json::to_value(&applied.value).unwrap_or_default(),
        applied_at: applied.at.rfc3339(),
        version: applied.version,
        disabled: applied.off.as_ref().map(|off| WebhookDisabled {
            reason: off.reason.clone(),
            message: off.message(),
            at: off.at.rfc3339(),
            delivery: off.by.clone(),
        }),
        failing_since: applied.failing.map(|since| since.rfc3339()),
        waiting: None,
    }
}

impl Shown for WebhookManifest {
    type One = Json<WebhookState>;

    async fn one(api: &Api, at: &Address) -> Answer<Option<Self::One>> {
        let Some(applied) = api.webhooks().subscription(at).await? else { return Ok(None) };
        let waiting = api.webhooks().waiting(at).await?;
        Ok(Some(Json(WebhookState { waiting: Some(waiting as u64), ..shown(at, &applied) })))
    }
}

impl Listed for WebhookManifest {
    type Page = WebhookPage;

    async fn list(api: &Api, listing: &Listing) -> Answer<WebhookPage> {
        // There are few subscriptions, so all are read.
        let all = api.webhooks().subscriptions().await?;
        let after = listing.after.as_deref().unwrap_or_default();
        let is_wanted = |of: &Address| match &listing.within {
            Within::One(namespace) => *namespace.as_str() == *of.namespace,
            Within::Seen(seen) => seen.as_ref().is_none_or(|seen| seen.iter().any(|one| *one.as_str() == *of.namespace)),
        };
        let mut rest = all.readable.iter().filter(|(of, _)| is_wanted(of) && *of.to_string() > *after);
        let page: Vec<_> = rest.by_ref().take(listing.limit as usize).map(|(of, applied)| shown(of, applied)).collect();
        let last = page.last().filter(|_| rest.next().is_some());
        let next = last.map(|last| format!("{}/{}", last.namespace, last.name));
        Ok(WebhookPage::new(page, listing.limit, next))
    }
}

kind_routes! {
    WebhookManifest, "webhooks";
    /// Lists the webhook subscriptions.
    list Anywhere<Wanted> "/v1/webhookSubscriptions" -> WebhookPage;
    /// A webhook subscription, and why it is disabled if it is.
    one "/v1/webhookSubscriptions/{namespace}/{name}" -> WebhookState;
    /// The manifest as it was applied.
    manifest "/v1/webhookSubscriptions/{namespace}/{name}/manifest";
    /// Deletes a webhook subscription.
    delete "/v1/webhookSubscriptions/{namespace}/{name}";
}
