//! The name that was probably meant.

/// The candidate nearest to `name`, if it is near enough to be a slip: apart from case, `-` and `_`, one change in up to four
/// letters, two in up to nine, three beyond.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = plain(name);
    let allowed = match plain.chars().count() {
        0 => return None,
        1..=4 => 1,
        5..=9 => 2,
        _ => 3,
    };
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let distance = distance(&plain, &self::plain(candidate), allowed);
        // A three-letter word one change away from another is usually another word.
        let near = distance <= allowed && distance < plain.chars().count().min(candidate.chars().count()).max(2) - 1;
        if (distance == 0 || near) && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).flat_map(char::to_lowercase).take(200).collect()
}

/// The number of letters to insert, delete, replace or swap. Names whose lengths differ by more than `most` are not compared.
fn distance(a: &str, b: &str, most: usize) -> usize {
    if a.chars().count().abs_diff(b.chars().count()) > most { most + 1 } else { strsim::osa_distance(a, b) }
}

/// The name with what its rule forbids left out or replaced, as a suggestion; `None` when nothing is left.
pub fn repaired(name: &str, lower: bool, separators: &str) -> Option<String> {
    let mut out = String::new();
    for c in name.trim().chars().take(43) {
        let c = if lower { c.to_ascii_lowercase() } else { c };
        if c.is_ascii_alphanumeric() || separators.contains(c) {
            out.push(c);
        } else if !out.ends_with('-') {
            out.push('-');
        }
    }
    let out = out.trim_matches(['-', '_']).to_owned();
    (!out.is_empty()).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_near_and_other_words_are_not() {
        let known = ["name", "triggeredOn", "tasks", "properties", "triggeredAfter", "timeout"];
        for (slip, meant) in [
            ("propereties", Some("properties")),
            ("triggerdOn", Some("triggeredOn")),
            ("triggered_on", Some("triggeredOn")),
            ("task", Some("tasks")),
            ("Name", Some("name")),
            ("naem", Some("name")),
            ("timeOut", Some("timeout")),
            ("description", None),
            ("size", None),
            ("", None),
        ] {
            assert_eq!(nearest(slip, known), meant, "{slip}");
        }
    }

    #[test]
    fn repaired_names_keep_what_they_can() {
        assert_eq!(repaired("Dev Stage_1", true, "-").as_deref(), Some("dev-stage-1"));
        assert_eq!(repaired("a/b", false, "-_").as_deref(), Some("a-b"));
        assert_eq!(repaired("--", true, "-"), None);
    }
}
