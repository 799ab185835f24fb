//! Every case of promotions that can be told in real time, on the deployed stack, each with a git host of its own, in one
//! of the four forms.

use crate::bed::Bed;
use crate::cases::listed_in;
use keelway_cloud_tests::problem::ensure;
use keelway_cloud_tests::promotions::{PromotionsCloud, why_not};
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Outcome, Problem};
use keelway_githost::Form;
use keelway_githost_cases::{form_of, word};
use keelway_world::case::{Failure, Only, run};
use keelway_world::promotions::{Case, cases};

const FORMS: [Form; 4] = [Form::Gitea, Form::GitHub, Form::GitLab, Form::Bitbucket];
/// A case is told so often at most, if it takes too long.
const TIMES: usize = 4;

pub fn tests() -> Vec<Test<Bed>> {
    let others =
        Test::new("index of promotion cases::every case is listed, and those that are not run here are named", |_: &Bed| {
            let cases = all()?;
            listed_in("tests/cases/promotions/INDEX.md", cases.iter().map(|case| case.id.as_str()))?;
            not_run(&cases)
        });
    let told = all().map(|mut cases| {
        cases.retain(|case| case.only != Some(Only::World) && why_not(case).is_none());
        cases
    });
    match told {
        Ok(cases) => cases.into_iter().map(test).chain([others.needs(&[])]).collect(),
        Err(error) => vec![Test::new("promotion cases", move |_: &Bed| Err(error.clone()))],
    }
}

fn all() -> Result<Vec<Case>, Problem> {
    cases().map_err(|error| Problem(error.to_string()))
}

/// Names what is not run here, and why.
fn not_run(cases: &[Case]) -> Outcome {
    let mut count = 0;
    for case in cases {
        let why = match case.only {
            Some(Only::World) => case.because.as_deref(),
            _ => why_not(case),
        };
        if let Some(why) = why {
            count += 1;
            println!("not run: promotion cases::{}: {why}", case.id);
        }
    }
    println!("{} cases of promotions on the cloud, {count} in memory only", cases.len() - count);
    ensure(count < cases.len(), || "no case of promotions is run".into())
}

fn test(case: Case) -> Test<Bed> {
    Test::new(format!("promotion cases::{}", case.id), move |bed: &Bed| {
        let form = form_of(&case.id, &FORMS, |form| !case.given.without.contains_key(word(form)));
        let form = form.ok_or_else(|| Problem(format!("no form of host is left for {}", case.id)))?;
        let mut told = Ok(());
        for _ in 0..TIMES {
            let mut stand = PromotionsCloud::new((&bed.stack, &bed.observer, bed.cloud.raw()), &case, form)?;
            let ran = run(&case, &mut stand);
            told = outcome(&case, &stand, ran);
            stand.leave();
            // A difference counts if nothing but the case's steps can have made it.
            if told.is_ok() || !stand.was_too_slow() || !stand.trouble().is_empty() {
                break;
            }
            println!("promotion cases::{} is told again: it took too long", case.id);
        }
        told
    })
}

fn outcome(case: &Case, stand: &PromotionsCloud<'_>, told: Result<(), Failure>) -> Outcome {
    let trouble = stand.trouble().join("\n    ");
    let message = match told {
        Ok(()) if trouble.is_empty() => return Ok(()),
        Ok(()) => "the case's own expectations are met".to_owned(),
        Err(failure) => failure.to_string(),
    };
    Err(Problem(format!("{message}\n  {}\n  trouble:\n    {trouble}\n  handled:\n    {}", case.title, stand.story())))
}
