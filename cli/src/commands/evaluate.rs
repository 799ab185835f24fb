//! `evaluate`: a judgement by hand.

use super::files;
use super::shipyard::draw_all;
use crate::args::Evaluate;
use crate::error::CliError;
use crate::output::{say, say_data};
use crate::table::{Table, print};
use keelway_domain::evaluation::{Aggregate, Indicator, Judged, Slo, Target, judge};
use keelway_domain::event::TaskResult;
use keelway_wire::evaluation;
use keelway_wire::manifest::{self, Checked};
use std::path::Path;
use std::process::ExitCode;

/// The exit code of a warning, as of an executor's command.
const WARNING: u8 = 3;

/// Judges the values of a file.
///
/// # Errors
/// Exit code 2 when a file cannot be read, 1 when Keptn could not read the objectives.
pub fn evaluate(what: &Evaluate) -> Result<ExitCode, CliError> {
    let (Some(file), Some(values)) = (&what.file, &what.values) else {
        return Err(CliError::Usage("give a file of objectives and one of values".into()));
    };
    let objectives = files::read(file)?;
    let slo = match manifest::check(&objectives.text, &objectives.name, None) {
        Checked::Objectives(slo, findings) => {
            draw_all(&findings, &objectives.text);
            slo.ok_or(CliError::Said(1))?
        }
        _ => return Err(CliError::Usage(format!("{} is no file of objectives: it has no `objectives`", objectives.name))),
    };
    let provided = evaluation::provided(&files::read(values)?.text, &slo).map_err(|error| wrong(values, &error))?;
    let earlier = match &what.history {
        Some(path) => evaluation::history(&files::read(path)?.text).map_err(|error| wrong(path, &error))?,
        None => vec![],
    };
    let judged = judge(&slo, &provided, &earlier);
    let format = what.output.format;
    if format.is_data() {
        say_data(&judged.finished, format)?;
    } else {
        let results = judged.finished.evaluation.indicator_results.as_deref().unwrap_or_default();
        if !results.is_empty() {
            print(table(results, &slo), format, "")?;
        }
        summary(&judged, &slo)?;
    }
    judged.notes.iter().for_each(|note| eprintln!("note: {note}"));
    Ok(code(judged.finished.result))
}

/// The exit code of a result.
pub fn code(result: TaskResult) -> ExitCode {
    match result {
        TaskResult::Pass => ExitCode::SUCCESS,
        TaskResult::Warning => ExitCode::from(WARNING),
        TaskResult::Fail => ExitCode::FAILURE,
    }
}

fn wrong(path: &Path, error: &str) -> CliError {
    CliError::Usage(format!("cannot read {}: {error}", path.display()))
}

fn table(results: &[Indicator], slo: &Slo) -> Table {
    let mut table = Table::new(&["SLI", "VALUE", "BEFORE", "CHANGE", "PASS", "WARNING", "WEIGHT", "RESULT"]);
    for (result, objective) in results.iter().zip(&slo.objectives) {
        let value = result.value.as_ref().filter(|value| value.success);
        let before = value.map(|value| value.compared_value).filter(|before| *before != 0.0);
        table.row(vec![
            format!("{}{}", objective.sli, if objective.key { " (key)" } else { "" }),
            value.map(|value| value.value.to_string()).unwrap_or_default(),
            before.map(|before| before.to_string()).unwrap_or_default(),
            value.zip(before).map(|(value, before)| change(value.value, before)).unwrap_or_default(),
            targets(result.pass_targets.as_deref()),
            targets(result.warning_targets.as_deref()),
            if objective.pass.is_empty() { String::new() } else { objective.weight.to_string() },
            result.status.as_str().to_owned(),
        ]);
    }
    table
}

/// By how much a value differs from what it was before.
pub fn change(value: f64, before: f64) -> String {
    format!("{:+.1}%", (value - before) / before.abs() * 100.0)
}

fn targets(targets: Option<&[Target]>) -> String {
    criteria(targets.unwrap_or_default().iter().map(|target| (&*target.criteria, target.target_value, target.violated)))
}

/// Each criterion, its target if that is another number, and whether it is missed.
pub fn criteria<'a>(targets: impl Iterator<Item = (&'a str, f64, bool)>) -> String {
    let one = |(criterion, target, violated): (&str, f64, bool)| {
        let compares = criterion.contains(['+', '-', '%']);
        let number = if compares && target != 0.0 { format!(" = {target}") } else { String::new() };
        format!("{criterion}{number}{}", if violated { " missed" } else { "" })
    };
    targets.map(one).collect::<Vec<_>>().join(", ")
}

fn summary(judged: &Judged, slo: &Slo) -> Result<(), CliError> {
    let finished = &judged.finished;
    let limits = &slo.total_score;
    let warning = if limits.warning.is_empty() { String::new() } else { format!(", warning from {}", limits.warning) };
    say(&format!("{}: score {}, pass from {}{warning}", finished.result.as_str(), finished.evaluation.score, limits.pass))?;
    if !finished.message.is_empty() {
        say(&finished.message)?;
    }
    let of = match slo.comparison.aggregate {
        Aggregate::Average => "their average",
        Aggregate::P50 => "their p50",
        Aggregate::P90 => "their p90",
        Aggregate::P95 => "their p95",
        Aggregate::Unknown => "0, as `aggregate_function` is not known",
    };
    say(&match judged.compared {
        0 => "compared with nothing: there is no earlier evaluation that counts".into(),
        1 => format!("compared with the last evaluation that counts{}", ids(judged)),
        n => format!("compared with {n} evaluations, {of}{}", ids(judged)),
    })
}

fn ids(judged: &Judged) -> String {
    let ids = &judged.finished.evaluation.compared_events;
    if ids.is_empty() { String::new() } else { format!(": {}", ids.join(", ")) }
}
