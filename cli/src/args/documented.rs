//! The commands in the manual, the examples and the recipes can be typed, and are spelt as they are spelt now.

use super::{Args, renewed};
use clap::Parser;
use clap::error::ErrorKind;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Files of text below a path.
fn texts(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).unwrap();
        let inside = entries.map(|entry| entry.unwrap().path()).filter(|path| !path.ends_with("decisions"));
        inside.for_each(|path| texts(&path, found));
    } else if path.extension().is_some_and(|ending| ["md", "sh", "yaml", "yml", "py"].iter().any(|known| ending == *known)) {
        found.push(path.to_owned());
    }
}

/// The commands of a text, each from its first word on: at the beginning of a line, behind a pipe, or in a span of code.
fn commands(text: &str) -> Vec<String> {
    let joined = text.split("\\\n").map(str::trim_start).collect::<Vec<_>>().join(" ");
    let begin = |line: &str| {
        let line = line.trim_start().trim_start_matches("$ ").trim_start_matches("- ").trim_start_matches("run: ");
        let piped = line.rsplit_once("| keelway ").map(|(_, rest)| format!("keelway {rest}"));
        piped.or_else(|| line.starts_with("keelway ").then(|| line.to_owned()))
    };
    let spans = joined.split('`').filter(|span| span.starts_with("keelway ")).map(|span| span.replace('\n', " "));
    joined.lines().filter_map(begin).chain(spans).collect()
}

/// The words of a command, as a shell has them: what is quoted, or another command, is one. Two blanks end it: what follows is
/// about it.
fn split(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut depth) = (vec![], String::new(), None, 0);
    for c in command.replace("  ", "\n").chars() {
        match (c, quote) {
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            ('\n', None) if depth == 0 => break,
            (' ', None) if depth == 0 => words.push(std::mem::take(&mut word)),
            (c, _) => {
                depth = (depth + i32::from(c == '(') - i32::from(c == ')')).max(0);
                word.push(c);
            }
        }
    }
    words.push(word);
    words
}

/// What of a command can be typed. A description of several has brackets and alternatives: the first of them is taken.
fn words(command: &str) -> Vec<String> {
    let ends = ["#", "|", "||", "&&", "2>", "&", "→", "or", "and", ";", "…"];
    let is_end = |word: &str| ends.contains(&word) || word.starts_with(['>', '─', '{']);
    let plain = |word: &str| word.trim_matches(|c| "[]()…,.:;".contains(c)).to_owned();
    let first = |word: String| word.split(['|', ']']).next().unwrap_or_default().trim_matches(|c| "[…".contains(c)).to_owned();
    let mut typed = vec![];
    for word in split(command).iter().take_while(|word| !is_end(word)) {
        typed.push(first(plain(word)));
        if word.ends_with(',') {
            break;
        }
    }
    typed.retain(|word| !word.is_empty());
    // `keelway VERB`, and a name that a program puts in.
    if typed.get(1).is_some_and(|verb| verb.starts_with(|c: char| c.is_ascii_uppercase())) { vec![] } else { typed }
}

#[test]
fn every_command_in_the_manual_is_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = vec![];
    ["docs", "examples", "README.md", "infra"].iter().for_each(|of| texts(&root.join(of), &mut files));
    let (mut seen, mut wrong) = (0, vec![]);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for command in commands(&text) {
            let words = words(&command);
            if words.len() < 2 {
                continue;
            }
            let (new, notes) = renewed(words.iter().map(OsString::from));
            let refused = Args::try_parse_from(&new).err().map(|error| (error.kind(), error.to_string()));
            let unknown = refused.filter(|(kind, _)| matches!(kind, ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand));
            let why = notes.into_iter().next().or(unknown.map(|(_, text)| text.lines().next().unwrap_or_default().to_owned()));
            wrong.extend(why.map(|why| format!("{}: {command}: {why}", file.strip_prefix(&root).unwrap().display())));
            seen += 1;
        }
    }
    assert!(wrong.is_empty(), "{} of {seen}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(seen > 200, "{seen}");
}
