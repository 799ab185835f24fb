//! The cases of `tests/cases/evaluation`: criteria, files and judgements, as Keptn's lighthouse makes them of what people write.

use keelway_domain::evaluation::{Aggregate, Criterion, Details, Indicator, Judged, Objectives, Slo, Target, finish};
use keelway_wire::evaluation::{history, provided, sli, slo};
use keelway_wire::manifest::{self, Checked, Resource};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;

fn cases<T: serde::de::DeserializeOwned>(file: &str) -> T {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/evaluation").join(file);
    serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap_or_else(|error| panic!("{file}: {error}"))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parts {
    criteria: Vec<OneCriterion>,
    aggregates: Vec<OneAggregate>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OneCriterion {
    id: String,
    criterion: String,
    is: Option<String>,
    error: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OneAggregate {
    id: String,
    function: String,
    values: Vec<f64>,
    is: Option<f64>,
}

#[test]
fn criteria_and_aggregates_are_keptns() {
    let parts: Parts = cases("criteria.yaml");
    for case in parts.criteria {
        let read = Criterion::parse(&case.criterion);
        let is = read.ok().map(|read| format!("{:?} {:?} {}", read.operator, read.kind, read.value));
        assert_eq!((is, read.err().map(|error| error.to_string())), (case.is, case.error), "{}", case.id);
    }
    for case in parts.aggregates {
        assert_eq!(Aggregate::of_word(&case.function).of(&case.values), case.is, "{}", case.id);
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    id: String,
    text: String,
    read: Option<String>,
}

fn objectives(text: &str) -> Option<Slo> {
    match manifest::check(text, "slo.yaml", None) {
        Checked::Objectives(slo, _) => slo,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn an_evaluation_reads_files_whatever_the_check_says_besides() {
    // The check refuses the aggregate; the lighthouse reads on.
    let read = slo("comparison: {aggregate_function: p99}\nobjectives: [{sli: a}]\nkind: none\n").unwrap();
    assert_eq!((read.comparison.aggregate, read.objectives.len()), (Aggregate::Unknown, 1));
    let wrong = slo("objectives: 3\ncomparison: {compare_with: some}\n").unwrap_err();
    assert!(wrong.contains("line 1: objectives is a number, not a list"), "the reason is among what is told: {wrong}");
    assert!(slo("").unwrap_err().contains("holds nothing"));
    assert!(slo("a: [").unwrap_err().starts_with("line "));
    assert_eq!(sli("indicators: {a: up, b: down}\n").unwrap()["b"], "down");
    assert!(sli("indicators: [a]\n").unwrap_err().contains("indicators"));
}

#[test]
fn files_are_read_as_keptn_reads_them() {
    for case in cases::<Vec<File>>("files.yaml") {
        let read = objectives(&case.text).map(|slo| {
            let comparison = slo.comparison;
            let one = |objective: &keelway_domain::evaluation::Objective| {
                format!("{} {}{}", objective.sli, objective.weight, if objective.key { " key" } else { "" })
            };
            let all: Vec<String> = slo.objectives.iter().map(one).collect();
            let (with, include) = (comparison.with, comparison.include);
            format!("{with:?} {} {include:?} {:?}: {}", comparison.number, comparison.aggregate, all.join(", "))
        });
        assert_eq!(read, case.read, "{}", case.id);
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    id: String,
    #[expect(dead_code, reason = "for people")]
    title: String,
    /// Without it, there is no file of objectives.
    slo: Option<Value>,
    /// Why the file cannot be fetched.
    unreadable: Option<String>,
    #[serde(default)]
    project: String,
    values: Value,
    #[serde(default)]
    history: Vec<Value>,
    /// `<result> <status> <score>: <message>`
    ends: Option<String>,
    results: Option<Vec<String>>,
    #[serde(default)]
    notes: Option<Vec<String>>,
}

fn targets(targets: Option<&Vec<Target>>) -> String {
    let one = |target: &Target| format!("{} = {}{}", target.criteria, target.target_value, if target.violated { " !" } else { "" });
    targets.map_or_else(|| "null".into(), |targets| targets.iter().map(one).collect::<Vec<_>>().join(", "))
}

fn shown(indicator: &Indicator) -> String {
    let Some(value) = &indicator.value else { return format!("{} {}", indicator.display_name, indicator.status.as_str()) };
    let what = match value.success {
        true => format!("of {} after {}", value.value, value.compared_value),
        false => format!("without a value ({})", value.message),
    };
    let (pass, warning) = (targets(indicator.pass_targets.as_ref()), targets(indicator.warning_targets.as_ref()));
    format!("{} {} {} {what}, pass: {pass}, warning: {warning}", value.metric, indicator.status.as_str(), indicator.score)
}

fn judged(case: &Case) -> Judged {
    let slo = case.slo.as_ref().map(|slo| objectives(&slo.to_string()).unwrap_or_else(|| panic!("{}: {slo:#}", case.id)));
    let of = slo.clone().unwrap_or_else(|| objectives("objectives: []").unwrap());
    let sent = provided(&case.values.to_string(), &of).unwrap();
    let before = history(&json!(case.history).to_string()).unwrap();
    let objectives = match (&case.unreadable, slo) {
        (Some(why), _) => Objectives::Unreadable(why.clone()),
        (None, Some(slo)) => Objectives::Read(slo),
        (None, None) => Objectives::Missing,
    };
    finish(&case.project, &objectives, &sent, &before)
}

#[test]
fn judgements_are_keptns() {
    let mut wrong = vec![];
    for case in cases::<Vec<Case>>("judgements.yaml") {
        let Judged { finished, notes, .. } = judged(&case);
        let message = if finished.message.is_empty() { String::new() } else { format!(": {}", finished.message) };
        let Details { score, indicator_results, .. } = &finished.evaluation;
        let end = format!("{} {} {score}{message}", finished.result.as_str(), finished.status.as_str());
        let results = indicator_results.as_ref().map(|all| all.iter().map(shown).collect::<Vec<_>>());
        let notes: Vec<String> = notes.iter().map(ToString::to_string).collect();
        let differs = case.ends.as_ref().is_some_and(|ends| *ends != end)
            || case.results.is_some() && case.results != results
            || case.notes.as_ref().is_some_and(|told| *told != notes);
        if differs {
            wrong.push(format!("{}: {end}\n{results:#?}\n{notes:#?}", case.id));
        }
    }
    assert!(wrong.is_empty(), "{} cases differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_result_has_the_members_of_keptns_event() {
    let slo = objectives("objectives: [{sli: m, pass: [{criteria: ['<=+10%']}]}, {sli: n}]\ntotal_score: {pass: 90%}").unwrap();
    let sent = provided("{\"m\": 10}", &slo).unwrap();
    let before = history("[{\"id\": \"e1\", \"result\": \"pass\", \"values\": {\"m\": 10}}]").unwrap();
    let event = json!(finish("shop", &Objectives::Read(slo.clone()), &sent, &before).finished);
    let target = json!({"criteria": "<=+10%", "targetValue": 11.0, "violated": false});
    let value = json!({"metric": "m", "value": 10.0, "comparedValue": 10.0, "success": true});
    let passed = json!({"score": 1.0, "value": value, "displayName": "", "passTargets": [target], "warningTargets": null,
        "keySli": false, "status": "pass"});
    let told = json!({"score": 0.0, "value": null, "displayName": "", "passTargets": [], "warningTargets": [], "keySli": false,
        "status": "info"});
    let evaluation = json!({"result": "pass", "score": 100.0, "indicatorResults": [passed, told], "comparedEvents": ["e1"]});
    assert_eq!(event, json!({"status": "succeeded", "result": "pass", "evaluation": evaluation}));
    // What was sent once is an earlier evaluation of the next one, as data and as an event.
    for text in [format!("[{event}]"), format!("{{\"events\": [{{\"id\": \"e2\", \"data\": {event}}}]}}")] {
        let before = history(&text).unwrap();
        assert_eq!((before.len(), before[0].values.len(), before[0].values[0].value), (1, 1, 10.0), "{text}");
    }
}

#[test]
fn values_and_history_that_cannot_be_read() {
    let slo = objectives("objectives: [{sli: m}]").unwrap();
    for (text, error) in [
        ("5", "values are a mapping or a list, not 5: write for example {\"error_rate\": 0.5}"),
        ("{\"m\": \"5\"}", "the value of m is \"5\": write a number, or null if there is none"),
        ("[{\"value\": 5}]", "a value without `metric`: {\"value\":5}"),
    ] {
        assert_eq!(provided(text, &slo).unwrap_err(), error);
    }
    assert!(provided("m: 5", &slo).unwrap_err().starts_with("is no JSON: "));
    for (text, error) in [
        ("{}", "earlier evaluations are a list, newest first: write `[…]`"),
        ("[{\"values\": {}}]", "evaluation 1: `result` is missing: write pass, warning or fail"),
        ("[{\"result\": \"pass\"}]", "evaluation 1: has neither `evaluation.indicatorResults` nor `values`"),
    ] {
        assert_eq!(history(text).unwrap_err(), error);
    }
}

#[test]
fn a_file_is_what_its_fields_say_and_else_its_name() {
    let of = |text: &str, file: &str| Resource::of(text, file);
    let (objectives, indicators) = (Some(Resource::Objectives), Some(Resource::Indicators));
    assert_eq!(of("objectives: []", "x.yaml"), objectives);
    assert_eq!(of("indicators: {}", "slo.yaml"), indicators);
    assert_eq!(of("objectives: [", "a/slo_basic.yml"), objectives, "broken");
    assert_eq!(of("", "prometheus\\SLI.yaml"), indicators);
    assert_eq!(of("", "x.yaml"), None);
    assert_eq!(of("apiVersion: x\nobjectives: []", "slo.yaml"), None, "a manifest of others");
    assert_eq!(of("kind: Shipyard\nspec: {}", "slo.yaml"), None);
    // Who applies one is told what it is.
    let applied = manifest::parse("objectives: [{sli: m}]\n", "slo.yaml");
    assert!(applied.refused() && applied.findings[0].message.contains("no manifest: `keelway validate` checks it"), "{applied:?}");
}

#[test]
fn too_large_and_too_deep_files_are_refused() {
    for (text, said) in [
        (format!("objectives: [{}]", "{sli: a},".repeat(140_000)), "1 MiB"),
        (format!("objectives: {}", "[".repeat(100)), "nest"),
        (format!("objectives: [{}]", "{sli: a},".repeat(60_000)), "100000 values"),
    ] {
        let checked = manifest::check(&text, "slo.yaml", None);
        assert!(matches!(checked, Checked::Objectives(None, _)), "{said}");
        assert!(checked.findings().iter().any(|finding| finding.message.contains(said)), "{said}: {:?}", checked.findings());
    }
}

#[test]
fn indicators_without_a_query_are_told_where_the_queries_are_known() {
    let text = "spec_version: '1.0'\nobjectives:\n- sli: error_rates\n- sli: throughput\n- sli: cpu\ntotal_score: {pass: 90%}\n";
    let known = ["error_rate".to_owned()].into();
    let checked = manifest::check(text, "slo.yaml", Some(&known));
    let errors = checked.findings().iter().filter(|finding| finding.severity == manifest::Severity::Error);
    let told: Vec<(u64, &str)> = errors.map(|finding| (finding.line, finding.message.as_str())).collect();
    let missing = |sli: &str, meant: &str| format!("{sli:?} has no query in the files of indicators: {meant}");
    let (first, second) = (missing("error_rates", "write `error_rate`"), missing("cpu", "add one to `indicators`"));
    assert_eq!(told, [(3, first.as_str()), (5, second.as_str())], "throughput is built in");
}
