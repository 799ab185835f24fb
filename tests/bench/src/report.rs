//! The report as a table and as JSON.

use keelway_cloud_tests::Problem;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

/// The aim of a value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Aim {
    /// None: the value is only reported.
    None,
    /// At most this.
    AtMost(f64),
}

/// One value.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    group: String,
    name: String,
    value: f64,
    unit: &'static str,
    aim: Aim,
    #[serde(skip_serializing_if = "Option::is_none")]
    met: Option<bool>,
}

/// All values, and notes about those that could not be measured.
#[derive(Debug, Serialize)]
pub struct Report {
    #[serde(skip)]
    judged: bool,
    rows: Vec<Row>,
    notes: Vec<String>,
}

impl Report {
    /// A report whose values are compared with their aims, or not.
    pub fn new(judged: bool) -> Self {
        Self { judged, rows: vec![], notes: vec![] }
    }

    /// Adds a value.
    pub fn row(&mut self, group: &str, name: &str, value: f64, unit: &'static str, aim: Aim) {
        let aim = if self.judged { aim } else { Aim::None };
        let met = match aim {
            Aim::None => None,
            Aim::AtMost(most) => Some(value <= most),
        };
        self.rows.push(Row { group: group.into(), name: name.into(), value: (value * 1000.0).round() / 1000.0, unit, aim, met });
    }

    /// Adds a sentence.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Writes a file for each group of values.
    pub fn write(&self, directory: &Path) -> Result<(), Problem> {
        let kinds = [
            ("costs", &["cost", "price"][..]),
            ("cpu", &["cpu", "memory"]),
            ("deployments", &["deployments"]),
            ("latency", &["latency"]),
            ("page", &["page"]),
            ("promotions", &["promotions"]),
            ("recovery", &["recovery"]),
            ("scale", &["scale"]),
            ("start", &["start"]),
        ];
        for (file, kinds) in kinds {
            let rows: Vec<&Row> = self.rows.iter().filter(|row| kinds.iter().any(|kind| row.group.starts_with(kind))).collect();
            if !rows.is_empty() {
                write(directory, file, serde_json::to_value(&rows))?;
            }
        }
        Ok(())
    }

    /// Writes these files, and one with all values.
    pub fn write_all(&self, directory: &Path) -> Result<(), Problem> {
        self.write(directory)?;
        write(directory, "bench", serde_json::to_value(self))
    }

    /// Prints the table.
    pub fn print(&self) {
        let width = self.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or_default();
        let mut group = "";
        for row in &self.rows {
            if row.group != group {
                group = &row.group;
                println!("\n{group}");
            }
            let aim = match (row.aim, row.met) {
                (Aim::AtMost(most), Some(met)) => format!("aim ≤ {most:<6} {}", if met { "met" } else { "MISSED" }),
                _ => String::new(),
            };
            println!("  {:<width$}  {:>10.2} {:<5} {aim}", row.name, row.value, row.unit);
        }
        println!();
        for note in &self.notes {
            println!("note: {note}");
        }
    }
}

fn write(directory: &Path, name: &str, value: serde_json::Result<Value>) -> Result<(), Problem> {
    let value = value.map_err(|error| Problem::of(name, error))?;
    let written = std::fs::create_dir_all(directory)
        .and_then(|()| std::fs::write(directory.join(format!("{name}.json")), format!("{value:#}\n")));
    written.map_err(|error| Problem::of(&directory.display().to_string(), error))
}
