//! The use of the machine by the functions' processes: CPU time under load, resident memory afterwards.
//!
//! CPU time is the user and system time of the functions' processes with all their threads, as the kernel accounts it
//! (`/proc/<pid>/stat`), without the rest of the local cloud. Resident memory is `VmRSS` and `VmHWM` of `/proc/<pid>/status`.

use crate::bed::{Bed, PROJECT, STAGE};
use crate::report::{Aim, Report};
use keelway_cloud_tests::events::Scope;
use keelway_cloud_tests::{Ability, Problem, processes};
use std::collections::HashMap;

const TASKS: usize = 6;
/// The unit in which Linux reports times to programs, whatever its own clock (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;

/// Measures both with this many concurrent sequences, each on a lane of its own, whose messages come in batches; and with a few
/// sequences one after the other, whose messages come alone. The CPU time of a message that comes alone, in milliseconds.
pub fn measure(bed: &Bed, sequences: usize, report: &mut Report) -> Result<Option<f64>, Problem> {
    if !bed.cloud.can(Ability::Processes) {
        report.note(format!("CPU time and memory are not measured: {}", Ability::Processes.missing()));
        return Ok(None);
    }
    let function = bed.stack.output("SequencesFunctionName");
    // Runs once without counting, to start the processes that the load needs.
    play(bed, sequences)?;
    let (seconds, messages) = taken(bed, &function, || play(bed, sequences))?;
    let (alone, of) = taken(bed, &function, || (0..sequences.div_ceil(4)).try_for_each(|_| play(bed, 1)))?;
    #[expect(clippy::cast_precision_loss, reason = "some hundreds")]
    let tasks = (sequences * TASKS) as f64;
    let group = format!("cpu, {sequences} sequences of {TASKS} tasks at once, user and system time of the sequences function");
    report.row(&group, "1,000 tasks, with their sequences", seconds / tasks * 1000.0, "s", Aim::AtMost(5.0));
    report.row(&group, "one message", seconds / messages * 1000.0, "ms", Aim::None);
    report.row(&group, "messages handled", messages, "", Aim::None);
    report.row(&group, "messages in a second of CPU time, in batches of up to ten", messages / seconds, "", Aim::None);
    report.row(&group, "messages in a second of CPU time, one by one", of / alone, "", Aim::None);
    memory(bed, report)?;
    Ok(Some(alone / of * 1000.0))
}

/// The CPU time of a function's processes during some work, in seconds, and the messages handled.
fn taken(bed: &Bed, function: &str, work: impl FnOnce() -> Result<(), Problem>) -> Result<(f64, f64), Problem> {
    let (before, lines) = (times(function)?, bed.observer.line_count());
    work()?;
    let (after, lines) = (times(function)?, bed.observer.line_count() - lines);
    // A new process started at zero.
    let seconds: f64 = after.iter().map(|(pid, seconds)| seconds - before.get(pid).copied().unwrap_or_default()).sum();
    #[expect(clippy::cast_precision_loss, reason = "some hundreds")]
    let messages = lines as f64;
    Ok((seconds, messages))
}

fn play(bed: &Bed, sequences: usize) -> Result<(), Problem> {
    let trigger = |n| bed.trigger(&Scope::new(PROJECT, STAGE, &format!("load-{n}")), TASKS);
    let contexts = (0..sequences).map(trigger).collect::<Result<Vec<_>, _>>()?;
    bed.play_all(&contexts, TASKS)?;
    bed.rest()
}

/// The CPU time of each process of a function so far, in seconds.
fn times(function: &str) -> Result<HashMap<u32, f64>, Problem> {
    let time = |pid: u32| {
        let text = read(pid, "stat")?;
        // The name is in brackets and may contain anything; the fields follow it. User time is the 12th field, system time the
        // 13th.
        let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
        let ticks: f64 = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
        Ok((pid, ticks / TICKS_PER_SECOND))
    };
    processes::of_function(function).into_iter().map(time).collect()
}

/// Resident memory of a process.
#[derive(Debug, Clone, Copy)]
pub struct Resident {
    pub now_mb: f64,
    pub most_mb: f64,
}

/// The present and the largest resident memory of a process.
pub fn resident(pid: u32) -> Result<Resident, Problem> {
    let text = read(pid, "status")?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let kilobytes: Option<f64> = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        kilobytes.map(|kilobytes| kilobytes / 1024.0).ok_or_else(|| Problem(format!("/proc/{pid}/status has no {name}")))
    };
    Ok(Resident { now_mb: field("VmRSS:")?, most_mb: field("VmHWM:")? })
}

fn memory(bed: &Bed, report: &mut Report) -> Result<(), Problem> {
    for (name, output) in [("keelway-sequences", "SequencesFunctionName"), ("keelway-api", "ApiFunctionName")] {
        let pids = processes::of_function(&bed.stack.output(output));
        let all = pids.into_iter().map(resident).collect::<Result<Vec<_>, _>>()?;
        let largest = |of: fn(&Resident) -> f64| all.iter().map(of).fold(0.0, f64::max);
        let group = format!("memory, resident, the largest of {} processes of {name}", all.len());
        report.row(&group, "after the load", largest(|memory| memory.now_mb), "MB", Aim::None);
        report.row(&group, "at its most", largest(|memory| memory.most_mb), "MB", Aim::None);
    }
    Ok(())
}

fn read(pid: u32, file: &str) -> Result<String, Problem> {
    let path = format!("/proc/{pid}/{file}");
    std::fs::read_to_string(&path).map_err(|error| Problem::of(&path, error))
}
