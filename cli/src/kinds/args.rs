//! What is said on the command line about those of a kind.

use super::{KINDS, Kind, Place, Verb};
use crate::address::Address;
use crate::args::named::{DeleteGlobal, DeleteInProject, DeleteNamed, Format, GetGlobal, GetInProject, GetNamed};
use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Subcommand};

/// Which of a kind are to be shown.
pub struct Asked {
    /// Only of this project.
    pub project: Option<String>,
    /// Only this one.
    pub at: Option<Address>,
    pub format: Format,
}

/// Which of a kind is to be deleted.
pub struct Deleted {
    pub at: Address,
    /// Nobody is asked.
    pub yes: bool,
}

fn asked(place: Place, matches: &ArgMatches) -> Result<Asked, Error> {
    Ok(match place {
        Place::Namespace | Place::Id => {
            let what = GetNamed::from_arg_matches(matches)?;
            let project = what.projects.only();
            let at = what.name.map(|name| Address::of(&name, project));
            Asked { project: project.map(ToString::to_string), at, format: what.output.format }
        }
        Place::Project => {
            let what = GetInProject::from_arg_matches(matches)?;
            let namespace = what.project.to_string();
            let at = what.name.map(|name| Address { namespace: namespace.clone(), name });
            Asked { project: Some(namespace), at, format: what.output.format }
        }
        Place::Installation => {
            let what = GetGlobal::from_arg_matches(matches)?;
            let at = what.name.map(|name| Address { namespace: String::new(), name });
            Asked { project: None, at, format: what.output.format }
        }
    })
}

fn deleted(place: Place, matches: &ArgMatches) -> Result<Deleted, Error> {
    Ok(match place {
        Place::Namespace | Place::Id => {
            let what = DeleteNamed::from_arg_matches(matches)?;
            Deleted { at: Address::of(&what.name, what.project.project.as_ref()), yes: what.yes }
        }
        Place::Project => {
            let what = DeleteInProject::from_arg_matches(matches)?;
            Deleted { at: Address { namespace: what.project.to_string(), name: what.name }, yes: what.yes }
        }
        Place::Installation => {
            let what = DeleteGlobal::from_arg_matches(matches)?;
            Deleted { at: Address { namespace: String::new(), name: what.name }, yes: what.yes }
        }
    })
}

/// `get`, of a kind.
pub struct GetKind(pub &'static Kind, pub Asked);

/// `delete`, of a kind.
pub struct DeleteKind(pub &'static Kind, pub Deleted);

fn command(verb: &Verb, arguments: fn(Command) -> Command) -> Command {
    // The arguments bring the description of their struct, which the verb's own replaces.
    let command = arguments(Command::new(verb.name)).about(verb.about);
    command.after_help(verb.examples).visible_aliases(verb.aliases.iter().copied())
}

fn to_get(kind: &Kind) -> Command {
    let arguments = match kind.place {
        Place::Namespace | Place::Id => GetNamed::augment_args,
        Place::Project => GetInProject::augment_args,
        Place::Installation => GetGlobal::augment_args,
    };
    command(&kind.get, arguments)
}

fn to_delete(kind: &Kind) -> Command {
    let arguments = match kind.place {
        Place::Namespace | Place::Id => DeleteNamed::augment_args,
        Place::Project => DeleteInProject::augment_args,
        Place::Installation => DeleteGlobal::augment_args,
    };
    command(&kind.delete, arguments)
}

macro_rules! of_kinds {
    ($name:ident, $verb:ident, $command:ident, $read:ident) => {
        impl FromArgMatches for $name {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
                let (word, matches) = matches.subcommand().ok_or_else(|| Error::new(ErrorKind::MissingSubcommand))?;
                let kind = KINDS.iter().find(|kind| kind.$verb.name == word);
                let kind = kind.ok_or_else(|| Error::new(ErrorKind::InvalidSubcommand))?;
                Ok(Self(kind, $read(kind.place, matches)?))
            }
            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
                *self = Self::from_arg_matches(matches)?;
                Ok(())
            }
        }

        impl Subcommand for $name {
            fn augment_subcommands(all: Command) -> Command {
                KINDS.iter().fold(all, |all, kind| all.subcommand($command(kind)))
            }
            fn augment_subcommands_for_update(all: Command) -> Command {
                Self::augment_subcommands(all)
            }
            fn has_subcommand(word: &str) -> bool {
                KINDS.iter().any(|kind| kind.$verb.name == word)
            }
        }
    };
}

of_kinds!(GetKind, get, to_get, asked);
of_kinds!(DeleteKind, delete, to_delete, deleted);
