//! Reads the log of requests as calls, and compares them with the state of the host.

use crate::log::{Purpose, purpose};
use crate::{CaseHost, Of, REPOSITORY, USER, path};
use keelway_githost::{Pull, State};
use keelway_world::promotions::host::{Call, Trouble, Verb, Word};
use serde_json::json;
use std::collections::BTreeSet;

/// The prefix of the branches of promotions.
const BRANCHES: &str = "promotion/";

/// A call, and whether it had an effect.
struct Made {
    verb: Verb,
    number: Option<u64>,
    happened: bool,
    outcome: String,
}

impl CaseHost {
    /// Takes the present pull requests for the known ones.
    pub(crate) fn remember(&self) {
        let pulls = self.pulls();
        self.books().known = pulls.into_iter().map(|pull| (pull.number, pull)).collect();
    }

    fn pulls(&self) -> Vec<Pull> {
        self.0.host.people().pulls(REPOSITORY).unwrap_or_default()
    }

    /// Reads the log since the last time. Returns whether the fault has hit a request.
    pub(crate) fn settle(&self, of: Option<&Of>, trouble: Option<&(Verb, Trouble)>) -> bool {
        let log = self.0.host.take_calls();
        if log.is_empty() {
            return false;
        }
        self.books().reads += 1;
        if log.iter().all(|call| purpose(call).is_none()) {
            return log.iter().any(|call| call.fault.is_some());
        }
        let pulls = self.pulls();
        let (mut calls, mut hit) = (vec![], false);
        let mut commented = BTreeSet::new();
        for call in &log {
            hit |= call.fault.is_some();
            let (verb, number) = match purpose(call) {
                Some(Purpose::Open) => (Verb::Open, None),
                Some(Purpose::Close(number)) => (Verb::Close, Some(number)),
                Some(Purpose::Merge(number)) => (Verb::Merge, Some(number)),
                Some(Purpose::Comment(number)) => {
                    commented.insert(number);
                    continue;
                }
                Some(Purpose::Branch) | None => continue,
            };
            let word = trouble.filter(|(of, _)| *of == verb).map(|(_, trouble)| trouble.word());
            let killed = matches!(trouble, Some((of, Trouble::Word(Word::Killed))) if *of == verb);
            let refused = matches!(trouble, Some((of, Trouble::Word(Word::Refused))) if *of == verb) && call.status >= 400;
            hit |= refused || killed;
            let outcome = match word {
                Some(word) if call.fault.is_some() || refused || killed => word,
                _ if call.status >= 400 => call.status.to_string(),
                _ => String::new(),
            };
            calls.push(Made { verb, number, happened: call.wrote, outcome });
        }
        self.enter(&calls, of, &pulls);
        self.compare(&calls, &commented, &pulls);
        self.books().known = pulls.into_iter().map(|pull| (pull.number, pull)).collect();
        hit
    }

    /// Records calls, with what is known about their pull requests.
    fn enter(&self, calls: &[Made], of: Option<&Of>, pulls: &[Pull]) {
        let known: BTreeSet<u64> = self.books().known.keys().copied().collect();
        let mut opened = pulls.iter().filter(|pull| pull.author == USER && !known.contains(&pull.number));
        for made in calls {
            let number = if made.verb == Verb::Open && made.happened { opened.next().map(|pull| pull.number) } else { made.number };
            let pull = number.and_then(|number| pulls.iter().find(|pull| pull.number == number));
            if let Some(pull) = pull.filter(|_| made.verb == Verb::Open) {
                match described(pull) {
                    Some(of) => {
                        self.check(pull, &of);
                        self.books().of.insert(pull.number, of);
                    }
                    None => self.complain(format!("a pull request does not say what it is for: {pull:?}")),
                }
            }
            let of = number.and_then(|number| self.books().of.get(&number).cloned()).or_else(|| of.cloned());
            let Some(of) = of else {
                self.complain(format!("a call that is about no promotion: {:?} {number:?} {}", made.verb, made.outcome));
                continue;
            };
            let details = pull.map_or(json!({"pipeline": of.pipeline}), |pull| {
                let comment = pull.comments.iter().rfind(|comment| comment.author == USER).map(|comment| comment.body.as_str());
                json!({
                    "base": pull.base, "branch": pull.head, "repository": self.0.url, "pipeline": of.pipeline, "comment": comment,
                    "head": pull.head_sha,
                })
            });
            self.note(Call {
                verb: made.verb,
                pipeline: of.pipeline,
                environment: of.environment,
                revision: of.revision,
                run: of.run,
                id: pull.and_then(|pull| pull.head.rsplit('/').next()).unwrap_or_default().to_owned(),
                number: number.filter(|_| made.verb != Verb::Open),
                outcome: made.outcome.clone(),
                details,
            });
        }
        for pull in opened {
            self.complain(format!("a pull request that no call explains: {pull:?}"));
        }
    }

    /// Reports changes that no call explains.
    fn compare(&self, calls: &[Made], commented: &BTreeSet<u64>, pulls: &[Pull]) {
        let explained =
            |verb: Verb, number: u64| calls.iter().any(|made| made.verb == verb && made.number == Some(number) && made.happened);
        let mut broken = vec![];
        for pull in pulls {
            let known = self.books().known.get(&pull.number).cloned();
            let before = known.as_ref().map_or(State::Open, |known| known.state);
            let fine = match pull.state {
                state if state == before => true,
                State::Closed => explained(Verb::Close, pull.number),
                State::Merged => explained(Verb::Merge, pull.number),
                State::Open => false,
            };
            if !fine {
                broken.push(format!("no call explains that {} is {:?}", pull.number, pull.state));
            }
            let own = pull.comments.iter().filter(|comment| comment.author == USER).count();
            if own > 1 {
                broken.push(format!("{} has {own} comments of Keelway's: {:?}", pull.number, pull.comments));
            }
            let closing = calls.iter().any(|made| made.verb == Verb::Close && made.number == Some(pull.number));
            if commented.contains(&pull.number) && !closing {
                broken.push(format!("a comment on {}, which is not being closed", pull.number));
            }
            if known.is_some_and(|known| (&known.title, &known.body, &known.base) != (&pull.title, &pull.body, &pull.base)) {
                broken.push(format!("{} was edited", pull.number));
            }
        }
        let failed = calls.iter().any(|made| !made.outcome.is_empty());
        let branches = self.0.host.people().branches(REPOSITORY).unwrap_or_default();
        for (branch, _) in branches.iter().filter(|(branch, _)| branch.starts_with(BRANCHES) && !failed) {
            let of: Vec<_> = pulls.iter().filter(|pull| pull.head == *branch).collect();
            let given_up = of.iter().any(|pull| explained(Verb::Close, pull.number));
            if of.is_empty() || given_up {
                broken.push(format!("the branch {branch} was left"));
            }
        }
        self.books().broken.extend(broken);
    }

    /// Checks that a new pull request changes the version in one file, and nothing else.
    fn check(&self, pull: &Pull, of: &Of) {
        let people = self.0.host.people();
        let wanted = path(of.pipeline.split('/').next_back().unwrap_or_default(), &of.environment);
        let files = |revision: &str| people.files(REPOSITORY, revision).unwrap_or_default();
        let (before, after) = (files(&pull.base_sha), files(&pull.head));
        let changed: Vec<&str> = after.iter().filter(|file| !before.contains(file)).map(|(path, _)| path.as_str()).collect();
        let text =
            |revision: &str| String::from_utf8(people.file(REPOSITORY, revision, &wanted).unwrap_or_default()).unwrap_or_default();
        let (old, new) = (text(&pull.base_sha), text(&pull.head));
        let others = |text: &str| text.lines().filter(|line| !line.starts_with(TAG)).map(str::to_owned).collect::<Vec<_>>();
        let marker = |text: &str| text.split_once(" # ").map(|(_, rest)| rest.to_owned());
        let fine = changed == [wanted.as_str()]
            && before.len() == after.len()
            && version(&new) == of.revision
            && others(&old) == others(&new)
            && marker(&old) == marker(&new);
        if !fine {
            self.complain(format!("pull request {} changes {changed:?} to {new:?}", pull.number));
        }
    }
}

/// The beginning of the line with the version.
const TAG: &str = "  tag: ";

/// The version in a file.
pub(crate) fn version(text: &str) -> &str {
    let line = text.lines().find_map(|line| line.strip_prefix(TAG)).unwrap_or_default();
    let value = line.split_once(" # ").map_or(line, |(value, _)| value).trim();
    value.trim_matches(|c| c == '"' || c == '\'')
}

/// The promotion in the description of a pull request.
fn described(pull: &Pull) -> Option<Of> {
    let mut quoted = pull.body.lines().next()?.split('`').skip(1).step_by(2);
    let mut next = || quoted.next().map(str::to_owned);
    let (pipeline, revision, environment) = (next()?, next()?, next()?);
    let run = pull.body.rsplit_once("(run ")?.1.split(')').next()?.parse().ok()?;
    Some(Of { pipeline, environment, revision, run })
}
