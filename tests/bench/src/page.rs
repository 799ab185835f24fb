//! The page in a browser, on the API in memory: how soon it is painted and whole with many services, how soon one cell is drawn
//! anew, and what an hour of an open page asks for and costs. Requests and units are counted; the clocks of the page and of the API
//! are moved on, so that an hour takes seconds.

use crate::bill::counted::{Over, Stand, TOKEN};
use crate::cost::{Used, number};
use crate::price;
use crate::report::{Aim, Report};
use crate::size::Size;
use axum::Router;
use keelway_api::Served;
use keelway_cloud_tests::browser::{self, Browser, Browsers};
use keelway_cloud_tests::{Ability, Problem};
use keelway_domain::time::Span;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// The services of a large project; each is in five stages.
const SERVICES: [u32; 2] = [200, 1_000];
/// The clocks are moved on by so much together: the longest pause between two looks.
const STEP: i64 = 15;

/// What an open page shows.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Shows {
    Idle,
    Moving,
    Hidden,
}

/// Measures the page, if there is a browser.
pub fn measure(report: &mut Report, size: &Size, say: &dyn Fn(&str)) -> Result<(), Problem> {
    if !browser::wanted() {
        report.note(format!("the page was not measured: {}", Ability::Browser.missing()));
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| Problem::of("the runtime", error))?;
    let browsers = Browsers::start(runtime.handle().clone())?;
    let done = open(&runtime, &browsers, report, size, say);
    browsers.stop();
    done
}

fn open(runtime: &Runtime, browsers: &Browsers, report: &mut Report, size: &Size, say: &dyn Fn(&str)) -> Result<(), Problem> {
    let mut stand = runtime.block_on(Stand::new())?;
    runtime.block_on(stand.sequence(Over::Http, "11111111-0000-4000-8000-000000000001"))?;
    let ui = serve(runtime, stand.app.clone())?;
    for services in SERVICES {
        say(&format!("the page with {services} services"));
        load(browsers, &ui, (services, size.page.0), report)?;
    }
    for (shows, what) in [(Shows::Idle, "nothing moves"), (Shows::Moving, "something moves"), (Shows::Hidden, "hidden")] {
        say(&format!("an hour of an open page, {what}"));
        if shows == Shows::Moving {
            runtime.block_on(stand.begin("11111111-0000-4000-8000-000000000002"))?;
        }
        let (calls, used) = hour(browsers, &ui, &stand, (shows, size.page.1))?;
        let group = format!("page, an hour of Environments, {what}");
        report.row(&group, "requests to the API", calls, "", Aim::None);
        report.row(&group, "read units", used.reads, "RRU", Aim::None);
        report.row(&group, "write units", used.writes, "WRU", Aim::None);
        // In cents, because a price has three digits here.
        report.row(&group, "modelled price", price::of_requests(calls, &used)? * 100.0, "cents", Aim::None);
    }
    Ok(())
}

/// The address of the page.
fn serve(runtime: &Runtime, app: Served) -> Result<String, Problem> {
    let wrong = |error: std::io::Error| Problem::of("the API in memory", error);
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).map_err(wrong)?;
    let address = listener.local_addr().map_err(wrong)?;
    runtime.spawn(async move { axum::serve(listener, Router::new().fallback_service(app)).await });
    Ok(format!("http://{address}/ui/"))
}

fn signed_in(browsers: &Browsers) -> Result<Browser<'_>, Problem> {
    let browser = browsers.take()?;
    browser.before(&format!("if (window.keelwayTest) sessionStorage.setItem('keelway.token', {});", json!(TOKEN)))?;
    Ok(browser)
}

fn figure(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

/// The one in the middle.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Loads the page with an empty cache, and has cells drawn anew.
fn load(browsers: &Browsers, ui: &str, (services, times): (u32, usize), report: &mut Report) -> Result<(), Problem> {
    let browser = signed_in(browsers)?;
    browser.before(&format!("window.keelwayTest?.large({services});"))?;
    let mut loads: [Vec<f64>; 3] = Default::default();
    for _ in 0..times {
        browser.devtools("Network.clearBrowserCache", json!({}))?;
        browser.go("about:blank")?;
        browser.go(&format!("{ui}#/environments?project=large"))?;
        browser.until("Boolean(keelwayTest.complete && performance.getEntriesByName('first-contentful-paint').length)")?;
        let seen = browser.value(
            "[performance.getEntriesByName('first-contentful-paint')[0].startTime, keelwayTest.first, keelwayTest.complete]",
        )?;
        for (n, values) in loads.iter_mut().enumerate() {
            values.push(figure(&seen[n]));
        }
    }
    let group = format!("page, {services} services in five stages");
    for (name, values) in ["first paint", "first row", "all services are there"].into_iter().zip(loads) {
        report.row(&group, name, median(values), "ms", Aim::None);
    }
    let redraws: Result<Vec<f64>, Problem> = (0..times)
        .map(|n| browser.run("return keelwayTest.redraw(arguments[0]);", &[json!(n)]).map(|value| figure(&value)))
        .collect();
    report.row(&group, "one cell is read and drawn anew", median(redraws?), "ms", Aim::None);
    report.row(&group, "elements", number(browser.count("*")?), "", Aim::None);
    Ok(())
}

/// What an hour of an open page asks for: the requests of the page, and what the API uses for them.
fn hour(browsers: &Browsers, ui: &str, stand: &Stand, (shows, minutes): (Shows, u32)) -> Result<(f64, Used), Problem> {
    let browser = signed_in(browsers)?;
    browser.before("window.keelwayTest?.stop();")?;
    browser.go(&format!("{ui}#/environments?project=bench"))?;
    browser.until("Boolean(document.querySelector('main tbody th'))")?;
    browser.run("return keelwayTest.settled();", &[])?;
    if shows == Shows::Hidden {
        browser.run("keelwayTest.hide(true); return keelwayTest.settled();", &[])?;
    }
    let so_far = || -> Result<(f64, Used), Problem> {
        Ok((figure(&browser.value("keelwayTest.requests.length")?), Used::in_world(&stand.world, 0.0, 0.0)))
    };
    let before = so_far()?;
    let steps = i64::from(minutes) * 60 / STEP;
    for _ in 0..steps {
        stand.world.pass(Span::seconds(STEP));
        browser.run("return keelwayTest.advance(arguments[0]);", &[json!(STEP * 1000)])?;
    }
    let (calls, used) = so_far()?;
    let times = 60.0 / f64::from(minutes);
    Ok(((calls - before.0) * times, (used - before.1) * times))
}
