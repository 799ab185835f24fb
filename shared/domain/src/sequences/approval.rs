//! Who decides an approval: this depends on the payload's result and the task's strategy.

use crate::event::{CloudEvent, Object, TaskResult};
use crate::shipyard::APPROVAL;
use serde_json::Value;

/// How an approval is decided; the result it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strategy {
    /// By the engine, in the commit that reaches it.
    Automatic(TaskResult),
    /// By a person.
    Manual(TaskResult),
}

/// No strategy = automatic (documentation page); no known result = pass; `fail` is declined at once, whatever the strategy.
pub(super) fn strategy(base: &Object, properties: &Object) -> Strategy {
    let text = |object: &Object, field: &str| object.get(field).and_then(Value::as_str).map(str::to_owned);
    let nested = |member: &str, field: &str| base.get(member).and_then(Value::as_object).and_then(|object| text(object, field));
    let known = |result: String| (!result.is_empty()).then_some(result);
    let result = text(base, "result").and_then(known).or_else(|| nested("evaluation", "result").and_then(known));
    let result = result.map_or(TaskResult::Pass, |result| TaskResult::of(Some(&result)));
    let field = match result {
        TaskResult::Fail => return Strategy::Automatic(result),
        TaskResult::Pass => "pass",
        TaskResult::Warning => "warning",
    };
    let chosen = text(properties, field).or_else(|| nested(APPROVAL, field));
    if chosen.as_deref() == Some("manual") { Strategy::Manual(result) } else { Strategy::Automatic(result) }
}

/// Whether an `approval.finished` is a decision: `result` is `pass` or `fail`, and `status` is `succeeded` or absent.
///
/// # Errors
/// The member of `data` at fault, and what to send instead.
pub fn check_decision(event: &CloudEvent) -> Result<(), (&'static str, String)> {
    let result = event.data.get("result").unwrap_or(&Value::Null);
    if !["pass", "fail"].iter().any(|known| result == known) {
        return Err(("data.result", format!("is {result}: an approval is decided by \"pass\" or \"fail\"")));
    }
    match event.data.get("status") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(status)) if status.is_empty() || status == "succeeded" => Ok(()),
        Some(other) => Err(("data.status", format!("is {other}: leave it out, or send \"succeeded\" with an approval's decision"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_matrix() {
        use Strategy::{Automatic, Manual};
        use TaskResult::{Fail, Pass, Warning};
        for (result, pass, warning, expected) in [
            (Some("pass"), Some("automatic"), Some("manual"), Automatic(Pass)),
            (Some("pass"), Some("manual"), Some("automatic"), Manual(Pass)),
            (Some("warning"), Some("manual"), Some("automatic"), Automatic(Warning)),
            (Some("warning"), Some("automatic"), Some("manual"), Manual(Warning)),
            (Some("fail"), Some("manual"), Some("manual"), Automatic(Fail)),
            (None, Some("manual"), None, Manual(Pass)),
            (None, None, None, Automatic(Pass)),
        ] {
            let base = json!({"result": result}).as_object().unwrap().clone();
            let mut properties = Object::new();
            for (name, value) in [("pass", pass), ("warning", warning)] {
                if let Some(value) = value {
                    properties.insert(name.into(), json!(value));
                }
            }
            assert_eq!(strategy(&base, &properties), expected, "{result:?} {pass:?} {warning:?}");
        }
        let evaluated = json!({"evaluation": {"result": "warning"}}).as_object().unwrap().clone();
        let manual = json!({"warning": "manual"}).as_object().unwrap().clone();
        assert_eq!(strategy(&evaluated, &manual), Manual(Warning));
    }
}
