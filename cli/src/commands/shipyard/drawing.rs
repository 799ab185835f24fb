//! A shipyard as text and as a Mermaid flowchart: stages, sequences, tasks, and what starts what.

use crate::output::one_line;
use keelway_domain::shipyard::{EVALUATION, Sequence, Shipyard, Stage, Task, Trigger};
use serde_json::Value;

/// The longest value of a property that is shown, in characters.
const WIDEST: usize = 80;

/// Stages, sequences and tasks in lines.
pub fn text(shipyard: &Shipyard) -> String {
    let mut lines = vec![];
    for stage in &shipyard.stages {
        lines.push(stage.name.to_string());
        lines.extend(stage.windows.iter().map(|window| format!("  {}", one_line(&window.words(), WIDEST))));
        if stage.sequences.is_empty() {
            lines.push("  no sequence of its own".into());
        }
        for sequence in &stage.sequences {
            let timeout = sequence.timeout.map(|timeout| format!("  timeout {timeout}")).unwrap_or_default();
            let passes = if stage.windows.is_empty() || !sequence.ignores_windows() { "" } else { "  ignores the windows" };
            lines.push(format!("  {}{timeout}{passes}", sequence.name));
            lines.extend(starts(shipyard, stage, sequence).into_iter().map(|line| format!("    {line}")));
            let widest = sequence.tasks.iter().map(|task| task.name.as_str().len()).max().unwrap_or_default();
            for (place, task) in sequence.tasks.iter().enumerate() {
                let line = format!("    {} {:widest$}  {}", place + 1, task.name.as_str(), settings(task));
                lines.push(line.trim_end().to_owned());
            }
        }
    }
    lines.join("\n")
}

fn starts(shipyard: &Shipyard, stage: &Stage, sequence: &Sequence) -> Vec<String> {
    if sequence.triggered_on.is_empty() {
        return vec![format!("on {}.{}.triggered", stage.name, sequence.name)];
    }
    sequence.triggered_on.iter().map(|trigger| format!("on {}{}", trigger.event, condition(shipyard, trigger))).collect()
}

fn condition(shipyard: &Shipyard, trigger: &Trigger) -> String {
    match wanted(shipyard, trigger) {
        wanted if wanted.is_empty() => String::new(),
        wanted => format!(", if {wanted}"),
    }
}

/// `result: fail`, or what an end without a selector needs; empty: nothing.
fn wanted(shipyard: &Shipyard, trigger: &Trigger) -> String {
    let Some(entries) = &trigger.selector else {
        return if Source::of(shipyard, trigger) == Source::Outside { String::new() } else { "result: pass".into() };
    };
    let one = |entry: &keelway_domain::shipyard::Match| {
        let task = entry.task.as_ref().map(|task| format!("{task}.")).unwrap_or_default();
        format!("{task}result: {}", entry.result.as_str())
    };
    entries.iter().map(one).collect::<Vec<_>>().join(" and ")
}

fn settings(task: &Task) -> String {
    let shown = |value: &Value| match value {
        Value::String(text) => one_line(text, WIDEST),
        other => one_line(&other.to_string(), WIDEST),
    };
    let properties = task.properties.iter().map(|(name, value)| format!("{name}: {}", shown(value)));
    let times = [("after", task.triggered_after), ("start deadline", task.start_deadline), ("timeout", task.timeout)];
    let times = times.into_iter().filter_map(|(name, span)| span.map(|span| format!("{name} {span}")));
    properties.chain(times).collect::<Vec<_>>().join(", ")
}

/// Who sends the event of a trigger.
#[derive(Debug, PartialEq, Eq)]
enum Source {
    /// Sequences, by the places of their stage and their own: one, or those that have the task.
    Sequences(Vec<(usize, usize)>),
    /// The sequence `evaluation` of a stage that does not define one.
    Implicit,
    /// Somebody else.
    Outside,
}

impl Source {
    fn of(shipyard: &Shipyard, trigger: &Trigger) -> Self {
        let ended = trigger.event.strip_suffix(".finished").and_then(|name| name.split_once('.'));
        let Some((stage, name)) = ended else { return Self::Outside };
        let Some(place) = shipyard.stages.iter().position(|known| known.name.as_str() == stage) else { return Self::Outside };
        let sequences = &shipyard.stages[place].sequences;
        if let Some(sequence) = sequences.iter().position(|sequence| sequence.name.as_str() == name) {
            return Self::Sequences(vec![(place, sequence)]);
        }
        let has = |sequence: &Sequence| sequence.tasks.iter().any(|task| task.name.as_str() == name);
        let with_task: Vec<(usize, usize)> =
            sequences.iter().enumerate().filter(|(_, sequence)| has(sequence)).map(|(n, _)| (place, n)).collect();
        match (with_task.is_empty(), name) {
            (false, _) => Self::Sequences(with_task),
            (true, EVALUATION) => Self::Implicit,
            (true, _) => Self::Outside,
        }
    }
}

/// A flowchart for Mermaid: a box for each sequence with its tasks, and an arrow for each entry of `triggeredOn`.
pub fn mermaid(shipyard: &Shipyard) -> String {
    let mut lines = vec!["flowchart LR".to_owned()];
    for (place, stage) in shipyard.stages.iter().enumerate() {
        // Mermaid reads `#quot;` as a quotation mark.
        let windows =
            stage.windows.iter().map(|window| format!("<br/>{}", window.words().replace('"', "#quot;").replace('<', "#lt;")));
        lines.push(format!("  subgraph stage{place}[\"{}{}\"]", stage.name, windows.collect::<String>()));
        for (n, sequence) in stage.sequences.iter().enumerate() {
            let tasks: Vec<&str> = sequence.tasks.iter().map(|task| task.name.as_str()).collect();
            lines.push(format!("    s{place}_{n}[\"<b>{}</b><br/>{}\"]", sequence.name, tasks.join("<br/>")));
        }
        if stage.sequences.is_empty() {
            lines.push(format!("    s{place}_none[\"no sequence\"]"));
        }
        lines.push("  end".into());
    }
    let mut events: Vec<&str> = vec![];
    for (place, stage) in shipyard.stages.iter().enumerate() {
        for (n, sequence) in stage.sequences.iter().enumerate() {
            for trigger in &sequence.triggered_on {
                lines.extend(arrows(shipyard, trigger, &mut events).into_iter().map(|from| format!("  {from} s{place}_{n}")));
            }
        }
    }
    for (n, event) in events.iter().enumerate() {
        lines.push(format!("  e{n}([\"{}\"])", plain(event)));
    }
    lines.join("\n")
}

/// Where the arrows of a trigger begin, and what is written on them.
fn arrows<'s>(shipyard: &'s Shipyard, trigger: &'s Trigger, events: &mut Vec<&'s str>) -> Vec<String> {
    let wanted = wanted(shipyard, trigger);
    let Source::Sequences(sequences) = Source::of(shipyard, trigger) else {
        let n = events.iter().position(|known| *known == trigger.event).unwrap_or_else(|| {
            events.push(&trigger.event);
            events.len() - 1
        });
        return vec![format!("e{n} -->{}", label(&wanted))];
    };
    let from = |(stage, n): (usize, usize)| {
        let name = trigger.event.strip_suffix(".finished").and_then(|name| name.split_once('.')).map_or("", |(_, name)| name);
        let of_task = shipyard.stages[stage].sequences[n].name.as_str() != name;
        let told = if of_task { format!("{name} ends with {wanted}") } else { wanted.clone() };
        format!("s{stage}_{n} -->{}", label(&told))
    };
    sequences.into_iter().map(from).collect()
}

/// A text as it stands in a label, where `#35;` and `&amp;` stand for other characters.
fn plain(text: &str) -> String {
    text.replace('#', "#35;").replace('&', "#38;")
}

fn label(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("|\"{text}\"|") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keelway_wire::manifest::{self, Document};

    const SHIPYARD: &str = r#"
apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
spec:
  stages:
  - name: dev
    sequences:
    - name: delivery
      timeout: 2h
      tasks:
      - {name: deployment, properties: {deploymentstrategy: direct, with: [1, a]}}
      - {name: test, triggeredAfter: 30s, startDeadline: 5m, timeout: 1h}
  - name: production
    windows:
    - {kind: deny, from: 2026-12-23T18:00, until: 2027-01-02T08:00, zone: Europe/Berlin, reason: 'the "quiet" days'}
    - {kind: allow, schedule: 0 9 * * MON-THU, duration: 8h}
    sequences:
    - name: delivery
      triggeredOn:
      - event: dev.delivery.finished
      - {event: dev.test.finished, selector: {match: {result: warning}}}
      - dev.evaluation.finished
      tasks: [{name: deployment}]
    - name: rollback
      triggeredOn: [{event: production.delivery.finished, selector: {match: {result: fail, deployment.result: fail}}}]
      tasks: [{name: rollback}]
    - name: remediation
      triggeredOn: [production.problem.open, com.acme.built, a#lt;b&c]
      tasks: [{name: action}]
    - name: other
      triggeredOn: [com.acme.built]
      tasks: [{name: action}]
  - name: empty
"#;

    fn shipyard() -> Shipyard {
        match manifest::parse(SHIPYARD, "-").documents.remove(0) {
            Document::Shipyard(manifest) => manifest.shipyard,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn everything_in_lines() {
        insta::assert_snapshot!(text(&shipyard()));
    }

    #[test]
    fn everything_as_a_flowchart() {
        insta::assert_snapshot!(mermaid(&shipyard()));
    }
}
