//! Every case, on the deployed stack, in real time.

use crate::bed::Bed;
use crate::shell::repository;
use keelway_cloud_tests::problem::ensure;
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::stand::CloudStand;
use keelway_cloud_tests::stretch::Stretch;
use keelway_cloud_tests::{Outcome, Problem};
use keelway_world::case::{Failure, Only, run};
use keelway_world::sequences::{Case, cases};
use std::collections::BTreeSet;

pub fn tests() -> Vec<Test<Bed>> {
    let index = Test::new("index of cases::every case is listed", listed).needs(&[]);
    match cases() {
        Ok(mut cases) => {
            cases.retain(|case| case.only != Some(Only::World));
            // Those that wait first: the others fill the gaps.
            cases.sort_by_key(|case| std::cmp::Reverse(case.steps.iter().filter(|step| step.wait.is_some()).count()));
            cases.into_iter().map(test).chain([index]).collect()
        }
        Err(error) => vec![Test::new("cases", move |_: &Bed| Err(Problem(error.to_string())))],
    }
}

fn test(case: Case) -> Test<Bed> {
    Test::new(format!("cases::{}", case.id), move |bed: &Bed| {
        let spans = case.steps.iter().any(|step| step.wait.is_some());
        let mut told = Ok(());
        for stretch in Stretch::all() {
            let mut stand = CloudStand::new(&bed.stack, &bed.observer, stretch);
            let ran = run(&case, &mut stand);
            told = outcome(&case, &stand, ran);
            // A failure counts if the case was told; with spans that left its steps no room, it was not.
            if told.is_ok() || !spans || !stand.was_too_slow() {
                break;
            }
            println!("cases::{} is told again: its steps took too long for {stretch:?}", case.id);
        }
        told
    })
}

fn outcome(case: &Case, stand: &CloudStand<'_>, told: Result<(), Failure>) -> Outcome {
    let trouble = stand.trouble().join("\n    ");
    let message = match told {
        Ok(()) if trouble.is_empty() => return Ok(()),
        Ok(()) => "the case's own expectations are met".to_owned(),
        Err(failure) => failure.to_string(),
    };
    Err(Problem(format!("{message}\n  {}\n  trouble:\n    {trouble}\n  handled:\n    {}", case.title, stand.story())))
}

fn listed(_: &Bed) -> Outcome {
    let cases = cases().map_err(|error| Problem(error.to_string()))?;
    listed_in("tests/cases/sequences/INDEX.md", cases.iter().map(|case| case.id.as_str()))
}

/// Whether an index has a row for each of these cases.
pub fn listed_in<'c>(file: &str, ids: impl Iterator<Item = &'c str>) -> Outcome {
    let index = std::fs::read_to_string(repository().join(file)).map_err(|error| Problem::of(file, error))?;
    // The first cell of a row: `| KC-01 | …`.
    let listed: BTreeSet<&str> =
        index.lines().filter_map(|line| line.strip_prefix('|')?.split('|').next()).map(str::trim).collect();
    let missing: Vec<&str> = ids.filter(|id| !listed.contains(id)).collect();
    ensure(missing.is_empty(), || format!("{file} does not list {}: add a row for each", missing.join(", ")))
}
