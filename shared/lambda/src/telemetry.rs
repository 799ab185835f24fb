//! Logs: one JSON object in each line, correlated by `project`, `context` and `execution` of the span.
//!
//! Never logged, at any level: data and payloads of events, bodies of messages and requests, tokens and their hashes, headers,
//! credentials. Other crates log only at `warn` and above, whatever `KEELWAY_LOG` says, because the AWS clients print whole
//! requests below that. Each message is one line with the fields `message.kind`, `context`, `outcome`, `duration_ms`,
//! `aws.requests`, `dynamodb.write_units`, `dynamodb.read_units`, `events.published`, `requests` and `sent`: the ids of the
//! messages that it has caused, each with the seconds until its delivery.

use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The longest text of a panic in the log, in characters.
const PANIC_CHARS: usize = 300;

/// Sends logs and panics to standard output from now on. A second call has no effect.
pub fn init(level: Level) {
    let ours = Targets::new().with_default(LevelFilter::WARN).with_target("keelway", level);
    let lines = tracing_subscriber::fmt::layer().json().flatten_event(true).with_current_span(true).with_span_list(false);
    if tracing_subscriber::registry().with(lines).with(ours).try_init().is_ok() {
        std::panic::set_hook(Box::new(|panic| {
            let at = panic.location().map(ToString::to_string).unwrap_or_default();
            let text: String = panic.payload_as_str().unwrap_or("no text").chars().take(PANIC_CHARS).collect();
            tracing::error!(panic.at = at, panic.text = text, "a panic");
        }));
    }
}
