//! The session of Keptn's clients against the deployed stack.

use crate::bed::Bed;
use crate::recorded::{Play, session};
use keelway_cloud_tests::events::fresh;
use keelway_cloud_tests::patience::until;
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Outcome, Problem};
use reqwest::Method;
use std::cell::RefCell;

pub fn tests() -> Vec<Test<Bed>> {
    vec![Test::new("keptn_clients::every request of Keptn's clients is answered as they need", every_request)]
}

fn every_request(bed: &Bed) -> Outcome {
    let api = bed.stack.api();
    let mut play = Play::new(&format!("keptn-{}", &fresh()[24..]));
    for step in &session() {
        for recorded in &step.requests {
            let what = format!("{} {}", step.client, step.does);
            let last = RefCell::new(String::new());
            let ask = || {
                let sent = play.request(recorded);
                let method = Method::from_bytes(sent.method.as_bytes()).map_err(|error| Problem::of(&what, error))?;
                let body = sent.body.clone().map(|body| ("application/json", body));
                let reply = bed.stack.wait(api.request(method, &sent.path, Some(&api.token), body))?;
                match play.check(recorded, reply.status, &reply.body) {
                    Ok(()) => Ok(Some(())),
                    Err(why) if recorded.again => {
                        last.replace(format!("{sent:?}: {why}"));
                        Ok(None)
                    }
                    Err(why) => Err(format!("{what}: {sent:?}: {why}").into()),
                }
            };
            until(&what, ask, || last.borrow().clone())?;
        }
    }
    Ok(())
}
