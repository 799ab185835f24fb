//! The command as shells complete it: what each argument can be.

use crate::candidates::{self, Named};
use crate::kinds;
use clap::{Arg, Command, ValueHint};
use clap_complete::engine::ArgValueCandidates;
use keelway_wire::http::STATES;
use keelway_wire::manifest;

/// What a token may do, in the words of its help.
const SCOPES: [&str; 6] = ["read", "trigger", "execute:*", "approve:*", "trigger:*", "administer"];

/// The command with the values that shells can complete: of files, the names; of kinds, states and scopes, all there are; of
/// projects, contexts and what has a name, what the API knows; of anything else, nothing, where they would offer names of files.
pub fn for_shells(command: Command) -> Command {
    below(command, "")
}

/// `verb`: what the command stands below.
fn below(command: Command, verb: &str) -> Command {
    let name = command.get_name().to_owned();
    let kind = named(verb, &name);
    let command = command.mut_args(|arg| hinted(arg, &name, kind));
    command.mut_subcommands(|sub| below(sub, &name))
}

/// The collection of the API whose names a verb takes.
fn named(verb: &str, name: &str) -> Option<Named> {
    let collection = match (verb, name) {
        ("get" | "delete", kind) => kinds::collection(kind)?,
        ("rollout", _) | (_, "rollback" | "triggers") => kinds::deployment_config::KIND.collection,
        ("pipeline", _) => kinds::pipeline::KIND.collection,
        _ => return None,
    };
    Some(Named(collection))
}

fn hinted(arg: Arg, verb: &str, kind: Option<Named>) -> Arg {
    let known = arg.get_value_parser().possible_values().is_some() || arg.get_value_hint() != ValueHint::Unknown;
    if known || !arg.get_action().takes_values() {
        return arg;
    }
    let id = arg.get_id().as_str().to_owned();
    match (id.as_str(), kind) {
        ("project" | "projects", _) => arg.add(ArgValueCandidates::new(candidates::Projects)),
        ("context" | "contexts", _) => arg.add(ArgValueCandidates::new(candidates::Contexts)),
        // What `approve` and `decline` decide about.
        ("named", _) => arg.add(ArgValueCandidates::new(candidates::Contexts)),
        ("name" | "names", Some(kind)) if arg.is_positional() => arg.add(ArgValueCandidates::new(kind)),
        ("state", _) => fixed(arg, &STATES),
        ("scopes", _) => fixed(arg, &SCOPES),
        ("kind", _) if verb == "schema" => {
            let all: Vec<&str> = manifest::schema_kinds().iter().copied().chain(manifest::schema_files()).collect();
            fixed(arg, &all)
        }
        _ => arg.value_hint(ValueHint::Other),
    }
}

fn fixed(arg: Arg, all: &[&'static str]) -> Arg {
    arg.add(ArgValueCandidates::new(candidates::Fixed(all.to_vec())))
}
