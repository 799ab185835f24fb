//! The histories of `tests/histories`: the words for each of their executions are kept there, and the web page has to show the
//! same.

use super::{Mark, about};
use keelway_domain::time::Timestamp;
use keelway_wire::http::SequenceState;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// A file.
#[derive(Serialize, Deserialize)]
struct History {
    /// What happened.
    about: String,
    /// The server's clock.
    now: String,
    /// An entry of `GET /v1/sequence/{project}`.
    state: Value,
    /// The words for each execution, in their order.
    words: Vec<Words>,
}

/// What is said of an execution.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Words {
    stage: String,
    mark: String,
    what: String,
    time: String,
}

fn words(history: &History) -> Vec<Words> {
    let state: SequenceState = serde_json::from_value(history.state.clone()).expect(&history.about);
    let now = Some(Timestamp::parse(&history.now).expect("a time"));
    let of = |execution| {
        let (mark, what, time) = about(execution, now);
        let mark = match mark {
            Mark::Pass => "pass",
            Mark::Warning => "warning",
            Mark::Fail => "fail",
            Mark::Held => "held",
            Mark::Waits => "waits",
            Mark::Runs => "runs",
            Mark::Missed => "missed",
        };
        Words { stage: execution.stage.clone(), mark: mark.to_owned(), what, time }
    };
    state.executions.iter().map(of).collect()
}

/// `KEELWAY_WRITE=histories` writes the words of now into the files.
#[test]
fn the_words_are_those_of_the_histories() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/histories");
    let write = std::env::var("KEELWAY_WRITE").is_ok_and(|what| what == "histories");
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "json"));
    assert!(files.len() >= 20, "{} histories", files.len());
    for file in files {
        let mut history: History = serde_json::from_str(&std::fs::read_to_string(&file).unwrap())
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let words = words(&history);
        if write {
            history.words = words;
            std::fs::write(&file, serde_json::to_string_pretty(&history).unwrap() + "\n").unwrap();
        } else {
            assert_eq!(words, history.words, "{}: {}", file.display(), history.about);
        }
    }
}
