//! `pipeline status --watch`: drawn again in its place on a terminal, printed when it changes in a pipe.

use super::{read, status};
use crate::address::Address;
use crate::api::Api;
use crate::args::{Following, Format};
use crate::board;
use crate::delivery::Line;
use crate::error::CliError;
use crate::live::Live;
use crate::output::say;
use crate::pipeline::{all_done, is_stuck, line, waits_for_approval};
use crate::terminal::look;
use crate::words::length;
use keelway_domain::time::{Span, Timestamp};
use keelway_wire::http::promotions::PipelineState;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Between two looks: as short as this after news, growing to as long as that without.
const BUSY: Duration = Duration::from_millis(300);
const IDLE: Duration = Duration::from_secs(2);
/// Between two drawings of the same news: the times go on.
const TICK: Duration = Duration::from_millis(250);
/// What is over must stay over for this long: another revision may be on its way.
const SETTLED: Duration = Duration::from_millis(1000);
/// An API that does not answer for this long is given up.
const SILENT: Duration = Duration::from_secs(60);

/// Follows a pipeline to its end: the last state.
///
/// # Errors
/// An unknown pipeline, the API, a time limit.
pub async fn follow(api: &Api, of: &Address, how: Following, format: Format) -> Result<PipelineState, CliError> {
    let mut follower = Follower { api, of, how, format, last: None, live: Live::default(), printed: None, told: BTreeSet::new() };
    let done = match how.timeout {
        None => follower.until_done().await,
        Some(limit) => tokio::time::timeout(limit, follower.until_done()).await.unwrap_or_else(|_| {
            let limit = length(limit);
            Err(CliError::Failed(format!(
                "not over after {limit}: keelway pipeline explain {of} says what it waits for; or give a longer --timeout"
            )))
        }),
    };
    follower.end()?;
    done?;
    follower.last.map(|(state, ..)| state).ok_or_else(|| CliError::Failed(format!("nothing was read of {of}: try again")))
}

struct Follower<'a> {
    api: &'a Api,
    of: &'a Address,
    how: Following,
    format: Format,
    /// The state, the server's clock then, and when that was.
    last: Option<(PipelineState, Option<Timestamp>, Instant)>,
    live: Live,
    /// As it was printed last where lines are not drawn again, without times that go on.
    printed: Option<Line>,
    /// The commands that were told there.
    told: BTreeSet<String>,
}

impl Follower<'_> {
    async fn until_done(&mut self) -> Result<(), CliError> {
        let (mut answered, mut quiet_since, mut pause) = (Instant::now(), Instant::now(), BUSY);
        loop {
            match read(self.api, self.of).await {
                Ok((state, now)) => {
                    answered = Instant::now();
                    if self.take(state, now) {
                        (pause, quiet_since) = (BUSY, answered);
                    } else {
                        pause = (pause * 3 / 2).min(IDLE);
                    }
                    self.show()?;
                }
                Err(CliError::Api(error)) if error.is_transient() && answered.elapsed() < SILENT => {
                    self.live.warn(&format!("warning: {error}; trying again"))?;
                    pause = IDLE;
                }
                Err(error) => return Err(error),
            }
            if let Some((state, ..)) = &self.last {
                if self.how.for_approval && waits_for_approval(state) {
                    return Ok(());
                }
                if (all_done(state) || is_stuck(state)) && !self.how.follow {
                    if quiet_since.elapsed() >= SETTLED {
                        return Ok(());
                    }
                    pause = BUSY;
                }
            }
            self.pause(pause).await?;
        }
    }

    /// Keeps a state; whether it is another one.
    fn take(&mut self, mut state: PipelineState, now: Option<Timestamp>) -> bool {
        let clock = std::mem::take(&mut state.now);
        let mut before = self.last.as_ref().map(|(state, ..)| state.clone()).unwrap_or_default();
        before.now.clear();
        let changed = before != state;
        state.now = clock;
        self.last = Some((state, now, Instant::now()));
        changed
    }

    /// Draws it again, or prints its line if that has changed.
    fn show(&mut self) -> Result<(), CliError> {
        let look = look();
        let Some((state, clock, read)) = self.last.as_ref().filter(|_| !self.format.is_data()) else { return Ok(()) };
        let now = clock.map(|clock| clock + Span(i64::try_from(read.elapsed().as_millis()).unwrap_or(0)));
        if look.live {
            return self.live.draw(status::lines(state, now, &look), &look);
        }
        let line = line(state, now);
        let still = line.still();
        if self.printed.as_ref() != Some(&still) {
            board::rows(std::slice::from_ref(&still), &look).iter().try_for_each(|row| say(row))?;
            self.printed = Some(still);
        }
        for hint in &line.hints {
            if self.told.insert(hint.command.clone()) {
                board::hints(std::slice::from_ref(hint), &look).iter().try_for_each(|line| say(line))?;
            }
        }
        Ok(())
    }

    /// The last word.
    fn end(&mut self) -> Result<(), CliError> {
        self.live.leave();
        match &self.last {
            Some((state, now, _)) if self.format != Format::Table => status::show(state, *now, self.format),
            _ => Ok(()),
        }
    }

    /// Waits; on a terminal, the times go on.
    async fn pause(&mut self, pause: Duration) -> Result<(), CliError> {
        let began = Instant::now();
        while let Some(left) = pause.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) {
            tokio::time::sleep(left.min(TICK)).await;
            if look().live {
                self.show()?;
            }
        }
        Ok(())
    }
}
