//! `pipeline explain`: what each environment waits for, what would have to happen, and when it goes on by itself.

use crate::address::Address;
use crate::api::Api;
use crate::args::PipelineExplain;
use crate::delivery::Mark;
use crate::error::CliError;
use crate::output::{one_line, say, say_data};
use crate::terminal::{Look, columns, look, padded};
use crate::words::{ours, revision, span};
use crate::zone::local;
use keelway_domain::time::Timestamp;
use keelway_wire::http::promotions::{Explained, Explanation};

/// No narrower than this, whatever the terminal is.
const NARROWEST: usize = 20;

/// Prints it, for all environments or one.
///
/// # Errors
/// An unknown environment; as the API answers.
pub async fn explain(api: &Api, what: &PipelineExplain) -> Result<(), CliError> {
    let of = Address::of(&what.of.name, what.of.project.project.as_ref());
    let path: Vec<&str> = of.path().into_iter().chain(["explain"]).collect();
    let mut explanation: Explanation = api.get(&path, &[]).await?;
    if let Some(wanted) = &what.environment {
        let known: Vec<String> = explanation.environments.iter().map(|one| one.environment.clone()).collect();
        explanation.environments.retain(|one| one.environment == *wanted);
        if explanation.environments.is_empty() {
            return Err(CliError::Failed(format!("there is no environment {wanted:?} in {of}: it has {}", known.join(", "))));
        }
    }
    let format = what.output.format;
    if format.is_data() {
        return say_data(&explanation, format);
    }
    lines(&explanation, &look()).iter().try_for_each(|line| say(line))
}

fn lines(explanation: &Explanation, look: &Look) -> Vec<String> {
    let carried = explanation.revision.as_deref().map_or_else(|| "no revision yet".to_owned(), revision);
    let mut lines = vec![format!("{}/{}  {carried}", explanation.namespace, explanation.name)];
    let width = explanation.environments.iter().map(|one| columns(&one.environment)).max().unwrap_or(0);
    for one in &explanation.environments {
        lines.extend(environment(explanation, one, width, look));
    }
    lines
}

/// The command that would do what has to happen, if one can.
fn command(of: &str, carried: &str, one: &Explained) -> Option<String> {
    let environment = &one.environment;
    match one.reason.as_str() {
        "ApprovalNeeded" => Some(format!("keelway approve {of}/{environment}@{carried}")),
        "Suspended" => Some(format!("keelway pipeline resume {of}")),
        "Held" => Some(format!("keelway pipeline release {of} {environment}")),
        _ if one.remedy.contains("retry") => Some(format!("keelway pipeline retry {of} {environment}")),
        _ => None,
    }
}

/// A sentence about an environment, and below it what would have to happen, and when.
fn environment(explanation: &Explanation, one: &Explained, width: usize, look: &Look) -> Vec<String> {
    let now = Timestamp::parse(&explanation.now);
    let of = format!("{}/{}", explanation.namespace, explanation.name);
    let carried = explanation.revision.as_deref().map(revision).unwrap_or_default();
    let mark = match one.reason.as_str() {
        _ if one.done => Mark::Pass,
        "ApprovalNeeded" | "Suspended" | "Held" | "PullRequestOpen" => Mark::Held,
        "Rejected" | "Abandoned" | "RevisionAbandoned" | "TargetNotReadable" | "NoPromotionConfigured" | "EvaluationFailed" => {
            Mark::Fail
        }
        _ => Mark::Waits,
    };
    let message = if one.done { "runs it, and is healthy".to_owned() } else { one_line(&one.message, 1000) };
    let opens = one.opens.as_deref().and_then(Timestamp::parse).map(|opens| {
        let left = now.map(|now| format!(", in {}", span((opens - now).0))).unwrap_or_default();
        let word = if ["Soaking", "WindowClosed", "Closing"].contains(&one.reason.as_str()) { "opens" } else { "goes on" };
        format!("{word} {}{left}", local(opens))
    });
    let arrow = if look.ascii { "->" } else { "→" };
    let remedy = (!one.remedy.is_empty()).then(|| format!("{arrow} {}", one_line(&ours(&one.remedy), 1000)));
    let command = command(&of, &carried, one).map(|command| format!("{arrow} {command}"));
    let sign = mark.sign(look.ascii);
    let head = format!("{}  {}", padded(&one.environment, width), look.paint(mark.colour(), sign));
    let indent = width + 2 + columns(sign) + 1;
    let room = look.width.map_or(usize::MAX, |columns| columns.saturating_sub(indent).max(NARROWEST));
    let texts = std::iter::once(message).chain(opens).chain(remedy).chain(command).filter(|text| !text.is_empty());
    let mut lines: Vec<String> =
        texts.flat_map(|text| wrapped(&text, room)).map(|line| format!("{}{line}", " ".repeat(indent))).collect();
    match lines.first_mut() {
        Some(first) => *first = format!("{head} {}", first.trim_start()),
        None => lines.push(head),
    }
    lines
}

/// A text in lines of at most `room` columns, broken between words.
fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if columns(line) + 1 + columns(word) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("averylongword x", 4), ["averylongword", "x"]);
    }
}
