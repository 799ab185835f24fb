//! The event bus on EventBridge. Its limits are checked here, because EventBridge refuses a whole request if one entry breaks them.

use crate::breathe;
use crate::error::{port_error, refused};
use crate::{Aws, meter};
use aws_sdk_eventbridge::operation::describe_rule::DescribeRuleError;
use aws_sdk_eventbridge::types::{PutEventsRequestEntry, RuleState};
use keelway_engine::checks::Rules;
use keelway_engine::ports::{Bus, BusEntry, PortError};

const PUT_EVENTS: &str = "events.PutEvents";
const DESCRIBE_RULE: &str = "events.DescribeRule";
const ENABLE_RULE: &str = "events.EnableRule";
const DISABLE_RULE: &str = "events.DisableRule";
/// The most entries in one request.
const MAX_ENTRIES: usize = 10;
/// The largest size of one request's entries together, and so of one entry, in bytes.
const MAX_BYTES: usize = 256 * 1024;
/// The longest detail type, in characters.
const MAX_DETAIL_TYPE: usize = 128;

impl Bus for Aws {
    async fn publish(&self, entries: &[BusEntry]) -> Result<Vec<Option<String>>, PortError> {
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        check(entries).map_err(|reason| refused(PUT_EVENTS, reason))?;
        let bus = &self.inner.names.bus;
        let put = entries.iter().map(|entry| {
            PutEventsRequestEntry::builder()
                .event_bus_name(bus)
                .source(&entry.source)
                .detail_type(&entry.detail_type)
                .detail(&entry.detail)
                .build()
        });
        meter::request(PUT_EVENTS);
        let request = self.inner.eventbridge.put_events().set_entries(Some(put.collect()));
        let answer = request.send().await.map_err(|error| port_error(PUT_EVENTS, error))?;
        let outcomes: Vec<Option<String>> = answer
            .entries()
            .iter()
            .map(|entry| entry.error_code().map(|code| format!("{code}: {}", entry.error_message().unwrap_or("no message"))))
            .collect();
        // An answer that does not have an outcome for every entry is unusable.
        if outcomes.len() != entries.len() {
            let reason = format!("{} entries put, {} answered", entries.len(), outcomes.len());
            return Err(PortError::Retry { request: PUT_EVENTS, reason });
        }
        breathe(outcomes.iter().any(Option::is_some)).await;
        meter::published(outcomes.iter().filter(|outcome| outcome.is_none()).count());
        Ok(outcomes)
    }
}

impl Rules for Aws {
    async fn enabled(&self, name: &str, on_bus: bool) -> Result<Option<bool>, PortError> {
        // The bus has the stack's name, and each rule's name begins with it.
        let stack = &self.inner.names.bus;
        let request = self.inner.eventbridge.describe_rule().name(format!("{stack}-{name}"));
        meter::request(DESCRIBE_RULE);
        match request.set_event_bus_name(on_bus.then(|| stack.clone())).send().await {
            Ok(rule) => Ok(Some(rule.state() == Some(&RuleState::Enabled))),
            Err(error) if error.as_service_error().is_some_and(DescribeRuleError::is_resource_not_found_exception) => Ok(None),
            Err(error) => Err(port_error(DESCRIBE_RULE, error)),
        }
    }

    async fn switch(&self, name: &str, on: bool) -> Result<(), PortError> {
        let (stack, client) = (&self.inner.names.bus, &self.inner.eventbridge);
        let name = format!("{stack}-{name}");
        if on {
            meter::request(ENABLE_RULE);
            let request = client.enable_rule().name(name).event_bus_name(stack);
            request.send().await.map(drop).map_err(|error| port_error(ENABLE_RULE, error))
        } else {
            meter::request(DISABLE_RULE);
            let request = client.disable_rule().name(name).event_bus_name(stack);
            request.send().await.map(drop).map_err(|error| port_error(DISABLE_RULE, error))
        }
    }
}

fn check(entries: &[BusEntry]) -> Result<(), String> {
    if entries.len() > MAX_ENTRIES {
        return Err(format!("{} entries, at most {MAX_ENTRIES} go into one request", entries.len()));
    }
    let bytes: usize = entries.iter().map(BusEntry::size).sum();
    if bytes > MAX_BYTES {
        return Err(format!("{bytes} bytes, at most {MAX_BYTES} go into one request"));
    }
    for BusEntry { source, detail_type, .. } in entries {
        if source.is_empty() || source.starts_with("aws.") {
            return Err(format!("source {source:?} of a {detail_type:?}: it must not be empty or begin with \"aws.\""));
        }
        let characters = detail_type.chars().count();
        if characters == 0 || characters > MAX_DETAIL_TYPE {
            return Err(format!("detail type {detail_type:?} has {characters} characters, 1 to {MAX_DETAIL_TYPE} are allowed"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(source: &str, detail_type: &str, bytes: usize) -> BusEntry {
        BusEntry { source: source.into(), detail_type: detail_type.into(), detail: "x".repeat(bytes) }
    }

    #[test]
    fn what_the_bus_would_refuse() {
        assert_eq!(check(&[entry("me", "type", MAX_BYTES - 6)]), Ok(()));
        let refusals = [
            check(&[entry("me", "type", MAX_BYTES - 5)]),
            check(&vec![entry("me", "type", 1); 11]),
            check(&[entry("", "type", 1)]),
            check(&[entry("aws.ec2", "type", 1)]),
            check(&[entry("me", "", 1)]),
            check(&[entry("me", &"t".repeat(129), 1)]),
        ];
        assert!(refusals.iter().all(Result::is_err), "{refusals:?}");
    }
}
