//! The strategy `pull-request`: a branch, an edit at the marker, a pull request; and how it is taken back.

use crate::hosts::{Hosts, place};
use keelway_domain::condition::Condition;
use keelway_domain::promotions::definition::PullRequest;
use keelway_domain::promotions::pull_request::merged;
use keelway_domain::promotions::{AttemptResult, Closed, Failure, Made, Retry};
use keelway_engine::ports::Ports;
use keelway_engine::promotions::attempts::Task;
use keelway_engine::secrets::Secrets;
use keelway_githosts::{BRANCHES, Change, Closed as Gone, Proposed, Repository};
use std::time::Duration;

/// The longest duration of an attempt. The function has a minute more.
pub const WHOLE: Duration = Duration::from_secs(240);
/// The longest title, in characters; hosts take 255 and more.
const TITLE: usize = 250;

/// Opens the pull request, or finds the existing one.
pub async fn carry_out<P: Ports + Secrets + Clone>(hosts: &Hosts<P>, task: &Task, wanted: &PullRequest) -> AttemptResult {
    let (host, repository) = match hosts.of(task, wanted).await {
        Ok(found) => found,
        Err(failure) => return failure.into(),
    };
    let change = change(task, wanted, repository);
    let Ok(proposed) = tokio::time::timeout(WHOLE, host.propose(&change)).await else { return goes_on(wanted) };
    match proposed {
        Ok(Proposed::Opened(request) | Proposed::Found(request)) => AttemptResult::Created(request.into()),
        Ok(Proposed::Nothing) => {
            let message = format!("{} on {} has {} already", wanted.url, wanted.base_branch, task.attempt.revision);
            AttemptResult::Nothing(Condition::new("NothingToPromote", message))
        }
        Err(error) => Failure::from(error).into(),
    }
}

/// The time is up. The next attempt finds what exists by now, with one request each.
fn goes_on(wanted: &PullRequest) -> AttemptResult {
    let message = format!("{} answers slowly: after {} s, the attempt goes on where it stopped", wanted.url, WHOLE.as_secs());
    AttemptResult::Failed { why: Condition::new("HostUnavailable", message), retry: Retry::Soon }
}

/// Closes the pull request, unless it was merged.
pub async fn take_back<P: Ports + Secrets + Clone>(hosts: &Hosts<P>, task: &Task, wanted: &PullRequest, comment: &str) -> Closed {
    let closing = async {
        let (host, repository) = hosts.of(task, wanted).await?;
        Ok::<_, Failure>(host.close(&repository, &branch(task), number(task), &tame(comment)).await?)
    };
    match closing.await {
        Ok(Gone::Closed | Gone::Absent) => Closed::Closed,
        Ok(Gone::Merged(commit)) => Closed::Merged(merged(&commit)),
        Err(failure) => {
            tracing::warn!(pipeline = %task.of, repository = wanted.url, reason = failure.why.message, "a pull request was not closed");
            Closed::Failed(match failure.retry {
                Retry::At(at) => Some(at),
                _ => None,
            })
        }
    }
}

pub(crate) fn merges(task: &Task) -> bool {
    place(task).is_some_and(|wanted| wanted.merge)
}

fn number(task: &Task) -> Option<u64> {
    match &task.made {
        Some(Made::PullRequest { number, .. }) => Some(*number),
        _ => None,
    }
}

/// The name of the branch: the identity of the promotion. The environment in it is for people.
pub(crate) fn branch(task: &Task) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let environment: String = task.attempt.environment.chars().take(50).map(plain).collect();
    format!("{BRANCHES}{environment}/{:016x}", task.identity())
}

/// A name from outside for titles and messages of commits, without markup and commands (`[skip ci]`, `closes #1`, `@team`).
fn plain(name: &str) -> String {
    let mut before = ' ';
    let safe = |c: char| {
        // Text before the `@` makes it an address, as in `main@sha1:abc`, and not a mention.
        let kept = c.is_alphanumeric() || "._:/+~=,-".contains(c) || c == '@' && before.is_alphanumeric();
        before = c;
        if kept { c } else { '_' }
    };
    name.chars().map(safe).collect()
}

/// A sentence with names from outside for comments: without mentions, on one line.
fn tame(text: &str) -> String {
    let mut before = ' ';
    let safe = |c: char| {
        let kept = !c.is_control() && c != '`' && (c != '@' || before.is_alphanumeric());
        before = c;
        if kept { c } else { '_' }
    };
    text.chars().map(safe).collect()
}

/// A code span that the text cannot end.
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
        // An attempt begins with one conditional write, so no other worker has carried out the first one.
        first: attempt.attempt == 1,
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
