//! The strategy `pull-request`: a branch, an edit at the marker, a pull request; and what becomes of it.

use crate::hosts::{Hosts, Refusal, place};
use keelway_domain::promotions::definition::PullRequest;
use keelway_domain::promotions::{Closed, Condition, Made, Outcome, Retry, Seen};
use keelway_engine::ports::Ports;
use keelway_engine::promotions::attempts::{Sight, Task};
use keelway_engine::secrets::Secrets;
use keelway_githosts::{BRANCHES, Change, Closed as Gone, Host, HostError, Kind, Merge, Proposed, Repository, Request, State};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// So long an attempt lasts at most. The function has a minute more.
pub const WHOLE: Duration = Duration::from_secs(240);
/// The longest title, in characters; hosts take 255 and more.
const TITLE: usize = 250;

/// Opens the pull request, or finds the one that is there.
pub async fn carry_out<P: Ports + Secrets + Clone>(hosts: &Hosts<P>, task: &Task, wanted: &PullRequest) -> Outcome {
    let (host, repository) = match hosts.of(task, wanted).await {
        Ok(found) => found,
        Err(refusal) => return failed(refusal),
    };
    let change = change(task, wanted, repository);
    let Ok(proposed) = tokio::time::timeout(WHOLE, host.propose(&change)).await else { return goes_on(wanted) };
    match proposed {
        Ok(Proposed::Opened(request) | Proposed::Found(request)) => Outcome::Created(made(&request)),
        Ok(Proposed::Nothing) => {
            let message = format!("{} on {} has {} already", wanted.url, wanted.base_branch, task.attempt.revision);
            Outcome::Nothing(Condition::new("NothingToPromote", message))
        }
        Err(error) => failed(error.into()),
    }
}

/// The time is over. What is there by now is found by the next attempt, with one request each.
fn goes_on(wanted: &PullRequest) -> Outcome {
    let message = format!("{} answers slowly: after {} s, the attempt goes on where it stopped", wanted.url, WHOLE.as_secs());
    Outcome::Failed { why: Condition::new("HostUnavailable", message), retry: Retry::Soon }
}

/// Closes the pull request, unless it was merged.
pub async fn take_back<P: Ports + Secrets + Clone>(hosts: &Hosts<P>, task: &Task, wanted: &PullRequest, comment: &str) -> Closed {
    let closing = async {
        let (host, repository) = hosts.of(task, wanted).await?;
        Ok::<_, Refusal>(host.close(&repository, &branch(task), number(task), &tame(comment)).await?)
    };
    match closing.await {
        Ok(Gone::Closed | Gone::Absent) => Closed::Closed,
        Ok(Gone::Merged(commit)) => Closed::Merged(merged(&commit)),
        Err(refusal) => {
            tracing::warn!(pipeline = %task.of, repository = wanted.url, reason = refusal.why.message, "a pull request was not closed");
            Closed::Failed(match refusal.retry {
                Retry::At(at) => Some(at),
                _ => None,
            })
        }
    }
}

/// What a look remembers for the next one.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Mark {
    /// The host's mark of its answer.
    #[serde(rename = "m")]
    host: String,
    /// The pull requests that were open then. Of the others something is to be told, even if the host says that nothing has changed.
    #[serde(rename = "o")]
    open: Vec<u64>,
    /// The list does not say whether they can be merged. Then each look asks for one of them, in turn: this one is next.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
}

/// Looks at pull requests of one repository. A failure changes nothing: the next look is another one.
pub async fn look<P: Ports + Secrets + Clone>(hosts: &Hosts<P>, tasks: &[Task], mark: Option<&str>) -> Sight {
    let mut sight = Sight { requests: vec![None; tasks.len()], failed: vec![None; tasks.len()], mark: None, not_before: None };
    // Usually all of them have the same credentials.
    let mut groups: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (n, task) in tasks.iter().enumerate() {
        if let Some(wanted) = place(task) {
            groups.entry((&task.of.namespace, &wanted.secret)).or_default().push(n);
        }
    }
    let mark = mark.filter(|_| groups.len() == 1);
    let single = groups.len() == 1;
    for members in groups.values() {
        let tasks: Vec<&Task> = members.iter().map(|n| &tasks[*n]).collect();
        match look_with(hosts, &tasks, mark).await {
            Ok((seen, next)) => {
                for (n, seen) in members.iter().zip(seen) {
                    sight.requests[*n] = seen;
                }
                sight.mark = next.filter(|_| single);
            }
            Err(refusal) => {
                let of = tasks.first().map(|task| task.of.to_string());
                tracing::warn!(pipeline = of, reason = refusal.why.message, "a repository could not be looked at");
                // A host that wants fewer requests says itself when it may be asked again: nothing is wrong.
                if let Retry::At(at) = refusal.retry {
                    sight.not_before = sight.not_before.max(Some(at));
                    continue;
                }
                for n in members {
                    sight.failed[*n] = Some(refusal.why.clone());
                }
            }
        }
    }
    sight
}

async fn look_with<P: Ports + Secrets + Clone>(
    hosts: &Hosts<P>,
    tasks: &[&Task],
    mark: Option<&str>,
) -> Result<(Vec<Option<Seen>>, Option<String>), Refusal> {
    let Some((task, wanted)) = tasks.first().and_then(|task| Some((task, place(task)?))) else { return Ok((vec![], None)) };
    let (host, repository) = hosts.of(task, wanted).await?;
    let before = mark.and_then(|mark| serde_json::from_str::<Mark>(mark).ok()).unwrap_or_default();
    let look = host.list(&repository, Some(before.host.as_str()).filter(|mark| !mark.is_empty())).await?;
    let mut all = vec![];
    let mut open = vec![];
    let next = match &look.requests {
        Some(requests) => requests.iter().any(|request| request.mergeable.is_none()).then_some(0),
        None => before.next.map(|next| (next + 1) % tasks.len()),
    };
    for (n, task) in tasks.iter().enumerate() {
        let its_turn = before.next == Some(n);
        let listed = look.requests.as_ref().map(|requests| requests.iter().find(|request| is_of(task, request)));
        let seen = match listed {
            // Nothing has changed, and nothing is left to tell.
            None if number(task).is_some_and(|number| before.open.contains(&number)) && !merges(task) && !its_turn => None,
            Some(Some(request)) if request.mergeable.is_some() && !merges(task) => news(task, request),
            _ => one(&host, &repository, task).await?,
        };
        if !matches!(seen, Some(Seen::Succeeded(_) | Seen::Closed(_) | Seen::Failed(_))) {
            open.extend(number(task));
        }
        all.push(seen);
    }
    let mark = look.mark.map(|host| serde_json::to_string(&Mark { host, open, next }).unwrap_or_default());
    Ok((all, mark))
}

/// Asks for one pull request, and merges it if that is wanted and possible.
async fn one(host: &Host, repository: &Repository, task: &Task) -> Result<Option<Seen>, HostError> {
    let Some(Made::PullRequest { number, head, .. }) = &task.made else { return Ok(None) };
    let Some(request) = host.get(repository, *number).await? else {
        return Ok(Some(Seen::Closed("the pull request does not exist any more".into())));
    };
    if merges(task) && request.state == State::Open {
        match host.merge(repository, *number, head).await? {
            Merge::Merged(commit) => return Ok(Some(Seen::Succeeded(merged(&commit)))),
            Merge::Refused(reason) => return Ok(Some(Seen::Failed(format!("it cannot be merged: {reason}")))),
            // Whoever added commits to the branch merges it.
            Merge::NotYet(_) | Merge::HeadMoved => {}
        }
    }
    Ok(news(task, &request))
}

/// What is new about a pull request.
fn news(task: &Task, request: &Request) -> Option<Seen> {
    match &request.state {
        State::Merged { commit } => Some(Seen::Succeeded(merged(commit))),
        State::Closed => Some(Seen::Closed("the pull request was closed without being merged".into())),
        State::Open => {
            let Some(Made::PullRequest { number, url, branch, head, mergeable }) = &task.made else { return None };
            let changed = request.mergeable.is_some() && request.mergeable != *mergeable;
            let made = |mergeable| Made::PullRequest {
                number: *number,
                url: url.clone(),
                branch: branch.clone(),
                head: head.clone(),
                mergeable,
            };
            changed.then(|| Seen::Open(made(request.mergeable)))
        }
    }
}

fn merged(commit: &str) -> String {
    format!("it was merged as {commit}")
}

fn merges(task: &Task) -> bool {
    place(task).is_some_and(|wanted| wanted.merge)
}

fn number(task: &Task) -> Option<u64> {
    match &task.made {
        Some(Made::PullRequest { number, .. }) => Some(*number),
        _ => None,
    }
}

fn is_of(task: &Task, request: &Request) -> bool {
    number(task).map_or_else(|| request.branch == branch(task), |number| request.number == number)
}

fn made(request: &Request) -> Made {
    Made::PullRequest {
        number: request.number,
        url: request.url.clone(),
        branch: request.branch.clone(),
        head: request.head.clone(),
        mergeable: request.mergeable,
    }
}

/// The identity of the promotion. The environment is for people.
fn branch(task: &Task) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let environment: String = task.attempt.environment.chars().take(50).map(plain).collect();
    format!("{BRANCHES}{environment}/{:016x}", task.identity())
}

/// A name that others chose, for titles and messages of commits: neither markup nor a command in it (`[skip ci]`, `closes #1`, `@team`).
fn plain(name: &str) -> String {
    let mut before = ' ';
    let safe = |c: char| {
        // An address has something before its `@`, as in `main@sha1:abc`; a mention has not.
        let kept = c.is_alphanumeric() || "._:/+~=,-".contains(c) || c == '@' && before.is_alphanumeric();
        before = c;
        if kept { c } else { '_' }
    };
    name.chars().map(safe).collect()
}

/// A sentence with names that others chose, for comments: it addresses nobody, and is one line.
fn tame(text: &str) -> String {
    let mut before = ' ';
    let safe = |c: char| {
        let kept = !c.is_control() && c != '`' && (c != '@' || before.is_alphanumeric());
        before = c;
        if kept { c } else { '_' }
    };
    text.chars().map(safe).collect()
}

/// A span of code that its text cannot end.
fn code(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let longest = text.split(|c: char| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    // Markdown takes one blank away on both sides.
    let pad = if text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

fn change(task: &Task, wanted: &PullRequest, repository: Repository) -> Change {
    let (pipeline, attempt) = (task.of.to_string(), &task.attempt);
    let (environment, revision) = (plain(&attempt.environment), plain(&attempt.revision));
    let title: String = format!("Promote {} in {environment} to {revision}", plain(&pipeline)).chars().take(TITLE).collect();
    let body = format!(
        "Pipeline {} promotes {} into {}.\n\nMerge this pull request to promote the revision. Close it to keep the \
         revision out of the environment: no other pull request is opened for it. When a newer revision is ready, this pull request is \
         closed and replaced.\n\nOpened by Keelway (run {}).",
        code(&pipeline),
        code(&attempt.revision),
        code(&attempt.environment),
        attempt.run
    );
    Change {
        repository,
        base: wanted.base_branch.clone(),
        head: branch(task),
        marker: format!("{}:{}:{}", task.of.namespace, task.of.name, attempt.environment),
        version: attempt.revision.clone(),
        message: format!("{title}\n\nPipeline: {}\nEnvironment: {environment}\nRevision: {revision}\n", plain(&pipeline)),
        title,
        body,
    }
}

fn failed(refusal: Refusal) -> Outcome {
    Outcome::Failed { why: refusal.why, retry: refusal.retry }
}

impl From<HostError> for Refusal {
    fn from(error: HostError) -> Self {
        let retry = match error.kind {
            Kind::RateLimited { until } => Retry::At(until),
            // Only a change of the repository or of the pipeline ends these.
            Kind::NoMarker | Kind::Unusable | Kind::BaseMissing | Kind::TooLarge | Kind::Address => Retry::Patience,
            Kind::Credentials | Kind::Forbidden | Kind::NotFound | Kind::Transient | Kind::Nonsense | Kind::Refused => {
                Retry::Backoff
            }
        };
        Self { why: Condition::new(error.kind.reason(), error.message), retry }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_call_a_revision_is_no_command() {
        for (name, told) in [
            ("1.4.0-rc.1+b7", "1.4.0-rc.1+b7"),
            ("main@sha1:abc", "main@sha1:abc"),
            ("v1 [skip ci]", "v1__skip_ci_"),
            ("v1\nskip-checks: true", "v1_skip-checks:_true"),
            ("closes #1", "closes__1"),
            ("@team", "_team"),
        ] {
            assert_eq!(plain(name), told);
        }
    }

    #[test]
    fn a_span_of_code_is_not_ended_by_its_text() {
        for (text, told) in
            [("v1", "`v1`"), ("v1` @team `x", "``v1` @team `x``"), ("``", "``` `` ```"), ("a\n\n# b\u{1b}", "` a  # b  `")]
        {
            assert_eq!(code(text), told);
        }
    }
}
