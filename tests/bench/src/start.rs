//! From a function binary's start to its first request for work, beside a function that does nothing; and the sizes of packages.

use crate::bed::Bed;
use crate::report::{Aim, Report};
use keelway_cloud_tests::Problem;
use keelway_cloud_tests::cloud::binaries;
use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const STARTS: usize = 9;
const FUNCTIONS: [&str; 4] = ["keelway-sequences", "keelway-api", "keelway-sweep", "keelway-dead-letters"];
const EMPTY: &str = "keelway-empty";

/// Functions of one build.
struct Build {
    group: String,
    functions: Vec<(&'static str, PathBuf)>,
}

/// Measures starts and sizes.
pub fn measure(bed: &Bed, report: &mut Report) -> Result<(), Problem> {
    let directory = binaries()?;
    let profile = directory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let packages = directory.parent().unwrap_or(&directory).join("lambda");
    let group = |build: &str| format!("start to the first runtime request, {build} build, p50 of {STARTS}");
    let own = std::iter::once(EMPTY).chain(FUNCTIONS).map(|name| (name, directory.join(name))).collect();
    // What was unpacked goes with this.
    let unpacked = tempfile::tempdir().map_err(|error| Problem::of("a directory for packages", error))?;
    let released = released(&packages, unpacked.path(), report)?;
    let builds = [Build { group: group(&profile), functions: own }, Build { group: group("release"), functions: released }];
    let all: Vec<(&str, &str, &Path)> = builds
        .iter()
        .flat_map(|build| build.functions.iter().map(|(name, path)| (build.group.as_str(), *name, path.as_path())))
        .collect();
    let mut times: Vec<Vec<Duration>> = vec![vec![]; all.len()];
    // In turns, so that a busy moment of the machine hits all of them.
    for _ in 0..STARTS {
        for ((_, _, path), times) in all.iter().zip(&mut times) {
            times.push(one(bed, path)?);
        }
    }
    for ((group, name, _), times) in all.iter().zip(&mut times) {
        times.sort_unstable();
        report.row(group, name, times[times.len() / 2].as_secs_f64() * 1000.0, "ms", Aim::None);
    }
    sizes(&packages, report);
    Ok(())
}

/// The functions as `make package` built them, as far as there are packages and this machine can run them.
fn released(packages: &Path, unpacked: &Path, report: &mut Report) -> Result<Vec<(&'static str, PathBuf)>, Problem> {
    let this = std::env::current_exe().map_err(|error| Problem::of("this executable's own path", error))?;
    let mut found = vec![];
    for name in FUNCTIONS {
        let beside = packages.join(name).join("bootstrap");
        let package = packages.join(name).join("bootstrap.zip");
        let path = match (beside.is_file(), package.is_file()) {
            (true, _) => beside,
            (false, true) => unpack(&package, &unpacked.join(name))?,
            (false, false) => continue,
        };
        if machine(&path)? == machine(&this)? {
            found.push((name, path));
        } else {
            report.note(format!("{} is for another machine: its start is not timed", path.display()));
        }
    }
    Ok(found)
}

/// The machine an ELF file is for: the two bytes of its header that say so.
fn machine(path: &Path) -> Result<[u8; 2], Problem> {
    let wrong = |error: std::io::Error| Problem::of(&path.display().to_string(), error);
    let mut header = [0u8; 20];
    std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut header)).map_err(wrong)?;
    Ok([header[18], header[19]])
}

/// The `bootstrap` of a package, executable. Python can do it, and is there anyway: the local cloud is written in it.
fn unpack(package: &Path, to: &Path) -> Result<PathBuf, Problem> {
    use std::os::unix::fs::PermissionsExt;
    let wrong = |error: std::io::Error| Problem::of(&package.display().to_string(), error);
    let mut python = Command::new(std::env::var_os("PYTHON").unwrap_or("python3".into()));
    let done = python.args(["-m", "zipfile", "-e"]).arg(package).arg(to).output().map_err(wrong)?;
    if !done.status.success() {
        return Err(format!("{}: {}", package.display(), String::from_utf8_lossy(&done.stderr).trim()).into());
    }
    let path = to.join("bootstrap");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).map_err(wrong)?;
    Ok(path)
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
        report.note(format!(
            "no packages of {} in {}: `make package` makes them, then their starts are timed and their sizes told",
            missing.join(", "),
            packages.display()
        ));
    }
}

fn one(bed: &Bed, binary: &Path) -> Result<Duration, Problem> {
    let wrong = |error: std::io::Error| Problem::of(&binary.display().to_string(), error);
    let listener = TcpListener::bind("127.0.0.1:0").map_err(wrong)?;
    let port = listener.local_addr().map_err(wrong)?.port();
    let output = |name: &str| bed.stack.output(name);
    let queue_arn = format!("arn:aws:sqs:us-east-1:000000000000:{}", output("QueueUrl").rsplit('/').next().unwrap_or_default());
    let mut command = Command::new(binary);
    let variables = [
        ("AWS_LAMBDA_RUNTIME_API", format!("127.0.0.1:{port}")),
        ("AWS_LAMBDA_FUNCTION_NAME", "bench".into()),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256".into()),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST".into()),
        ("AWS_LAMBDA_LOG_GROUP_NAME", "bench".into()),
        ("AWS_LAMBDA_LOG_STREAM_NAME", "bench".into()),
        ("AWS_ENDPOINT_URL", bed.cloud.endpoint.clone()),
        ("AWS_REGION", "us-east-1".into()),
        ("AWS_ACCESS_KEY_ID", "test".into()),
        ("AWS_SECRET_ACCESS_KEY", "test".into()),
        ("KEELWAY_TABLE", output("TableName")),
        ("KEELWAY_BUS", output("BusName")),
        ("KEELWAY_SEQUENCES_QUEUE_URL", output("QueueUrl")),
        ("KEELWAY_SEQUENCES_QUEUE_ARN", queue_arn),
        ("KEELWAY_SCHEDULER_GROUP", output("SchedulerGroupName")),
        ("KEELWAY_SCHEDULER_ROLE_ARN", "arn:aws:iam::000000000000:role/bench".into()),
        ("KEELWAY_TOKEN_SHA256", "0".repeat(64)),
    ];
    command.env_clear().envs(variables).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn().map_err(wrong)?;
    let asked = first_request(&listener, &mut child, start);
    drop(child.kill());
    drop(child.wait());
    asked.map_err(|text| format!("{}: {text}", binary.display()).into())
}

fn first_request(listener: &TcpListener, child: &mut std::process::Child, start: Instant) -> Result<Duration, String> {
    listener.set_nonblocking(true).map_err(|error| error.to_string())?;
    while start.elapsed() < Duration::from_secs(20) {
        match listener.accept() {
            Ok((mut stream, _)) => {
                let took = start.elapsed();
                stream
                    .set_nonblocking(false)
                    .and_then(|()| stream.set_read_timeout(Some(Duration::from_secs(5))))
                    .map_err(|error| error.to_string())?;
                let mut text = [0u8; 64];
                let read = stream.read(&mut text).map_err(|error| error.to_string())?;
                let request = String::from_utf8_lossy(&text[..read]).into_owned();
                let asks = request.starts_with("GET /2018-06-01/runtime/invocation/next");
                return if asks { Ok(took) } else { Err(format!("its first request is not for work: {request}")) };
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => std::thread::sleep(Duration::from_micros(200)),
            Err(error) => return Err(error.to_string()),
        }
        if let Ok(Some(status)) = child.try_wait() {
            return Err(format!("it ended with {status} before it asked for work"));
        }
    }
    Err("it asked for no work within 20 s".into())
}
