//! Metrics in CloudWatch's embedded metric format: log lines that CloudWatch also reads as values, in the namespace `Keelway` with
//! the dimensions `Stack` and `Function`. Without activity there are no metrics, and no cost.
//!
//! | Metric | Unit | By | Means |
//! |---|---|---|---|
//! | `Messages` | count | functions on queues | messages handled, or tried |
//! | `Failed` | count | functions on queues | of these, messages that are delivered again because something failed |
//! | `Contended` | count | functions on queues | of these, messages that are delivered again because others wrote at the same time |
//! | `MessageAge` | milliseconds | functions on queues | from when a message was sent until it was handled or tried, the delay that was asked for included |
//!
//! `Trouble` has the dimension `Stack` alone, so that one alarm looks at all functions. A value is a line of its own that says what
//! the trouble is: `trouble` is its [`Kind`](keelway_engine::trouble::Kind), `engine` whose queue and function it is about, and
//! `much` how much of it. It is reported only when there is some.

use crate::batch::{NotDone, Record};
use keelway_domain::time::Timestamp;
use keelway_engine::trouble::Trouble;
use metrics::{Unit, counter, describe_counter, describe_histogram, histogram};
use metrics_cloudwatch_embedded::{Builder, Collector};
use serde_json::{Value, json};
use std::io::Write;
use std::sync::OnceLock;

const NAMESPACE: &str = "Keelway";

struct Reporting {
    collector: &'static Collector,
    stack: String,
    /// Whether the functions on queues report metrics.
    whole: bool,
}

static REPORTING: OnceLock<Reporting> = OnceLock::new();

/// Starts to report metrics. Without `whole`, only those that alarms need. A second call has no effect.
pub fn init(stack: &str, function: &str, whole: bool) {
    let dimensions = Builder::new().cloudwatch_namespace(NAMESPACE).with_dimension("Stack", stack.to_owned());
    // It fails if there is a recorder already, after an earlier call.
    if let Ok(collector) = dimensions.with_dimension("Function", function.to_owned()).init() {
        for name in ["Messages", "Failed", "Contended"] {
            describe_counter!(name, Unit::Count, "");
        }
        describe_histogram!("MessageAge", Unit::Milliseconds, "");
        drop(REPORTING.set(Reporting { collector, stack: stack.to_owned(), whole }));
    }
}

/// Reports a batch of messages that was handled at `now`.
pub fn batch(sent: &[Timestamp], not_done: &[(Record, NotDone)], now: Timestamp) {
    if !REPORTING.get().is_some_and(|reporting| reporting.whole) {
        return;
    }
    let contended = not_done.iter().filter(|(_, why)| matches!(why, NotDone::Contended(_))).count();
    counter!("Messages").increment(sent.len() as u64);
    counter!("Contended").increment(contended as u64);
    counter!("Failed").increment((not_done.len() - contended) as u64);
    for sent in sent {
        histogram!("MessageAge").record((now - *sent).0.max(0) as f64);
    }
    flush(std::io::stdout());
}

/// Reports trouble that was seen at `now`.
pub fn trouble(seen: &[Trouble], now: Timestamp) {
    let Some(Reporting { stack, .. }) = REPORTING.get() else { return };
    let mut out = std::io::stdout();
    for trouble in seen {
        if let Err(error) = writeln!(out, "{}", line(stack, trouble, now)) {
            tracing::warn!(%error, kind = trouble.kind.as_str(), engine = trouble.engine, "trouble could not be reported");
        }
    }
}

fn line(stack: &str, trouble: &Trouble, now: Timestamp) -> Value {
    let metric = json!({"Namespace": NAMESPACE, "Dimensions": [["Stack"]], "Metrics": [{"Name": "Trouble", "Unit": "Count"}]});
    json!({
        "_aws": {"Timestamp": now.0, "CloudWatchMetrics": [metric]},
        "Stack": stack, "Trouble": 1, "trouble": trouble.kind.as_str(), "engine": trouble.engine, "much": trouble.much,
    })
}

/// Writes a line with the values since the last one, if there are any.
fn flush(to: impl Write) {
    if let Some(error) = REPORTING.get().and_then(|reporting| reporting.collector.flush(to).err()) {
        tracing::warn!(%error, "metrics could not be written");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keelway_engine::trouble::Kind;

    fn record(id: &str) -> Record {
        let mut message = aws_lambda_events::event::sqs::SqsMessage::default();
        message.message_id = Some(id.into());
        Record::from(message)
    }

    /// A single test, because a process has only one recorder.
    #[test]
    fn a_line_for_what_happened_and_none_for_nothing() {
        init("shop-keelway", "shop-keelway-sequences", true);
        let written = || {
            let mut line = Vec::new();
            flush(&mut line);
            String::from_utf8(line).unwrap()
        };
        counter!("Messages").increment(3);
        counter!("Failed").increment(0);
        histogram!("MessageAge").record(1500.0);
        let line: Value = serde_json::from_str(&written()).unwrap();
        assert_eq!((&line["Messages"], &line["MessageAge"], line.get("Failed")), (&json!(3), &json!([1500.0]), None));
        assert_eq!((&line["Stack"], &line["Function"]), (&json!("shop-keelway"), &json!("shop-keelway-sequences")));
        let told = &line["_aws"]["CloudWatchMetrics"][0];
        assert_eq!((&told["Namespace"], &told["Dimensions"]), (&json!("Keelway"), &json!([["Stack", "Function"]])));
        assert!(told["Metrics"].as_array().unwrap().contains(&json!({"Name": "MessageAge", "Unit": "Milliseconds"})), "{told}");
        assert_eq!(written(), "");

        let not_done = [(record("a"), NotDone::Contended("a".into())), (record("b"), NotDone::Panicked)];
        batch(&[Timestamp(0), Timestamp(5), Timestamp(9)], &not_done, Timestamp(9));
        assert_eq!(written(), "", "a batch writes its line itself");
    }

    #[test]
    fn a_line_says_what_the_trouble_is() {
        let trouble = Trouble { kind: Kind::MessagesWait, engine: "deployers".into(), much: 421.0 };
        let metric = json!({"Namespace": "Keelway", "Dimensions": [["Stack"]], "Metrics": [{"Name": "Trouble", "Unit": "Count"}]});
        let expected = json!({
            "_aws": {"Timestamp": 1_795_000_000_000i64, "CloudWatchMetrics": [metric]}, "Stack": "shop-keelway", "Trouble": 1,
            "trouble": "messages-wait", "engine": "deployers", "much": 421.0,
        });
        assert_eq!(line("shop-keelway", &trouble, Timestamp(1_795_000_000_000)), expected);
    }
}
