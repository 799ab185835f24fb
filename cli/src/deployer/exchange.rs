//! The two files through which a command and this process talk while a deployment runs: one holds what the command is to do, into
//! the other it writes how far it is. A shell script reads the first with `cat`, and appends to the second with `echo`.

use keelway_domain::deployments::MAX_TARGETS;
use keelway_wire::http::deployments::TargetState;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// What may be said about a target.
const STATUSES: [&str; 5] = ["New", "Pending", "Running", "Complete", "Failed"];
/// So much is read at once; a longer line is no line.
const MOST: u64 = 1 << 20;

/// The files of one attempt. They are deleted with it.
pub struct Exchange {
    directory: PathBuf,
    desired: Mutex<String>,
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    /// Up to here the file has been read.
    read: u64,
    /// The last line about each target.
    targets: BTreeMap<String, TargetState>,
}

impl Exchange {
    /// Two new files: what is desired, and an empty one for the progress. Only this user can read them.
    ///
    /// # Errors
    /// When there is no place for temporary files.
    pub fn open(desired: &str) -> io::Result<Self> {
        let directory = std::env::temp_dir().join(format!("keelway-deployer-{}", uuid::Uuid::now_v7()));
        fs::DirBuilder::new().mode(0o700).create(&directory)?;
        let exchange = Self { directory, desired: Mutex::default(), progress: Mutex::default() };
        exchange.tell(desired)?;
        fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(exchange.progress_file())?;
        Ok(exchange)
    }

    /// The file that holds `run`, `pause` or `cancel`.
    pub fn desired_file(&self) -> PathBuf {
        self.directory.join("desired")
    }

    /// The file that the command writes to: `<target> <status> [<message>]` on each line.
    pub fn progress_file(&self) -> PathBuf {
        self.directory.join("progress")
    }

    /// Says what the command is to do. `true`: it is something else than before. Whoever reads sees the old word or the new one.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn tell(&self, desired: &str) -> io::Result<bool> {
        let mut known = self.desired.lock().unwrap_or_else(PoisonError::into_inner);
        if *known == desired {
            return Ok(false);
        }
        let next = self.directory.join("desired.next");
        fs::write(&next, format!("{desired}\n"))?;
        fs::rename(&next, self.desired_file())?;
        desired.clone_into(&mut known);
        Ok(true)
    }

    /// The last line about each target. With `all`, the last line counts without a line feed, too. Every line that says nothing is
    /// given to `wrong`, once.
    pub fn targets(&self, all: bool, mut wrong: impl FnMut(String)) -> BTreeMap<String, TargetState> {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        // A command may delete its file: then it says nothing new.
        let fresh = read_from(&self.progress_file(), progress.read).unwrap_or_default();
        let end = if all { fresh.len() } else { fresh.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1) };
        progress.read += end as u64;
        for line in String::from_utf8_lossy(&fresh[..end]).lines().filter(|line| !line.trim().is_empty()) {
            match read_line(line) {
                Ok((target, _)) if progress.targets.len() >= MAX_TARGETS && !progress.targets.contains_key(&target) => {
                    wrong(format!("target {target:?} is left out: at most {MAX_TARGETS} are told about"));
                }
                Ok((target, state)) => drop(progress.targets.insert(target, state)),
                Err(why) => wrong(why),
            }
        }
        progress.targets.clone()
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.directory).ok();
    }
}

fn read_from(path: &Path, from: u64) -> io::Result<Vec<u8>> {
    let mut file = fs::File::open(path)?;
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = vec![];
    file.take(MOST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// `eu Running two of three functions`
fn read_line(line: &str) -> Result<(String, TargetState), String> {
    let wrong = || {
        let line: String = line.chars().take(100).collect();
        format!("{line:?} tells no progress: write `<target> <status> [<message>]`, with a status of {}", STATUSES.join(", "))
    };
    let (target, rest) = line.trim().split_once(char::is_whitespace).ok_or_else(wrong)?;
    let (status, message) = rest.trim_start().split_once(char::is_whitespace).unwrap_or((rest.trim(), ""));
    let status = STATUSES.iter().find(|known| known.eq_ignore_ascii_case(status)).ok_or_else(wrong)?;
    Ok((target.to_owned(), TargetState { status: (*status).to_owned(), message: message.trim().to_owned() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn append(exchange: &Exchange, text: &str) {
        let mut file = fs::OpenOptions::new().append(true).open(exchange.progress_file()).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    fn state(status: &str, message: &str) -> TargetState {
        TargetState { status: status.into(), message: message.into() }
    }

    #[test]
    fn the_last_line_about_a_target_counts_and_half_a_line_waits() {
        let exchange = Exchange::open("run").unwrap();
        let read = |all: bool| exchange.targets(all, |why| panic!("{why}"));
        assert_eq!(read(false), BTreeMap::new());
        append(&exchange, "eu Running 1 of 3\n\nus new\neu run");
        let first = BTreeMap::from([("eu".to_owned(), state("Running", "1 of 3")), ("us".to_owned(), state("New", ""))]);
        assert_eq!(read(false), first);
        append(&exchange, "ning  2 of 3\nus Complete");
        assert_eq!(read(false)["eu"], state("Running", "2 of 3"));
        assert_eq!(read(false)["us"], state("New", ""));
        assert_eq!(read(true)["us"], state("Complete", ""));
    }

    #[test]
    fn what_tells_nothing_is_told_once_and_the_rest_counts() {
        let exchange = Exchange::open("run").unwrap();
        append(&exchange, "eu\neu Done\nus Complete\n");
        let mut told = vec![];
        let targets = exchange.targets(false, |why| told.push(why));
        assert_eq!(targets, BTreeMap::from([("us".to_owned(), state("Complete", ""))]));
        assert_eq!(told.len(), 2);
        assert!(told[1].contains("\"eu Done\" tells no progress: write `<target> <status> [<message>]`"), "{told:?}");
        exchange.targets(true, |why| panic!("{why}"));
        let many: String = (0..=MAX_TARGETS).map(|n| format!("t{n} New\n")).collect();
        append(&exchange, &many);
        let mut told = vec![];
        assert_eq!(exchange.targets(false, |why| told.push(why)).len(), MAX_TARGETS);
        assert_eq!(told.len(), 2, "{told:?}");
    }

    #[test]
    fn the_desired_word_is_replaced_and_everything_is_deleted_in_the_end() {
        let exchange = Exchange::open("run").unwrap();
        let (file, directory) = (exchange.desired_file(), exchange.directory.clone());
        assert_eq!(fs::read_to_string(&file).unwrap(), "run\n");
        assert!(!exchange.tell("run").unwrap() && exchange.tell("pause").unwrap());
        assert_eq!(fs::read_to_string(&file).unwrap(), "pause\n");
        drop(exchange);
        assert!(!directory.exists());
    }
}
