//! Looks at the pull requests of one repository: reads their state, and merges those that Keelway merges itself. What is read, and
//! what is reported, the domain decides ([`pull_request`](keelway_domain::promotions::pull_request)).

use crate::hosts::{Hosts, place};
use crate::requests::{branch, merges};
use keelway_domain::promotions::pull_request::{Awaited, Mark, State, Step, merged};
use keelway_domain::promotions::{Failure, Made, Retry, Seen};
use keelway_engine::ports::Ports;
use keelway_engine::promotions::attempts::{Sight, Task};
use keelway_engine::secrets::Secrets;
use keelway_githosts::{Host, HostError, Merge, Repository, Request};
use std::collections::BTreeMap;

/// The marks, by the secrets of the looks.
type Marks = BTreeMap<String, Mark>;

/// Looks at pull requests of one repository. A failure changes nothing; another look follows.
pub async fn look<P: Ports + Secrets + Clone>(hosts: &Hosts<P>, tasks: &[Task], mark: Option<&str>) -> Sight {
    let mut sight = Sight { requests: vec![None; tasks.len()], failed: vec![None; tasks.len()], mark: None, not_before: None };
    // Usually all of them have the same credentials.
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (n, task) in tasks.iter().enumerate() {
        if let Some(wanted) = place(task) {
            groups.entry(format!("{}/{}", task.of.namespace, wanted.secret)).or_default().push(n);
        }
    }
    // The format of an earlier version counts as no mark.
    let before: Marks = mark.and_then(|mark| serde_json::from_str(mark).ok()).unwrap_or_default();
    let mut marks = Marks::new();
    for (secret, members) in groups {
        let tasks: Vec<&Task> = members.iter().map(|n| &tasks[*n]).collect();
        let known = before.get(&secret);
        match look_with(hosts, &tasks, known).await {
            Ok((seen, next)) => {
                for (n, seen) in members.iter().zip(seen) {
                    sight.requests[*n] = seen;
                }
                marks.extend(next.map(|next| (secret, next)));
            }
            Err(failure) => {
                marks.extend(known.map(|known| (secret, known.clone())));
                let of = tasks.first().map(|task| task.of.to_string());
                tracing::warn!(pipeline = of, reason = failure.why.message, "a repository could not be looked at");
                // A rate limit is not a trouble: the host names the time of the next request.
                if let Retry::At(at) = failure.retry {
                    sight.not_before = sight.not_before.max(Some(at));
                    continue;
                }
                for n in members {
                    sight.failed[n] = Some(failure.why.clone());
                }
            }
        }
    }
    sight.mark = serde_json::to_string(&marks).ok();
    sight
}

async fn look_with<P: Ports + Secrets + Clone>(
    hosts: &Hosts<P>,
    tasks: &[&Task],
    before: Option<&Mark>,
) -> Result<(Vec<Option<Seen>>, Option<Mark>), Failure> {
    let Some((task, wanted)) = tasks.first().and_then(|task| Some((task, place(task)?))) else { return Ok((vec![], None)) };
    let (host, repository) = hosts.of(task, wanted).await?;
    let awaited: Vec<Awaited<'_>> = tasks.iter().map(|task| awaited(task)).collect();
    let numbers: Vec<u64> = awaited.iter().filter_map(Awaited::number).collect();
    // Reading a single pull request returns more than a list, and costs the same. Only the list shows whether the repository is
    // missing.
    if let ([task], [number]) = (&awaited[..], &numbers[..])
        && let Some(request) = host.get(&repository, *number).await?
    {
        return Ok((vec![one(&host, &repository, task, Some(&request)).await?], None));
    }
    let before = before.cloned().unwrap_or_default();
    let look = host.list(&repository, &numbers, before.host()).await?;
    let (steps, next) = before.steps(&awaited, &look);
    let mut seen = vec![];
    for (task, step) in awaited.iter().zip(steps) {
        seen.push(match step {
            Step::Read(listed) => one(&host, &repository, task, listed).await?,
            Step::Report(request) => task.news(Some(request)),
            Step::Nothing => None,
        });
    }
    let mark = Mark::after(&awaited, &seen, look, next);
    Ok((seen, Some(mark)))
}

fn awaited(task: &Task) -> Awaited<'_> {
    Awaited { made: task.made.as_ref(), branch: branch(task), merges: merges(task) }
}

/// Reads one pull request, unless it was read just now, and merges it if it is to be merged and can be.
async fn one(
    host: &Host,
    repository: &Repository,
    awaited: &Awaited<'_>,
    read: Option<&Request>,
) -> Result<Option<Seen>, HostError> {
    let Some(Made::PullRequest { number, head, .. }) = awaited.made else { return Ok(None) };
    let request = match read {
        Some(request) => Some(request.clone()),
        None => host.get(repository, *number).await?,
    };
    if let Some(request) = request.as_ref().filter(|request| awaited.merges && request.state == State::Open) {
        match host.merge(repository, request, head).await? {
            Merge::Merged(commit) => return Ok(Some(Seen::Succeeded(merged(&commit)))),
            Merge::Refused(reason) => return Ok(Some(Seen::Failed(format!("it cannot be merged: {reason}")))),
            // A person who adds commits to the branch must merge it.
            Merge::NotYet(_) | Merge::HeadMoved => {}
        }
    }
    Ok(awaited.news(request.as_ref()))
}
