//! Spellings of earlier versions. They still work, and each says once what it is called now.

use super::named::PROJECT;
use clap::Command;
use std::ffi::OsString;
use std::ops::Range;

/// A flag that has another name now.
struct Flag {
    /// Below these verbs; empty: below all.
    verbs: &'static [&'static [&'static str]],
    old: &'static [&'static str],
    /// `None`: its value is an argument of its own.
    new: Option<&'static str>,
}

const CONTEXTS: &[&[&str]] = &[
    &["pause"],
    &["resume"],
    &["abort"],
    &["approve"],
    &["decline"],
    &["get", "sequences"],
    &["get", "executions"],
    &["get", "execution"],
    &["get", "events"],
];

const FLAGS: &[Flag] = &[
    Flag { verbs: &[], old: &["-n", "--namespace"], new: Some("--project") },
    Flag { verbs: &[], old: &["--all-namespaces"], new: Some("--all-projects") },
    Flag { verbs: &[], old: &["--watch-timeout"], new: Some("--timeout") },
    Flag { verbs: &[&["override"]], old: &["-r", "--reason"], new: Some("--message") },
    Flag { verbs: &[&["trigger"]], old: &["--reason"], new: Some("--message") },
    Flag { verbs: &[&["rollout", "undo"]], old: &["--to-revision"], new: Some("--to") },
    Flag { verbs: CONTEXTS, old: &["-c", "--context"], new: None },
];

/// Verbs that have another name now.
const VERBS: &[(&[&str], &[&str])] = &[
    (&["context"], &["login"]),
    (&["pause", "sequence"], &["pause"]),
    (&["resume", "sequence"], &["resume"]),
    (&["abort", "sequence"], &["abort"]),
    (&["pipeline", "reject"], &["pipeline", "decline"]),
];

/// Flags before the verb whose value is the next word.
const GLOBAL: &[&str] = &["--api", "--token", "--color"];

/// The variable's former name.
const OLD_PROJECT: &str = "KEELWAY_NAMESPACE";

/// The words of a command line as they are written now, and a line about each that was written in the old way. What comes after
/// `--` is somebody else's.
pub fn renewed(words: impl IntoIterator<Item = OsString>) -> (Vec<OsString>, Vec<String>) {
    let words: Vec<OsString> = words.into_iter().collect();
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let (ours, theirs) = words.split_at(end);
    let mut notes = vec![];
    let ours = flags(verbs(ours, &mut notes), &mut notes);
    (ours.into_iter().chain(theirs.iter().cloned()).collect(), notes)
}

/// Where the verb is: the first word after the program's name that is no flag and no value of [`GLOBAL`].
fn verb_place(words: &[OsString]) -> Option<usize> {
    let mut value = false;
    words.iter().enumerate().skip(1).find_map(|(place, word)| {
        let is_flag = word.to_str().is_some_and(|word| word.starts_with('-'));
        let is_value = std::mem::replace(&mut value, GLOBAL.iter().any(|global| word == global));
        (!is_flag && !is_value).then_some(place)
    })
}

/// Where these words are, if the command line's verb is this one.
fn begins(words: &[OsString], verb: &[&str]) -> Option<Range<usize>> {
    let place = verb_place(words)?;
    let range = place..place + verb.len();
    words.get(range.clone())?.iter().zip(verb).all(|(word, verb)| word == *verb).then_some(range)
}

fn verbs(words: &[OsString], notes: &mut Vec<String>) -> Vec<OsString> {
    let mut words = words.to_vec();
    for (old, new) in VERBS {
        let Some(place) = begins(&words, old) else { continue };
        notes.push(format!("`keelway {}` is `keelway {}` now", old.join(" "), new.join(" ")));
        words.splice(place, new.iter().map(OsString::from));
        break;
    }
    words
}

fn flags(words: Vec<OsString>, notes: &mut Vec<String>) -> Vec<OsString> {
    let known: Vec<&Flag> =
        FLAGS.iter().filter(|flag| flag.verbs.is_empty() || flag.verbs.iter().any(|verb| begins(&words, verb).is_some())).collect();
    let mut out: Vec<OsString> = vec![];
    for word in words {
        // A column may be called `-name`.
        let is_column = out.last().is_some_and(|before| before == "--sort-by");
        let renamed = word.to_str().filter(|_| !is_column).and_then(|text| known.iter().find_map(|flag| replaced(text, flag)));
        let Some((old, new, value)) = renamed else {
            out.push(word);
            continue;
        };
        let note = new.map_or_else(
            || format!("`{old}` is not needed any more: write its value alone"),
            |new| format!("`{old}` is `{new}` now"),
        );
        if !notes.contains(&note) {
            notes.push(note);
        }
        out.extend(new.into_iter().map(OsString::from).chain(value.map(OsString::from)));
    }
    out
}

/// An old flag in a word, what it is called now, and the value that the word has, too.
fn replaced<'a>(word: &'a str, flag: &Flag) -> Option<(&'static str, Option<&'static str>, Option<&'a str>)> {
    flag.old.iter().find_map(|old| {
        let rest = word.strip_prefix(old)?;
        let value = match old.strip_prefix("--") {
            _ if rest.is_empty() => None,
            Some(_) => Some(rest.strip_prefix('=')?),
            // `-nshop`
            None => Some(rest.strip_prefix('=').unwrap_or(rest)),
        };
        Some((*old, flag.new, value))
    })
}

/// The definition of the command line, which reads the variable's former name where only that is set.
pub fn with_old_variable(command: Command) -> Command {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if set(PROJECT) || !set(OLD_PROJECT) {
        return command;
    }
    reading(command)
}

fn reading(command: Command) -> Command {
    let subs: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    let command = subs.into_iter().fold(command, |command, sub| command.mut_subcommand(sub, reading));
    command.mut_args(|arg| {
        let ours = arg.get_env().is_some_and(|variable| variable == PROJECT);
        if ours { arg.env(OLD_PROJECT) } else { arg }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renew(line: &str) -> (String, Vec<String>) {
        let (words, notes) = renewed(line.split(' ').map(OsString::from));
        let words: Vec<String> = words.into_iter().map(|word| word.into_string().unwrap()).collect();
        (words.join(" "), notes)
    }

    #[test]
    fn what_was_typed_before_means_what_it_meant() {
        for (old, new) in [
            ("keelway get pipelines -n shop", "keelway get pipelines --project shop"),
            ("keelway get dc -nshop -A", "keelway get dc --project shop -A"),
            ("keelway get dc --namespace=shop", "keelway get dc --project shop"),
            ("keelway pipeline list --all-namespaces", "keelway pipeline list --all-projects"),
            ("keelway watch 139a703f --watch-timeout 30m", "keelway watch 139a703f --timeout 30m"),
            ("keelway abort sequence -c 139a703f --stage dev", "keelway abort 139a703f --stage dev"),
            ("keelway --api http://x pause sequence -p shop --context 139a703f", "keelway --api http://x pause -p shop 139a703f"),
            ("keelway get events -c 139a703f", "keelway get events 139a703f"),
            ("keelway approve -c=139a703f", "keelway approve 139a703f"),
            ("keelway override 139a703f -r INC-7", "keelway override 139a703f --message INC-7"),
            ("keelway pipeline hold carts production -r 1.3.0", "keelway pipeline hold carts production -r 1.3.0"),
            (
                "keelway set triggers carts --from-image carts:latest -c web",
                "keelway set triggers carts --from-image carts:latest -c web",
            ),
            ("keelway pipeline reject carts prod", "keelway pipeline decline carts prod"),
            ("keelway context use eu", "keelway login use eu"),
            ("keelway rollout undo carts --to-revision 3", "keelway rollout undo carts --to 3"),
            ("keelway get dc --sort-by -name", "keelway get dc --sort-by -name"),
            ("keelway deployer -n shop -- ./x.sh -n 3", "keelway deployer --project shop -- ./x.sh -n 3"),
        ] {
            let (renewed, notes) = renew(old);
            assert_eq!(renewed, new);
            assert_eq!(notes.is_empty(), old == new, "{old}: {notes:?}");
        }
        assert_eq!(renew("keelway get dc -n a -n b").1, ["`-n` is `--project` now"], "each is told once");
    }
}
