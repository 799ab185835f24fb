//! Every part of the bench, with the builds for debugging and a few rounds: whether it works, not what it measures. And the bill,
//! which is the same on every machine.

use std::process::{Command, Stdio};

/// What each part tells. What only some endpoints can do (CPU time, memory) is a note elsewhere.
const PARTS: [&str; 13] = [
    "\nstart to the first runtime request",
    "\ncost, 1 finished sequence in the table",
    "\ncost, 3 waiting on the lane",
    "\nprice, modelled",
    "`finished` accepted to the next `triggered`, 5 samples",
    "one execution's end to the next one's start, 2 samples",
    "observation posted to the attempt's `started`, 1 samples",
    "push posted to the version's offer on the bus",
    "\npromotions, cost of one",
    "\ndeployments, a burst",
    "\nevaluations, cost of one",
    "\nscale, 10,000 deliveries begin in one minute, af-south-1",
    "\nscale, one more delivery of one task, 100 others",
];

/// What is told where there is a browser.
const OF_THE_PAGE: [&str; 3] =
    ["\npage, 1000 services in five stages", "\npage, an hour of Environments, something moves", "read units"];

#[test]
fn a_little_of_every_part() {
    // What it does goes to this test's own output at once: if somebody ends the test, it shows how far the bench came.
    let mut bench = Command::new(env!("CARGO_BIN_EXE_keelway-bench"));
    let bench = bench.arg("short").stdout(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&bench.stdout);
    assert!(bench.status.success(), "{}\n{told}", bench.status);
    for part in PARTS {
        assert!(told.contains(part), "{part:?} is not told:\n{told}");
    }
    if keelway_cloud_tests::browser::wanted() {
        for part in OF_THE_PAGE {
            assert!(told.contains(part), "{part:?} is not told:\n{told}");
        }
    }
    assert!(!told.contains("aim ≤"), "a few rounds are no reason to judge:\n{told}");
}

/// Whoever changes what something costs writes the page anew: `target/debug/keelway-bench bill --write`.
#[test]
fn the_page_of_costs_has_the_bill() {
    let bench = Command::new(env!("CARGO_BIN_EXE_keelway-bench")).arg("bill").output().unwrap();
    assert!(bench.status.success(), "{}", String::from_utf8_lossy(&bench.stderr));
    let bill = String::from_utf8(bench.stdout).unwrap();
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/costs.md")).unwrap();
    let (_, rest) = page.split_once("<!-- The bill: keelway-bench bill --write -->\n").unwrap();
    let (written, _) = rest.split_once("<!-- The end of the bill -->\n").unwrap();
    assert_eq!(written, bill);
}
