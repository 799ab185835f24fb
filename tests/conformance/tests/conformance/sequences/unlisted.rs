//! An installation whose executors are all on the bus: open tasks have no entries in the index for those who ask.

use keelway_conformance::stand::{Stand, gate, project, shipyard};
use keelway_domain::names::{ProjectName, TaskName};
use keelway_domain::shipyard::Shipyard;
use keelway_domain::time::Span;
use keelway_engine::ports::{Index, Query, Store};
use keelway_engine::sequences::{Limits, Sequences, keys};
use keelway_engine::views::WorkFilter;
use keelway_world::exec::block_on;

fn stand(shipyard: &Shipyard) -> Stand {
    Stand::with(shipyard, Limits { polled: false, ..Limits::default() })
}

/// The contexts whose task is open, as whoever asks is told.
fn told(stand: &Stand, task: &str, of: Option<ProjectName>) -> Vec<String> {
    let (tasks, filter) = ([TaskName::new(task).unwrap()], WorkFilter { project: of, ..WorkFilter::default() });
    let open = block_on(stand.engine.views().open_work(&tasks, &filter, None, &|_, _| true)).unwrap();
    let page = block_on(stand.engine.views().work_page(&open, 100)).unwrap();
    page.events.iter().map(|event| event["shkeptncontext"].as_str().unwrap().to_owned()).collect()
}

/// How many entries the index has for a task.
fn listed(stand: &Stand, task: &str) -> usize {
    block_on(stand.world.worker(0).query(&Query::index(Index::ByWork, keys::open_tasks(&project(), task), 10))).unwrap().items.len()
}

#[test]
fn whoever_asks_is_told_what_is_open() {
    let stand = stand(&shipyard(&["build", "deploy"], "release"));
    stand.trigger("c1");
    stand.trigger("c2");
    stand.rest();
    assert_eq!(listed(&stand, "build"), 0);
    // The second one waits for the lane.
    for of in [None, Some(project())] {
        assert_eq!(told(&stand, "build", of), ["c1"]);
    }
    assert_eq!(told(&stand, "build", ProjectName::new("other").ok()), Vec::<String>::new());
    assert_eq!(told(&stand, "deploy", None), Vec::<String>::new());
    stand.answer("c1", "build");
    stand.rest();
    assert_eq!((told(&stand, "build", None), told(&stand, "deploy", None)), (vec![], vec!["c1".to_owned()]));
}

#[test]
fn approvals_are_listed_for_people() {
    let mut shipyard = shipyard(&["build"], "release");
    shipyard.stages[0].sequences[0].tasks.push(gate());
    let stand = stand(&shipyard);
    stand.trigger("c1");
    stand.answer("c1", "build");
    stand.rest();
    assert_eq!((listed(&stand, "approval"), told(&stand, "approval", None)), (1, vec!["c1".to_owned()]));
}

#[test]
fn a_sweep_lists_what_is_open_when_somebody_asks_again() {
    let mut stand = stand(&shipyard(&["build", "deploy"], "release"));
    stand.trigger("c1");
    stand.rest();
    stand.engine = Sequences::new(stand.world.worker(1), Limits::default());
    assert_eq!(told(&stand, "build", None), Vec::<String>::new());
    stand.sweep();
    stand.rest();
    assert_eq!((listed(&stand, "build"), told(&stand, "build", None)), (1, vec!["c1".to_owned()]));
    let sent = stand.publications();
    stand.world.pass(Span::minutes(1));
    assert_eq!(stand.sweep().sent, 0, "listed once");
    assert_eq!(stand.publications(), sent, "and published once");
    stand.answer("c1", "build");
    stand.rest();
    assert_eq!((listed(&stand, "build"), listed(&stand, "deploy")), (0, 1));
}
