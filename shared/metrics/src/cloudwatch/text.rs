//! Parts of a query: splitting outside of quotes and brackets.

/// The parts of a text between separators that stand in no quotes and no brackets, trimmed.
pub fn split(text: &str, separator: char) -> Vec<&str> {
    let mut parts = vec![];
    let mut from = 0;
    for at in places(text) {
        if text[at..].starts_with(separator) {
            parts.push(text[from..at].trim());
            from = at + separator.len_utf8();
        }
    }
    parts.push(text[from..].trim());
    parts
}

/// The places of the characters of a text that stand in no quotes and no brackets. An opening bracket itself does.
pub fn places(text: &str) -> impl Iterator<Item = usize> {
    let (mut quote, mut depth, mut escaped) = (None, 0_usize, false);
    text.char_indices().filter_map(move |(at, c)| {
        let inside = quote.is_some() || depth > 0;
        match (quote, c) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), c) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '{' | '[') => depth += 1,
            (None, ')' | '}' | ']') => depth = depth.saturating_sub(1),
            _ => {}
        }
        (!inside && quote.is_none() && depth == 0).then_some(at)
    })
}

/// Splits at the first `|` that is no part of `||`.
pub fn piped(text: &str) -> Option<(&str, &str)> {
    let outside: Vec<usize> = places(text).collect();
    let pipe = |at: usize| text[at..].starts_with('|');
    let single = |at: &&usize| pipe(**at) && !text[..**at].ends_with('|') && !text[**at + 1..].starts_with('|');
    let at = outside.iter().find(single)?;
    Some((text[..*at].trim(), text[at + 1..].trim()))
}

/// A value with or without quotes around it; within them `\` stands before a quote.
pub fn unquoted(text: &str) -> String {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    inner.map_or_else(|| text.to_owned(), |inner| inner.replace("\\\"", "\"").replace("\\\\", "\\"))
}

/// Whether a text is a name that `GetMetricData` takes for a query: a lower-case letter, then letters, digits and `_`.
pub fn is_id(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.len() <= 200
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
