//! What would help when a delivery has ended badly.

use super::{Hint, Line, Mark};
use keelway_wire::http::{ExecutionState, SequenceState};

/// Who has declined where nobody decided in time.
const CLOCK: &str = "the clock";

/// What to look at, and what repeats what failed, once it is over.
pub fn aftermath(state: &SequenceState, line: &Line) -> Vec<Hint> {
    let bad = state.is_over() && line.cells.iter().any(|cell| matches!(cell.mark, Mark::Fail | Mark::Missed));
    if !bad {
        return vec![];
    }
    let about = format!("what happened to {} {}", line.service, line.version);
    let log = Hint { command: format!("keelway watch --log {}", line.id), about: about.trim().to_owned() };
    again(state, &line.id).into_iter().chain([log]).collect()
}

/// The command that repeats what failed, where it makes sense: nobody has decided against it, and nothing has come after it there.
fn again(state: &SequenceState, id: &str) -> Option<Hint> {
    let failed = |x: &&ExecutionState| x.result.as_deref() == Some("fail") && x.retried_by.is_none();
    let failed: Vec<&ExecutionState> = state.executions.iter().filter(failed).collect();
    let one = failed.last()?;
    let task = one.tasks.last()?;
    let declined =
        task.name == "approval" && task.result.as_deref() == Some("fail") && task.by.as_deref().is_some_and(|by| by != CLOCK);
    let followed = state.executions.iter().rev().take_while(|x| x.id != one.id).any(|x| x.stage == one.stage);
    if declined || followed {
        return None;
    }
    let stage = if failed.len() > 1 { format!(" --stage {}", one.stage) } else { String::new() };
    let command = format!("keelway retry {id}{stage} -p {}", state.project);
    Some(Hint { command, about: format!("again from {} in {}", task.name, one.stage) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use keelway_wire::http::TaskState;

    fn ended(stage: &str, id: &str, result: &str, task: TaskState) -> ExecutionState {
        let text = |text: &str| Some(text.to_owned());
        ExecutionState { stage: stage.into(), id: id.into(), result: text(result), tasks: vec![task], ..ExecutionState::default() }
    }

    fn hint(executions: Vec<ExecutionState>) -> Option<String> {
        let state = SequenceState { project: "shop".into(), executions, ..SequenceState::default() };
        again(&state, "139a703f").map(|hint| format!("{} · {}", hint.command, hint.about))
    }

    #[test]
    fn what_failed_is_repeated_unless_a_person_or_a_rollback_has_ended_it() {
        let task = |name: &str| TaskState { name: name.into(), ..TaskState::default() };
        let failed = |stage: &str, id: &str| ended(stage, id, "fail", task("test"));
        assert_eq!(hint(vec![failed("dev", "1")]).as_deref(), Some("keelway retry 139a703f -p shop · again from test in dev"));
        let both = hint(vec![failed("dev", "1"), failed("staging", "2")]);
        assert_eq!(both.as_deref(), Some("keelway retry 139a703f --stage staging -p shop · again from test in staging"));
        let approval = |by: Option<&str>| TaskState { result: Some("fail".into()), by: by.map(str::to_owned), ..task("approval") };
        assert!(hint(vec![ended("dev", "1", "fail", approval(Some(CLOCK)))]).is_some());
        assert_eq!(hint(vec![ended("dev", "1", "fail", approval(Some("ann")))]), None);
        assert_eq!(hint(vec![failed("dev", "1"), ended("dev", "2", "pass", task("rollback"))]), None);
        let retried = ExecutionState { retried_by: Some("2".into()), ..failed("dev", "1") };
        assert_eq!(hint(vec![retried]), None);
        // What was superseded before its first task has none to repeat.
        assert_eq!(hint(vec![ExecutionState { tasks: vec![], ..failed("dev", "1") }]), None);
    }
}
