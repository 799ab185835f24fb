//! Every case, on the deployed stack, in real time.

use crate::bed::Bed;
use keelway_cloud_tests::Problem;
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::stand::CloudStand;
use keelway_world::case::{Case, Only, cases, run};

pub fn tests() -> Vec<Test<Bed>> {
    match cases() {
        Ok(mut cases) => {
            cases.retain(|case| case.only != Some(Only::World));
            // Those that wait first: the others fill the gaps.
            cases.sort_by_key(|case| std::cmp::Reverse(case.steps.iter().filter(|step| step.wait.is_some()).count()));
            cases.into_iter().map(test).collect()
        }
        Err(error) => vec![Test::new("cases", move |_: &Bed| Err(Problem(error.to_string())))],
    }
}

fn test(case: Case) -> Test<Bed> {
    Test::new(format!("cases::{}", case.id), move |bed: &Bed| {
        let mut stand = CloudStand::new(&bed.stack, &bed.observer);
        run(&case, &mut stand).map_err(|failure| Problem(format!("{failure}\n  {}\n  handled:\n    {}", case.title, stand.story())))
    })
}
