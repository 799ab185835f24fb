//! The rule of the bus that feeds the queue of webhooks. It takes every event, and each costs money, so it is off while there is no
//! subscription: whoever writes one enables the rule before the answer, and the sweep disables it later.
//!
//! No order of two writers to two services excludes a race. The order here has the last word with the enabled rule: a subscription
//! is written before the rule is looked at, and the sweep looks for subscriptions again after it has disabled the rule. Whoever
//! stops in between leaves it to the next sweep.

use super::{Sender, Webhooks, subscriptions};
use crate::checks::Rules;
use crate::ports::{PortError, Ports};
use keelway_domain::time::Span;

/// The end of the rule's name.
pub const RULE: &str = "webhooks";
/// So long there must have been no change of subscriptions before the rule is disabled: two sweeps see none, and whoever deletes a
/// subscription to apply another one loses nothing.
pub const QUIET: Span = Span::minutes(10);

/// Enables the rule, after a subscription was written and before that is answered.
///
/// # Errors
/// The rule cannot be read or enabled. Applying the same again completes it.
pub async fn feed(rules: &impl Rules) -> Result<(), PortError> {
    match rules.enabled(RULE, true).await? {
        Some(false) => rules.switch(RULE, true).await,
        // It feeds the queue, or there is none, which the next deployment of the stack mends.
        Some(true) | None => Ok(()),
    }
}

impl<P: Ports, S: Sender> Webhooks<P, S> {
    /// Enables the rule if there is a subscription, and disables it if there has been none for a while. How it was switched, if it
    /// was.
    ///
    /// # Errors
    /// A port fails. The next sweep does the same.
    pub async fn tend(&self, rules: &impl Rules) -> Result<Option<bool>, PortError> {
        if !self.limits.delivers {
            return Ok(None);
        }
        let Some(on) = rules.enabled(RULE, true).await? else { return Ok(None) };
        if subscriptions::is_any(&self.ports).await? {
            if on {
                return Ok(None);
            }
            tracing::warn!("the rule for webhooks was disabled, and there are subscriptions: it is enabled");
            return rules.switch(RULE, true).await.map(|()| Some(true));
        }
        if !on || !self.is_quiet().await? {
            return Ok(None);
        }
        rules.switch(RULE, false).await?;
        // Whoever wrote a subscription since may have seen the rule enabled, and has answered.
        if subscriptions::is_any(&self.ports).await? {
            return rules.switch(RULE, true).await.map(|()| None);
        }
        Ok(Some(false))
    }

    async fn is_quiet(&self) -> Result<bool, PortError> {
        let last = subscriptions::last_change(&self.ports).await?;
        Ok(last.is_none_or(|last| self.ports.now() - last >= QUIET))
    }
}
