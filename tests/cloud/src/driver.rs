//! The process of chromedriver.

use crate::patience::LAST_LIMIT;
use crate::problem::Problem;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

/// It and its browsers, which are of its process group, end with whoever started it, however that ends: its input is closed then.
/// Its output ends when it does, because nobody else has it.
const SCRIPT: &str =
    r#"trap "" TERM; exec 3>&1 >/dev/null; (trap - TERM; exec "$0" --port=0 >&3 2>&1 3>&-) & exec 3>&-; cat; kill 0"#;
/// What it says of a port that is its own, before the port.
const READY: &str = "started successfully on port ";
/// What it says before it ends because it chose a port that is free with IPv6 and in use with IPv4. The more connections a test has
/// open, the more often that happens.
const IN_USE: &str = "port not available";
/// How often it may choose.
const CHOICES: usize = 10;

/// A running driver.
pub struct Driver {
    child: Child,
    /// Where it listens, on the loopback interface.
    pub port: String,
}

impl Driver {
    /// Starts it on a free port.
    ///
    /// # Errors
    /// When it does not start, with what it said.
    pub fn start(program: &Path) -> Result<Self, Problem> {
        let mut starts = 1;
        loop {
            match Self::once(program) {
                Err(Problem(said)) if said.contains(IN_USE) && starts < CHOICES => starts += 1,
                done => return done,
            }
        }
    }

    fn once(program: &Path) -> Result<Self, Problem> {
        let wrong = |error: &dyn std::fmt::Display| Problem::of(&program.display().to_string(), error);
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT]).arg(program).env("TZ", "UTC").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| wrong(&error))?;
        let lines = BufReader::new(child.stdout.take().ok_or_else(|| wrong(&"it has no output"))?).lines();
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            let mut lines = lines.map_while(Result::ok);
            let mut said = vec![];
            let port = lines.by_ref().find_map(|line| {
                let port = line.trim_end_matches('.').split_once(READY).map(|(_, port)| port.to_owned());
                said.push(line);
                port
            });
            let ended = || if said.is_empty() { "it ended without a word".to_owned() } else { said.join("\n") };
            drop(tell.send(port.ok_or_else(ended)));
            // To its end: whatever else it says must go somewhere.
            lines.for_each(drop);
        });
        let heard = told.recv_timeout(LAST_LIMIT).unwrap_or_else(|_| Err(format!("it names no port within {LAST_LIMIT:?}")));
        match heard {
            Ok(port) => Ok(Self { child, port }),
            Err(said) => {
                end(&mut child);
                Err(wrong(&said))
            }
        }
    }

    /// Ends it, and its browsers.
    pub fn stop(&mut self) {
        end(&mut self.child);
    }
}

fn end(child: &mut Child) {
    drop(child.stdin.take());
    drop(child.wait());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use tempfile::TempDir;

    /// A program that counts its starts, and says this; `$n` is their number.
    fn program(says: &str) -> TempDir {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("driver");
        let text = format!("#!/bin/sh\necho >>\"$0.starts\"; n=$(wc -l <\"$0.starts\")\n{says}\n");
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
        directory
    }

    fn start(directory: &TempDir) -> Result<Driver, Problem> {
        Driver::start(&directory.path().join("driver"))
    }

    fn starts(directory: &TempDir) -> usize {
        std::fs::read_to_string(directory.path().join("driver.starts")).unwrap().lines().count()
    }

    const REFUSED: &str = "echo Starting; echo 'IPv4 port not available. Exiting...'; exit 1";

    #[test]
    fn a_port_that_is_in_use_is_left_for_another() {
        let says = format!("if [ $n -lt 3 ]; then {REFUSED}; fi\necho was started successfully on port 47$n.; exec sleep 600");
        let directory = program(&says);
        let mut driver = start(&directory).unwrap();
        assert_eq!((driver.port.as_str(), starts(&directory)), ("473", 3));
        driver.stop();
    }

    #[test]
    fn where_every_port_is_in_use_it_says_so() {
        let directory = program(REFUSED);
        let Problem(said) = start(&directory).err().unwrap();
        assert!(said.ends_with("Starting\nIPv4 port not available. Exiting..."), "{said}");
        assert_eq!(starts(&directory), CHOICES);
    }

    #[test]
    fn what_else_it_ends_with_is_told_at_once() {
        let directory = program("echo error while loading shared libraries >&2; exit 127");
        let Problem(said) = start(&directory).err().unwrap();
        assert!(said.ends_with("driver: error while loading shared libraries"), "{said}");
        assert_eq!(starts(&directory), 1);
        let Problem(said) = start(&program("exit 3")).err().unwrap();
        assert!(said.ends_with("driver: it ended without a word"), "{said}");
    }
}
