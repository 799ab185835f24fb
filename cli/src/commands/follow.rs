//! `get --watch`: the same again when it changes, until somebody stops it.

use super::get::get;
use crate::api::Api;
use crate::args::GetAny;
use crate::error::CliError;
use crate::live::Live;
use crate::output::{Kept, keep, kept, say};
use crate::terminal::look;
use crate::words::length;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

/// Between two looks: as short as this after news, growing to as long as that without.
const BUSY: Duration = Duration::from_secs(2);
const IDLE: Duration = Duration::from_secs(15);
/// An API that does not answer for this long is given up.
const SILENT: Duration = Duration::from_secs(60);

/// Shows it until the time is over.
///
/// # Errors
/// As the API answers; the time is over; a format that cannot be shown again.
pub async fn follow(api: &Api, what: &GetAny) -> Result<ExitCode, CliError> {
    let mut live = Live::default();
    let watched = watched(api, what, &mut live);
    let ended = match what.timeout {
        None => watched.await,
        Some(limit) => timeout(limit, watched).await.unwrap_or_else(|_| {
            let limit = length(limit);
            Err(CliError::Failed(format!("{limit} are over: without --timeout, it is watched until you stop it")))
        }),
    };
    // What was being read is shown nowhere any more.
    kept();
    live.leave();
    ended
}

async fn watched(api: &Api, what: &GetAny, live: &mut Live) -> Result<ExitCode, CliError> {
    let (mut shown, mut answered, mut pause): (Vec<String>, _, _) = (vec![], Instant::now(), BUSY);
    loop {
        keep();
        let read = get(api, &what.what).await;
        let now = kept();
        match read {
            Ok(()) => {
                answered = Instant::now();
                let still: Vec<String> = now.lines.iter().map(|line| without_ages(line)).collect();
                pause = if still == shown { (pause * 3 / 2).min(IDLE) } else { BUSY };
                draw(live, now, (&shown, &still))?;
                shown = still;
            }
            Err(CliError::Api(error)) if error.is_transient() && answered.elapsed() < SILENT => {
                live.warn(&format!("warning: {error}; trying again"))?;
                pause = BUSY;
            }
            Err(error) => return Err(error),
        }
        sleep(pause).await;
    }
}

/// Draws it in its place; where lines cannot be drawn again, prints those that are new.
fn draw(live: &mut Live, Kept { mut lines, notes }: Kept, (shown, still): (&[String], &[String])) -> Result<(), CliError> {
    let look = look();
    if look.live {
        lines.extend(notes);
        return live.draw(lines, &look);
    }
    let news = lines.iter().zip(still).filter(|(_, still)| !shown.contains(still));
    news.map(|(line, _)| line).try_for_each(|line| say(line))
}

/// A line without the times that go on, and without the blanks that make columns: it changes only when something happens.
fn without_ages(line: &str) -> String {
    let is_age = |word: &str| {
        let word = word.trim_end_matches([',', ';']);
        let ends = word.ends_with(['s', 'm', 'h', 'd']);
        ends && word.starts_with(|c: char| c.is_ascii_digit()) && word.chars().all(|c| c.is_ascii_digit() || ".smhd".contains(c))
    };
    line.split_whitespace().filter(|word| !is_age(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_goes_on_is_no_change() {
        assert_eq!(without_ages("shop  dev  1.4.0  3m12s  ▸ test, 0.4s; 5s"), "shop dev 1.4.0 ▸ test,");
        assert_ne!(without_ages("shop  1.4.0"), without_ages("shop  1.4.1"));
    }
}
