//! What is wrong with a command line, without what stands in variables.

use super::Args;
use clap::builder::Resettable;
use clap::{CommandFactory, Error};
use std::ffi::OsString;

/// The same error as if no variable named the API and its token: the usage in it says what has to be on the command line, and
/// clap counts what a variable sets among that. `None`: these are what is wrong.
pub fn without_variables(words: Vec<OsString>) -> Option<Error> {
    let unset = |arg: clap::Arg| if ["api", "token"].contains(&arg.get_id().as_str()) { arg.env(Resettable::Reset) } else { arg };
    super::with_old_variable(Args::command().mut_args(unset)).try_get_matches_from(words).err()
}
