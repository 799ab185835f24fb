//! `watch`: deliveries from the API, one line each, until they are over: drawn again in their place on a terminal, printed when
//! they change in a pipe. With `--log`, every event as it happens.

use super::find;
use crate::api::Api;
use crate::api_error::ApiError;
use crate::args::{Format, Watching};
use crate::board;
use crate::delivery::{self, Line, aftermath, all_passed};
use crate::error::CliError;
use crate::live::Live;
use crate::output::{note, say, say_data};
use crate::pages::{self, following};
use crate::terminal::look;
use crate::timeline::{self, Entry};
use crate::words::{length, short_ids};
use keelway_domain::names::{Context, ProjectName};
use keelway_domain::time::{Span, Timestamp};
use keelway_wire::http::{EventPage, ExecutionState, SequencePage, SequenceState};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::{Duration, Instant};

/// Between two looks: as short as this after news, growing to as long as that without.
const BUSY: Duration = Duration::from_millis(300);
const IDLE: Duration = Duration::from_secs(2);
/// Between two drawings of the same news: the times go on.
const TICK: Duration = Duration::from_millis(250);
/// A context nothing is known of for this long does not exist, unless it is sure to come.
const UNKNOWN: Duration = Duration::from_secs(15);
/// What is over must stay over for this long: a further trigger of the context may be on its way.
const SETTLED: Duration = Duration::from_millis(1000);
/// An API that does not answer for this long is given up.
const SILENT: Duration = Duration::from_secs(60);

/// No more deliveries of a project are watched at once: so many states come with one request.
const MOST: usize = 100;

/// The exit code of what was ended by Ctrl-C.
const INTERRUPTED: u8 = 130;

/// When to stop.
#[derive(Clone, Copy)]
pub struct How {
    /// Not when everything is over.
    pub follow: bool,
    /// The contexts are new and sure to come: the API has just taken their triggers.
    pub sure: bool,
    /// The flags.
    pub watching: Watching,
    /// What is printed at the end.
    pub format: Format,
}

impl How {
    /// Whether a context nothing is known of by now does not exist.
    fn doubts(self, elapsed: Duration) -> bool {
        !self.sure && elapsed >= UNKNOWN
    }
}

/// Shows the deliveries until everything is over; without contexts, those that go on in the project.
///
/// # Errors
/// An unknown context, the API, a time limit; with `--exit-code` a result that is not pass or warning, or a stage not reached.
pub async fn watch(api: &Api, project: Option<&ProjectName>, contexts: &[Context], how: How) -> Result<(), CliError> {
    let mut watcher = Watcher::new(api, how);
    watcher.whole = project.filter(|_| contexts.is_empty()).cloned();
    let places = match how.sure {
        true => contexts.iter().map(|given| find::as_given(project, given)).collect(),
        false => find::places(api, project, contexts).await?,
    };
    places.into_iter().for_each(|place| watcher.add(place));
    let watched = async {
        match how.watching.timeout {
            None => Ok(watcher.until_done(how).await),
            Some(limit) => tokio::time::timeout(limit, watcher.until_done(how)).await.map_err(|_| limit),
        }
    };
    let ended = tokio::select! {
        ended = watched => Some(ended),
        Ok(()) = tokio::signal::ctrl_c() => None,
    };
    let Some(ended) = ended else {
        watcher.live.leave();
        // Whoever stops watching stops nothing else.
        eprintln!("it goes on: {}", watcher.again());
        return Err(CliError::Said(INTERRUPTED));
    };
    let done = match ended {
        Ok(done) => done,
        Err(limit) => {
            let (limit, again) = (length(limit), watcher.again());
            Err(CliError::Failed(format!("not over after {limit}: look again with {again}, or give a longer --timeout")))
        }
    };
    watcher.end()?;
    done?;
    if let Some(project) = watcher.whole.as_ref().filter(|_| watcher.all.is_empty()) {
        find::mistyped(api, Some(project.as_str())).await?;
        note(&format!("nothing goes on in project {project}: keelway get sequences -p {project} lists what there was"));
    }
    let states = watcher.states();
    let fine = all_passed(&states) || how.watching.for_approval && watcher.waits() && none_failed(&states);
    match how.watching.exit_code && !fine {
        true => Err(CliError::Said(1)),
        false => Ok(()),
    }
}

/// Whether nothing has failed so far, and every stage can still be reached: to wait for approval is what was asked for.
fn none_failed(states: &[SequenceState]) -> bool {
    let failed = |state: &SequenceState| {
        let ended = state.executions.iter().filter_map(|execution| execution.result.as_deref());
        !state.not_reached.is_empty() || ended.into_iter().any(|result| !matches!(result, "pass" | "warning"))
    };
    !states.iter().any(failed)
}

/// One context and how far it has been read.
struct Watched {
    context: Context,
    project: Option<String>,
    /// The page read last: where it begins. Earlier pages are full and do not change.
    page: String,
    /// Source, id and verdict: an id that came again with other content is told, too.
    seen: HashSet<[String; 3]>,
    state: Option<SequenceState>,
    /// Its line as it was printed last, without times that go on.
    printed: Option<Line>,
}

struct Watcher<'a> {
    api: &'a Api,
    how: How,
    /// The project whose deliveries are watched, if none were named.
    whole: Option<ProjectName>,
    all: Vec<Watched>,
    /// What offsets in the log count from.
    start: Option<Timestamp>,
    /// The server's clock when it answered, and how long was waited since.
    clock: Option<Timestamp>,
    waited: Duration,
    live: Live,
    /// The commands that were told where lines are not drawn again.
    told: BTreeSet<String>,
}

impl<'a> Watcher<'a> {
    fn new(api: &'a Api, how: How) -> Self {
        Self {
            api,
            how,
            whole: None,
            all: vec![],
            start: None,
            clock: None,
            waited: Duration::ZERO,
            live: Live::default(),
            told: BTreeSet::new(),
        }
    }

    fn add(&mut self, place: find::Place) {
        if self.all.iter().all(|known| known.context != place.context) {
            let find::Place { project, context } = place;
            self.all.push(Watched { context, project, page: String::new(), seen: HashSet::new(), state: None, printed: None });
        }
    }

    fn states(&self) -> Vec<SequenceState> {
        self.all.iter().filter_map(|watched| watched.state.clone()).collect()
    }

    fn now(&self) -> Option<Timestamp> {
        Some(self.clock? + Span(i64::try_from(self.waited.as_millis()).unwrap_or(0)))
    }

    fn ids(&self) -> Vec<String> {
        short_ids(&self.all.iter().map(|watched| watched.context.as_str()).collect::<Vec<_>>())
    }

    /// The command that watches the same.
    fn again(&self) -> String {
        match &self.whole {
            Some(project) => format!("keelway watch --project {project}"),
            None => format!("keelway watch {}", self.ids().join(" ")),
        }
    }

    /// Adds what goes on in the project: once, and with `--follow` whenever there is more.
    async fn join(&mut self) -> Result<(), CliError> {
        let Some(project) = self.whole.clone().filter(|_| self.how.follow || self.all.is_empty()) else { return Ok(()) };
        let query = [("project", project.as_str()), ("open", "true")];
        let first = self.all.is_empty();
        // What is over makes room.
        if self.all.len() >= MOST {
            self.all.retain(|watched| !watched.state.as_ref().is_some_and(SequenceState::is_over));
        }
        for execution in pages::all::<ExecutionState>(self.api, &["sequence-execution"], &query).await? {
            if self.all.len() < MOST {
                self.add(find::Place { project: Some(project.to_string()), context: find::whole(&execution.context)? });
            } else if first && self.all.iter().all(|known| known.context.as_str() != execution.context) {
                return self.live.warn(&format!("warning: more than {MOST} deliveries go on: {MOST} of them are shown"));
            }
        }
        Ok(())
    }

    /// The lines of the contexts that there are, with their places.
    fn lines(&self, now: Option<Timestamp>) -> Vec<(usize, Line)> {
        let each = self.all.iter().zip(self.ids()).enumerate();
        each.filter_map(|(n, (watched, id))| Some((n, delivery::line(watched.state.as_ref()?, &id, now)))).collect()
    }

    /// Draws the lines again, or prints those that have changed.
    fn show(&mut self) -> Result<(), CliError> {
        let look = look();
        if self.how.format.is_data() {
            return Ok(());
        }
        let lines = self.lines(self.now());
        if look.live {
            let lines: Vec<Line> = lines.into_iter().map(|(_, line)| line).collect();
            return self.live.draw(board::draw(&lines, &look), &look);
        }
        let still: Vec<Line> = lines.iter().map(|(_, line)| line.still()).collect();
        let rows = board::rows(&still, &look);
        for (((n, line), still), row) in lines.iter().zip(still).zip(rows) {
            // With the log, the lines come at the end: the events have said it all.
            if self.all[*n].printed.as_ref() != Some(&still) && !self.how.watching.log {
                say(&row)?;
            }
            self.all[*n].printed = Some(still);
            for hint in &line.hints {
                if self.told.insert(format!("{n} {}", hint.command)) {
                    board::hints(std::slice::from_ref(hint), &look).iter().try_for_each(|line| say(line))?;
                }
            }
        }
        Ok(())
    }

    /// The last word: how it all stands, and what to look at where it went wrong.
    fn end(&mut self) -> Result<(), CliError> {
        let (look, states) = (look(), self.states());
        match self.how.format {
            format @ (Format::Json | Format::Yaml) => return say_data(&json!({"items": states}), format),
            Format::Wide if !states.is_empty() => {
                self.show()?;
                say("")?;
                say(&timeline::table(&states).render(&crate::terminal::Look { width: None, ..look }))?;
            }
            _ => self.show()?,
        }
        self.live.leave();
        let lines: Vec<Line> = self.lines(self.now()).into_iter().map(|(_, line)| line).collect();
        if !look.live && (lines.len() > 1 || self.how.watching.log) {
            say("")?;
            board::rows(&lines, &look).iter().try_for_each(|row| say(row))?;
        }
        let hints: Vec<_> = states.iter().zip(&lines).flat_map(|(state, line)| aftermath(state, line)).collect();
        if self.how.watching.log { Ok(()) } else { board::hints(&hints, &look).iter().try_for_each(|line| say(line)) }
    }

    async fn until_done(&mut self, how: How) -> Result<(), CliError> {
        let (began, mut answered, mut quiet_since) = (Instant::now(), Instant::now(), Instant::now());
        let mut pause = BUSY;
        loop {
            match self.look().await {
                Ok(news) => {
                    answered = Instant::now();
                    if news {
                        (pause, quiet_since) = (BUSY, answered);
                    } else {
                        pause = (pause * 3 / 2).min(IDLE);
                    }
                }
                Err(CliError::Api(error)) if error.is_transient() && answered.elapsed() < SILENT => {
                    self.live.warn(&format!("warning: {error}; trying again"))?;
                    pause = IDLE;
                }
                Err(error) => return Err(error),
            }
            if how.watching.for_approval && self.waits() {
                return Ok(());
            }
            let over = self.all.iter().all(|watched| watched.state.as_ref().is_some_and(SequenceState::is_over));
            if over && !how.follow {
                if quiet_since.elapsed() >= SETTLED {
                    return Ok(());
                }
                pause = BUSY;
            }
            if how.doubts(began.elapsed()) {
                self.check_known()?;
            }
            self.pause(pause).await?;
        }
    }

    /// Waits; on a terminal, the times go on.
    async fn pause(&mut self, pause: Duration) -> Result<(), CliError> {
        let began = Instant::now();
        while let Some(left) = pause.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) {
            tokio::time::sleep(left.min(TICK)).await;
            self.waited = began.elapsed();
            if look().live {
                self.show()?;
            }
        }
        Ok(())
    }

    fn waits(&self) -> bool {
        let waits = |state: &SequenceState| state.executions.iter().any(|execution| execution.state == "waitingForApproval");
        self.states().iter().any(|state| state.phase == "waitingForApproval" || waits(state))
    }

    fn check_known(&self) -> Result<(), CliError> {
        match self.all.iter().find(|watched| watched.seen.is_empty() && watched.state.is_none()) {
            Some(unknown) => Err(CliError::Failed(format!(
                "nothing is known of context {}: keelway get sequences --project P lists those there are",
                unknown.context
            ))),
            None => Ok(()),
        }
    }

    /// Reads the states and, if they are to be shown, the new events. Whether anything was new.
    async fn look(&mut self) -> Result<bool, CliError> {
        self.join().await?;
        let mut news: Vec<(usize, Option<Timestamp>, Entry)> = vec![];
        for index in 0..self.all.len() {
            if !self.how.watching.log && self.all[index].project.is_some() {
                continue;
            }
            // Within a context the order is the API's; between contexts it is by time.
            let mut latest = None;
            for event in self.read(index).await? {
                let entry = Entry::of(&event);
                latest = latest.max(entry.time);
                if self.all[index].project.is_none() && !entry.project.is_empty() {
                    self.all[index].project = Some(entry.project.clone());
                }
                news.push((index, latest, entry));
            }
        }
        news.sort_by_key(|(_, time, _)| *time);
        if self.start.is_none() {
            self.start = news.iter().filter_map(|(_, _, entry)| entry.time).min();
        }
        let changed = self.read_states().await?;
        if self.how.watching.log && !self.how.format.is_data() {
            let (look, ids) = (look(), self.ids());
            for (index, _, entry) in &news {
                let label = (self.all.len() > 1).then(|| format!("{} {}", entry.service, ids[*index]));
                let line = entry.line(self.start, label.as_deref(), &look);
                self.live.say(&line, &look)?;
            }
        }
        self.show()?;
        Ok(changed || !news.is_empty())
    }

    async fn read(&mut self, index: usize) -> Result<Vec<Value>, CliError> {
        let mut news = vec![];
        loop {
            let watched = &mut self.all[index];
            let query = [("keptnContext", watched.context.as_str()), ("pageSize", "100"), ("nextPageKey", watched.page.as_str())];
            let page: EventPage = match self.api.get(&["event"], &query).await {
                Ok(page) => page,
                Err(error) if error.status() == Some(404) => return Ok(news),
                Err(error) => return Err(error.into()),
            };
            let next = following(&page);
            for event in page.items {
                let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
                if watched.seen.insert(["source", "id", "verdict"].map(text)) {
                    news.push(event);
                }
            }
            match next.filter(|next| *next != watched.page) {
                Some(next) => watched.page = next,
                None => return Ok(news),
            }
        }
    }

    async fn read_states(&mut self) -> Result<bool, CliError> {
        let mut projects: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for watched in &self.all {
            if let Some(project) = &watched.project {
                projects.entry(project.clone()).or_default().push(watched.context.to_string());
            }
        }
        let mut changed = false;
        for (project, contexts) in projects {
            let contexts = contexts.join(",");
            let path = ["sequence", project.as_str()];
            let page: Result<SequencePage, ApiError> =
                self.api.get(&path, &[("keptnContext", &contexts), ("pageSize", "100")]).await;
            let page = match page {
                Ok(page) => page,
                Err(error) if error.status() == Some(404) && self.all.iter().any(|watched| !watched.seen.is_empty()) => continue,
                Err(error) => return Err(error.into()),
            };
            self.clock = Timestamp::parse(&page.extra.now).or(self.clock);
            self.waited = Duration::ZERO;
            for state in page.items {
                let watched = self.all.iter_mut().find(|watched| watched.context.as_str() == state.shkeptncontext);
                if let Some(watched) = watched {
                    changed |= watched.state.as_ref() != Some(&state);
                    watched.state = Some(state);
                }
            }
        }
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_be_a_mistake_is_doubted() {
        let watching = Watching { exit_code: false, for_approval: false, log: false, timeout: None };
        let how = |sure: bool| How { follow: false, sure, watching, format: Format::Table };
        assert!(how(false).doubts(UNKNOWN) && !how(false).doubts(UNKNOWN / 2));
        assert!(!how(true).doubts(UNKNOWN * 100), "a queue may be long");
    }
}
