//! `watch`: a live timeline of one or several contexts, from the API, and how it all ended.

use super::pages::is_last;
use crate::api::Api;
use crate::api_error::ApiError;
use crate::args::Watching;
use crate::error::CliError;
use crate::output::{colours, is_terminal, say};
use crate::timeline::{self, Entry};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use keelway_domain::names::{Context, ProjectName};
use keelway_domain::time::Timestamp;
use keelway_wire::http::{EventPage, SequencePage, SequenceState};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::{Duration, Instant};

/// Between two looks: as short as this after news, growing to as long as that without.
const BUSY: Duration = Duration::from_millis(300);
const IDLE: Duration = Duration::from_secs(2);
/// A context nothing is known of for this long does not exist, unless it is sure to come.
const UNKNOWN: Duration = Duration::from_secs(15);
/// What is over must stay over for this long: a follow-up may be on its way.
const SETTLED: Duration = Duration::from_millis(1000);
/// An API that does not answer for this long is given up.
const SILENT: Duration = Duration::from_secs(60);

/// When to stop.
#[derive(Clone, Copy)]
pub struct How {
    /// Not when everything is over.
    pub follow: bool,
    /// The contexts are new and sure to come: the API has just taken their triggers.
    pub sure: bool,
    /// The flags.
    pub watching: Watching,
}

impl How {
    /// Whether a context nothing is known of by now does not exist.
    fn doubts(self, elapsed: Duration) -> bool {
        !self.sure && elapsed >= UNKNOWN
    }
}

/// Prints the timeline until everything is over, then a table.
///
/// # Errors
/// An unknown context, the API, a time limit; with `--exit-code` a result that is not pass or warning.
pub async fn watch(api: &Api, project: Option<&ProjectName>, contexts: &[Context], how: How) -> Result<(), CliError> {
    let mut watcher = Watcher::new(api, project, contexts);
    let done = match how.watching.timeout {
        None => watcher.until_done(how).await,
        Some(limit) => tokio::time::timeout(limit, watcher.until_done(how)).await.unwrap_or_else(|_| {
            let limit = humantime::format_duration(limit);
            Err(CliError::Failed(format!(
                "not over after {limit}: look again with keelway watch, or give a longer --watch-timeout"
            )))
        }),
    };
    watcher.bar.finish_and_clear();
    let states = watcher.states();
    if !states.is_empty() {
        say("")?;
        say(&timeline::table(&states).render(colours()))?;
    }
    done?;
    match how.watching.exit_code && !timeline::all_passed(&states) {
        true => Err(CliError::Said(1)),
        false => Ok(()),
    }
}

/// One context and how far it has been read.
struct Watched {
    context: Context,
    project: Option<String>,
    label: String,
    /// The page read last: where it begins. Earlier pages are full and do not change.
    page: String,
    /// Source, id and verdict: an id that came again with other content is told, too.
    seen: HashSet<[String; 3]>,
    state: Option<SequenceState>,
    /// The approvals told already, by stage and sequence.
    told: BTreeSet<(String, String)>,
}

struct Watcher<'a> {
    api: &'a Api,
    all: Vec<Watched>,
    start: Option<Timestamp>,
    bar: ProgressBar,
}

impl<'a> Watcher<'a> {
    fn new(api: &'a Api, project: Option<&ProjectName>, contexts: &[Context]) -> Self {
        let watched = |context: &Context| Watched {
            context: context.clone(),
            project: project.map(ToString::to_string),
            label: String::new(),
            page: String::new(),
            seen: HashSet::new(),
            state: None,
            told: BTreeSet::new(),
        };
        let mut all: Vec<Watched> = vec![];
        for context in contexts {
            if !all.iter().any(|known| known.context == *context) {
                all.push(watched(context));
            }
        }
        let bar = if is_terminal() {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stdout());
            bar.set_style(ProgressStyle::default_spinner());
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        } else {
            ProgressBar::hidden()
        };
        Self { api, all, start: None, bar }
    }

    fn states(&self) -> Vec<SequenceState> {
        self.all.iter().filter_map(|watched| watched.state.clone()).collect()
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
                    self.bar.suspend(|| eprintln!("warning: {error}; trying again"));
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
            tokio::time::sleep(pause).await;
        }
    }

    fn waits(&self) -> bool {
        let waits = |state: &SequenceState| state.executions.iter().any(|execution| execution.state == "waitingForApproval");
        self.states().iter().any(|state| state.state == "waitingForApproval" || waits(state))
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

    /// Reads what is new, prints it, reads the states. Whether anything was new.
    async fn look(&mut self) -> Result<bool, CliError> {
        let mut news: Vec<(usize, Option<Timestamp>, Entry)> = vec![];
        for index in 0..self.all.len() {
            // Within a context the order is the API's; between contexts it is by time.
            let mut latest = None;
            for event in self.read(index).await? {
                let entry = Entry::of(&event);
                latest = latest.max(entry.time);
                self.all[index].learn(&entry);
                news.push((index, latest, entry));
            }
        }
        news.sort_by_key(|(_, time, _)| *time);
        if self.start.is_none() {
            self.start = news.iter().filter_map(|(_, _, entry)| entry.time).min();
        }
        let several = self.all.len() > 1;
        for (index, _, entry) in &news {
            let label = several.then(|| self.all[*index].label.as_str());
            let line = entry.line(self.start, label, colours());
            self.bar.suspend(|| say(&line))?;
        }
        let changed = self.read_states().await?;
        self.tell_approvals()?;
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
            for event in page.events {
                let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
                if watched.seen.insert(["source", "id", "verdict"].map(text)) {
                    news.push(event);
                }
            }
            if is_last(&page.next_page_key) || page.next_page_key == watched.page {
                return Ok(news);
            }
            watched.page = page.next_page_key;
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
            let states = match page {
                Ok(page) => page.states,
                Err(error) if error.status() == Some(404) && self.all.iter().any(|watched| !watched.seen.is_empty()) => vec![],
                Err(error) => return Err(error.into()),
            };
            for state in states {
                let watched = self.all.iter_mut().find(|watched| watched.context.as_str() == state.shkeptncontext);
                if let Some(watched) = watched {
                    changed |= watched.state.as_ref() != Some(&state);
                    watched.state = Some(state);
                }
            }
        }
        self.bar.set_message(self.doing());
        Ok(changed)
    }

    /// What runs or waits right now, for the line below the timeline.
    fn doing(&self) -> String {
        let states = self.states();
        let open = states.iter().flat_map(|state| state.executions.iter().map(move |execution| (state, execution)));
        let open = open.filter(|(_, execution)| execution.finished_at.is_none());
        let told = open.map(|(state, execution)| {
            let task = execution.tasks.last().map(|task| format!(" {}", task.name)).unwrap_or_default();
            format!("{} {} {}{task}: {}", state.service, execution.stage, execution.sequence, execution.state)
        });
        crate::output::one_line(&told.collect::<Vec<_>>().join("; "), 100)
    }

    fn tell_approvals(&mut self) -> Result<(), CliError> {
        for watched in &mut self.all {
            let Some(state) = &watched.state else { continue };
            for execution in state.executions.iter().filter(|execution| execution.state == "waitingForApproval") {
                if watched.told.insert((execution.stage.clone(), execution.id.clone())) {
                    let (context, project) = (&watched.context, &state.project);
                    let line = format!(
                        "{} waits for approval in {}: keelway approve {context} --project {project}",
                        state.service, execution.stage
                    );
                    self.bar.suspend(|| say(&line))?;
                }
            }
        }
        Ok(())
    }
}

impl Watched {
    fn learn(&mut self, entry: &Entry) {
        if self.project.is_none() && !entry.project.is_empty() {
            self.project = Some(entry.project.clone());
        }
        if self.label.is_empty() {
            let context = self.context.as_str();
            let end: String = context.chars().skip(context.chars().count().saturating_sub(4)).collect();
            self.label = format!("{}/{end}", entry.service);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_be_a_mistake_is_doubted() {
        let watching = Watching { exit_code: false, for_approval: false, timeout: None };
        let how = |sure: bool| How { follow: false, sure, watching };
        assert!(how(false).doubts(UNKNOWN) && !how(false).doubts(UNKNOWN / 2));
        assert!(!how(true).doubts(UNKNOWN * 100), "a queue may be long");
    }
}
