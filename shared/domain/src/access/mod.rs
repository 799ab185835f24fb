//! Access control: scopes, the grants of tokens and identity providers, and the lifecycle of a token. Pure, like every decision.

mod grant;
mod identity;
mod token;
mod who;

pub use grant::{Grant, Kind, Names, Need, Place, Scope, ScopeError, missing};
pub use identity::{Identities, Person, Rule};
pub use token::{End, NewToken, OVERLAP_MOST, Previous, Spent, SpentSecrets, Token, has_form, secret_of, text_of};
pub use who::{approver, is_same, of_key, of_person, of_token};

/// The name under which others see who acted: the verified identity, followed by the name that the person gave, in brackets.
pub fn by(known: &str, said: &str) -> String {
    // The first bracket ends the verified identity.
    let known = known.replace('(', "[");
    let says_nothing_new = said.is_empty() || said == known || known.strip_prefix("token:") == Some(said);
    if says_nothing_new { known } else { format!("{known} ({said})") }
}

/// The verified identity, without the note. Only this part is compared, because anybody can write a note.
pub fn known(by: &str) -> &str {
    by.split_once(" (").map_or(by, |(known, _)| known)
}

/// The name of the token that the deployment sets. No other token can have this name.
pub const ADMINISTRATOR: &str = "administrator";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_cannot_pass_for_what_is_known() {
        for (who, said, shown) in [
            ("ci", "", "ci"),
            ("ci", "ci", "ci"),
            ("ci", "ann", "ci (ann)"),
            ("token:ann", "ann", "token:ann"),
            ("ci", "ann) (bob", "ci (ann) (bob)"),
            ("mallory (ann", "bob", "mallory [ann (bob)"),
        ] {
            assert_eq!(by(who, said), shown);
            assert_eq!(known(shown), who.replace('(', "["));
        }
    }
}
