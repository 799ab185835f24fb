//! `status`: what needs somebody, what is stuck and what waits, in all engines.

use crate::api::Api;
use crate::args::Status;
use crate::error::CliError;
use crate::live::Live;
use crate::output::{say, say_data};
use crate::pages::{self, List};
use crate::terminal::look;
use crate::waiting;
use crate::words::length;
use keelway_domain::names::ProjectName;
use keelway_domain::time::{Span, Timestamp};
use keelway_wire::http::WaitItem;
use serde_json::json;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// More than this is not shown.
const MOST: usize = 1000;
/// Between two looks: as short as this after news, growing to as long as that without.
const BUSY: Duration = Duration::from_secs(2);
const IDLE: Duration = Duration::from_secs(15);
/// Between two drawings of the same news: the times go on.
const TICK: Duration = Duration::from_millis(500);
/// An API that does not answer for this long is given up.
const SILENT: Duration = Duration::from_secs(60);

/// Shows what waits, once or until nothing does.
///
/// # Errors
/// As the API answers; the time is over.
pub async fn status(api: &Api, what: &Status) -> Result<ExitCode, CliError> {
    let project = what.projects.only().map_or("", ProjectName::as_str);
    let list = if what.watch { follow(api, project, what).await? } else { read(api, project).await? };
    if what.output.format.is_data() {
        say_data(&json!({"items": list.items, "cut": list.extra.cut, "now": list.extra.now}), what.output.format)?;
    } else if !what.watch {
        lines(&list, Timestamp::parse(&list.extra.now), project).iter().try_for_each(|line| say(line))?;
    }
    if let Some(note) = waiting::cut(&list.extra.cut) {
        eprintln!("{note}");
    }
    if list.more {
        eprintln!("there is more: only the first {MOST} are shown");
    }
    Ok(ExitCode::from(u8::from(what.exit_code && !list.items.is_empty())))
}

async fn read(api: &Api, project: &str) -> Result<List<WaitItem>, CliError> {
    Ok(pages::read(api, &["wait"], &[("project", project)], MOST).await?)
}

fn lines(list: &List<WaitItem>, now: Option<Timestamp>, project: &str) -> Vec<String> {
    if list.items.is_empty() {
        return vec![waiting::nothing(Some(project).filter(|project| !project.is_empty()))];
    }
    waiting::draw(&list.items, now, &look())
}

/// Draws it again when it changes, until nothing waits.
async fn follow(api: &Api, project: &str, what: &Status) -> Result<List<WaitItem>, CliError> {
    let mut live = Live::default();
    let watched = watched(api, project, what, &mut live);
    let ended = match what.timeout {
        None => watched.await,
        Some(limit) => tokio::time::timeout(limit, watched).await.unwrap_or_else(|_| {
            let limit = length(limit);
            Err(CliError::Failed(format!("something still waits after {limit}: keelway status shows it")))
        }),
    };
    live.leave();
    ended
}

async fn watched(api: &Api, project: &str, what: &Status, live: &mut Live) -> Result<List<WaitItem>, CliError> {
    let (mut printed, mut answered, mut pause) = (None, Instant::now(), BUSY);
    loop {
        match read(api, project).await {
            Ok(list) => {
                answered = Instant::now();
                let look = look();
                let still = waiting::still(&list.items, &look);
                let is_news = printed.as_ref() != Some(&still);
                pause = if is_news { BUSY } else { (pause * 3 / 2).min(IDLE) };
                let ends = list.items.is_empty() && !what.follow;
                if !what.output.format.is_data() {
                    if !look.live && is_news {
                        lines(&list, Timestamp::parse(&list.extra.now), project).iter().try_for_each(|line| say(line))?;
                    }
                    let until = if ends { Instant::now() } else { Instant::now() + pause };
                    draw(live, &list, project, until).await?;
                } else if !ends {
                    tokio::time::sleep(pause).await;
                }
                printed = Some(still);
                if ends {
                    return Ok(list);
                }
            }
            Err(CliError::Api(error)) if error.is_transient() && answered.elapsed() < SILENT => {
                live.warn(&format!("warning: {error}; trying again"))?;
                tokio::time::sleep(BUSY).await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Draws it in its place until a time, where lines can be drawn again.
async fn draw(live: &mut Live, list: &List<WaitItem>, project: &str, until: Instant) -> Result<(), CliError> {
    let (clock, read) = (Timestamp::parse(&list.extra.now), Instant::now());
    loop {
        let look = look();
        if look.live {
            let now = clock.map(|clock| clock + Span(i64::try_from(read.elapsed().as_millis()).unwrap_or(0)));
            live.draw(lines(list, now, project), &look)?;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        tokio::time::sleep(left.min(TICK)).await;
    }
}
