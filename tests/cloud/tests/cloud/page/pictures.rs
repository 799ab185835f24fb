//! Pictures of the page for people, of the stack that `make run` leaves: written where `KEELWAY_SCREENS` says.

use super::Page;
use crate::bed::Bed;
use crate::shell::repository;
use keelway_cloud_tests::problem::ensure;
use keelway_cloud_tests::runner::Test;
use keelway_cloud_tests::{Outcome, Problem};

/// What readers have to load.
const LARGEST: usize = 120_000;
const HIGHEST: u64 = 720;
/// The name of each picture, its screen, and the link to follow there.
const SCREENS: [(&str, &str, &str); 8] = [
    ("environments", "#/environments?project=shop", ""),
    ("delivery", "#/deliveries?project=shop", "main td a[href^='#/delivery/'], main th a[href^='#/delivery/']"),
    ("waits", "#/waits", ""),
    ("pipelines", "#/pipelines", "main a[href^='#/pipelines/']"),
    ("deployments", "#/deployments", "main a[href^='#/deployments/']"),
    ("calendar", "#/calendar", ""),
    ("shipyard", "#/shipyard/shop", ""),
    ("operations", "#/operations/tokens", ""),
];

pub fn tests() -> Vec<Test<Bed>> {
    let wanted = std::env::var("KEELWAY_SCREENS").ok().filter(|folder| !folder.is_empty());
    wanted.map(|folder| Test::new("page::screens", move |bed| pictures(bed, &folder))).into_iter().collect()
}

fn pictures(bed: &Bed, folder: &str) -> Outcome {
    let variable =
        |name: &str| std::env::var(name).map_err(|_| Problem(format!("{name} is not set: eval \"$(make env)\" does it")));
    let ui = format!("{}/ui/", variable("KEELWAY_API")?.trim_end_matches('/'));
    let page = Page { ui, ..Page::signed_in(bed, &variable("KEELWAY_TOKEN")?)? };
    let browser = &page.browser;
    browser.prefers("", &[("prefers-color-scheme", "light"), ("prefers-reduced-motion", "reduce")])?;
    for (name, address, link) in SCREENS {
        page.open(address)?;
        if !link.is_empty() && browser.count(link)? > 0 {
            browser.click(link, "")?;
            page.shown()?;
        }
        browser.resize(1280, 400)?;
        let high = browser.value("document.documentElement.scrollHeight")?.as_u64().unwrap_or_default();
        browser.resize(1280, u32::try_from(high.min(HIGHEST)).unwrap_or_default())?;
        browser.run("document.activeElement.blur(); scrollTo(0, 0); return keelwayTest.settled();", &[])?;
        let picture = browser.screenshot()?;
        ensure(picture.len() <= LARGEST, || format!("{name} has {} bytes", picture.len()))?;
        let file = repository().join(folder).join(format!("{name}.png"));
        std::fs::write(&file, picture).map_err(|error| Problem::of(&file.display().to_string(), error))?;
    }
    Ok(())
}
