//! One tick, as many pages of open executions as time allows. The sweep remembers where it stopped, so the next one goes on there.

use keelway_aws::Aws;
use keelway_engine::ports::PortError;
use keelway_engine::sequences::{Engine, Swept};
use keelway_lambda::aws;
use keelway_lambda::delivery::About;
use std::time::Duration;
use tokio::time::Instant;

/// How many open executions are looked at before the clock is.
const PAGE: usize = 100;
/// How long a page may take, with requests that are slow or repeated.
const PAGE_TIME: Duration = Duration::from_secs(3);

/// Sweeps until all was seen or the time is up.
///
/// # Errors
/// What the engine could not do. The next tick does it again.
pub async fn sweep(engine: &Engine<Aws>, until: Instant) -> Result<(), PortError> {
    let about = About { kind: "sweep", ..About::default() };
    aws::accounted(&about, outcome, pages(engine, until)).await.map(|_| ())
}

async fn pages(engine: &Engine<Aws>, until: Instant) -> Result<Swept, PortError> {
    let mut all = Swept::default();
    loop {
        let page = engine.sweep(PAGE).await?;
        all = Swept { seen: all.seen + page.seen, sent: all.sent + page.sent, finished: page.finished };
        if all.finished || Instant::now() + PAGE_TIME > until {
            return Ok(all);
        }
    }
}

fn outcome(swept: &Swept) -> String {
    let Swept { seen, sent, finished } = swept;
    format!("{seen} open executions seen, {sent} messages sent, {}", if *finished { "all seen" } else { "to be continued" })
}
