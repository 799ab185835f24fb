//! What every engine is held to. Its module says `suite!` with what the engine has; tests of the engine alone follow there.

/// Each part makes the tests of one kind:
///
/// * `cases: held;` every case holds, also with everything twice, and in a fork; and a crash after a read is one after the request
///   before. What is held says `keelway_conformance::held`.
/// * `faults: held[, but: methods];` so it does whatever goes wrong after any request. Requests of all kinds are made, but these.
/// * `seeds: n, variable, simulate;` so many seeds of the simulation keep the invariants. The variable names one to replay.
/// * `seeds without sweeps: n, variable, simulate;` nothing waits for the sweep unless a message was lost.
/// * `plants: name, n, simulate[, cases: finders];` each planted fault is found in so many seeds, or by a case.
macro_rules! suite {
    () => {};
    (cases: $held:expr; $($rest:tt)*) => {
        #[test]
        fn every_case_holds() {
            $held.hold();
        }

        #[test]
        fn every_message_twice_is_once() {
            $held.hold_with_everything_twice();
        }

        #[test]
        fn a_fork_of_a_case_ends_like_the_case() {
            $held.hold_in_forks();
        }

        #[test]
        fn a_crash_after_a_read_is_one_after_the_request_before() {
            $held.hold_after_reads();
        }

        suite! { $($rest)* }
    };
    (faults: $held:expr, but: $methods:expr; $($rest:tt)*) => {
        #[test]
        fn a_fault_after_any_request_changes_nothing() {
            $held.hold_with_a_fault_after_each_request($methods);
        }

        suite! { $($rest)* }
    };
    (faults: $held:expr; $($rest:tt)*) => {
        suite! { faults: $held, but: &[]; $($rest)* }
    };
    (seeds: $count:expr, $variable:literal, $simulate:expr; $($rest:tt)*) => {
        #[test]
        fn every_seed_keeps_the_invariants() {
            sim::hold($count, $variable, |seed, trace| ($simulate)(seed, None, trace));
        }

        #[test]
        fn one_seed() {
            sim::one($variable, |seed, trace| ($simulate)(seed, None, trace));
        }

        #[test]
        fn survey() {
            sim::survey(|seed| ($simulate)(seed, None, false));
        }

        suite! { $($rest)* }
    };
    (seeds without sweeps: $count:expr, $variable:literal, $simulate:expr; $($rest:tt)*) => {
        #[test]
        fn every_seed_comes_to_rest_without_sweeps() {
            sim::hold($count, $variable, |seed, trace| ($simulate)(seed, None, trace));
        }

        #[test]
        fn one_seed_without_sweeps() {
            sim::one($variable, |seed, trace| ($simulate)(seed, None, trace));
        }

        suite! { $($rest)* }
    };
    (plants: $name:literal, $count:expr, $simulate:expr, cases: $cases:expr; $($rest:tt)*) => {
        #[test]
        fn every_planted_fault_is_found() {
            Family { name: $name, plants: Plant::ALL, seeds: $count, simulate: &$simulate, cases: $cases }.find();
        }

        suite! { $($rest)* }
    };
    (plants: $name:literal, $count:expr, $simulate:expr; $($rest:tt)*) => {
        suite! { plants: $name, $count, $simulate, cases: vec![]; $($rest)* }
    };
}
pub(crate) use suite;
