//! What fails is bounded: no item grows with what is done, tried or refused. No list in an item is longer than the longest that is
//! allowed, and no item is larger than what the short texts of the simulations come to.

use keelway_engine::item::{Attr, Item};
use std::cmp::max;

/// The largest item, in bytes.
const LARGEST: usize = 32 * 1024;
/// The longest list: a subject remembers the last 50 commands that it has obeyed.
const LONGEST: usize = 50;

/// An item was written.
///
/// # Errors
/// What is larger than it may be.
pub(super) fn check(item: &Item) -> Result<(), String> {
    if item.size() > LARGEST {
        return Err(format!("{} has {} bytes: {item:?}", item.key, item.size()));
    }
    for (name, value) in &item.attrs {
        let Attr::S(text) = value else { continue };
        let longest = longest_list(text);
        if longest > LONGEST {
            return Err(format!("{} has a list of {longest} in {name}, and may have {LONGEST}: {text}", item.key));
        }
    }
    Ok(())
}

/// The length of the longest list in a text of JSON; 0 if it is none.
fn longest_list(text: &str) -> usize {
    if !text.starts_with(['{', '[']) {
        return 0;
    }
    // The lists and objects around the present place: of a list, so many commas; and whether anything is in it.
    let mut around: Vec<Option<usize>> = vec![];
    let (mut longest, mut quoted, mut escaped) = (0, false, false);
    let mut empty = false;
    for byte in text.bytes() {
        if quoted {
            (quoted, escaped) = (escaped || byte != b'"', !escaped && byte == b'\\');
            continue;
        }
        match byte {
            b'"' => quoted = true,
            b'[' => around.push(Some(0)),
            b'{' => around.push(None),
            b',' => {
                if let Some(Some(commas)) = around.last_mut() {
                    *commas += 1;
                }
            }
            b']' | b'}' => {
                if let Some(Some(commas)) = around.pop() {
                    longest = max(longest, if empty { 0 } else { commas + 1 });
                }
            }
            _ => {}
        }
        empty = byte == b'[';
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::longest_list;

    #[test]
    fn the_longest_list_is_found_wherever_it_is() {
        for (text, longest) in [
            ("", 0),
            ("a, b", 0),
            ("[]", 0),
            ("[1]", 1),
            (r#"{"a":[1,{"b":[1,2,3],"c":4}],"d":[]}"#, 3),
            (r#"["a,b]","c\",d"]"#, 2),
            (r#"[[1,2],[],[3]]"#, 3),
        ] {
            assert_eq!(longest_list(text), longest, "{text}");
        }
    }
}
