//! Deliveries, one line each, in the width there is. Where it is too small, first the columns are given up, then the times of what
//! has passed, then who works on what runs, then words about a stage are cut, then the stages that have passed are only counted;
//! the rest is cut.

use crate::delivery::{Cell, Hint, Line, Mark};
use crate::terminal::{Look, columns, padded};

/// Between two stages.
const GAP: &str = "  ";
/// What is given up for a line to fit.
#[derive(Clone, Copy)]
enum Step {
    /// How long took what has passed.
    Times,
    /// Who works on what runs.
    Who,
    /// The stages that a failure kept from being reached.
    Missed,
    /// Words about a stage beyond so many columns.
    Words(usize),
    /// The names of the first stages, if they have passed.
    Passed,
}
/// One after the other.
const STEPS: [Step; 12] = [
    Step::Times,
    Step::Who,
    Step::Words(60),
    Step::Missed,
    Step::Words(40),
    Step::Words(34),
    Step::Words(30),
    Step::Words(26),
    Step::Words(22),
    Step::Passed,
    Step::Words(16),
    Step::Words(10),
];
/// The longest service and version that are not cut.
const LONGEST: [usize; 2] = [24, 16];

/// Commands below lines that are drawn again, at most: what they are about is above them, and is to stay on the screen.
const COMMANDS: usize = 3;

/// The lines, and below them the commands that would help.
pub fn draw(lines: &[Line], look: &Look) -> Vec<String> {
    let mut drawn = rows(lines, look);
    let all: Vec<Hint> = lines.iter().flat_map(|line| line.hints.clone()).collect();
    drawn.extend(hints(&all[..all.len().min(COMMANDS)], look));
    if let Some(more) = all.len().checked_sub(COMMANDS).filter(|more| *more > 0) {
        drawn.push(look.cut(&format!("{more} more: keelway status"), look.width.unwrap_or(usize::MAX)));
    }
    drawn
}

/// The lines alone.
pub fn rows(lines: &[Line], look: &Look) -> Vec<String> {
    let heads = heads(lines, look);
    let limit = look.width.unwrap_or(usize::MAX);
    let widths = column_widths(lines, look);
    let aligned = |line: &Line| {
        let cells = line.cells.iter().zip(&widths).map(|(cell, width)| (cell.clone(), *width));
        cells.collect::<Vec<_>>()
    };
    let head = heads.iter().map(|head| columns(head)).max().unwrap_or(0);
    let whole = head + widths.iter().map(|width| GAP.len() + width).sum::<usize>();
    let each = lines.iter().zip(&heads);
    each.map(|(line, head)| {
        let cells = if whole <= limit {
            aligned(line)
        } else {
            fitted(line, limit.saturating_sub(columns(head)), look).into_iter().map(|cell| (cell, 0)).collect()
        };
        row(head, &cells, limit, look)
    })
    .collect()
}

/// Service, version and id of each line, as wide as the widest.
fn heads(lines: &[Line], look: &Look) -> Vec<String> {
    let cut = |text: &str, longest: usize| look.cut(text, if look.width.is_some() { longest } else { usize::MAX });
    let words: Vec<[String; 3]> =
        lines.iter().map(|line| [cut(&line.service, LONGEST[0]), cut(&line.version, LONGEST[1]), line.id.clone()]).collect();
    let width = |n: usize| words.iter().map(|words| columns(&words[n])).max().unwrap_or(0);
    let widths = [0, 1, 2].map(width);
    let head = |words: &[String; 3]| {
        let shown = words.iter().zip(widths).filter(|(_, width)| *width > 0).map(|(word, width)| padded(word, width));
        shown.collect::<Vec<_>>().join(GAP)
    };
    words.iter().map(head).collect()
}

fn column_widths(lines: &[Line], look: &Look) -> Vec<usize> {
    let most = lines.iter().map(|line| line.cells.len()).max().unwrap_or(0);
    let width = |n: usize| lines.iter().filter_map(|line| line.cells.get(n)).map(|cell| columns(&text(cell, look))).max();
    (0..most).map(|n| width(n).unwrap_or(0)).collect()
}

/// A stage without colour.
fn text(cell: &Cell, look: &Look) -> String {
    let passed = matches!(cell.mark, Mark::Pass | Mark::Missed);
    let between = if !passed && !cell.what.is_empty() && !cell.time.is_empty() { ", " } else { " " };
    let about = format!("{}{between}{}", cell.what, cell.time);
    format!("{} {} {}", cell.label, cell.mark.sign(look.ascii), about.trim()).trim().to_owned()
}

/// The cells of a line in at most `room` columns, if that is possible at all. What went wrong and what waits is kept longest.
fn fitted(line: &Line, room: usize, look: &Look) -> Vec<Cell> {
    let mut cells = line.cells.clone();
    for step in STEPS {
        if cells.iter().map(|cell| GAP.len() + columns(&text(cell, look))).sum::<usize>() <= room {
            return cells;
        }
        match step {
            Step::Times => cells.iter_mut().filter(|cell| cell.mark == Mark::Pass).for_each(|cell| cell.time.clear()),
            Step::Who => {
                for cell in cells.iter_mut().filter(|cell| cell.mark == Mark::Runs) {
                    cell.what = cell.what.split(" by ").next().unwrap_or_default().to_owned();
                }
            }
            // The failure says why.
            Step::Missed if cells.iter().any(|cell| cell.mark == Mark::Fail) => cells.retain(|cell| cell.mark != Mark::Missed),
            Step::Missed => {}
            Step::Words(most) => cells.iter_mut().for_each(|cell| cell.what = look.cut(&cell.what, most)),
            Step::Passed => {
                let passed = cells.iter().take_while(|cell| cell.mark == Mark::Pass).count();
                if passed > 1 {
                    let label = format!("{passed} stages");
                    cells.splice(..passed, [Cell { label, mark: Mark::Pass, what: String::new(), time: String::new() }]);
                }
            }
        }
    }
    cells
}

/// Head and cells with their colours, cut at `limit`.
fn row(head: &str, cells: &[(Cell, usize)], limit: usize, look: &Look) -> String {
    let (mut drawn, mut used) = (head.to_owned(), columns(head));
    if used > limit {
        return look.cut(head, limit);
    }
    for (n, (cell, width)) in cells.iter().enumerate() {
        let last = n + 1 == cells.len();
        let plain = if last { text(cell, look) } else { padded(&text(cell, look), *width) };
        let room = limit.saturating_sub(used + GAP.len());
        if room < 3 {
            break;
        }
        let plain = look.cut(&plain, room);
        used += GAP.len() + columns(&plain);
        drawn += GAP;
        drawn += &painted(&plain, cell, look);
    }
    drawn.trim_end().to_owned()
}

/// The label stays as it is; the sign and what follows have the colour.
fn painted(plain: &str, cell: &Cell, look: &Look) -> String {
    match plain.split_at_checked(cell.label.len() + 1) {
        Some((label, rest)) => {
            let (words, blanks) = rest.split_at(rest.trim_end().len());
            format!("{label}{}{blanks}", look.paint(cell.mark.colour(), words))
        }
        None => plain.to_owned(),
    }
}

/// The commands that would help, aligned.
pub fn hints(hints: &[Hint], look: &Look) -> Vec<String> {
    let arrow = if look.ascii { "->" } else { "→" };
    let width = hints.iter().map(|hint| columns(&hint.command)).max().unwrap_or(0);
    let limit = look.width.unwrap_or(usize::MAX);
    let hint = |hint: &Hint| {
        let command = format!("{arrow} {}", padded(&hint.command, width.min(44)));
        let line = look.cut(&format!("{command}  {}", hint.about), limit);
        match line.split_at_checked(command.len()) {
            // The command is for copying: rather its explanation is cut.
            Some((command, about)) => format!("{}{}", look.paint(1, command), look.paint(2, about)),
            None => line,
        }
    };
    hints.iter().map(hint).collect()
}
