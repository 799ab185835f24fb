//! A second implementation of the arithmetic of Keptn's lighthouse (release 1.4.5), function by function and in its order, on the
//! JSON of the events. It shares no code with `shared/domain/src/evaluation`, and nothing in it is better than in the original.
//!
//! Two deviations are on purpose, and ours: a target that is not finite is no target, and `0x1p4` is no number.

use serde_json::{Value, json};

/// A criterion: its operator, its number, and whether it is a percentage, a comparison, an increase.
type Criterion = (&'static str, f64, bool, bool, bool);

/// The name and the message of the key indicator that failed.
type Key = Option<(String, String)>;

/// What the lighthouse sends: objectives as JSON, `get-sli.finished`, and the `evaluation.finished` before, newest first.
pub fn evaluate(slo: &Value, provided: &Value, stored: &[Value]) -> Value {
    let (number, include, function) = comparison(slo);
    let matching = stored.iter().filter(|event| match include.as_str() {
        "pass" => event["data"]["result"] == "pass",
        "pass_or_warn" => event["data"]["result"] == "pass" || event["data"]["result"] == "warning",
        _ => true,
    });
    let previous: Vec<&Value> = matching.take(usize::try_from(number).unwrap_or(0)).collect();
    let ids: Vec<&Value> = previous.iter().map(|event| &event["id"]).collect();
    let failed = |status: &str, message: &str, ids: &[&Value]| {
        let evaluation = json!({"result": "fail", "score": 0.0, "indicatorResults": null, "comparedEvents": ids});
        json!({"status": status, "result": "fail", "message": message, "evaluation": evaluation})
    };
    let mut out = failed("", "", &ids);
    let (maximum, key) = match objectives(slo, &function, provided, &previous, &mut out) {
        Ok(both) => both,
        Err(message) => return failed("succeeded", &message, &ids),
    };
    if let Err(message) = score(maximum, &mut out, slo, &key) {
        return failed("errored", message, &[]);
    }
    if list(&slo["objectives"]).iter().all(Value::is_null) {
        (out["result"], out["message"]) = ("fail".into(), "lighthouse failed because no SLO objective was provided".into());
    } else if provided["result"] == "fail" {
        let message = format!("lighthouse failed because SLI failed with message {}", text(provided, "message"));
        (out["result"], out["message"]) = ("fail".into(), message.into());
    }
    out
}

/// How many earlier evaluations count, which, and the function of their values.
fn comparison(slo: &Value) -> (i64, String, String) {
    let given = &slo["comparison"];
    let or =
        |member: &str, default: &str| if text(given, member).is_empty() { default.into() } else { text(given, member).to_owned() };
    let number = given["number_of_comparison_results"].as_i64().filter(|number| *number != 0).unwrap_or(3);
    let wanted = match text(given, "compare_with") {
        _ if given.is_null() => 1,
        "single_result" => 1,
        "several_results" => number,
        _ => 3,
    };
    (wanted, or("include_result_with_score", "all").to_lowercase(), or("aggregate_function", "avg"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap_or_default()
}

fn objectives(slo: &Value, function: &str, provided: &Value, previous: &[&Value], out: &mut Value) -> Result<(f64, Key), String> {
    let (mut maximum, mut key, mut results) = (0.0, None, vec![]);
    let objectives: Vec<&Value> = list(&slo["objectives"]).iter().filter(|objective| !objective.is_null()).collect();
    maximum += if objectives.is_empty() { 100.0 } else { 0.0 };
    let mut values: Vec<Value> = list(&provided["get-sli"]["indicatorValues"]).to_vec();
    for objective in objectives {
        let weight = objective["weight"].as_f64().filter(|weight| *weight != 0.0).unwrap_or(1.0);
        let (sli, name, is_key) = (text(objective, "sli"), text(objective, "displayName"), objective["key_sli"] == true);
        let (pass, warning) = (list(&objective["pass"]), list(&objective["warning"]));
        if !pass.is_empty() {
            maximum += weight;
        }
        let before: Vec<&Value> = previous
            .iter()
            .flat_map(|event| list(&event["data"]["evaluation"]["indicatorResults"]))
            .filter(|result| !result["value"].is_null() && text(&result["value"], "metric") == sli)
            .collect();
        let mut value = Value::Null;
        if let Some(at) = values.iter().position(|value| text(value, "metric") == sli) {
            value = values[at].clone();
            let last = values.len() - 1;
            values[at] = values[last].clone();
            values.truncate(last);
            value["comparedValue"] = json!(0.0);
        }
        let mut result = json!({"score": 0.0, "value": value, "displayName": name, "passTargets": null, "warningTargets": null,
            "keySli": false, "status": ""});
        if pass.is_empty() || value.is_null() || value["success"] != true {
            result["passTargets"] = empty_targets(function, pass, &before);
            result["warningTargets"] = empty_targets(function, warning, &before);
            result["status"] = if pass.is_empty() { "info" } else { "fail" }.into();
            if !pass.is_empty() {
                if value.is_null() {
                    result["value"] = json!({"metric": sli, "value": 0.0, "comparedValue": 0.0, "success": false,
                        "message": "no value received from SLI provider"});
                }
                if is_key {
                    key = Some((name.into(), text(&result["value"], "message").into()));
                }
            }
            results.push(result);
            continue;
        }
        let mut compared = 0.0;
        let measured = value["value"].as_f64().unwrap_or(0.0);
        let (passed, targets) = any(measured, pass, &before, function, &mut compared)
            .map_err(|error| format!("error with {}: {error}", if name.is_empty() { sli } else { name }))?;
        if passed {
            (result["score"], result["status"]) = (json!(weight), "pass".into());
        }
        let mut warned = false;
        if !warning.is_empty() {
            let (is, targets) = any(measured, warning, &before, function, &mut compared).unwrap_or((false, json!([])));
            warned = is;
            if !passed && warned {
                (result["score"], result["status"]) = (json!(0.5 * weight), "warning".into());
            }
            result["warningTargets"] = targets;
        }
        (result["passTargets"], result["keySli"]) = (targets, json!(is_key));
        result["value"]["comparedValue"] = json!(compared);
        if !passed && !warned {
            if is_key {
                key = Some((name.into(), "failed evaluation with score 0.000000".into()));
            }
            result["status"] = "fail".into();
        }
        results.push(result);
    }
    let left: Vec<&str> = values.iter().map(|value| text(value, "metric")).collect();
    let left = left.join(", ");
    if !left.is_empty() {
        let message = "Lighthouse received additional SLIs, which are not specified as SLO: ";
        out["message"] = format!("{message}{left} . Please consider using them as an SLO.").into();
    }
    out["evaluation"]["indicatorResults"] = if results.is_empty() { Value::Null } else { Value::Array(results) };
    Ok((maximum, key))
}

fn empty_targets(function: &str, sets: &[Value], before: &[&Value]) -> Value {
    let mut targets = vec![];
    for criterion in sets.iter().flat_map(|set| list(&set["criteria"])) {
        let Ok((_, value, _, comparison, _)) = parse(criterion.as_str().unwrap_or_default()) else { continue };
        let target = if comparison { aggregate(before, function).0 } else { value };
        targets.push(json!({"criteria": criterion, "targetValue": target, "violated": true}));
    }
    Value::Array(targets)
}

fn any(measured: f64, sets: &[Value], before: &[&Value], function: &str, compared: &mut f64) -> Result<(bool, Value), String> {
    let (mut satisfied, mut targets) = (false, vec![]);
    for set in sets {
        let mut all = true;
        for criterion in list(&set["criteria"]) {
            let (operator, value, percentage, comparison, increase) = parse(criterion.as_str().unwrap_or_default())?;
            let (aggregated, skip) = aggregate(before, function);
            *compared = aggregated;
            let mut target = 0.0;
            let holds = if comparison && skip {
                true
            } else {
                target = match (comparison, percentage, increase) {
                    (false, ..) => value,
                    (_, true, true) => (aggregated * (100.0 + value)) / 100.0,
                    (_, true, false) => (aggregated * (100.0 - value)) / 100.0,
                    (_, false, true) => aggregated + value,
                    (_, false, false) => aggregated - value,
                };
                match operator {
                    "<" => measured < target,
                    "<=" => measured <= target,
                    "=" => measured == target,
                    ">=" => measured >= target,
                    _ => measured > target,
                }
            };
            all = all && holds;
            targets.push(json!({"criteria": criterion, "targetValue": target, "violated": !holds}));
        }
        satisfied = satisfied || all;
    }
    Ok((satisfied, if targets.is_empty() { Value::Null } else { Value::Array(targets) }))
}

fn aggregate(before: &[&Value], function: &str) -> (f64, bool) {
    let values = before.iter().filter(|result| result["value"]["success"] == true);
    let mut values: Vec<f64> = values.map(|result| result["value"]["value"].as_f64().unwrap_or(0.0)).collect();
    if values.is_empty() {
        return (0.0, true);
    }
    if function == "avg" {
        let mut sum = 0.0;
        for value in &values {
            sum += value;
        }
        return (sum / values.len() as f64, false);
    }
    let Some(share) = [("p50", 0.5), ("p90", 0.9), ("p95", 0.95)].iter().find(|(word, _)| *word == function) else {
        return (0.0, false);
    };
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    let (size, place) = (values.len(), share.1 * (values.len() + 1) as f64);
    let value = if place < 1.0 {
        values[0]
    } else if place >= size as f64 {
        values[size - 1]
    } else {
        let (lower, upper) = (values[place as usize - 1], values[place as usize]);
        lower + (place - place.floor()) * (upper - lower)
    };
    (value, false)
}

fn parse(criterion: &str) -> Result<Criterion, String> {
    let mut rest = criterion.replace(' ', "");
    if !["<", "|", "=", ">"].iter().any(|sign| rest.starts_with(sign)) {
        return Err("invalid criteria string".into());
    }
    let operator = ["<=", "<", "=", ">=", ">"].into_iter().find(|operator| rest.starts_with(operator)).unwrap_or("");
    rest = rest[operator.len()..].to_owned();
    let (mut percentage, mut comparison, mut increase) = (false, false, false);
    if rest.ends_with('%') {
        (percentage, comparison, increase) = (true, true, true);
        rest.pop();
    }
    if rest.starts_with('-') || rest.starts_with('+') {
        (comparison, increase) = (true, rest.starts_with('+'));
        rest.remove(0);
    }
    let value = float(&rest).ok_or("could not parse criteria target value")?;
    Ok((operator, value, percentage, comparison, increase))
}

fn float(text: &str) -> Option<f64> {
    let plausible = !text.to_lowercase().contains(['n', 'x', 'f']);
    plausible.then(|| text.replace('_', "").parse::<f64>().ok()).flatten().filter(|value| value.is_finite())
}

fn score(maximum: f64, out: &mut Value, slo: &Value, key: &Key) -> Result<(), &'static str> {
    let (pass, warning) = (text(&slo["total_score"], "pass"), text(&slo["total_score"], "warning"));
    if pass.is_empty() {
        return Err("no target score defined");
    }
    let percentage = |text: &str| float(text.strip_suffix('%').unwrap_or(text));
    let least = percentage(pass).ok_or("could not parse pass target percentage")?;
    let lower = if warning.is_empty() { Some(0.0) } else { percentage(warning) };
    let lower = lower.ok_or("could not parse warning target percentage")?;
    let mut total = 0.0;
    for result in list(&out["evaluation"]["indicatorResults"]) {
        if !list(&result["passTargets"]).is_empty() {
            total += result["score"].as_f64().unwrap_or(0.0);
        }
    }
    let score = if maximum == 0.0 { 100.0 } else { 100.0 * (total / maximum) };
    let mut end = |result: &str, message: String| {
        (out["status"], out["result"], out["evaluation"]["result"]) = ("succeeded".into(), result.into(), result.into());
        out["evaluation"]["score"] = json!(score);
        if !message.is_empty() {
            out["message"] = message.into();
        }
    };
    if maximum == 0.0 || score >= least && key.is_none() {
        end("pass", String::new());
    } else if let Some((name, message)) = key {
        end("fail", format!("Evaluation failed due to key_sli objective '{name}': {message}"));
    } else {
        let said = format!("the calculated score of {}", go(score));
        match (warning.is_empty(), score >= lower) {
            (true, _) => end("fail", format!("Evaluation failed since {said} is below the target value of {}", go(least))),
            (_, true) => end(
                "warning",
                format!("Evaluation returned a warning: {said} is close to the warning target value of {}", go(lower)),
            ),
            _ => end("fail", format!("Evaluation failed since {said} is below the warning value of {}", go(lower))),
        }
    }
    Ok(())
}

/// Go's `%v`: as short as it can be, and with an exponent of at least two digits for what is large or small.
fn go(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || (0.0001..1_000_000.0).contains(&size) {
        return format!("{value}");
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    match exponent.strip_prefix('-') {
        Some(exponent) => format!("{digits}e-{exponent:0>2}"),
        None => format!("{digits}e+{exponent:0>2}"),
    }
}
