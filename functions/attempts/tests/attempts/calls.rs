//! How many requests a git host gets, counted on the strict host.

use crate::requests::{Bench, FILE, FORMS, REPOSITORY, by_request, host_on, secrets};
use crate::stand::carrier;
use keelway_domain::promotions::definition::{PullRequest, Strategy};
use keelway_domain::promotions::{Attempt, Made, Phase, Seen};
use keelway_domain::time::{Span, Timestamp};
use keelway_engine::promotions::Address;
use keelway_engine::promotions::attempts::{Outside, Task};
use keelway_githost::{Action, Call, Fault, Form, Method};
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

/// A repository with so many open pull requests from branches with this prefix, all of one commit, and none changed today.
fn repository(files: &[(&str, &str)], prefix: &str, others: u64) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let host = host_on(Form::Gitea, &directory);
    let people = host.people();
    people.create(REPOSITORY, files).unwrap();
    let git = people.git_directory(REPOSITORY).unwrap();
    if others > 0 {
        people.commit(REPOSITORY, &format!("{prefix}1"), "work", &[("n.txt", Some(b"n\n"))]).unwrap();
        people.open(REPOSITORY, &format!("{prefix}1"), "main", "work").unwrap();
    }
    host.stop();
    if others > 0 {
        // The others are like the first.
        let file = git.with_extension("json");
        let mut known: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let first = known["pulls"]["1"].clone();
        for number in 1..=others {
            let mut pull = first.clone();
            let updated = first["updated"].as_i64().unwrap() - 86_400 + i64::try_from(number).unwrap();
            (pull["number"], pull["head"], pull["updated"]) = (number.into(), format!("{prefix}{number}").into(), updated.into());
            known["pulls"][number.to_string()] = pull;
            if number > 1 {
                std::fs::copy(git.join(format!("refs/heads/{prefix}1")), git.join(format!("refs/heads/{prefix}{number}"))).unwrap();
            }
        }
        known["last"] = others.into();
        std::fs::write(&file, known.to_string()).unwrap();
    }
    directory
}

fn copy_of(directory: &Path) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    let done = std::process::Command::new("cp").arg("-r").arg(directory.join(".")).arg(copy.path()).status().unwrap();
    assert!(done.success());
    copy
}

fn told(calls: &[Call]) -> String {
    calls.iter().map(|call| format!("{} {} {}\n", call.method, call.path, call.status)).collect()
}

/// The requests of one pull request, from the order until Keelway knows that it is merged.
async fn from_order_to_merged(form: (Form, &str), directory: &TempDir, change: impl FnOnce(&mut PullRequest)) -> Vec<Call> {
    let mut merges = false;
    let change = |request: &mut PullRequest| {
        change(request);
        merges = request.merge;
    };
    let mut bench = Bench::on(form, copy_of(directory.path()), change).await;
    bench.host.take_calls();
    bench.runs("dev", "v2").await;
    assert_eq!(bench.phase("staging").await.0, Phase::Created, "{form:?}");
    if !merges {
        let ours = bench.open().into_iter().find(|pull| pull.head.starts_with("promotion/")).unwrap();
        bench.host.people().merge(REPOSITORY, ours.number, Method::Squash).unwrap();
    }
    bench.stand.pass(Span::minutes(1)).await;
    assert_eq!(bench.phase("staging").await.0, Phase::Succeeded, "{form:?}");
    bench.clean();
    bench.host.take_calls()
}

/// Those of GitHub's archives are not its API's.
#[tokio::test]
async fn a_pull_request_takes_so_many_requests_from_the_order_to_merged() {
    for others in [0, 200] {
        let directory = repository(&[("versions.yaml", FILE)], "feature/", others);
        for (form, most) in FORMS.into_iter().zip([5, 6, 6, 7]) {
            let calls = from_order_to_merged(form, &directory, |_| {}).await;
            assert_eq!(calls.len(), most, "{form:?} beside {others}:\n{}", told(&calls));
        }
    }
}

#[tokio::test]
async fn merging_it_and_further_files_take_more_requests() {
    let one = repository(&[("versions.yaml", FILE)], "feature/", 0);
    let two = repository(&[("versions.yaml", FILE), ("more.yaml", FILE)], "feature/", 0);
    let (mut found, mut asked) = (vec![], String::new());
    for form in FORMS {
        let merged = from_order_to_merged(form, &one, |request| request.merge = true).await;
        let files = from_order_to_merged(form, &two, |_| {}).await;
        asked += &format!("{form:?}, merged by Keelway:\n{}two files:\n{}", told(&merged), told(&files));
        found.push((merged.len(), files.len()));
    }
    assert_eq!(found, [(7, 5), (7, 12), (7, 7), (11, 9)], "{asked}");
}

const MANY: u64 = 1000;

/// What is open in the repository, as the engine has it.
fn tasks(bench: &Bench, form: (Form, &str), merge: bool) -> Vec<Task> {
    let strategy = Strategy::PullRequest(PullRequest { merge, ..by_request(form) });
    let task = |pull: keelway_githost::Pull| Task {
        of: Address { namespace: "shop".into(), name: format!("app-{}", pull.number) },
        attempt: Attempt { environment: "prod".into(), run: 1, revision: "v2".into(), attempt: 1, again: 0 },
        strategy: strategy.clone(),
        made: Some(Made::PullRequest {
            number: pull.number,
            url: "u".into(),
            branch: pull.head,
            head: pull.head_sha,
            mergeable: None,
        }),
        since: Timestamp(0),
        authors: vec![],
    };
    bench.open().into_iter().map(task).collect()
}

/// So many looks are made, and the number of requests is that of an hour with one look in each minute.
const LOOKS: usize = 8;

/// Looks at all of them. In the middle, somebody merges one pull request and closes another.
async fn an_hour(form: (Form, &str), directory: &TempDir, merge: bool) -> usize {
    let bench = Bench::on(form, copy_of(directory.path()), |_| {}).await;
    if merge {
        // A check is missing, all the time.
        let status = if form.0 == Form::Bitbucket { 409 } else { 405 };
        let missing = Action::Status { status, retry_after: None, body: None };
        bench.host.fail(Fault::next("write", "*/merge", missing).times(u64::MAX));
    }
    let carrier = carrier(&bench.stand.world, &secrets());
    let mut tasks = tasks(&bench, form, merge);
    assert_eq!(tasks.len() as u64, MANY);
    bench.host.take_calls();
    let (mut mark, mut ended, mut counts) = (None, vec![], vec![]);
    for minute in 0..LOOKS {
        if minute == LOOKS / 2 {
            bench.host.people().merge(REPOSITORY, tasks[3].number(), Method::Squash).unwrap();
            bench.host.people().close(REPOSITORY, tasks[7].number()).unwrap();
        }
        let sight = carrier.look("", &tasks, mark.as_deref()).await.unwrap();
        assert!(sight.failed.iter().all(Option::is_none), "{form:?}: {:?}", sight.failed);
        mark = sight.mark;
        counts.push(bench.host.take_calls().len());
        let over = |seen: &Option<Seen>| matches!(seen, Some(Seen::Succeeded(_) | Seen::Closed(_)));
        ended.extend(sight.requests.iter().enumerate().filter(|(_, seen)| over(seen)).map(|(n, _)| (minute, n)));
        let mut seen = sight.requests.iter();
        tasks.retain(|_| !seen.next().is_some_and(over));
    }
    assert_eq!(ended, [(LOOKS / 2, 3), (LOOKS / 2, 7)], "{form:?}");
    bench.clean();
    // The first look knows nothing yet.
    let most = counts[1..].iter().max().copied().unwrap_or_default();
    println!("{form:?}, merge {merge}: requests of the looks {counts:?}, at most {} an hour", counts[0] + 59 * most);
    counts[0] + 59 * most
}

#[tokio::test]
async fn a_thousand_open_pull_requests_are_watched_with_a_thousand_requests_an_hour() {
    let directory = repository(&[("versions.yaml", FILE)], "promotion/prod/", MANY);
    for form in FORMS {
        let calls = an_hour(form, &directory, false).await;
        assert!(calls <= 1000, "{form:?}: {calls}");
    }
}

/// Each of them is tried in turn.
#[tokio::test]
async fn a_thousand_that_keelway_merges_itself_take_a_thousand_requests_an_hour() {
    let directory = repository(&[("versions.yaml", FILE)], "promotion/prod/", MANY);
    for form in FORMS.into_iter().filter(|form| form.0 != Form::Bitbucket) {
        let calls = an_hour(form, &directory, true).await;
        assert!(calls <= 1000, "{form:?}: {calls}");
    }
}

trait Numbered {
    fn number(&self) -> u64;
}

impl Numbered for Task {
    fn number(&self) -> u64 {
        match &self.made {
            Some(Made::PullRequest { number, .. }) => *number,
            _ => 0,
        }
    }
}
