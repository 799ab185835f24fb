//! What one promotion costs: by notification, and by a pull request that a person merges.

use super::hosts::{FORMS, Strict, by_request};
use super::rest::carried;
use super::stand::{Stand, environments};
use crate::cost::Used;
use crate::price;
use crate::report::{Aim, Report};
use keelway_cloud_tests::Problem;
use keelway_domain::promotions::Phase;
use keelway_domain::promotions::definition::{Notification, Strategy};
use keelway_domain::time::Span;
use keelway_engine::promotions::attempts::Outside;

/// A pull request is merged as soon as it is open. So long after that, the repository has been looked at, and is not looked at any more.
const MERGED: Span = Span::minutes(2);

/// What a run used: of Keelway, and of the git host.
#[derive(Clone, Copy)]
struct Run {
    used: Used,
    calls: f64,
}

/// Two pipelines over 1 and 3 environments: one more promotion, and what a run costs besides.
pub async fn measure(report: &mut Report) -> Result<(), Problem> {
    let (one, three) = (by_notification(1).await?, by_notification(3).await?);
    tell(report, "by notification", one, three)?;
    for form in FORMS {
        let (one, three) = (merged(form, 1).await?, merged(form, 3).await?);
        tell(report, &format!("by pull request, form {}, merged before the first look", form.1), one, three)?;
    }
    Ok(())
}

fn tell(report: &mut Report, how: &str, one: Run, three: Run) -> Result<(), Problem> {
    let group = format!("promotions, cost of one {how}");
    let promotion = (three.used - one.used) * 0.5;
    let run = one.used - promotion;
    for (what, used) in [("one more promotion", promotion), ("a run without its promotions", run)] {
        report.row(&group, &format!("{what}: AWS requests"), used.requests, "", Aim::None);
        report.row(&group, &format!("{what}: write units"), used.writes, "WRU", Aim::None);
        report.row(&group, &format!("{what}: read units"), used.reads, "RRU", Aim::None);
        report.row(&group, &format!("{what}: messages"), used.messages, "", Aim::None);
    }
    let calls = (three.calls - one.calls) * 0.5;
    if calls > 0.0 {
        report.row(&group, "one more promotion: host calls", calls, "", Aim::None);
    }
    price::tell_promotions(report, &group, &promotion, calls)
}

async fn by_notification(promotions: usize) -> Result<Run, Problem> {
    let mut stand = carried("gitea", "https://git.example.com/api/v1").await?;
    start(&mut stand, promotions, Strategy::Notification(Notification::default())).await?;
    let mut used = Used::default();
    for revision in ["v2", "v3"] {
        let before = stand.used();
        stand.observe(0, "dev", revision).await?;
        for environment in &environments(promotions)[1..] {
            succeeded(&stand, environment)?;
            stand.observe(0, environment, revision).await?;
        }
        used = stand.used() - before;
    }
    Ok(Run { used, calls: 0.0 })
}

async fn merged(form: (keelway_githost::Form, &'static str), promotions: usize) -> Result<Run, Problem> {
    let host = Strict::start(form, 1, &environments(promotions))?;
    let mut stand = carried(host.form(), &host.api()).await?;
    start(&mut stand, promotions, by_request(0, host.form())).await?;
    let mut run = Run { used: Used::default(), calls: 0.0 };
    // The second revision: what is made once is there then.
    for revision in ["v2", "v3"] {
        let (before, swept) = (stand.used(), stand.swept);
        host.calls()?;
        stand.observe(0, "dev", revision).await?;
        for environment in &environments(promotions)[1..] {
            let (_, request) = stand.promotion(0, environment)?;
            host.merge(0, request.ok_or("a promotion has no pull request")?)?;
            stand.pass(MERGED).await?;
            succeeded(&stand, environment)?;
            stand.observe(0, environment, revision).await?;
        }
        // Sweeps cost the same whether anything is promoted or not.
        run = Run { used: stand.used() - before - (stand.swept - swept), calls: host.calls()?.0 };
    }
    Ok(run)
}

async fn start<O: Outside>(stand: &mut Stand<O>, promotions: usize, strategy: Strategy) -> Result<(), Problem> {
    stand.apply(0, promotions, strategy).await?;
    for environment in environments(promotions) {
        stand.observe(0, &environment, "v1").await?;
    }
    Ok(())
}

fn succeeded<O: Outside>(stand: &Stand<O>, environment: &str) -> Result<(), Problem> {
    match stand.promotion(0, environment)? {
        (Some(Phase::Succeeded), _) => Ok(()),
        (phase, _) => Err(format!("the promotion into {environment} has not succeeded, but is {phase:?}").into()),
    }
}
