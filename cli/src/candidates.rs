//! What shells offer while somebody types. Projects, contexts and names are asked for there and then; an API that does not answer
//! soon is not waited for, and nothing is said about it: this is in the middle of somebody's line.

use crate::api::Api;
use crate::args::{Args, for_shells};
use crate::commands::find;
use crate::error::CliError;
use crate::words::{short_ids, version};
use crate::{config, pages};
use clap::{CommandFactory, Parser};
use clap_complete::Shell;
use clap_complete::engine::{CompletionCandidate, ValueCandidates};
use clap_complete::env::{CompleteEnv, Shells};
use keelway_wire::http::{SequencePage, SequenceState};
use serde_json::Value;
use std::ffi::OsString;
use std::time::Duration;

/// Set by the scripts that [`script`] prints, to the name of the shell.
const VARIABLE: &str = "KEELWAY_COMPLETE";
/// Nobody waits longer for a list.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most projects that are searched for contexts.
const PROJECTS: usize = 10;
/// The newest contexts of a project that are offered.
const NEWEST: &str = "20";

/// Answers a shell that asks what could come next. `false`: none does, this is a command to carry out.
///
/// # Errors
/// A shell that is not known.
pub fn answer() -> clap::error::Result<bool> {
    let directory = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(|| for_shells(Args::command())).var(VARIABLE);
    asked.try_complete(std::env::args_os(), directory.as_deref())
}

/// The script with which a shell asks this command.
///
/// # Errors
/// None but of the library's own: it knows all of these shells.
pub fn script(shell: Shell) -> Result<String, CliError> {
    let failed = |why: String| CliError::Failed(format!("no completion for {shell}: {why}"));
    let shells = Shells::builtins();
    let known = shells.completer(&shell.to_string()).ok_or_else(|| failed("it is not known".into()))?;
    let mut script = vec![];
    known.write_registration(VARIABLE, "keelway", "keelway", "keelway", &mut script).map_err(|error| failed(error.to_string()))?;
    Ok(String::from_utf8_lossy(&script).trim().to_owned())
}

/// The same words each time.
pub struct Fixed(pub Vec<&'static str>);

impl ValueCandidates for Fixed {
    fn candidates(&self) -> Vec<CompletionCandidate> {
        self.0.iter().map(CompletionCandidate::new).collect()
    }
}

/// The projects that the token shows.
pub struct Projects;

impl ValueCandidates for Projects {
    fn candidates(&self) -> Vec<CompletionCandidate> {
        let names = asked(async |api: &Api| find::projects(api).await);
        names.into_iter().map(CompletionCandidate::new).collect()
    }
}

/// The newest contexts of the project that the line names, or of all, with what is delivered.
pub struct Contexts;

impl ValueCandidates for Contexts {
    fn candidates(&self) -> Vec<CompletionCandidate> {
        let states = asked(async |api: &Api| {
            let projects = match project() {
                Some(project) => vec![project],
                None => find::projects(api).await?,
            };
            let mut states = vec![];
            for project in projects.iter().take(PROJECTS) {
                let page: SequencePage = api.get(&["sequence", project], &[("pageSize", NEWEST)]).await?;
                states.extend(page.items);
            }
            Ok(states)
        });
        let ids: Vec<&str> = states.iter().map(|state| state.shkeptncontext.as_str()).collect();
        let about = |state: &SequenceState| {
            let image = state.executions.iter().find_map(|execution| execution.image.as_deref()).map(version).unwrap_or_default();
            format!("{} of {}", [state.service.as_str(), &image].join(" ").trim(), state.project)
        };
        let offered = short_ids(&ids).into_iter().zip(&states);
        offered.map(|(id, state)| CompletionCandidate::new(id).help(Some(about(state).into()))).collect()
    }
}

/// The names in a collection of the API: of the project that the line names, or with their projects.
#[derive(Clone, Copy)]
pub struct Named(pub &'static str);

impl ValueCandidates for Named {
    fn candidates(&self) -> Vec<CompletionCandidate> {
        let of = project();
        let query = [("namespace", of.as_deref().unwrap_or_default())];
        let items = asked(async |api: &Api| Ok(pages::of_kind(api, &[self.0], &query).await?.0));
        let name = |item: &Value| {
            let [namespace, name] = ["namespace", "name"].map(|field| item[field].as_str().unwrap_or_default());
            if of.is_some() || namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
        };
        items.iter().map(|item| CompletionCandidate::new(name(item))).collect()
    }
}

/// What the API answers, if it does so soon.
fn asked<T>(what: impl AsyncFnOnce(&Api) -> Result<Vec<T>, CliError>) -> Vec<T> {
    let answered = || -> Option<Vec<T>> {
        // The flags of the line are not read: they may be half written.
        let args = config::complete(Args::try_parse_from(["keelway", "whoami"]).ok()?).ok()?;
        let api = Api::new(args.api.as_deref(), args.token.as_deref()).ok()?.without_retries();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        let answer = runtime.block_on(async { tokio::time::timeout(PATIENCE, what(&api)).await });
        runtime.shutdown_background();
        answer.ok()?.ok()
    };
    answered().unwrap_or_default()
}

/// The project of the line that is completed, or that of the variable.
fn project() -> Option<String> {
    let words: Vec<String> = std::env::args_os().map(OsString::into_string).map(Result::unwrap_or_default).collect();
    said(&words).or_else(|| std::env::var(crate::args::named::PROJECT).ok()).filter(|name| !name.trim().is_empty())
}

/// `-p shop`, `--project shop`, `--project=shop`.
fn said(words: &[String]) -> Option<String> {
    let after = words.windows(2).find(|two| ["-p", "--project"].contains(&two[0].as_str())).map(|two| two[1].clone());
    after.or_else(|| words.iter().find_map(|word| word.strip_prefix("--project=")).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_which_project() {
        let of = |line: &str| said(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(of("keelway watch -p shop "), Some("shop".into()));
        assert_eq!(of("keelway watch --project shop "), Some("shop".into()));
        assert_eq!(of("keelway watch --project=shop "), Some("shop".into()));
        assert_eq!(of("keelway watch "), None);
    }
}
