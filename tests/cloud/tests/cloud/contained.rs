//! What is said when the local cloud does not come up in its container, and what is left of it then: told to a Docker API that is
//! none.
//!
//! That it does come up is shown by `make test-container`.

use crate::bed::Bed;
use keelway_cloud_tests::problem::ensure;
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Outcome, Problem};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub fn tests() -> Vec<Test<Bed>> {
    vec![
        Test::new("contained::a container that ends is removed, and what it said is the error", ended).needs(&[]),
        Test::new("contained::an engine that does not answer is the error", gone).needs(&[]),
    ]
}

/// A Docker API in which every container has ended with these words.
#[derive(Clone, Default)]
struct Engine {
    asked: Arc<Mutex<Vec<String>>>,
}

const WORDS: &str = "no room for a cloud";

impl Engine {
    fn start() -> Result<(Self, String), Problem> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| Problem::of("engine", error))?;
        let port = listener.local_addr().map_err(|error| Problem::of("engine", error))?.port();
        let engine = Self::default();
        let serving = engine.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serving.serve(&stream);
            }
        });
        Ok((engine, format!("tcp://127.0.0.1:{port}")))
    }

    fn asked(&self) -> MutexGuard<'_, Vec<String>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        let lines: Vec<String> = reader.by_ref().lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
        let length = lines.iter().find_map(|line| line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
        let mut body = vec![0; length.unwrap_or_default()];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let request = lines.first().cloned().unwrap_or_default();
        let has = |part: &str| request.contains(part);
        let (status, answer) = if request.starts_with("DELETE") || has("/start") {
            ("204 No Content", vec![])
        } else if has("/logs") {
            ("200 OK", frame(WORDS))
        } else if has("/containers/create") {
            ("201 Created", br#"{"Id":"ended","Warnings":[]}"#.to_vec())
        } else if has("/containers/") {
            ("200 OK", br#"{"Id":"ended","State":{"Running":false,"ExitCode":1},"NetworkSettings":{"Ports":{}}}"#.to_vec())
        } else {
            ("200 OK", b"{}".to_vec())
        };
        self.asked().push(request);
        let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", answer.len());
        // A client that has gone needs no answer.
        let _gone = (&*stream).write_all(&[head.into_bytes(), answer].concat());
    }
}

/// What was printed to stderr, as the API hands it out: the stream, three zeros, the length.
fn frame(text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap_or_default().to_be_bytes();
    [&[2, 0, 0, 0], &length[..], text.as_bytes()].concat()
}

/// The suite with its cloud in a container of this engine; it ends before its first test.
fn suite(engine: &str) -> Result<Output, Problem> {
    let program = std::env::current_exe().map_err(|error| Problem::of("this executable's own path", error))?;
    let mut command = Command::new(program);
    command.arg("store::").env("DOCKER_HOST", engine).env_remove("AWS_ENDPOINT_URL");
    command.env("KEELWAY_TEST_CONTAINER", "1").env("KEELWAY_TEST_IMAGE", "localhost/keelway-cloud:none");
    // Whoever ends the cloud after it has this end of the pipe, too: all is over when the output is.
    command.output().map_err(|error| Problem::of("the suite", error))
}

fn fails_with(engine: &str, words: &str) -> Outcome {
    let done = suite(engine)?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure(!done.status.success() && said.contains(words), || format!("{words:?} is not the error: {said}"))?;
    ensure(!said.contains("panicked"), || format!("it panics: {said}"))
}

fn ended(_: &Bed) -> Outcome {
    let (engine, url) = Engine::start()?;
    fails_with(&url, &format!("error: the local cloud in its container has ended; it said:\n{WORDS}"))?;
    let asked = engine.asked();
    let removed =
        |request: &String| ["DELETE ", "/containers/ended?", "force=true", "v=true"].into_iter().all(|part| request.contains(part));
    ensure(asked.iter().any(removed), || format!("it stays: {asked:?}"))?;
    let by_name = |request: &String| request.starts_with("DELETE /containers/keelway-test-");
    ensure(asked.iter().any(by_name), || format!("nobody looks whether it stays: {asked:?}"))
}

fn gone(_: &Bed) -> Outcome {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| Problem::of("engine", error))?;
    let port = listener.local_addr().map_err(|error| Problem::of("engine", error))?.port();
    drop(listener);
    fails_with(&format!("tcp://127.0.0.1:{port}"), "error: the Docker API does not answer: ")
}
