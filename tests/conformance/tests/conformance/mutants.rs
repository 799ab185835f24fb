//! What `tests/mutants` says of the code is still there: each planted mistake has its place, and each mutant that changes nothing.
//!
//! That the mistakes are found, and that these mutants are not, is shown by `make survey`.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Plant {
    name: String,
    file: String,
    find: String,
    replace: String,
    wrong: String,
    rule: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Equivalent {
    file: String,
    function: String,
    text: String,
    replacement: String,
    #[serde(default)]
    index: usize,
    why: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn list<T: DeserializeOwned>(path: &Path) -> Vec<T> {
    serde_saphyr::from_str(&text(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// With one space wherever there are some.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The functions of this name: each from its name to the end of its body, which is indented as it is.
fn functions(source: &str, name: &str) -> Vec<String> {
    let lines: Vec<&str> = source.lines().collect();
    let named = |line: &str| [format!("fn {name}("), format!("fn {name}<")].iter().any(|start| line.contains(start));
    let begins = (0..lines.len()).filter(|at| named(lines[*at]));
    let whole = begins.map(|begin| {
        let indent = &lines[begin][..lines[begin].len() - lines[begin].trim_start().len()];
        let one_line = lines[begin].ends_with('}');
        let ends = |line: &&str| one_line || **line == format!("{indent}}}");
        let length = lines[begin..].iter().position(ends).map_or(1, |length| length + 1);
        plain(&lines[begin..begin + length].join(" "))
    });
    whole.collect()
}

#[test]
fn each_planted_mistake_has_one_place() {
    let mut wrong = vec![];
    for engine in ["sequences", "promotions", "deployments", "webhooks", "evaluations"] {
        let plants: Vec<Plant> = list(&root().join(format!("tests/mutants/plants/{engine}.yaml")));
        assert!(plants.len() >= 10, "{engine} has {} plants", plants.len());
        for plant in &plants {
            let places = text(&root().join(&plant.file)).matches(plant.find.trim_end_matches('\n')).count();
            let said = !plant.wrong.is_empty() && !plant.rule.is_empty() && plant.find != plant.replace;
            if places != 1 || !said {
                wrong.push(format!("{engine} {}: {places} places in {}", plant.name, plant.file));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn each_equivalent_mutant_has_its_place_and_a_reason() {
    let all: Vec<Equivalent> = list(&root().join("tests/mutants/equivalent.yaml"));
    let is_lost = |entry: &&Equivalent| {
        let name = entry.function.rsplit("::").next().unwrap_or_default();
        let what = ["match arm ", "if "].iter().find_map(|kind| entry.text.strip_prefix(kind)).unwrap_or(&entry.text);
        let has = |function: &String| {
            // Of a body, the text is what the function returns.
            let what = entry.text.strip_prefix("fn").map_or(what, str::trim);
            function.matches(&plain(what)).count() > entry.index
        };
        let found = functions(&text(&root().join(&entry.file)), name).iter().any(has);
        !found || entry.why.is_empty() || entry.replacement.is_empty()
    };
    let lost: Vec<_> =
        all.iter().filter(is_lost).map(|entry| format!("{}: {}: {}", entry.file, entry.function, entry.text)).collect();
    assert!(lost.is_empty(), "these name nothing any more, or have no reason: {lost:#?}");
}
