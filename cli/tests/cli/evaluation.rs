//! Objectives: checked with their indicators, and judged by hand.

use crate::support::{Ran, keelway, write};
use serde_json::{Value, json};
use std::path::Path;

const SLO: &str = "spec_version: '1.0'\nobjectives:\n- sli: m\n  pass:\n  - criteria: ['<=+10%', '<600']\n  warning:\n  - criteria: ['<800']\ntotal_score: {pass: 90%, warning: 50%}\n";

fn run(words: &[&str]) -> Ran {
    Ran::of(keelway(words).output().unwrap())
}

fn examples() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/evaluation").canonicalize().unwrap().display().to_string()
}

#[test]
fn files_of_others_are_checked() {
    let place = examples();
    let of = |file: &str| format!("{place}/{file}");
    let (slo, sli, perftest) = (of("slo.yaml"), of("sli.yaml"), of("slo-perftest.yaml"));
    let alone = run(&["validate", &slo, &sli]);
    let said = format!("{slo}: fine, 1 warning: 4 objectives\n{sli}: fine: 5 indicators\n");
    assert_eq!((alone.code, alone.out.as_str()), (0, said.as_str()), "{}", alone.err);
    assert!(alone.err.contains("objectives[0].warning: is never reached"), "{}", alone.err);
    let with = run(&["validate", "-o", "json", &sli, &perftest]);
    let told: Value = serde_json::from_str(&with.out).unwrap();
    assert_eq!((with.code, &told["files"][1]["documents"]), (1, &json!([{"kind": "SLO"}])));
    let findings = told["findings"].as_array().unwrap();
    let without = findings.iter().filter(|finding| finding["message"].as_str().unwrap().contains("has no query")).count();
    assert_eq!(without, 8, "those that are not built in: {findings:#?}");
    let percent = findings.iter().any(|finding| finding["message"].as_str().unwrap().contains("write `<=+1%` to say so, or `<=1`"));
    assert!(percent, "{findings:#?}");
}

#[test]
fn the_example_is_judged_as_its_page_shows() {
    let place = examples();
    let of = |file: &str| format!("{place}/{file}");
    let words =
        ["evaluate", "-f", &of("slo.yaml"), "--values", &of("values.json"), "--history", &of("history.json")].map(str::to_owned);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ran = run(&words);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/evaluation.md")).unwrap();
    let shown: String = ran.out.lines().map(|line| format!("    {line}\n")).collect();
    assert!(page.contains(&shown), "docs/evaluation.md does not show\n{shown}");
    let old = words.iter().map(|word| if *word == "-f" { "--slo" } else { word }).collect::<Vec<_>>();
    assert_eq!(run(&old).out, ran.out);
    let json: Value = serde_json::from_str(&run(&[&words[..], &["-o", "json"]].concat()).out).unwrap();
    assert_eq!((&json["result"], &json["evaluation"]["comparedEvents"]), (&json!("pass"), &json!(["2b9d41f0"])));
}

#[test]
fn the_exit_code_is_the_result() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        write(&dir.path().join(name), text);
        dir.path().join(name).display().to_string()
    };
    let slo = file("slo.yaml", SLO);
    let history = file("history.json", "[{\"result\": \"pass\", \"values\": {\"m\": 500}}]");
    let judged = |values: &str| run(&["evaluate", "-f", &slo, "--values", &file("values.json", values), "--history", &history]);
    let pass = judged("{\"m\": 540}");
    assert_eq!((pass.code, pass.err.as_str()), (0, ""), "{}", pass.out);
    let warning = judged("{\"m\": 700}");
    let said = "Evaluation returned a warning: the calculated score of 50 is close to the warning target value of 50";
    assert_eq!((warning.code, warning.out.contains(said)), (3, true), "{}", warning.out);
    assert!(warning.out.contains("<=+10% = 550 missed, <600 missed  <800"), "{}", warning.out);
    let fail = judged("{\"m\": null, \"n\": 5}");
    assert_eq!((fail.code, fail.out.contains("fail: score 0, pass from 90%, warning from 50%")), (1, true), "{}", fail.out);
    let first = run(&["evaluate", "-f", &slo, "--values", &file("values.json", "{\"m\": 540}")]);
    let note = "note: m: nothing to compare with yet, so \"<=+10%\" holds\n";
    assert_eq!((first.code, first.err.as_str()), (0, note));
    assert!(first.out.ends_with("compared with nothing: there is no earlier evaluation that counts\n"), "{}", first.out);

    let unread = judged("540");
    assert_eq!((unread.code, unread.err.contains("values.json: values are a mapping or a list")), (2, true), "{}", unread.err);
    let manifest = file("project.yaml", "apiVersion: keelway.dev/v1\nkind: Project\nmetadata: {name: shop}\n");
    let none = run(&["evaluate", "-f", &manifest, "--values", &history]);
    assert_eq!((none.code, none.err.contains("is no file of objectives")), (2, true), "{}", none.err);
    let broken = file("slo-broken.yaml", "objectives: [{sli: m, weight: '2'}]\ntotal_score: {pass: 90%}\n");
    let refused = run(&["evaluate", "-f", &broken, "--values", &history]);
    assert_eq!((refused.code, refused.err.contains("not a whole number")), (1, true), "{}", refused.err);
    // What Keptn passes over is told, and judged as Keptn does it.
    let odd = file(
        "slo-odd.yaml",
        &SLO.replace("objectives:", "comparison: {compare_with: single_result, aggregate_function: max}\nobjectives:"),
    );
    let odd = run(&["evaluate", "-f", &odd, "--values", &file("values.json", "{\"m\": 540}"), "--history", &history]);
    assert_eq!((odd.code, odd.err.contains("\"max\" is not known")), (3, true), "{}{}", odd.err, odd.out);
}

#[test]
fn an_analysis_of_argo_rollouts_becomes_files_that_are_fine() {
    let dir = tempfile::tempdir().unwrap();
    let of = |name: &str| dir.path().join(name).display().to_string();
    let template = "apiVersion: argoproj.io/v1alpha1\nkind: AnalysisTemplate\nmetadata: {name: a}\nspec:\n  metrics:\n  - name: errors\n    \
                    interval: 1m\n    successCondition: result[0] < 0.01\n    provider: {prometheus: {address: https://p.test, query: x}}\n";
    write(&dir.path().join("a.yaml"), template);
    let printed = run(&["evaluation", "migrate", &of("a.yaml")]);
    assert_eq!((printed.code, printed.err.as_str()), (0, ""));
    let ends = "---\n# In the strategy of a deployment.\nanalysis: {interval: 1m, failureLimit: 0, minSamples: 0}\n";
    assert!(printed.out.starts_with("# slo.yaml\n") && printed.out.ends_with(ends), "{}", printed.out);
    let to = of("out");
    let written = run(&["evaluation", "migrate", &of("a.yaml"), "--to", &to]);
    assert_eq!(
        (written.code, written.out.as_str()),
        (0, "analysis: {interval: 1m, failureLimit: 0, minSamples: 0}\n"),
        "{}",
        written.err
    );
    let fine = run(&["validate", &of("out/slo.yaml"), &of("out/sli.yaml")]);
    assert_eq!((fine.code, fine.err.as_str()), (0, ""), "{}", fine.out);
    let again = run(&["evaluation", "migrate", &of("a.yaml"), "--to", &to]);
    assert_eq!((again.code, again.err.contains("slo.yaml is there already")), (2, true), "{}", again.err);
    write(&dir.path().join("b.yaml"), &template.replace("prometheus: {address", "web: {url"));
    let refused = run(&["evaluation", "migrate", &of("b.yaml")]);
    assert_eq!((refused.code, refused.err.contains("has no source here")), (1, true), "{}", refused.err);
}
