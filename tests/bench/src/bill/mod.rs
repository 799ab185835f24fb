//! `keelway-bench bill`: what an idle month costs, and a month of three teams. Amounts are counted in memory and in
//! `infra/template.yaml`, prices are those of `infra/prices.json`. With `--write`, the tables replace those of `docs/costs.md`.

pub mod counted;
mod month;
mod template;

use counted::Over;
use keelway_cloud_tests::Problem;
use month::{Line, Month};
use std::path::Path;
use template::Stack;

const BEGINNING: &str = "<!-- The bill: keelway-bench bill --write -->\n";
const END: &str = "<!-- The end of the bill -->\n";
/// The tasks a day of three teams.
const TEAMS: [f64; 3] = [10.0, 1_000.0, 100_000.0];

/// Prints the bill.
pub fn print() -> Result<(), Problem> {
    print!("{}", text()?);
    Ok(())
}

/// Writes the bill into the page of costs.
pub fn write() -> Result<(), Problem> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/costs.md");
    let wrong = |error: std::io::Error| Problem::of("docs/costs.md", error);
    let page = std::fs::read_to_string(&path).map_err(wrong)?;
    let around = page.split_once(BEGINNING).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) = around.ok_or_else(|| Problem(format!("docs/costs.md lacks {BEGINNING:?} or {END:?}")))?;
    std::fs::write(&path, format!("{before}{BEGINNING}{}{END}{after}", text()?)).map_err(wrong)
}

fn text() -> Result<String, Problem> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Problem::of("the runtime", error))?;
    let (http, bus) = (runtime.block_on(counted::sequence(Over::Http))?, runtime.block_on(counted::sequence(Over::Bus))?);
    let stack = Stack::read()?;
    let sweep = runtime.block_on(counted::idle_sweep(stack.webhooks))?;
    let month = Month { prices: crate::price::prices()?, stack, sweep };
    let idle = month.lines(None, 0.0);
    let mut out = String::from("| An idle month | how many | US dollars |\n|---|---|---|\n");
    for line in &idle {
        line_of(&mut out, &[line.name.clone(), line.amount(), format!("{:.3}", line.dollars)]);
    }
    line_of(&mut out, &["**all**".into(), String::new(), format!("**{:.2}**", all(&idle))]);
    let teams: Vec<Vec<Line>> = TEAMS.iter().map(|tasks| month.lines(Some(&http), *tasks)).collect();
    let heads: Vec<String> = TEAMS.iter().map(|tasks| format!("{} tasks a day", month::grouped(*tasks))).collect();
    out.push('\n');
    line_of(&mut out, &[&["A month in US dollars, over HTTP".to_owned()], heads.as_slice()].concat());
    out.push_str("|---|---|---|---|\n");
    for (n, line) in idle.iter().enumerate() {
        let cells = teams.iter().map(|lines| format!("{:.2}", lines[n].dollars));
        line_of(&mut out, &[line.name.clone()].into_iter().chain(cells).collect::<Vec<_>>());
    }
    let sums = |name: &str, of: &dyn Fn(f64, &[Line]) -> f64, lines: &[Vec<Line>]| {
        let cells = TEAMS.iter().zip(lines).map(|(tasks, lines)| format!("**{:.2}**", of(*tasks, lines)));
        [format!("**{name}**")].into_iter().chain(cells).collect::<Vec<_>>()
    };
    let over_bus: Vec<Vec<Line>> = TEAMS.iter().map(|tasks| month.lines(Some(&bus), *tasks)).collect();
    line_of(&mut out, &sums("all", &|_, lines| all(lines), &teams));
    line_of(&mut out, &sums("all, over the bus", &|_, lines| all(lines), &over_bus));
    let million = |tasks: f64, lines: &[Line]| (all(lines) - all(&idle)) / month.tasks(tasks) * 1e6;
    line_of(&mut out, &sums("a million tasks more, over HTTP", &million, &teams));
    line_of(&mut out, &sums("a million tasks more, over the bus", &million, &over_bus));
    Ok(out)
}

fn all(lines: &[Line]) -> f64 {
    lines.iter().map(|line| line.dollars).sum()
}

fn line_of(out: &mut String, cells: &[String]) {
    out.push_str(&format!("| {} |\n", cells.join(" | ")));
}
