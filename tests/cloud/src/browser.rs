//! A real browser: Chromium without a window, driven by chromedriver. One driver per process, few sessions, a window per test.
//!
//! [WebDriver](https://www.w3.org/TR/webdriver2/) is a handful of requests with JSON in them. The clients that there are bring
//! twenty packages, one of them under a licence that `deny.toml` does not take.

use crate::driver::Driver;
use crate::patience::until;
use crate::problem::{Problem, ensure};
use base64::Engine;
use reqwest::Method;
use serde_json::{Value, json};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, PoisonError};
use tokio::runtime::Handle;

/// Each is a Chromium: more would only take each other's processor.
const SESSIONS: usize = 2;
/// How long scripts and documents may take, in milliseconds: shorter than a request to the driver may.
const PATIENCE: u64 = 240_000;
/// Runs in every document before the page's own files: counts, and answers in place of the API if a test says so.
const PRELUDE: &str = include_str!("browser.js");
const AXE: &str = include_str!("../axe/axe.min.js");
/// Keys as WebDriver writes them.
pub mod key {
    /// To the next element.
    pub const TAB: &str = "\u{e004}";
    /// Opens or sends.
    pub const ENTER: &str = "\u{e007}";
    /// Closes a dialog.
    pub const ESCAPE: &str = "\u{e00c}";
}

fn found(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).flat_map(|folder| names.iter().map(move |name| folder.join(name))).find(|file| file.is_file())
}

/// The same engine without a browser's user interface, which takes two thirds of the processor time if it is there.
const SHELLS: [&str; 2] = ["chromium-headless-shell", "chrome-headless-shell"];

fn programs() -> Option<(PathBuf, PathBuf)> {
    let browser = found(&SHELLS).or_else(|| found(&["chromium", "chromium-browser", "google-chrome"]));
    browser.zip(found(&["chromedriver"]))
}

/// Whether tests in a browser can be run, or must be: `KEELWAY_BROWSER=required` makes a missing one a failure.
pub fn wanted() -> bool {
    programs().is_some() || std::env::var_os("KEELWAY_BROWSER").is_some_and(|word| word == "required")
}

/// The driver and its sessions.
pub struct Browsers {
    url: String,
    http: reqwest::Client,
    handle: Handle,
    binary: PathBuf,
    sessions: Mutex<Sessions>,
    free: Condvar,
    driver: Mutex<Driver>,
}

#[derive(Default)]
struct Sessions {
    /// By their ids.
    idle: Vec<String>,
    busy: usize,
}

impl Browsers {
    /// Starts chromedriver on a free port.
    ///
    /// # Errors
    /// When it is not there or does not start.
    pub fn start(handle: Handle) -> Result<Self, Problem> {
        let missing = || Problem(crate::Ability::Browser.missing().to_owned());
        let (binary, driver) = programs().ok_or_else(missing)?;
        let driver = Driver::start(&driver)?;
        let (url, http) = (format!("http://127.0.0.1:{}/session", driver.port), crate::raw::client());
        Ok(Self { url, http, handle, binary, sessions: Mutex::default(), free: Condvar::new(), driver: Mutex::new(driver) })
    }

    /// What the driver answers to a request.
    fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Problem> {
        let request = self.http.request(method, format!("{}{path}", self.url));
        let request = body.map_or(request.try_clone(), |body| Some(request.json(body))).ok_or("a request of WebDriver")?;
        let answer = self.handle.block_on(async { request.send().await?.json::<Value>().await });
        let value = answer.map_err(|error| Problem::of("chromedriver", format!("{error:?}")))?["value"].take();
        match value["error"].as_str() {
            Some(error) => Err(format!("the browser: {path}: {error}: {}", value["message"]).into()),
            None => Ok(value),
        }
    }

    fn capabilities(&self) -> Value {
        let mut arguments =
            vec!["--headless=new", "--window-size=1280,900", "--no-first-run", "--no-proxy-server", "--disable-gpu"];
        // A window behind another one is as awake as one before it.
        arguments.extend([
            "--disable-dev-shm-usage",
            "--disable-backgrounding-occluded-windows",
            "--disable-renderer-backgrounding",
        ]);
        arguments.extend(["--disable-background-timer-throttling", "--hide-scrollbars", "--force-color-profile=srgb"]);
        // No process is started before a page needs it, and the pages of one origin share one.
        arguments.extend(["--disable-features=SpareRendererForSitePerProcess", "--process-per-site"]);
        // Chromium's sandbox refuses to run as root.
        if std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
            arguments.push("--no-sandbox");
        }
        let options = json!({"binary": self.binary, "args": arguments});
        let timeouts = json!({"script": PATIENCE, "pageLoad": PATIENCE});
        let all = json!({"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}, "timeouts": timeouts});
        json!({"capabilities": {"alwaysMatch": all}})
    }

    fn session(&self) -> Result<String, Problem> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        while sessions.idle.is_empty() && sessions.busy >= SESSIONS {
            sessions = self.free.wait(sessions).unwrap_or_else(PoisonError::into_inner);
        }
        sessions.busy += 1;
        if let Some(idle) = sessions.idle.pop() {
            return Ok(idle);
        }
        drop(sessions);
        let made = self.call(Method::POST, "", Some(&self.capabilities())).inspect_err(|_| self.back(None))?;
        Ok(format!("/{}", text(&made["sessionId"])))
    }

    fn back(&self, session: Option<String>) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.busy -= 1;
        sessions.idle.extend(session);
        self.free.notify_one();
    }

    /// A session of this test's own, with one window. It comes back when it is dropped.
    ///
    /// # Errors
    /// When there is none to be had.
    pub fn take(&self) -> Result<Browser<'_>, Problem> {
        let mut browser = Browser { browsers: self, session: self.session()?, home: String::new() };
        browser.home = text(&browser.get("/window")?);
        browser.window()?;
        browser.log()?;
        Ok(browser)
    }

    /// Ends all.
    pub fn stop(&self) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        for session in sessions.idle.drain(..) {
            drop(self.call(Method::DELETE, &session, None));
        }
        let mut driver = self.driver.lock().unwrap_or_else(PoisonError::into_inner);
        driver.stop();
    }
}

/// A session. Commands go to the window that was opened or chosen last.
pub struct Browser<'a> {
    browsers: &'a Browsers,
    session: String,
    home: String,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

impl Browser<'_> {
    fn get(&self, path: &str) -> Result<Value, Problem> {
        self.browsers.call(Method::GET, &format!("{}{path}", self.session), None)
    }
    fn post(&self, path: &str, body: &Value) -> Result<Value, Problem> {
        self.browsers.call(Method::POST, &format!("{}{path}", self.session), Some(body))
    }

    /// Opens a window and goes on there; returns its handle. Its storage is its own, as that of a tab that somebody opens.
    ///
    /// # Errors
    /// When the browser refuses, here and everywhere below.
    pub fn window(&self) -> Result<String, Problem> {
        let window = text(&self.post("/window/new", &json!({"type": "window"}))?["handle"]);
        self.choose(&window)?;
        self.before(PRELUDE)?;
        Ok(window)
    }

    /// Goes on in another window.
    pub fn choose(&self, window: &str) -> Result<(), Problem> {
        self.post("/window", &json!({"handle": window})).map(drop)
    }

    /// The window's handle.
    pub fn current(&self) -> Result<String, Problem> {
        self.get("/window").map(|window| text(&window))
    }

    /// A command of the DevTools protocol, for this window.
    pub fn devtools(&self, command: &str, parameters: Value) -> Result<Value, Problem> {
        self.post("/goog/cdp/execute", &json!({"cmd": command, "params": parameters}))
    }

    /// Runs a script in each document of this window from the next one on, before the document's own.
    pub fn before(&self, script: &str) -> Result<(), Problem> {
        self.devtools("Page.addScriptToEvaluateOnNewDocument", json!({"source": script})).map(drop)
    }

    /// Goes to an address. Only the part behind `#` may differ: then the document stays.
    pub fn go(&self, address: &str) -> Result<(), Problem> {
        self.post("/url", &json!({"url": address})).map(drop)
    }
    /// Loads the document again.
    pub fn reload(&self) -> Result<(), Problem> {
        self.post("/refresh", &json!({})).map(drop)
    }
    /// To the entry of the history before.
    pub fn previous(&self) -> Result<(), Problem> {
        self.post("/back", &json!({})).map(drop)
    }
    /// To the entry of the history behind.
    pub fn next(&self) -> Result<(), Problem> {
        self.post("/forward", &json!({})).map(drop)
    }
    /// The address.
    pub fn address(&self) -> Result<String, Problem> {
        self.get("/url").map(|url| text(&url))
    }

    /// Runs the body of a function with `arguments`, and waits for what it returns, even if that is a promise.
    pub fn run(&self, body: &str, arguments: &[Value]) -> Result<Value, Problem> {
        self.post("/execute/sync", &json!({"script": body, "args": arguments}))
    }
    /// The value of an expression.
    pub fn value(&self, expression: &str) -> Result<Value, Problem> {
        self.run(&format!("return ({expression});"), &[])
    }
    /// The text that is seen in the first element of a selector; empty without one.
    pub fn text(&self, selector: &str) -> Result<String, Problem> {
        Ok(text(&self.run("return document.querySelector(arguments[0])?.innerText ?? '';", &[selector.into()])?))
    }
    /// How many elements fit a selector.
    pub fn count(&self, selector: &str) -> Result<u64, Problem> {
        let count = self.run("return document.querySelectorAll(arguments[0]).length;", &[selector.into()])?;
        Ok(count.as_u64().unwrap_or_default())
    }

    /// Waits until an expression is true.
    pub fn until(&self, expression: &str) -> Result<(), Problem> {
        let look = || Ok((self.value(expression)? == true).then_some(()));
        let so_far =
            || format!("{}\n{}\n{:?}", self.address().unwrap_or_default(), self.text("body").unwrap_or_default(), self.log());
        until(expression, look, so_far)
    }
    /// Waits until an element has a text in it.
    pub fn until_text(&self, selector: &str, text: &str) -> Result<(), Problem> {
        self.until(&format!("(document.querySelector({})?.innerText ?? '').includes({})", json!(selector), json!(text)))
    }

    /// Clicks on the first element of a selector that has a text in it.
    pub fn click(&self, selector: &str, text: &str) -> Result<(), Problem> {
        let find = "[...document.querySelectorAll(arguments[0])].find((e) => e.innerText.includes(arguments[1]) && !e.disabled)";
        let found =
            self.run(&format!("const e = {find}; e?.focus(); e?.click(); return Boolean(e);"), &[selector.into(), text.into()])?;
        ensure(found == true, || format!("no {selector} with {text:?} in {}", self.text("body").unwrap_or_default()))
    }

    /// Presses keys, one after the other, wherever the focus is.
    pub fn keys(&self, keys: &str) -> Result<(), Problem> {
        let press = |key: char| {
            let value = key.to_string();
            [json!({"type": "keyDown", "value": value}), json!({"type": "keyUp", "value": value})]
        };
        let actions: Vec<Value> = keys.chars().flat_map(press).collect();
        let body = json!({"actions": [{"type": "key", "id": "keyboard", "actions": actions}]});
        self.post("/actions", &body).map(drop)
    }

    /// What the console and the browser have said since the last look.
    pub fn log(&self) -> Result<Vec<String>, Problem> {
        let lines = self.post("/se/log", &json!({"type": "browser"}))?;
        Ok(lines
            .as_array()
            .into_iter()
            .flatten()
            .map(|line| format!("{} {}", text(&line["level"]), text(&line["message"])))
            .collect())
    }

    /// What axe finds in the document, a line each. `rules`: these only; empty: all.
    pub fn axe(&self, rules: &[&str]) -> Result<Vec<String>, Problem> {
        if self.value("typeof axe")? == "undefined" {
            self.run(AXE, &[])?;
        }
        let body = "const only = arguments[0].length ? {runOnly: {type: 'rule', values: arguments[0]}} : {}; \
                    return axe.run(document, {resultTypes: ['violations'], ...only}).then(({violations}) => violations.flatMap((v) => \
                    v.nodes.map((n) => `${v.id}: ${n.target.join(' ')}: ${n.any.concat(n.all, n.none).map((c) => c.message).join('; ')}`)));";
        let found = self.run(body, &[json!(rules)])?;
        Ok(found.as_array().into_iter().flatten().map(text).collect())
    }

    /// What the reader prefers: `[("prefers-color-scheme", "dark")]`, on paper or on the screen.
    pub fn prefers(&self, medium: &str, features: &[(&str, &str)]) -> Result<(), Problem> {
        let features: Vec<Value> = features.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        self.devtools("Emulation.setEmulatedMedia", json!({"media": medium, "features": features})).map(drop)
    }

    /// The size of the window's content.
    pub fn resize(&self, width: u32, height: u32) -> Result<(), Problem> {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", size).map(drop)
    }

    /// The window as PNG.
    pub fn screenshot(&self) -> Result<Vec<u8>, Problem> {
        let picture = text(&self.get("/screenshot")?);
        base64::engine::general_purpose::STANDARD.decode(picture).map_err(|error| Problem::of("a screenshot", error))
    }

    /// Leaves one window: the one that was there before the test.
    fn tidy(&self) -> Result<(), Problem> {
        for window in self.get("/window/handles")?.as_array().into_iter().flatten().map(text).filter(|window| *window != self.home)
        {
            self.choose(&window)?;
            self.browsers.call(Method::DELETE, &format!("{}/window", self.session), None)?;
        }
        self.choose(&self.home)
    }
}

impl Drop for Browser<'_> {
    fn drop(&mut self) {
        // A session that cannot be tidied up is not used again.
        let fine = self.tidy().is_ok();
        self.browsers.back(fine.then(|| self.session.clone()));
    }
}
