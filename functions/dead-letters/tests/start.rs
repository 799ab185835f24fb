//! The function starts with its table alone, whatever else its environment says.

use std::io::Read;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;

#[test]
fn wrong_settings_of_other_functions_do_not_keep_it_from_starting() {
    let runtime = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_keelway-dead-letters"));
    command.env_clear().envs([
        ("AWS_LAMBDA_RUNTIME_API", runtime.local_addr().unwrap().to_string().as_str()),
        ("AWS_LAMBDA_FUNCTION_NAME", "keelway-dead-letters"),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256"),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
        ("AWS_LAMBDA_LOG_GROUP_NAME", "test"),
        ("AWS_LAMBDA_LOG_STREAM_NAME", "test"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("KEELWAY_TABLE", "keelway"),
        ("KEELWAY_START_DEADLINE", "1h 30m"),
        ("KEELWAY_RETENTION_DAYS", "for ever"),
        ("KEELWAY_LOG", "verbose"),
    ]);
    let mut function = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut log = function.stdout.take().unwrap();

    // Whichever comes first: it asks the runtime for work, or its output ends because it does.
    let (said, hear) = channel();
    let asked = said.clone();
    std::thread::spawn(move || {
        let mut request = [0; 64];
        let (mut stream, _) = runtime.accept().unwrap();
        let length = stream.read(&mut request).unwrap();
        asked.send(String::from_utf8_lossy(&request[..length]).into_owned())
    });
    std::thread::spawn(move || {
        let mut lines = String::new();
        log.read_to_string(&mut lines).unwrap();
        said.send(lines)
    });
    let first = hear.recv().unwrap();
    function.kill().unwrap();
    function.wait().unwrap();
    assert!(first.starts_with("GET /2018-06-01/runtime/invocation/next"), "{first}");
}
