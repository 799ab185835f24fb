//! The template and the binaries on an emulator of AWS: all cases, and what only a deployed stack can show.
//!
//! `AWS_ENDPOINT_URL` names an emulator to use; `KEELWAY_TEST_IMAGE` its image for a container; otherwise the checkout's own is
//! started and ended again. Arguments are those of the usual runner: `cargo test -p keelway-cloud-tests --test cloud -- KC-14`.

mod access;
mod approvals;
mod bed;
mod cases;
mod cli;
mod contained;
mod deployers;
mod deployers_fail;
mod deployments;
mod evaluations;
mod examples;
mod failures;
mod keptn_clients;
mod knocks;
mod lanes;
mod models;
mod oracles;
mod page;
mod permissions;
mod promotion_cases;
mod promotions;
mod recipes;
#[path = "../../../keptn/recorded.rs"]
mod recorded;
mod restored;
mod shell;
mod stacks;
mod store;
mod surface;
mod together;
mod trouble;
mod tutorial;
mod webhooks;

use bed::Bed;
use keelway_cloud_tests::runner::{Options, Test, run};
use std::process::ExitCode;
use std::time::Instant;

/// How many tests run side by side: most of the time all of them wait.
const AT_ONCE: usize = 12;

fn tests() -> Vec<Test<Bed>> {
    // What takes longest first, so that the short ones fill the gaps.
    let groups = [
        stacks::tests,
        promotions::tests,
        deployers::tests,
        deployers_fail::tests,
        deployments::tests,
        together::tests,
        tutorial::tests,
        recipes::tests,
        webhooks::tests,
        approvals::tests,
        failures::tests,
        knocks::tests,
        trouble::tests,
        access::tests,
        examples::tests,
        evaluations::tests,
        lanes::tests,
        cli::tests,
        surface::tests,
        keptn_clients::tests,
        contained::tests,
        store::tests,
        cases::tests,
        promotion_cases::tests,
        restored::tests,
        models::tests,
        oracles::tests,
        permissions::tests,
    ];
    spread(page::tests(), groups.into_iter().flat_map(|group| group()).collect())
}

/// Between the others: side by side, those in a browser would wait for each other, since there are few browsers.
fn spread(few: Vec<Test<Bed>>, among: Vec<Test<Bed>>) -> Vec<Test<Bed>> {
    let (step, mut few) = (among.len() / (few.len() + 1) + 1, few.into_iter());
    let mut all = vec![];
    for (place, test) in among.into_iter().enumerate() {
        all.extend((place % step == 0).then(|| few.next()).flatten());
        all.push(test);
    }
    all.extend(few);
    all
}

fn main() -> ExitCode {
    let options = Options::parse(std::env::args().skip(1));
    let tests = tests();
    if options.list {
        for test in tests.iter().filter(|test| options.wants(&test.name)) {
            println!("{}: test", test.name);
        }
        return ExitCode::SUCCESS;
    }
    let wanted = tests.iter().filter(|test| options.wants(&test.name)).count();
    println!("\nrunning {wanted} tests");
    let start = Instant::now();
    if wanted == 0 {
        println!("\ntest result: ok. 0 passed; 0 failed; 0 not run; 0 measured; {} filtered out\n", tests.len());
        return ExitCode::SUCCESS;
    }
    let bed = match Bed::make() {
        Ok(bed) => bed,
        Err(problem) => {
            eprintln!("error: {problem}");
            return ExitCode::FAILURE;
        }
    };
    println!("a stack at {} after {:.1} s", bed.cloud.endpoint, start.elapsed().as_secs_f64());
    let summary =
        run(&tests, &options, options.at_once.unwrap_or(AT_ONCE), &bed, |ability| bed.can(ability), |line| println!("{line}"));
    if !summary.is_fine() {
        bed.keep_logs();
    }
    bed.close();
    summary.print(start.elapsed());
    if summary.is_fine() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
