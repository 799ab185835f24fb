//! `keelway`: the command line. Speaks to the HTTP API and to nothing else; also runs commands as executors of tasks.

mod address;
mod api;
mod api_error;
mod args;
mod board;
mod candidates;
mod clock;
mod commands;
mod config;
mod delivery;
mod deployer;
mod error;
mod executor;
mod findings;
mod key;
mod kinds;
mod live;
mod output;
mod pages;
mod pairs;
mod pipeline;
mod table;
mod terminal;
mod timeline;
mod waiting;
mod words;
mod zone;

use clap::{CommandFactory, FromArgMatches};
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(grace) = deployer::guard::grace() {
        return started(deployer::guard::run(grace));
    }
    match candidates::answer() {
        Ok(true) => return ExitCode::SUCCESS,
        Ok(false) => {}
        Err(error) => error.exit(),
    }
    let args = match read() {
        Ok(args) => args,
        Err(code) => return code,
    };
    terminal::set(args.display);
    started(async {
        match commands::run(args).await {
            Ok(code) => code,
            Err(error) => {
                if let Some(text) = error.text() {
                    eprintln!("error: {text}");
                }
                error.exit_code()
            }
        }
    })
}

/// Reads the command line. Where there is nothing to do, everything has been said.
fn read() -> Result<args::Args, ExitCode> {
    let (words, notes) = args::renewed(std::env::args_os());
    let command = args::with_old_variable(args::Args::command());
    let read = command.try_get_matches_from(words.clone()).and_then(|matches| {
        if let Some(order) = args::order(&matches) {
            table::set(order);
        }
        args::Args::from_arg_matches(&matches)
    });
    let refused = match read {
        Ok(args) => {
            notes.iter().for_each(|note| eprintln!("note: {note}"));
            return Ok(args);
        }
        Err(refused) => refused,
    };
    let refused = args::without_variables(words).unwrap_or(refused);
    let Some(meant) = args::meant(&refused) else { refused.exit() };
    eprint!("{}", refused.render().ansi());
    eprintln!("here it is called: {meant}");
    Err(ExitCode::from(2))
}

/// Runs what this process is for.
fn started(what: impl Future<Output = ExitCode>) -> ExitCode {
    // A runtime that cannot start has no better message than the system's.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: the asynchronous runtime does not start: {error}; look at the limits on open files and processes");
            return ExitCode::FAILURE;
        }
    };
    let ended = runtime.block_on(what);
    // A command's child may still hold a thread that writes to it; nothing is owed to it.
    runtime.shutdown_background();
    ended
}
