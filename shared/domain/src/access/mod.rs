//! Who may do what: scopes, what a token or a claim of an identity provider grants, and the life of a token. Pure, like every decision.

mod grant;
mod identity;
mod token;
mod who;

pub use grant::{Grant, Kind, Names, Need, Place, Scope, ScopeError, missing};
pub use identity::{Identities, Person, Rule};
pub use token::{NewToken, OVERLAP_MOST, Previous, Token, secret_of, text_of};
pub use who::{approver, is_same, of_key, of_person, of_token};

/// Who acts, as others see it: who it is known to be, and behind it, as a note, the name that they give.
pub fn by(known: &str, said: &str) -> String {
    // What is known ends where the note begins.
    let known = known.replace('(', "[");
    let says_nothing_new = said.is_empty() || said == known || known.strip_prefix("token:") == Some(said);
    if says_nothing_new { known } else { format!("{known} ({said})") }
}

/// Who acts, without the note. Only this is compared: what anybody can write proves nothing.
pub fn known(by: &str) -> &str {
    by.split_once(" (").map_or(by, |(known, _)| known)
}

/// What the token of the deployment is called. No other token can have this name.
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
