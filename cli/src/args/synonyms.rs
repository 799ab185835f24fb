//! Words of other tools for what is called otherwise here.

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

const SYNONYMS: &[(&str, &str)] = &[
    ("cancel", "`keelway abort CONTEXT` ends a delivery, `keelway rollout cancel NAME` a deployment"),
    ("stop", "`keelway abort CONTEXT` ends a delivery, `keelway rollout cancel NAME` a deployment"),
    ("kill", "`keelway abort CONTEXT` ends a delivery, `keelway rollout cancel NAME` a deployment"),
    ("delivery", "`keelway trigger delivery` begins one, `keelway watch CONTEXT` follows it"),
    ("describe", "`keelway watch CONTEXT --log` tells a delivery, `keelway get KIND NAME -o yaml` prints a manifest"),
    ("edit", "`keelway get KIND NAME -o yaml` prints a manifest, `keelway apply -f FILE` puts it in force"),
    ("env", "`keelway get environments`"),
    ("environments", "`keelway get environments`"),
    ("explain", "`keelway pipeline explain NAME` says what a promotion waits for, `keelway watch CONTEXT` what a delivery does"),
    ("history", "`keelway rollout history NAME`, `keelway pipeline history NAME` or `keelway get sequences`"),
    ("list", "`keelway get` lists: `keelway get --help` says what"),
    ("log", "`keelway watch CONTEXT --log`"),
    ("logs", "`keelway watch CONTEXT --log`"),
    ("inbox", "`keelway status`"),
    ("ps", "`keelway status`, `keelway get queue` and `keelway get sequences`"),
    ("reject", "`keelway decline CONTEXT`"),
    ("release", "`keelway pipeline release NAME ENVIRONMENT` ends a hold, `keelway rollout latest NAME` deploys"),
    ("rerun", "`keelway retry CONTEXT`"),
    ("run", "`keelway trigger delivery` or `keelway trigger sequence NAME`"),
    ("show", "`keelway get` lists: `keelway get --help` says what"),
    ("stages", "`keelway shipyard show -p PROJECT` draws them, `keelway get environments` says what runs there"),
    ("start", "`keelway trigger delivery` or `keelway trigger sequence NAME`"),
    ("undo", "`keelway rollback NAME`"),
];

/// What a word is called here, if that is why the command line was refused.
pub fn meant(error: &Error) -> Option<&'static str> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    SYNONYMS.iter().find(|(known, _)| known == word).map(|(_, meant)| *meant)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Args;
    use clap::Parser;

    #[test]
    fn a_word_of_another_tool_is_answered_with_ours() {
        for (word, meant_here) in SYNONYMS {
            let refused = Args::try_parse_from(["keelway", word]).err().unwrap_or_else(|| panic!("{word} is a verb"));
            assert_eq!(meant(&refused), Some(*meant_here));
        }
        let refused = Args::try_parse_from(["keelway", "get", "frobs"]).err().unwrap();
        assert_eq!(meant(&refused), None);
    }
}
