//! For operators: `dead-letters`, `get invalid`.

use super::{Output, examples};
use clap::{Args as Group, Subcommand};

/// `dead-letters`
#[derive(Subcommand)]
pub enum DeadLetters {
    /// The stored ones, newest first
    #[command(after_help = examples::DEAD_LETTERS_LIST)]
    List {
        /// At most this many letters
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
        #[command(flatten)]
        output: Output,
    },
    /// One with its message
    #[command(after_help = examples::DEAD_LETTERS_SHOW)]
    Show {
        /// Its id, as `dead-letters list` shows it
        id: String,
        #[command(flatten)]
        output: Output,
    },
    /// Send messages again, now; each letter stays until its message is handled
    #[command(after_help = examples::DEAD_LETTERS_REDRIVE)]
    Redrive(Letters),
    /// Delete letters: their messages are never handled
    #[command(after_help = examples::DEAD_LETTERS_DROP)]
    Drop {
        /// Their ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
}

/// Which letters.
#[derive(Group)]
#[group(required = true)]
pub struct Letters {
    /// Their ids
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// All of them
    #[arg(long, conflicts_with = "ids")]
    pub all: bool,
}

/// `get invalid`
#[derive(Group)]
pub struct GetInvalid {
    /// The day, UTC [default: today]
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub day: Option<String>,
    /// At most this many entries
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    #[command(flatten)]
    pub output: Output,
}
