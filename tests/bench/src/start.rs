//! The time from the start of a function's binary to its first request for work, compared with a function that does nothing; and
//! the sizes of packages.
//!
//! Each function has the variables of its deployed twin. Some functions read the table before they ask for work; a stand-in answers
//! at once, because the functions' own time counts, not that of the emulator.

use crate::bed::STANDSTILL;
use crate::load::resident;
use crate::report::{Aim, Report};
use keelway_cloud_tests::raw::Raw;
use keelway_cloud_tests::{Problem, Stack};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const EMPTY: &str = "empty";

/// A binary with its variables.
struct Function {
    name: String,
    variables: BTreeMap<String, String>,
}

/// One start.
struct Start {
    took: Duration,
    resident_mb: f64,
}

/// Measures the starts of the functions of a build, and the sizes.
pub fn measure(stack: &Stack, raw: &Raw, build: &Path, rounds: usize, report: &mut Report) -> Result<(), Problem> {
    let table = stand_in().map_err(|error| Problem::of("a stand-in for the table", error))?;
    let deployed = deployed(stack, raw)?;
    let empty = Function { name: EMPTY.into(), variables: BTreeMap::new() };
    let functions: Vec<&Function> = std::iter::once(&empty).chain(&deployed).collect();
    let mut starts: Vec<Vec<Start>> = functions.iter().map(|_| vec![]).collect();
    // In turns, so that a busy moment of the machine affects all of them.
    for _ in 0..rounds {
        for (function, starts) in functions.iter().zip(&mut starts) {
            starts.push(one(&build.join(function.binary()), &function.variables, &table)?);
        }
    }
    let group = format!("start to the first runtime request, p50 of {rounds}");
    let mut empty = None;
    for (function, starts) in functions.iter().zip(&mut starts) {
        starts.sort_unstable_by_key(|start| start.took);
        let (name, middle) = (function.binary(), &starts[starts.len() / 2]);
        let milliseconds = middle.took.as_secs_f64() * 1000.0;
        report.row(&group, &name, milliseconds, "ms", Aim::None);
        match empty {
            None => empty = Some(milliseconds),
            Some(empty) => report.row(&group, &format!("{name}, times the empty one"), milliseconds / empty, "", Aim::AtMost(1.5)),
        }
        report.row(&group, &format!("{name}, resident memory then"), middle.resident_mb, "MB", Aim::None);
    }
    sizes(&build.with_file_name("lambda"), &deployed, report);
    Ok(())
}

impl Function {
    fn binary(&self) -> String {
        format!("keelway-{}", self.name)
    }
}

/// The functions of this checkout, with the variables that the template has given them in this stack.
fn deployed(stack: &Stack, raw: &Raw) -> Result<Vec<Function>, Problem> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../functions");
    let trouble = |error: std::io::Error| Problem::of("the folder of the functions", error);
    let mut names = vec![];
    for entry in std::fs::read_dir(folder).map_err(trouble)? {
        let entry = entry.map_err(trouble)?;
        if entry.path().join("Cargo.toml").is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort_unstable();
    let function = |name: String| {
        let configuration = stack.wait(raw.function(&format!("{}-{name}", stack.name())))?;
        let variables = configuration["Environment"]["Variables"].as_object().into_iter().flatten();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut variables: BTreeMap<_, _> = variables.map(|(name, value)| (name.clone(), text(value))).collect();
        variables.insert("AWS_LAMBDA_FUNCTION_MEMORY_SIZE".into(), configuration["MemorySize"].to_string());
        Ok(Function { name, variables })
    };
    names.into_iter().map(function).collect()
}

fn sizes(packages: &Path, functions: &[Function], report: &mut Report) {
    let mut missing = vec![];
    for name in functions.iter().map(Function::binary) {
        match std::fs::metadata(packages.join(&name).join("bootstrap.zip")) {
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

/// Starts a server that answers every request with `{}` as long as this process lives, and returns its URL.
fn stand_in() -> std::io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // Functions are ended as soon as they have started, so errors of connections have no meaning.
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

fn one(binary: &Path, own: &BTreeMap<String, String>, table: &str) -> Result<Start, Problem> {
    let wrong = |error: std::io::Error| Problem::of(&binary.display().to_string(), error);
    let listener = TcpListener::bind("127.0.0.1:0").map_err(wrong)?;
    let runtime = listener.local_addr().map_err(wrong)?.to_string();
    // The variables that Lambda sets.
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
    ];
    let mut command = Command::new(binary);
    command.env_clear().envs(variables).envs(own).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn().map_err(wrong)?;
    let asked = first_request(&listener, &mut child, start);
    // Read while the request waits for its answer; without one, the function would end.
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
