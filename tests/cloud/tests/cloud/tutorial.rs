//! `docs/tutorial.md`: every command of it, in one shell, as a newcomer types them.

use crate::bed::Bed;
use crate::shell::{Shell, repository};
use keelway_cloud_tests::problem::ensure;
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Outcome, Problem};

/// What is done for all tests together: the stack is up, and its variables are set.
const DONE: [&str; 3] = ["make up", "eval \"$(make env)\"", "make down"];

pub fn tests() -> Vec<Test<Bed>> {
    vec![
        Test::new("tutorial::every command, in one shell", every_command),
        Test::new("tutorial::what runs in the background has a log of its own, on every page", in_the_background).needs(&[]),
    ]
}

/// The blocks of shell of a page, one after the other.
fn blocks(page: &str) -> String {
    let mut script = String::new();
    let mut inside = false;
    for line in page.lines() {
        match line {
            "```sh" => inside = true,
            "```" => inside = false,
            line if inside && !DONE.contains(&line) => script += &format!("{line}\n"),
            _ => {}
        }
    }
    script
}

fn every_command(bed: &Bed) -> Outcome {
    let page =
        std::fs::read_to_string(repository().join("docs/tutorial.md")).map_err(|error| Problem::of("the tutorial", error))?;
    for done in DONE {
        ensure(page.lines().any(|line| line == done), || format!("the tutorial does not say {done}: take it out of this test"))?;
    }
    let directory = tempfile::tempdir().map_err(|error| Problem::of("a directory", error))?;
    // What a person would see as an error ends the script; executors that are left over end with it.
    let script = format!("set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{}", blocks(&page));
    let output = Shell(bed).script(&script, directory.path())?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let whole = || format!("it ended with {}\n{out}\n{err}", output.status);
    ensure(output.status.success(), whole)?;
    for said in ["an event went around", "the front page is empty", "it did not get through", "decide"] {
        ensure(out.contains(said), || format!("{said:?} is not said: {}", whole()))?;
    }
    // What runs in production is shown after each delivery.
    ensure(out.lines().filter(|line| *line == "web:1.0").count() == 2, whole)
}

/// `watch` draws its lines again in their place. What another program says on the same terminal meanwhile would be drawn over.
fn in_the_background(_: &Bed) -> Outcome {
    let trouble = |error: std::io::Error| Problem::of("the pages", error);
    let mut commands = 0;
    for folder in ["docs", "examples/hello", "examples/shop"] {
        for page in std::fs::read_dir(repository().join(folder)).map_err(trouble)? {
            let page = page.map_err(trouble)?.path();
            if page.extension().is_none_or(|extension| extension != "md") {
                continue;
            }
            let text = std::fs::read_to_string(&page).map_err(trouble)?;
            for line in text.lines().filter(|line| line.trim_start().starts_with("keelway ") && line.ends_with(" &")) {
                commands += 1;
                ensure(line.contains(".log\" 2>&1 &") || line.contains(".log 2>&1 &"), || format!("{}: {line}", page.display()))?;
            }
        }
    }
    ensure(commands >= 4, || format!("only {commands} commands run in the background"))
}
