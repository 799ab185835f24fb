//! From a function binary's start to its first request for work, beside a function that does nothing; and the sizes of packages.
//!
//! The functions read the table once before they ask for work. A stand-in answers that here, at once: what counts is the functions'
//! own time, not the emulator's.

use crate::bed::{STANDSTILL, release};
use crate::load::resident;
use crate::report::{Aim, Report};
use keelway_cloud_tests::Problem;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const STARTS: usize = 15;
const FUNCTIONS: [&str; 4] = ["keelway-sequences", "keelway-api", "keelway-sweep", "keelway-dead-letters"];
const EMPTY: &str = "keelway-empty";

/// One start.
struct Start {
    took: Duration,
    resident_mb: f64,
}

/// Measures starts and sizes.
pub fn measure(report: &mut Report) -> Result<(), Problem> {
    let directory = release()?;
    let table = stand_in().map_err(|error| Problem::of("a stand-in for the table", error))?;
    let names: Vec<&str> = std::iter::once(EMPTY).chain(FUNCTIONS).collect();
    let mut starts: Vec<Vec<Start>> = names.iter().map(|_| vec![]).collect();
    // In turns, so that a busy moment of the machine hits all of them.
    for _ in 0..STARTS {
        for (name, starts) in names.iter().zip(&mut starts) {
            starts.push(one(&directory.join(name), &table)?);
        }
    }
    let group = format!("start to the first runtime request, release build, p50 of {STARTS}");
    let mut empty = None;
    for (name, starts) in names.iter().zip(&mut starts) {
        starts.sort_unstable_by_key(|start| start.took);
        let middle = &starts[starts.len() / 2];
        let milliseconds = middle.took.as_secs_f64() * 1000.0;
        report.row(&group, name, milliseconds, "ms", Aim::None);
        match empty {
            None => empty = Some(milliseconds),
            Some(empty) => report.row(&group, &format!("{name}, times the empty one"), milliseconds / empty, "", Aim::AtMost(1.5)),
        }
        report.row(&group, &format!("{name}, resident memory then"), middle.resident_mb, "MB", Aim::None);
    }
    sizes(&directory.with_file_name("lambda"), report);
    Ok(())
}

fn sizes(packages: &Path, report: &mut Report) {
    let mut missing = vec![];
    for name in FUNCTIONS {
        match std::fs::metadata(packages.join(name).join("bootstrap.zip")) {
            #[expect(clippy::cast_precision_loss, reason = "megabytes with two digits")]
            Ok(file) => {
                report.row("start, sizes of packages", &format!("{name}/bootstrap.zip"), file.len() as f64 / 1e6, "MB", Aim::None)
            }
            Err(_) => missing.push(name),
        }
    }
    if !missing.is_empty() {
        let (names, packages) = (missing.join(", "), packages.display());
        report.note(format!("no packages of {names} in {packages}: `make package` makes them, then their sizes are told"));
    }
}

/// Answers every request with `{}`, for as long as this process lives; its URL.
fn stand_in() -> std::io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // Functions are ended as soon as they have started: how a connection ends says nothing.
            std::thread::spawn(move || drop(answer_all(&stream)));
        }
    });
    Ok(url)
}

fn answer_all(stream: &TcpStream) -> std::io::Result<()> {
    let (mut reader, mut writer) = (BufReader::new(stream), stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            match line.trim().to_ascii_lowercase() {
                header if header.is_empty() => break,
                header => length = header.strip_prefix("content-length:").and_then(|n| n.trim().parse().ok()).unwrap_or(length),
            }
        }
        std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink())?;
        writer.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/x-amz-json-1.0\r\ncontent-length: 2\r\n\r\n{}")?;
    }
}

fn one(binary: &Path, table: &str) -> Result<Start, Problem> {
    let wrong = |error: std::io::Error| Problem::of(&binary.display().to_string(), error);
    let listener = TcpListener::bind("127.0.0.1:0").map_err(wrong)?;
    let runtime = listener.local_addr().map_err(wrong)?.to_string();
    let zeros = "0".repeat(64);
    let variables = [
        ("AWS_LAMBDA_RUNTIME_API", runtime.as_str()),
        ("AWS_LAMBDA_FUNCTION_NAME", "bench"),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256"),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
        ("AWS_LAMBDA_LOG_GROUP_NAME", "bench"),
        ("AWS_LAMBDA_LOG_STREAM_NAME", "bench"),
        ("AWS_ENDPOINT_URL", table),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("KEELWAY_TABLE", "bench"),
        ("KEELWAY_BUS", "bench"),
        ("KEELWAY_SEQUENCES_QUEUE_URL", table),
        ("KEELWAY_SEQUENCES_QUEUE_ARN", "arn:aws:sqs:us-east-1:000000000000:bench"),
        ("KEELWAY_SCHEDULER_GROUP", "bench"),
        ("KEELWAY_SCHEDULER_ROLE_ARN", "arn:aws:iam::000000000000:role/bench"),
        ("KEELWAY_TOKEN_SHA256", &zeros),
    ];
    let mut command = Command::new(binary);
    command.env_clear().envs(variables).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn().map_err(wrong)?;
    let asked = first_request(&listener, &mut child, start);
    // While the request waits for its answer; without one, the function would end.
    let memory = resident(child.id());
    drop(child.kill());
    drop(child.wait());
    let (took, _) = asked.map_err(|text| Problem::of(&binary.display().to_string(), text))?;
    Ok(Start { took, resident_mb: memory?.now_mb })
}

/// When the function asked for work, and the connection on which it waits for it.
fn first_request(listener: &TcpListener, child: &mut Child, start: Instant) -> Result<(Duration, TcpStream), String> {
    let text = |error: std::io::Error| error.to_string();
    listener.set_nonblocking(true).map_err(text)?;
    while start.elapsed() < STANDSTILL {
        match listener.accept() {
            Ok((mut stream, _)) => {
                let took = start.elapsed();
                stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(STANDSTILL))).map_err(text)?;
                let mut request = [0u8; 64];
                let read = stream.read(&mut request).map_err(text)?;
                let request = String::from_utf8_lossy(&request[..read]).into_owned();
                let asks = request.starts_with("GET /2018-06-01/runtime/invocation/next");
                return if asks { Ok((took, stream)) } else { Err(format!("its first request is not for work: {request}")) };
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => std::thread::sleep(Duration::from_micros(100)),
            Err(error) => return Err(error.to_string()),
        }
        if let Ok(Some(status)) = child.try_wait() {
            return Err(format!("it ended with {status} before it asked for work"));
        }
    }
    Err(format!("it asked for no work within {STANDSTILL:?}"))
}
