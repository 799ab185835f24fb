//! `slo.yaml`: objectives.

use super::super::levels::evaluations::{self, COMPARISON, CRITERIA, OBJECTIVE, TOTAL_SCORE};
use super::super::names::nearest;
use super::super::tree::Node;
use super::criteria::{self, Sets};
use super::read::Reader;
use keelway_domain::evaluation::{
    Aggregate, CompareWith, Comparison, Criteria, Include, Objective, Slo, TotalScore, is_built_in, number,
};
use std::collections::{BTreeSet, HashMap};

pub fn read(root: &Node, known: Option<&BTreeSet<String>>, reader: &mut Reader) -> Slo {
    reader.fields(root, &evaluations::SLO, "");
    reader.version(root);
    let filter = reader.texts(root, "filter");
    let comparison = comparison(root, reader);
    let objectives = objectives(root, known, reader);
    let total_score = total_score(root, reader);
    if !objectives.is_empty() && objectives.iter().all(|objective| objective.pass.is_empty()) {
        let at = root.get("objectives").unwrap_or(root);
        let message = "are all for information: every evaluation passes with a score of 100; write `pass` for one of them";
        reader.report.warning(at, "objectives", message.into());
    }
    Slo { filter, comparison, objectives, total_score }
}

/// What people are told about a word that is none of those that there are, and is read as another.
fn unknown(node: &Node, field: &str, words: &[&str], becomes: &str, reader: &mut Reader) {
    let Some(at) = node.get(field) else { return };
    let word = at.scalar().unwrap_or_default();
    let meant = nearest(word, words.iter().copied()).map_or_else(|| words.join("` or `"), str::to_owned);
    let message = format!("{word:?} is not known, and {becomes}: write `{meant}`");
    reader.report.error(at, format!("comparison.{field}"), message);
}

fn comparison(root: &Node, reader: &mut Reader) -> Comparison {
    let Some(node) = reader.mapping(root, "comparison") else { return Comparison::ABSENT };
    reader.fields(node, &COMPARISON, "comparison");
    let path = "comparison";
    let (with, include) = (reader.text(node, "compare_with", path), reader.text(node, "include_result_with_score", path));
    let (number, aggregate) =
        (reader.whole(node, "number_of_comparison_results", path), reader.text(node, "aggregate_function", path));
    let read = Comparison {
        with: CompareWith::of_word(&with),
        number: if number == 0 { 3 } else { number },
        include: Include::of_word(&include),
        aggregate: if aggregate.is_empty() { Aggregate::Average } else { Aggregate::of_word(&aggregate) },
    };
    let names = |words: &[&'static str]| words.to_vec();
    if with.is_empty() {
        let at = node.get("compare_with").unwrap_or(node);
        let message = "is missing, and up to three results count: write `compare_with: single_result` or `several_results`";
        reader.report.warning(at, "comparison.compare_with", message.into());
    } else if read.with == CompareWith::Unknown {
        let words = names(&CompareWith::WORDS.map(|(word, _)| word));
        unknown(node, "compare_with", &words, "up to three results count", reader);
    }
    if !include.is_empty() && !Include::WORDS.iter().any(|(word, _)| *word == include.to_lowercase()) {
        let words = names(&Include::WORDS.map(|(word, _)| word));
        unknown(node, "include_result_with_score", &words, "all results count", reader);
    }
    if read.aggregate == Aggregate::Unknown {
        let words = names(&Aggregate::WORDS.map(|(word, _)| word));
        unknown(node, "aggregate_function", &words, "earlier values count as 0", reader);
    }
    let at = node.get("number_of_comparison_results").filter(|at| !at.is_null());
    match (at, read.with) {
        (Some(at), _) if number == 0 => {
            reader.report.warning(at, "comparison.number_of_comparison_results", "is 0 and read as 3: write 1 or more".into());
        }
        (Some(at), CompareWith::Single) if number > 1 => {
            let message =
                format!("does nothing beside `single_result`: write `compare_with: several_results` to compare with {number}");
            reader.report.warning(at, "comparison.number_of_comparison_results", message);
        }
        (None, CompareWith::Several) => {
            let message = "is missing, and up to three results count: write a number";
            reader.report.warning(node, "comparison.number_of_comparison_results", message.into());
        }
        _ => (),
    }
    read
}

fn objectives(root: &Node, known: Option<&BTreeSet<String>>, reader: &mut Reader) -> Vec<Objective> {
    let mut seen: HashMap<String, u64> = HashMap::new();
    let mut all = vec![];
    for (place, node) in reader.list(root, "objectives", "", OBJECTIVE.head.example).iter().enumerate() {
        let path = format!("objectives[{place}]");
        if node.is_null() {
            reader.report.warning(node, path, "is empty, and is left out: take out the `-`".into());
            continue;
        }
        if node.entries().is_none() {
            let message = format!("is {}, not a mapping: write for example `- {}`", node.what(), OBJECTIVE.head.example);
            reader.broken(node, path, message);
            continue;
        }
        let objective = objective(node, &path, reader);
        let at = node.get("sli").unwrap_or(node);
        if let Some(line) = seen.get(&objective.sli).filter(|_| !objective.sli.is_empty()) {
            let message = format!(
                "{:?} has an objective in line {line} already, which takes its value: this one fails unless the provider sends a second \
                 one; join them, entries of `pass` are alternatives",
                objective.sli
            );
            reader.report.warning(at, format!("{path}.sli"), message);
        }
        seen.entry(objective.sli.clone()).or_insert(at.at.line);
        let has_query = |known: &BTreeSet<String>| known.contains(&objective.sli) || is_built_in(&objective.sli);
        if let Some(known) = known.filter(|known| !has_query(known) && !objective.sli.is_empty()) {
            let near = nearest(&objective.sli, known.iter().map(String::as_str));
            let meant = near.map_or_else(|| "add one to `indicators`".into(), |near| format!("write `{near}`"));
            let message = format!("{:?} has no query in the files of indicators: {meant}", objective.sli);
            reader.report.error(at, format!("{path}.sli"), message);
        }
        all.push(objective);
    }
    all
}

fn objective(node: &Node, path: &str, reader: &mut Reader) -> Objective {
    reader.fields(node, &OBJECTIVE, path);
    let (sli, display_name) = (reader.text(node, "sli", path), reader.text(node, "displayName", path));
    let (pass, warning) = (sets(node, "pass", path, reader), sets(node, "warning", path, reader));
    let (weight, key) = (reader.whole(node, "weight", path), reader.flag(node, "key_sli", path));
    criteria::check(&pass, &warning, reader.report);
    let given = |field: &str| node.get(field).filter(|value| !value.is_null());
    if let Some(at) = given("weight").filter(|at| at.scalar().is_some_and(|text| text.trim_matches('0').is_empty())) {
        let message = "is 0 and read as 1: write 1, or leave out `pass` if it must not count";
        reader.report.warning(at, format!("{path}.weight"), message.into());
    }
    if pass.lists.is_empty() {
        for field in ["warning", "key_sli", "weight"] {
            if let Some(at) = given(field).filter(|at| field != "key_sli" || key && !at.is_null()) {
                let message = "does nothing without `pass`: the objective is for information only";
                reader.report.warning(at, format!("{path}.{field}"), message.into());
            }
        }
    } else if key && display_name.is_empty() {
        let message = "needs a `displayName` beside it: the message about its failure says no other name";
        reader.report.warning(given("key_sli").unwrap_or(node), format!("{path}.key_sli"), message.into());
    }
    let weight = if weight == 0 { 1 } else { weight };
    Objective { sli, display_name, pass: pass.texts(), warning: warning.texts(), weight, key }
}

/// The entries of `pass` or `warning`.
fn sets<'n>(node: &'n Node, field: &'static str, path: &str, reader: &mut Reader) -> Sets<'n> {
    let list_path = format!("{path}.{field}");
    let mut lists = vec![];
    for (place, entry) in reader.list(node, field, path, CRITERIA.head.example).iter().enumerate() {
        let path = format!("{list_path}[{place}]");
        if entry.entries().is_none() {
            let remedy = match entry.scalar() {
                Some(text) => format!("write `- criteria: [{text:?}]`"),
                None => format!("write for example `- {}`", CRITERIA.head.example),
            };
            reader.broken(entry, path, format!("is {}, not a mapping: {remedy}", entry.what()));
            continue;
        }
        reader.fields(entry, &CRITERIA, &path);
        let texts = reader.list(entry, "criteria", &path, "\"<600\"");
        for (place, text) in texts.iter().enumerate() {
            if text.scalar().is_none() && !text.is_null() {
                let message = format!("is {}, not a text: write for example `\"<600\"`", text.what());
                reader.broken(text, format!("{path}.criteria[{place}]"), message);
            }
        }
        lists.push((entry, texts));
    }
    Sets { field, path: list_path, lists }
}

fn total_score(root: &Node, reader: &mut Reader) -> TotalScore {
    let Some(node) = reader.mapping(root, "total_score") else { return TotalScore::default() };
    reader.fields(node, &TOTAL_SCORE, "total_score");
    let (pass, warning) = (reader.text(node, "pass", "total_score"), reader.text(node, "warning", "total_score"));
    let mut share = |field: &str, text: &str| {
        let read = number(text.strip_suffix('%').unwrap_or(text)).filter(|share| share.is_finite());
        let at = node.get(field)?;
        match read {
            None if text.is_empty() => (),
            None => {
                let message =
                    format!("{text:?} is no number, and no evaluation could be made: write a share of 100, for example `90%`");
                reader.report.error(at, format!("total_score.{field}"), message);
            }
            Some(share) if share > 100.0 => {
                let message = format!("is {share}, and no score is more than 100: write a share of 100");
                reader.report.warning(at, format!("total_score.{field}"), message);
            }
            Some(share) if share <= 0.0 => {
                let message = format!("is {share}, which every score reaches: write a share of 100");
                reader.report.warning(at, format!("total_score.{field}"), message);
            }
            Some(_) => (),
        }
        read
    };
    let shares = (share("pass", &pass), share("warning", &warning));
    if let (Some(least), Some(lower)) = shares
        && lower >= least
        && let Some(at) = node.get("warning")
    {
        let message = format!("is {lower}, and from {least} on it is a pass: nothing is ever a warning; write less");
        reader.report.warning(at, "total_score.warning", message);
    }
    TotalScore { pass, warning }
}

impl Sets<'_> {
    fn texts(&self) -> Vec<Criteria> {
        // Keptn's reader leaves out entries that are empty.
        let given = |texts: &&[Node]| texts.iter().filter_map(Node::scalar).map(str::to_owned).collect();
        self.lists.iter().map(|(_, texts)| given(texts)).collect()
    }
}
