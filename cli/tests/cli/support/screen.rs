//! A terminal of a given size, and what a person sees on it.

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

/// A command on a terminal of its own.
pub struct Screen {
    child: Child,
    width: usize,
    written: Arc<Mutex<Vec<u8>>>,
    reader: Option<std::thread::JoinHandle<()>>,
}

impl Screen {
    /// Starts it with a terminal as its standard output and error.
    pub fn start(command: &mut Command, width: usize, height: usize) -> Self {
        Self::typing(command, (width, height), None)
    }

    /// Starts it with a terminal on which a person has typed something, if any, before it was asked for.
    pub fn typing(command: &mut Command, (width, height): (usize, usize), typed: Option<&str>) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, vec![]).unwrap();
        let size = Winsize { ws_row: height as u16, ws_col: width as u16, ws_xpixel: 0, ws_ypixel: 0 };
        let slave = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        tcsetwinsize(&slave, size).unwrap();
        command
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            .env_remove("LC_ALL")
            .env_remove("NO_COLOR")
            .env_remove("COLUMNS");
        let mut master = File::from(master);
        if let Some(typed) = typed {
            command.stdin(slave.try_clone().unwrap());
            master.write_all(typed.as_bytes()).unwrap();
        }
        let (out, err) = (Stdio::from(slave.try_clone().unwrap()), Stdio::from(slave));
        let child = command.stdout(out).stderr(err).spawn().unwrap();
        // The parent's copy of the slave goes with the command: then the master ends with the child.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let written: Arc<Mutex<Vec<u8>>> = Arc::default();
        let into = Arc::clone(&written);
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = master.read(&mut buffer) {
                into.lock().unwrap().extend(&buffer[..n]);
            }
        });
        Self { child, width, written, reader: Some(reader) }
    }

    /// Everything that is written, as bytes.
    pub fn written(&self) -> Arc<Mutex<Vec<u8>>> {
        Arc::clone(&self.written)
    }

    /// Everything written so far.
    pub fn raw(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().unwrap()).into_owned()
    }

    /// What stands on the screen now.
    pub fn seen(&self) -> String {
        rendered(&self.raw(), self.width)
    }

    /// Waits until something stands there.
    pub fn wait_for(&self, text: &str) {
        super::until(|| self.seen().contains(text), || format!("{text:?} is seen; it shows\n{}", self.seen()));
    }

    /// Waits for its end: its exit code, and what stands there then.
    pub fn ended(mut self) -> (i32, String) {
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        self.reader.take().unwrap().join().unwrap();
        (code, self.seen())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A terminal's own work: the few escapes that the command uses, and lines that are too long. Every character is one column wide.
pub fn rendered(written: &str, width: usize) -> String {
    let mut rows: Vec<Vec<char>> = vec![vec![]];
    let (mut row, mut column) = (0_usize, 0_usize);
    let mut rest = written.chars();
    while let Some(c) = rest.next() {
        match c {
            '\r' => column = 0,
            '\n' => row += 1,
            '\u{1b}' => {
                assert_eq!(rest.next(), Some('['), "an escape that is not known: {written:?}");
                let mut number = String::new();
                let end = rest.by_ref().find(|c| {
                    if c.is_ascii_digit() || *c == ';' {
                        number.push(*c);
                        false
                    } else {
                        true
                    }
                });
                match end {
                    Some('A') => row = row.saturating_sub(number.parse().unwrap_or(1)),
                    Some('K') => rows[row].truncate(column),
                    Some('J') => {
                        rows[row].truncate(column);
                        rows.truncate(row + 1);
                    }
                    Some('m') => {}
                    other => panic!("an escape that is not known: {other:?} in {written:?}"),
                }
            }
            c => {
                if column == width {
                    (row, column) = (row + 1, 0);
                }
                rows.resize(rows.len().max(row + 1), vec![]);
                let line = &mut rows[row];
                line.resize(line.len().max(column + 1), ' ');
                line[column] = c;
                column += 1;
            }
        }
        rows.resize(rows.len().max(row + 1), vec![]);
    }
    let lines: Vec<String> = rows.into_iter().map(|line| line.into_iter().collect::<String>().trim_end().to_owned()).collect();
    lines.join("\n").trim_end().to_owned()
}
