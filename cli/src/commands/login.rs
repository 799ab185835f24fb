//! `login` and `whoami`: which API is spoken to, and as whom.

use crate::api::Api;
use crate::args::{Format, Login, LoginVerb, Output};
use crate::config::{Config, Context, path};
use crate::error::CliError;
use crate::output::{say, say_data};
use crate::table::Table;
use crate::table::print;
use keelway_wire::http::access::{GrantState, WhoAmI};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{BufRead, IsTerminal, Write};

/// Checks a token and remembers it, or does something with those that are remembered.
///
/// # Errors
/// When the API does not accept it, or the file cannot be read or written.
pub async fn login(what: &Login, api: Option<&str>, token: Option<&str>) -> Result<(), CliError> {
    if let Some(verb) = &what.verb {
        return remembered(verb);
    }
    let token = match token.map(str::trim).filter(|token| !token.is_empty()) {
        Some(token) => token.to_owned(),
        None => ask()?,
    };
    let client = Api::new(api, Some(&token))?;
    let me: WhoAmI = client.get(&["whoami"], &[]).await?;
    let (file, context) = (path()?, Context { api: client.base().to_owned(), token });
    let mut config = Config::read(&file)?;
    config.contexts.insert(what.name.clone(), context);
    config.current.clone_from(&what.name);
    config.write(&file)?;
    say(&format!("logged in to {} as {}: {}", client.base(), name(&me), grants(&me.grants)))?;
    eprintln!("login {} is in {}, for your eyes only, and is used from now on", what.name, file.display());
    Ok(())
}

/// Reads a token from standard input, without showing it on a terminal.
fn ask() -> Result<String, CliError> {
    let stdin = std::io::stdin();
    let hidden = stdin.is_terminal().then(Hidden::begin).flatten();
    if hidden.is_some() {
        eprint!("token: ");
        std::io::stderr().flush().ok();
    }
    let mut line = String::new();
    let read = stdin.lock().read_line(&mut line);
    if hidden.is_some() {
        eprintln!();
    }
    drop(hidden);
    read.map_err(|error| CliError::Usage(format!("standard input cannot be read: {error}")))?;
    match line.trim() {
        "" => Err(CliError::Usage("there is no token: type it, pipe it in, set KEELWAY_TOKEN or give --token".into())),
        token => Ok(token.to_owned()),
    }
}

/// While this is held, the terminal shows nothing of what is typed.
struct Hidden(Termios);

impl Hidden {
    fn begin() -> Option<Self> {
        let stdin = std::io::stdin();
        let before = tcgetattr(&stdin).ok()?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&stdin, OptionalActions::Flush, &silent).ok()?;
        Some(Self(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        tcsetattr(std::io::stdin(), OptionalActions::Now, &self.0).ok();
    }
}

fn remembered(what: &LoginVerb) -> Result<(), CliError> {
    let file = path()?;
    let mut config = Config::read(&file)?;
    match what {
        LoginVerb::List => {
            let mut table = Table::new(&["CURRENT", "NAME", "API"]);
            for (name, context) in &config.contexts {
                let current = if *name == config.current { "*" } else { "" };
                table.row(vec![current.into(), name.clone(), context.api.clone()]);
            }
            print(table, Format::Table, "there is no login yet; make one: keelway login NAME --api URL")
        }
        LoginVerb::Use { name } => {
            if !config.contexts.contains_key(name) {
                return Err(config.unknown(name));
            }
            config.current.clone_from(name);
            config.write(&file)?;
            say(&format!("login {name} is used from now on: {}", config.contexts[name].api))
        }
        LoginVerb::Delete { name } => {
            if config.contexts.remove(name).is_none() {
                return Err(config.unknown(name));
            }
            if config.current == *name {
                config.current.clear();
            }
            config.write(&file)?;
            say(&format!("login {name} is forgotten; its token is still valid until it is revoked or expires"))
        }
    }
}

/// `whoami`
///
/// # Errors
/// As the API answers.
pub async fn whoami(api: &Api, output: &Output) -> Result<(), CliError> {
    let me: WhoAmI = api.get(&["whoami"], &[]).await?;
    if output.format.is_data() {
        return say_data(&me, output.format);
    }
    say(&format!("{}: {}", name(&me), grants(&me.grants)))
}

fn name(me: &WhoAmI) -> String {
    match () {
        () if !me.by.is_empty() => me.by.clone(),
        // An older API.
        () if me.subject.is_empty() => me.token.clone(),
        () => format!("{} of {}", me.subject, me.token),
    }
}

fn grants(all: &[GrantState]) -> String {
    let texts: Vec<String> = all.iter().map(grant).collect();
    if texts.is_empty() { "nothing is allowed".into() } else { texts.join("; ") }
}

/// `read, execute:test in shop`
pub fn grant(grant: &GrantState) -> String {
    let scopes = grant.scopes.join(", ");
    if grant.projects.is_empty() { scopes } else { format!("{scopes} in {}", grant.projects.join(", ")) }
}
