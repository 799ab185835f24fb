//! What waits, as lines: who or what it is, why it does not go on, for how long, and the command that would help. Pure: the API's
//! answer in, words out.

use crate::board;
use crate::delivery::{Cell, Hint, Line, Mark, frozen};
use crate::output::one_line;
use crate::pipeline::due;
use crate::terminal::{Look, columns};
use crate::words::{age, revision, short_ids, version};
use keelway_domain::time::Timestamp;
use keelway_wire::http::{WaitItem, Waits};

/// The groups of the API, and what they are called here.
const GROUPS: [(&str, &str); 3] = [("person", "needs you"), ("failing", "stuck"), ("waiting", "waits")];
/// What a line stands in from its group.
const INDENT: &str = "  ";

/// The groups with their lines, each line with its command below it.
pub fn draw(items: &[WaitItem], now: Option<Timestamp>, look: &Look) -> Vec<String> {
    let contexts: Vec<&str> = items.iter().map(|item| item.context.as_str()).collect();
    let ids = short_ids(&contexts);
    let lines: Vec<Line> = items.iter().zip(&ids).map(|(item, id)| line(item, (id, items), now)).collect();
    let inner = Look { width: look.width.map(|width| width.saturating_sub(INDENT.len())), ..*look };
    let rows = board::rows(&lines, &inner);
    let mut drawn = vec![];
    for (group, title) in GROUPS {
        let of = |n: &usize| items[*n].group == group;
        let mut of_group = (0..items.len()).filter(of).peekable();
        if of_group.peek().is_some() {
            drawn.push(look.paint(1, title));
        }
        for n in of_group {
            drawn.push(format!("{INDENT}{}", rows[n]));
            drawn.extend(lines[n].hints.iter().map(|hint| help(hint, look)));
        }
    }
    drawn
}

/// A command is for copying, so it is not cut; what it is about is said where there is room.
fn help(hint: &Hint, look: &Look) -> String {
    let arrow = if look.ascii { "->" } else { "→" };
    let command = format!("{INDENT}{INDENT}{arrow} {}", hint.command);
    let about = format!("  {}", hint.about);
    let fits = look.width.is_none_or(|width| columns(&command) + columns(&about) <= width);
    let about = if fits && !hint.about.is_empty() { look.paint(2, &about) } else { String::new() };
    format!("{}{about}", look.paint(1, &command))
}

/// Without the times that go on: it changes only when something happens.
pub fn still(items: &[WaitItem], look: &Look) -> Vec<String> {
    draw(items, None, look)
}

fn line(item: &WaitItem, (id, all): (&str, &[WaitItem]), now: Option<Timestamp>) -> Line {
    let mark = match item.group.as_str() {
        "person" => Mark::Held,
        "failing" if !["executor", "answer", "Unclaimed"].contains(&item.reason.as_str()) => Mark::Fail,
        _ => Mark::Waits,
    };
    let of = |name: &str| if item.project.is_empty() { name.to_owned() } else { format!("{}/{name}", item.project) };
    let (subject, place, shown) = match item.engine.as_str() {
        "sequence" => (of(&item.service), item.stage.clone(), item.version.as_deref().map(version)),
        "pipeline" => (of(&item.name), item.environment.clone(), item.version.as_deref().map(revision)),
        "deployment" => {
            (of(&item.name), item.number.map(|n| format!("#{n}")).unwrap_or_default(), item.version.as_deref().map(version))
        }
        "message" => ("dead letter".to_owned(), String::new(), None),
        _ => (of(&item.name), String::new(), None),
    };
    let id = if item.engine == "sequence" { id.to_owned() } else { String::new() };
    // Of an executor that is silent, it is the silence that matters.
    let since = item.heard.as_ref().filter(|_| item.group == "failing").unwrap_or(&item.since);
    let cell = Cell { label: one_line(&place, 60), mark, what: what(item, now), time: age(since, now) };
    let hints = command(item, (&id, all)).map(|command| Hint { command, about: given_up(item, now) }).into_iter().collect();
    Line { service: one_line(&subject, 60), version: shown.unwrap_or_default(), id, cells: vec![cell], hints }
}

/// Why it does not go on.
fn what(item: &WaitItem, now: Option<Timestamp>) -> String {
    let runs = item.from.as_deref().filter(|from| item.version.as_deref() != Some(from));
    let runs = runs.map(|from| if item.engine == "pipeline" { revision(from) } else { version(from) });
    let over = runs.map(|runs| format!(", runs {runs}")).unwrap_or_default();
    let by = if item.by.is_empty() { String::new() } else { format!(" by {}", one_line(&item.by, 40)) };
    let left = |word: &str| due(item.until.as_deref(), now).map(|left| format!(", {word} {left}")).unwrap_or_default();
    let message = one_line(&item.message, 160);
    let why = if message.is_empty() { String::new() } else { format!(": {message}") };
    match (item.engine.as_str(), item.reason.as_str()) {
        ("sequence", "approval") => format!("approval{over}"),
        ("sequence", "resume") => "paused".into(),
        ("sequence", "executor") => match &item.answered_by {
            Some(by) => format!("{}: {} answered without .started{}", item.task, one_line(by, 40), left("counts in")),
            None => format!("{}: no executor", item.task),
        },
        ("sequence", "answer") if item.group == "failing" => {
            format!("{}: nothing heard{}", item.task, by.replacen(" by ", " from ", 1))
        }
        ("sequence", "answer") => format!("{}: waits for a place{}", item.task, by.replacen(" by ", " at ", 1)),
        ("sequence", "window") => frozen(&waits(item), now),
        ("sequence", "delay") => format!("{}{}", item.task, left("due in")),
        ("sequence", "lane") => behind(item),
        ("pipeline", "ApprovalNeeded") => match &item.approval {
            Some(approval) if approval.needed > 1 => format!("{} of {} approvals{over}", approval.given, approval.needed),
            _ => format!("approval{over}"),
        },
        ("pipeline" | "deployment", "Suspended" | "Held") if item.number.is_none() => {
            format!("{}{by}{why}", item.reason.to_lowercase())
        }
        ("deployment", "Held") => format!("holds{why}"),
        ("deployment", "Paused") => format!("paused{by}{why}"),
        ("deployment", "TriggersSuspended") => format!("triggers suspended{by}{why}"),
        ("deployment", "Unclaimed") => "no deployer".into(),
        ("deployment", "AwaitingCancellation") => {
            let heard = item
                .heard
                .as_deref()
                .map(|heard| format!(", last heard{} {} ago", by.replacen(" by ", " from ", 1), age(heard, now)));
            format!("{message}{}", heard.unwrap_or_default())
        }
        ("deployment", "Drifted" | "Unresolved") | ("pipeline", _) => {
            let word = if item.group == "failing" { "again in" } else { "opens in" };
            format!("{message}{}", if item.engine == "pipeline" { left(word) } else { String::new() })
        }
        ("deployment", reason) => {
            if message.is_empty() {
                reason.to_owned()
            } else {
                message
            }
        }
        ("webhook", "unreachable") => "nothing reaches the receiver".into(),
        ("webhook", _) => format!("disabled{why}"),
        ("message", _) => format!("{message}{}", left("sent again in")),
        _ => message,
    }
}

fn behind(item: &WaitItem) -> String {
    let Some(behind) = &item.behind else { return "its turn".into() };
    let version = behind.image.as_deref().map(version).unwrap_or_default();
    let sequence = if behind.sequence == item.sequence { "" } else { &behind.sequence };
    ["behind", &behind.service, &version, sequence].iter().filter(|word| !word.is_empty()).copied().collect::<Vec<_>>().join(" ")
}

fn waits(item: &WaitItem) -> Waits {
    Waits { until: item.until.clone(), window: item.window.clone(), ..Waits::default() }
}

/// The command that would help, if there is one.
fn command(item: &WaitItem, (id, all): (&str, &[WaitItem])) -> Option<String> {
    let WaitItem { project, name, stage, task, environment, .. } = item;
    let of = format!("{project}/{name}");
    let command = match (item.engine.as_str(), item.reason.as_str()) {
        ("sequence", "approval") => {
            let twins = all.iter().filter(|other| other.reason == "approval" && other.context == item.context).count();
            let which = if twins > 1 { format!(" --id {}", item.id) } else { String::new() };
            format!("keelway approve {id} -p {project}{which}")
        }
        ("sequence", "resume") => format!("keelway resume {id} -p {project}"),
        ("sequence", "executor") if item.answered_by.is_none() => {
            format!("keelway executor --name NAME --on {task} -p {project} -- COMMAND")
        }
        ("sequence", "answer") if item.queued && item.group != "failing" => format!("keelway watch {id} -p {project} --log"),
        ("sequence", "answer") => format!("keelway abort {id} -p {project} --stage {stage}"),
        ("sequence", "window") => format!("keelway override {id} -p {project} --stage {stage} -m WHY"),
        ("sequence", "lane") => format!("keelway get queue -p {project} --stage {stage}"),
        ("pipeline", "ApprovalNeeded") => {
            format!("keelway approve {of}/{environment}@{}", item.version.as_deref().map(revision).unwrap_or_default())
        }
        ("pipeline", "Suspended") => format!("keelway pipeline resume {of}"),
        ("pipeline", "Held") => format!("keelway pipeline release {of} {environment}"),
        ("pipeline", _) => match (&item.url, item.group.as_str()) {
            (Some(url), "person") => one_line(url, 500),
            (_, "failing") if !["TargetNotReadable", "NoPromotionConfigured"].contains(&item.reason.as_str()) => {
                format!("keelway pipeline retry {of} {environment}")
            }
            _ => format!("keelway pipeline explain {of}"),
        },
        ("deployment", "Paused") => format!("keelway rollout resume {of}"),
        ("deployment", "TriggersSuspended") => format!("keelway set triggers {of} --resume"),
        ("deployment", "Held") => format!("keelway rollout proceed {of}"),
        ("deployment", "Unclaimed") => format!("keelway deployer --config {of} -- COMMAND"),
        ("deployment", "Drifted" | "AwaitingCancellation" | "Unresolved") => format!("keelway rollout status {of} --no-watch"),
        ("deployment", _) => format!("keelway rollout retry {of}"),
        ("webhook", "unreachable") => format!("keelway webhook deliveries -p {project} --webhook {name}"),
        ("webhook", _) => format!("keelway webhook resume {of}"),
        ("message", _) => format!("keelway dead-letters show {name}"),
        _ => return None,
    };
    Some(command)
}

/// When it is given up, if it is.
fn given_up(item: &WaitItem, now: Option<Timestamp>) -> String {
    let is_given_up = ["executor", "answer", "Unclaimed"].contains(&item.reason.as_str());
    let left = due(item.until.as_deref(), now).filter(|_| is_given_up);
    left.map(|left| format!("given up in {left}")).unwrap_or_default()
}

/// What is said where there is nothing.
pub fn nothing(project: Option<&str>) -> String {
    project.map_or_else(|| "nothing waits".to_owned(), |project| format!("nothing waits in project {project}"))
}

/// What of the list is not whole.
pub fn cut(cut: &[String]) -> Option<String> {
    let names = cut.iter().map(|name| if name == "deadLetters" { "dead letters" } else { name });
    let names = names.collect::<Vec<_>>().join(", ");
    (!cut.is_empty()).then(|| format!("there is more than was looked at, of {names}: -p PROJECT looks at one project"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: Look = Look { width: Some(80), height: 24, colours: false, ascii: false, live: false };

    fn item(group: &str, engine: &str, reason: &str) -> WaitItem {
        let text = str::to_owned;
        WaitItem {
            group: text(group),
            engine: text(engine),
            reason: text(reason),
            project: text("shop"),
            name: text("cart"),
            since: text("2026-11-21T08:00:00.000Z"),
            ..WaitItem::default()
        }
    }

    #[test]
    fn every_reason_has_words() {
        let now = Timestamp::parse("2026-11-21T08:00:12.000Z");
        for (group, engine, reason) in [
            ("person", "sequence", "approval"),
            ("failing", "deployment", "DeployerFailed"),
            ("failing", "deployment", "Unclaimed"),
            ("person", "deployment", "Held"),
            ("waiting", "pipeline", "Soaking"),
            ("failing", "webhook", "gone"),
            ("failing", "message", "deadLetter"),
            ("waiting", "anything", "new"),
        ] {
            let drawn = draw(&[item(group, engine, reason)], now, &LOOK);
            assert!(drawn.len() >= 2 && drawn.iter().any(|line| line.contains("12s")), "{engine} {reason}: {drawn:?}");
        }
    }

    #[test]
    fn a_time_that_goes_on_is_no_change() {
        let items = [item("failing", "deployment", "Unclaimed")];
        assert_eq!(still(&items, &LOOK), still(&items, &LOOK));
        assert!(!still(&items, &LOOK).concat().contains("12s"));
        assert_eq!((cut(&[]), nothing(None)), (None, "nothing waits".into()));
    }
}
