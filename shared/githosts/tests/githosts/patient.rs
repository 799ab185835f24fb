//! Hosts that lose answers, and hosts that take their time.

use crate::strict::{REPOSITORY, scene};
use keelway_githost::{Action, Fault};
use keelway_githosts::{Form, Kind, Patience, Proposed};
use std::time::Duration;

/// As often as usual, without the pauses.
const QUICK: Patience = Patience { pause: Duration::from_millis(1), ..Patience::USUAL };

/// The pauses between attempts are 30 s and a minute, so three attempts are made within five minutes.
#[tokio::test]
async fn a_host_that_loses_three_of_ten_answers_delays_no_promotion() {
    for form in Form::ALL {
        for seed in 1..=8 {
            let mut scene = scene(form);
            scene.client = scene.client.patient(QUICK);
            scene.server.lose_three_of_ten(seed);
            let mut attempts = 0;
            let request = loop {
                attempts += 1;
                match scene.client.propose(&scene.change(1)).await {
                    Ok(Proposed::Opened(request) | Proposed::Found(request)) => break request,
                    Err(error) if error.kind == Kind::Transient && attempts < 3 => {}
                    other => panic!("{form}, seed {seed}, attempt {attempts}: {other:?}"),
                }
            };
            assert_eq!(scene.server.people().pulls(REPOSITORY).unwrap().len(), 1, "{form}, seed {seed}: {request:?}");
        }
    }
}

/// One attempt lasts four minutes at most, and a request 25 seconds.
#[tokio::test]
async fn an_attempt_fits_into_its_time_where_each_answer_takes_fifteen_seconds() {
    for form in Form::ALL {
        let mut scene = scene(form);
        scene.client = scene.client.patient(QUICK);
        let before = scene.server.calls().len();
        scene.opened(1).await;
        let calls = scene.server.calls().len() - before;
        assert!(calls * 15 <= 240, "{form}: {calls} requests");
    }
}

/// What is not known to do no harm is made once, and found when it was made all the same.
#[tokio::test]
async fn without_patience_each_request_is_made_once() {
    let scene = scene(Form::Gitea);
    scene.server.fail(Fault::next("GET", "*", Action::Status { status: 502, retry_after: None, body: None }));
    assert_eq!(scene.client.propose(&scene.change(1)).await.unwrap_err().kind, Kind::Transient);
    assert_eq!(scene.server.calls().len(), 1);
}
