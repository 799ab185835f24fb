//! Looks at the pull requests of one repository: reads their state, and merges those that Keelway merges itself.
//!
//! One list has the changes since the last look, however many pull requests are open. What a list does not contain is read one by
//! one, in turn: whether a pull request can be merged, and whether it still exists.

use crate::hosts::{Hosts, Refusal, place};
use crate::requests::{branch, merged, merges, number};
use keelway_domain::promotions::{Made, Retry, Seen};
use keelway_engine::ports::Ports;
use keelway_engine::promotions::attempts::{Sight, Task};
use keelway_engine::secrets::Secrets;
use keelway_githosts::{Host, HostError, Look, Merge, Repository, Request, State};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The most pull requests to be merged by Keelway that one look reads. If there are more, they take turns.
const MERGED: usize = 5;

/// The state that a look leaves for the next one, for one secret.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
struct Mark {
    /// The host's mark of its answer. Empty: there is none.
    #[serde(rename = "m")]
    host: String,
    /// The pull requests that were open then. Others are read even if the host reports no change.
    #[serde(rename = "o")]
    open: BTreeSet<u64>,
    /// The pull request whose turn is next. `None`: the list contained everything.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
}

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
            Err(refusal) => {
                marks.extend(known.map(|known| (secret, known.clone())));
                let of = tasks.first().map(|task| task.of.to_string());
                tracing::warn!(pipeline = of, reason = refusal.why.message, "a repository could not be looked at");
                // A rate limit is not a trouble: the host names the time of the next request.
                if let Retry::At(at) = refusal.retry {
                    sight.not_before = sight.not_before.max(Some(at));
                    continue;
                }
                for n in members {
                    sight.failed[n] = Some(refusal.why.clone());
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
) -> Result<(Vec<Option<Seen>>, Option<Mark>), Refusal> {
    let Some((task, wanted)) = tasks.first().and_then(|task| Some((task, place(task)?))) else { return Ok((vec![], None)) };
    let (host, repository) = hosts.of(task, wanted).await?;
    // Reading a single pull request returns more than a list, and costs the same. Only the list shows whether the repository is
    // missing.
    if let ([task], Some(number)) = (tasks, number(task))
        && let Some(request) = host.get(&repository, number).await?
    {
        return Ok((vec![one(&host, &repository, task, Some(&request)).await?], None));
    }
    let before = before.cloned().unwrap_or_default();
    let numbers: Vec<u64> = tasks.iter().filter_map(|task| number(task)).collect();
    let look = host.list(&repository, &numbers, Some(before.host.as_str()).filter(|mark| !mark.is_empty())).await?;
    let listed: Vec<Option<&Request>> =
        tasks.iter().map(|task| look.requests.iter().flatten().find(|request| is_of(task, request))).collect();
    let (turn, next) = in_turn(tasks, &listed, &look, before.next);
    let (mut all, mut open) = (vec![], BTreeSet::new());
    for (n, (task, listed)) in tasks.iter().zip(listed).enumerate() {
        let known = number(task).is_some_and(|number| before.open.contains(&number));
        let seen = match listed {
            Some(request) if request.state == State::Open && turn.contains(&n) => {
                // A list may lack fields that a single pull request has.
                one(&host, &repository, task, Some(request).filter(|request| request.mergeable == Some(true))).await?
            }
            Some(request) => news(task, request),
            // Nothing has changed, and nothing is left to report.
            None if known && !look.every && !turn.contains(&n) => None,
            None => one(&host, &repository, task, None).await?,
        };
        if !matches!(seen, Some(Seen::Succeeded(_) | Seen::Closed(_) | Seen::Failed(_))) {
            open.extend(number(task));
        }
        all.push(seen);
    }
    Ok((all, Some(Mark { host: look.mark.unwrap_or_default(), open, next })))
}

/// The pull requests that this look reads one by one, and where the next look continues: one for which the list lacks whether it
/// can be merged, and a few of those that Keelway merges itself.
fn in_turn(tasks: &[&Task], listed: &[Option<&Request>], look: &Look, next: Option<usize>) -> (BTreeSet<usize>, Option<usize>) {
    let unsaid = |n: usize| match listed[n] {
        Some(request) => request.mergeable.is_none(),
        None => look.requests.is_some() || next.is_some(),
    };
    let (mut turn, mut others) = (BTreeSet::new(), 0);
    let from = next.unwrap_or_default();
    for n in (0..tasks.len()).map(|n| (from + n) % tasks.len()) {
        if merges(tasks[n]) {
            if turn.len() - others == MERGED {
                return (turn, Some(n));
            }
            turn.insert(n);
        } else if unsaid(n) {
            if others == 1 {
                return (turn, Some(n));
            }
            turn.insert(n);
            others = 1;
        }
    }
    let next = (!turn.is_empty()).then_some(from % tasks.len());
    (turn, next)
}

/// Reads one pull request, unless it was read just now, and merges it if it is to be merged and can be.
async fn one(host: &Host, repository: &Repository, task: &Task, read: Option<&Request>) -> Result<Option<Seen>, HostError> {
    let Some(Made::PullRequest { number, head, .. }) = &task.made else { return Ok(None) };
    let request = match read {
        Some(request) => Some(request.clone()),
        None => host.get(repository, *number).await?,
    };
    let Some(request) = request else {
        return Ok(Some(Seen::Closed("the pull request does not exist any more".into())));
    };
    if merges(task) && request.state == State::Open {
        match host.merge(repository, &request, head).await? {
            Merge::Merged(commit) => return Ok(Some(Seen::Succeeded(merged(&commit)))),
            Merge::Refused(reason) => return Ok(Some(Seen::Failed(format!("it cannot be merged: {reason}")))),
            // A person who adds commits to the branch must merge it.
            Merge::NotYet(_) | Merge::HeadMoved => {}
        }
    }
    Ok(news(task, &request))
}

/// The news about a pull request.
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

fn is_of(task: &Task, request: &Request) -> bool {
    number(task).map_or_else(|| request.branch == branch(task), |number| request.number == number)
}
