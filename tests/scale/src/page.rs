//! The tables of `docs/scale.md`, from `infra/quotas.json`: `keelway-bench scale tables` prints them.

use keelway_world::quota::{File, Limit};
use std::fmt::Write;

/// Rates of the last table.
const RATES: [f64; 3] = [100.0, 1_000.0, 10_000.0];

/// What the page has before and after a table.
fn marks(name: &str) -> (String, String) {
    (format!("<!-- table: {name} -->\n"), format!("<!-- end: {name} -->\n"))
}

/// 12,000 and 0.03, as people write them.
fn number(value: f64) -> String {
    if value < 10.0 && value.fract() != 0.0 {
        return format!("{value}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A row of cells.
fn row(cells: impl IntoIterator<Item = String>) -> String {
    cells.into_iter().fold("|".to_owned(), |line, cell| format!("{line} {cell} |")) + "\n"
}

fn head(cells: &[&str]) -> String {
    row(cells.iter().map(|cell| (*cell).to_owned())) + "|" + &"---|".repeat(cells.len()) + "\n"
}

/// The limits, and their figures by region.
fn limits(file: &File, regions: &[&str]) -> String {
    let mut text = head(&[&["limit", "of"][..], regions, &["from"]].concat());
    for limit in &file.limits {
        let figures = regions.iter().map(|region| limit.of_region(region).map_or_else(String::new, number));
        let source = file.sources.get(&limit.source).map_or("", String::as_str);
        let source = if source.starts_with("https:") { format!("[{}]({source})", limit.source) } else { format!("`{source}`") };
        text += &row([limit.what.clone(), limit.of.clone()].into_iter().chain(figures).chain([source]));
    }
    text
}

/// The tasks a second at which each limit binds, the lowest of the largest region first.
fn tasks(file: &File, regions: &[&str]) -> String {
    let mut text = head(&[&["limit", "a task takes"][..], regions, &["what a user sees"]].concat());
    let mut limits: Vec<&Limit> = file.limits.iter().filter(|limit| limit.per_task.is_some()).collect();
    let of = |limit: &Limit, n: usize| regions.get(n).and_then(|region| limit.tasks(region)).unwrap_or(f64::MAX);
    limits.sort_by(|one, other| of(one, 0).total_cmp(&of(other, 0)).then(of(one, 1).total_cmp(&of(other, 1))));
    for limit in limits {
        let figures = regions.iter().map(|region| limit.tasks(region).map_or_else(String::new, number));
        let takes = limit.per_task.map_or_else(String::new, number);
        text += &row([limit.name.clone(), takes].into_iter().chain(figures).chain([limit.seen.clone()]));
    }
    text
}

/// What binds at a rate in a region, and what moves it.
fn binds(file: &File, regions: &[&str]) -> String {
    let mut text = head(&["tasks a second", "region", "what binds: needed, there", "what moves it"]);
    for rate in RATES {
        for region in regions {
            let bound: Vec<(&Limit, f64, f64)> = file
                .limits
                .iter()
                .filter_map(|limit| Some((limit, limit.per_task? * rate, limit.of_region(region)?)))
                .filter(|(_, needed, there)| needed > there)
                .collect();
            let line = |binds: String, moves: &str| row([number(rate), (*region).to_owned(), binds, moves.to_owned()]);
            if bound.is_empty() {
                text += &line("nothing".into(), "");
            }
            for (limit, needed, there) in bound {
                text += &line(format!("{}: {}, {}", limit.name, number(needed), number(there)), &limit.moves);
            }
        }
    }
    text
}

/// The tables by their names.
///
/// # Errors
/// The file cannot be read.
pub fn tables() -> Result<Vec<(&'static str, String)>, String> {
    let file = File::read()?;
    let mut regions: Vec<&str> = file.regions.keys().map(String::as_str).collect();
    let entries = |region: &str| file.figure("putEvents", region).unwrap_or_default();
    regions.sort_by(|one, other| entries(other).total_cmp(&entries(one)));
    Ok(vec![("limits", limits(&file, &regions)), ("tasks", tasks(&file, &regions)), ("binds", binds(&file, &regions))])
}

/// The page with its tables as they should be.
///
/// # Errors
/// The page has no place for one.
pub fn renewed(page: &str) -> Result<String, String> {
    let mut text = page.to_owned();
    for (name, table) in tables()? {
        let (begin, end) = marks(name);
        let missing = || format!("the page has no {begin:?} before {end:?}");
        let from = text.find(&begin).ok_or_else(missing)? + begin.len();
        let to = from + text[from..].find(&end).ok_or_else(missing)?;
        text.replace_range(from..to, &format!("\n{table}\n"));
    }
    Ok(text)
}

/// The tables as text.
///
/// # Errors
/// The file cannot be read.
pub fn printed() -> Result<String, String> {
    let mut text = String::new();
    for (name, table) in tables()? {
        let (begin, end) = marks(name);
        write!(text, "{begin}\n{table}\n{end}\n").map_err(|error| error.to_string())?;
    }
    Ok(text)
}
