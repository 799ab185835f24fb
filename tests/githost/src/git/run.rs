//! Runs `git`, and caches its output about objects.

use super::{Git, GitError, failed, is_sha};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{OnceLock, PoisonError};

/// How many bytes fit into every pipe, whether or not they are read.
const SMALL: usize = 4096;

impl Git {
    /// The output of a command that reads. A command that names only objects by their ids is run once, because its output never
    /// changes. `None`: it failed, and is not cached, because the object may be created later.
    pub(super) fn found(&self, arguments: &[&str]) -> Result<Option<Vec<u8>>, GitError> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&arguments.join("\n")).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let found = self.run(arguments, None, &[])?;
        if !found.status.success() {
            return Ok(None);
        }
        if names_only_objects(arguments) {
            self.know(arguments, &found.stdout);
        }
        Ok(Some(found.stdout))
    }

    /// Caches the output of a command.
    pub(super) fn know(&self, arguments: &[&str], says: &[u8]) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(arguments.join("\n"), says.to_vec());
    }

    /// The output of a command that reads, as text.
    pub(super) fn lines(&self, arguments: &[&str]) -> Result<String, GitError> {
        Ok(String::from_utf8_lossy(&self.read(arguments)?).into_owned())
    }

    /// The output of a command that must succeed.
    pub(super) fn read(&self, arguments: &[&str]) -> Result<Vec<u8>, GitError> {
        match self.found(arguments)? {
            Some(found) => Ok(found),
            // Run again for its error message.
            None => self.output(arguments, None, &[]),
        }
    }

    /// Runs a git command in the repository with additional environment, and returns its raw output.
    pub(crate) fn output(&self, arguments: &[&str], input: Option<&[u8]>, more: &[(&str, String)]) -> Result<Vec<u8>, GitError> {
        let output = self.run(arguments, input, more)?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(failed(arguments, String::from_utf8_lossy(&output.stderr).trim().to_owned()))
    }

    pub(super) fn text(&self, arguments: &[&str]) -> Result<String, GitError> {
        Ok(String::from_utf8_lossy(&self.output(arguments, None, &[])?).into_owned())
    }

    pub(super) fn run(
        &self,
        arguments: &[&str],
        input: Option<&[u8]>,
        more: &[(&str, String)],
    ) -> Result<std::process::Output, GitError> {
        let failed = |error: std::io::Error| failed(arguments, error.to_string());
        let mut command = Command::new(program());
        command.current_dir(&self.directory).args(arguments).env_clear();
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null").env("LC_ALL", "C");
        command.env("GIT_DIR", &self.directory).envs(more.iter().map(|(name, value)| (name, value)));
        command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(failed)?;
        let stdin = child.stdin.take().zip(input);
        let feed = move || stdin.map_or(Ok(()), |(mut stdin, input)| stdin.write_all(input));
        let (output, fed) = if input.is_none_or(|input| input.len() <= SMALL) {
            let fed = feed();
            (child.wait_with_output().map_err(failed)?, fed)
        } else {
            // On a thread, because a large input and a large output must not wait for each other.
            std::thread::scope(|scope| {
                let fed = scope.spawn(feed);
                let output = child.wait_with_output().map_err(failed)?;
                Ok((output, fed.join().unwrap_or(Ok(()))))
            })?
        };
        match fed {
            Err(error) if output.status.success() => Err(failed(error)),
            _ => Ok(output),
        }
    }
}

/// The path of `git`. A program that is named by its path is started without copying this process, which costs more than most git
/// commands.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut all = std::env::split_paths(&path).map(|directory| directory.join("git"));
        all.find(|git| git.is_file()).unwrap_or_else(|| "git".into())
    })
}

/// Whether every revision in a command is the id of an object. A path follows `--`.
fn names_only_objects(arguments: &[&str]) -> bool {
    let after = arguments.iter().skip_while(|word| word.starts_with('-')).skip(1).take_while(|word| **word != "--");
    let object = |word: &str| {
        let word = word.strip_prefix('^').unwrap_or(word);
        is_sha(["^{commit}", "^{tree}"].iter().find_map(|suffix| word.strip_suffix(suffix)).unwrap_or(word))
    };
    after.filter(|word| !word.starts_with('-') && !["commit", "blob"].contains(*word)).all(|word| object(word))
}
