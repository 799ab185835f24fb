//! The command as completion scripts are made of it.

use clap::{Arg, Command, ValueHint};
use keelway_wire::manifest;

/// The command with the values that shells can complete: of files, the names; of kinds, the kinds; of anything else, nothing, where
/// they would offer names of files.
pub fn for_shells(command: Command) -> Command {
    let command = if command.get_name() == "schema" {
        command.mut_arg("kind", |kind| kind.value_parser(manifest::schema_kinds().to_vec()))
    } else {
        command
    };
    command.mut_args(hinted).mut_subcommands(for_shells)
}

fn hinted(arg: Arg) -> Arg {
    let known = arg.get_value_parser().possible_values().is_some() || arg.get_value_hint() != ValueHint::Unknown;
    let takes_one = arg.get_action().takes_values();
    if known || !takes_one { arg } else { arg.value_hint(ValueHint::Other) }
}
