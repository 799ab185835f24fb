//! The lines of a month's bill.

use super::counted::{IdleSweep, TASKS, Whole};
use super::template::Stack;
use crate::cost::{Used, number};
use crate::price::{assumed, gb_second};
use serde_json::Value;

const GB: f64 = 1e9;
const MILLION: f64 = 1e6;

/// One line.
pub struct Line {
    /// What is charged.
    pub name: String,
    /// How much of it.
    how_many: f64,
    unit: &'static str,
    /// Its price.
    pub dollars: f64,
}

impl Line {
    /// The amount with its unit.
    pub fn amount(&self) -> String {
        let digits = if self.how_many < 10.0 && self.how_many.fract() != 0.0 {
            format!("{:.3}", self.how_many)
        } else {
            grouped(self.how_many)
        };
        format!("{digits} {}", self.unit).trim_end().to_owned()
    }
}

/// A number in groups of three digits.
pub fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut out = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// What a month costs.
pub struct Month {
    /// The price file.
    pub prices: Value,
    /// The template.
    pub stack: Stack,
    /// A sweep while nothing happens.
    pub sweep: IdleSweep,
}

impl Month {
    fn assumed(&self, name: &str) -> f64 {
        assumed(&self.prices, name)
    }

    fn million(&self, name: &str) -> f64 {
        self.prices["perMillion"][name].as_f64().unwrap_or_default() / MILLION
    }

    fn monthly(&self, name: &str) -> f64 {
        self.prices["perMonth"][name].as_f64().unwrap_or_default()
    }

    /// The tasks of a month.
    pub fn tasks(&self, a_day: f64) -> f64 {
        a_day * self.assumed("hoursPerMonth") / 24.0
    }

    /// The lines with so many tasks a day, four in each sequence. The lines are the same for each number of tasks.
    pub fn lines(&self, whole: Option<&Whole>, tasks_a_day: f64) -> Vec<Line> {
        let Stack { mappings, sweeps, looks, alarm_metrics, dashboards, kept, .. } = &self.stack;
        let hours = self.assumed("hoursPerMonth");
        let one = whole.copied().unwrap_or_default();
        let sequences = self.tasks(tasks_a_day) / number(TASKS as u64);
        let Used { writes, reads, messages, outside, sends, .. } = one.used * sequences;
        let (on_bus, audits, calls) = (one.on_bus * sequences, one.audits * sequences, one.calls * sequences);
        let (sweeps, looks) = (sweeps * hours, looks * hours);
        let IdleSweep { used: swept, asks: asked, feeds } = self.sweep;
        // A message of the bus is sent by the rule, the function counts what it sends itself.
        let per_message = self.assumed("sqsRequestsPerMessage");
        let of_messages = outside * per_message + (messages - outside) * (per_message - 1.0) + sends;
        let receives = mappings * self.assumed("pollersPerMapping") * hours * 3600.0 / self.assumed("secondsPerEmptyReceive");
        let invocations = messages / self.assumed("messagesPerInvocation") + calls;
        let own = self.assumed("lambdaMillisecondsPerMessage");
        let of_sweep = (swept.requests + asked) * self.assumed("millisecondsPerRequestOfSweep");
        let milliseconds = invocations * own + sweeps * of_sweep + looks * own;
        let told = if feeds { on_bus } else { 0.0 };
        let log_lines = messages + 2.0 * calls + sweeps + looks + told;
        let runs = invocations + sweeps + looks + told;
        let logged = (log_lines * self.assumed("logBytesPerMessage") + runs * self.assumed("logBytesPerInvocation")) / GB;
        let stored = one.stored * tasks_a_day / number(TASKS as u64) * kept.1 / GB;
        // The sweep reads three metrics of a queue that has messages at that moment.
        let busy = (messages * own / 1000.0 / (hours * 3600.0)).min(1.0);
        let gb_seconds = |milliseconds: f64| milliseconds / 1000.0 * gb_second(&self.prices);
        let audited = self.million("dynamodbWriteUnits") + self.million("eventbridgeCustomEvents");
        let of_webhook = per_message * self.million("sqsRequests")
            + self.million("lambdaRequests")
            + gb_seconds(own)
            + self.assumed("webhookReadUnits") * self.million("dynamodbReadUnits");
        let read = reads + sweeps * swept.reads + looks * self.assumed("observerReadUnits");
        let line =
            |name: &str, how_many: f64, unit: &'static str, dollars: f64| Line { name: name.to_owned(), how_many, unit, dollars };
        let each = |name: &str, how_many: f64, price: &str| line(name, how_many, "", how_many * self.million(price));
        vec![
            each("events on the bus", on_bus - audits, "eventbridgeCustomEvents"),
            each("requests to SQS about messages", of_messages, "sqsRequests"),
            each(&format!("empty receives of {mappings} mappings"), receives, "sqsRequests"),
            each("looks of the sweep at queues", sweeps * asked, "sqsRequests"),
            each("invocations", invocations + sweeps + looks, "lambdaRequests"),
            line("their time", milliseconds / 1000.0, "s", gb_seconds(milliseconds)),
            each("write units", writes - audits + sweeps * swept.writes, "dynamodbWriteUnits"),
            each("read units", read, "dynamodbReadUnits"),
            line(
                "table, and its recovery",
                stored,
                "GB",
                stored * (self.monthly("dynamodbGb") + self.monthly("dynamodbRecoveryGb")),
            ),
            line("metrics of alarms", *alarm_metrics, "", alarm_metrics * self.monthly("alarmMetric")),
            each("metrics that the sweep reads", 3.0 * busy * sweeps, "metricsRead"),
            line("dashboards", *dashboards, "", dashboards * self.monthly("dashboard")),
            line(
                "logs",
                logged,
                "GB",
                logged
                    * (self.prices["logsIngestedGb"].as_f64().unwrap_or_default() + kept.0 * 24.0 / hours * self.monthly("logsGb")),
            ),
            each("starts by schedules", sweeps + looks, "scheduledStarts"),
            line("audit", audits, "", audits * audited),
            line("events for webhooks, without a subscription", told, "", told * of_webhook),
        ]
    }
}
