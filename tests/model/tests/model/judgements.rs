//! Random objectives, values and earlier evaluations, judged by the engine's function and by a second implementation of Keptn's
//! lighthouse: both must say the same, to the last digit and to the last letter.

use keelway_domain::evaluation::judge;
use keelway_model::lighthouse;
use keelway_wire::evaluation::{history_of, provided_of};
use keelway_wire::manifest::{self, Checked};
use keelway_world::rng::Rng;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const SEEDS: u64 = 10_000;
const SLIS: [&str; 5] = ["response_time_p95", "error_rate", "throughput", "cpu", "a b"];
const ODD: [&str; 14] = ["<10ms", "=<5", "==5", "10", "", "<", "|5", "<5e1", "<.5", "<1_0", "<inf", "<--5", "<+5%%", "<1e999"];

fn criterion(rng: &mut Rng) -> Value {
    if rng.chance(3.0) {
        return json!(rng.pick(&ODD));
    }
    let operator = *rng.pick(&["<", "<=", "=", ">=", ">"]);
    let sign = *rng.pick(&["", "", "+", "-"]);
    let blank = if rng.chance(10.0) { " " } else { "" };
    let percent = if rng.chance(40.0) { "%" } else { "" };
    json!(format!("{operator}{blank}{sign}{}{blank}{percent}", number(rng)))
}

fn number(rng: &mut Rng) -> String {
    let most = if rng.chance(50.0) { 20 } else { 1_000 };
    let whole = rng.below(most);
    if rng.chance(40.0) { format!("{whole}.{}", rng.below(1_000)) } else { whole.to_string() }
}

fn value(rng: &mut Rng) -> f64 {
    let value: f64 = number(rng).parse().unwrap();
    let sign = if rng.chance(8.0) { -1.0 } else { 1.0 };
    sign * value / if rng.chance(30.0) { 3.0 } else { 1.0 }
}

fn sets(rng: &mut Rng) -> Value {
    let one = |rng: &mut Rng| json!({"criteria": (0..rng.below(4)).map(|_| criterion(rng)).collect::<Vec<_>>()});
    (0..rng.below(4)).map(|_| one(rng)).collect()
}

fn objective(rng: &mut Rng) -> Value {
    if rng.chance(3.0) {
        return Value::Null;
    }
    let mut objective = json!({"sli": rng.pick(&SLIS)});
    if rng.chance(85.0) {
        objective["pass"] = sets(rng);
    }
    if rng.chance(50.0) {
        objective["warning"] = sets(rng);
    }
    if rng.chance(40.0) {
        objective["weight"] = json!(rng.below(5) as i64 - i64::from(rng.chance(5.0)));
    }
    if rng.chance(30.0) {
        objective["key_sli"] = json!(rng.chance(60.0));
    }
    if rng.chance(40.0) {
        objective["displayName"] = json!(format!("the {}", rng.below(100)));
    }
    objective
}

fn slo(rng: &mut Rng) -> Value {
    let mut slo = json!({"objectives": (0..rng.below(6)).map(|_| objective(rng)).collect::<Vec<_>>()});
    if rng.chance(80.0) {
        let mut comparison = json!({});
        let words: [(&str, &[Value]); 4] = [
            ("compare_with", &[json!("single_result"), json!("several_results"), json!("several_results"), json!("foo")]),
            ("number_of_comparison_results", &[json!(0), json!(1), json!(2), json!(5)]),
            ("include_result_with_score", &[json!("all"), json!("pass"), json!("PASS_or_warn"), json!("pass_or_warn"), json!("x")]),
            ("aggregate_function", &[json!("avg"), json!("p50"), json!("p90"), json!("p95"), json!("p99")]),
        ];
        for (field, words) in words {
            if rng.chance(80.0) {
                comparison[field] = rng.pick(words).clone();
            }
        }
        slo["comparison"] = comparison;
    }
    if rng.chance(97.0) {
        let shares = ["90%", "75", "50.5%", "100%", "0", "200%", "often", ""];
        let mut share = |likely: &'static str| if rng.chance(70.0) { likely } else { *rng.pick(&shares) };
        slo["total_score"] = json!({"pass": share("90%"), "warning": share("60%")});
    }
    slo
}

fn measured(rng: &mut Rng, sli: &str) -> Value {
    let success = rng.chance(93.0);
    let mut one = json!({"metric": sli, "value": if success { value(rng) } else { 0.0 }, "success": success});
    if !success && rng.chance(80.0) {
        one["message"] = "could not get data".into();
    }
    one
}

fn sent(rng: &mut Rng, slo: &Value) -> Value {
    let mut values = vec![];
    let (asked, only) = (slo.to_string(), rng.chance(60.0));
    for sli in SLIS.into_iter().filter(|sli| !only || asked.contains(sli)) {
        let times = usize::from(rng.chance(85.0)) + usize::from(rng.chance(10.0));
        for _ in 0..times {
            values.push(measured(rng, sli));
        }
    }
    let mut data = json!({"status": "succeeded", "result": "pass", "get-sli": {"indicatorValues": values}});
    if rng.chance(5.0) {
        (data["result"], data["message"]) = ("fail".into(), "no connection".into());
    }
    data
}

fn earlier(rng: &mut Rng, number: usize) -> Value {
    let mut results = vec![];
    for sli in SLIS {
        if rng.chance(80.0) {
            let value = if rng.chance(5.0) { Value::Null } else { measured(rng, sli) };
            results.push(json!({"value": value, "status": "pass"}));
        }
    }
    let result = *rng.pick(&["pass", "pass", "warning", "fail"]);
    json!({"id": format!("e{number}"), "data": {"result": result, "evaluation": {"indicatorResults": results}}})
}

/// Leaves out what Keptn leaves out when it is empty.
fn plain(mut event: Value) -> Value {
    let members = event.as_object_mut().unwrap();
    members.retain(|name, value| name != "message" || *value != json!(""));
    for result in event["evaluation"]["indicatorResults"].as_array_mut().into_iter().flatten() {
        if let Some(value) = result["value"].as_object_mut() {
            value.retain(|name, value| name != "message" || *value != json!(""));
        }
    }
    if event["evaluation"].get("comparedEvents") == Some(&json!([])) {
        event["evaluation"].as_object_mut().unwrap().remove("comparedEvents");
    }
    event
}

/// Judges a seed's evaluation both ways. The end that both came to.
fn judged(seed: u64) -> String {
    let mut rng = Rng::new(seed);
    let slo = slo(&mut rng);
    let sent = sent(&mut rng, &slo);
    let before: Vec<Value> = (0..rng.below(6)).map(|number| earlier(&mut rng, number)).collect();
    let theirs = plain(lighthouse::evaluate(&slo, &sent, &before));
    let Checked::Objectives(Some(read), _) = manifest::check(&slo.to_string(), "slo.yaml", None) else {
        panic!("seed {seed}: {slo:#}");
    };
    let judged = judge(&read, &provided_of(&sent, &read).unwrap(), &history_of(&json!(before)).unwrap());
    let ours = plain(json!(judged.finished));
    assert_eq!(ours, theirs, "seed {seed}:\n{slo:#}\n{sent:#}\n{before:#?}");
    let message = theirs["message"].as_str().unwrap_or("-");
    let message: String = message.chars().take_while(|c| !c.is_ascii_digit()).take(36).collect();
    format!("{} {message}", theirs["result"].as_str().unwrap_or_default())
}

#[test]
fn ten_thousand_evaluations_end_as_keptns_would() {
    let ends = std::thread::scope(|scope| {
        let half = |from: u64| move || (from..SEEDS).step_by(2).map(judged).collect::<Vec<_>>();
        let other = scope.spawn(half(1));
        let mut ends = half(0)();
        ends.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        ends
    });
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    ends.into_iter().for_each(|end| *counts.entry(end).or_default() += 1);
    println!("{counts:#?}");
    for result in ["pass", "warning", "fail"] {
        let often: usize = counts.iter().filter(|(end, _)| end.starts_with(result)).map(|(_, n)| n).sum();
        assert!(often > 100, "{result}: {counts:#?}");
    }
}
