//! What goes wrong with texts and JSON.

use keelway_world::rng::Rng;
use serde_json::{Value, json};

/// Parts of a URI that are no names.
pub const ODD_PARTS: [&str; 18] = [
    "%ff",
    "%00",
    "a%2Fb",
    "%F0%9F%98%80",
    "..",
    "%2e%2e",
    "~",
    "-1",
    "a%20b",
    "%25",
    ";",
    "+",
    "%23",
    "%0a",
    "999999999999999999999",
    "%22",
    "%E2%80%AE",
    LONG,
];
/// Longer than any key of the table.
const LONG: &str = match std::str::from_utf8(&[b'x'; 3000]) {
    Ok(text) => text,
    Err(_) => "",
};
const ODD_TEXTS: [&str; 12] =
    ["", " ", "\u{0}", "\u{202e}abc", "😀", "../..", "<script>", "a\nb", "\u{7f}", "\u{feff}x", "{{x}}", LONG];

fn odd(rng: &mut Rng) -> Value {
    match rng.below(12) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!(1e300),
        4 => json!([]),
        5 => json!({}),
        6 => json!({"a": [1, "b", null]}),
        7 => json!(u64::MAX),
        8 => json!("x".repeat(20_000)),
        _ => json!(*rng.pick(&ODD_TEXTS)),
    }
}

/// Something in it is different.
fn change(value: &mut Value, rng: &mut Rng) {
    match value {
        Value::Object(members) if !members.is_empty() && rng.chance(85.0) => {
            let names: Vec<String> = members.keys().cloned().collect();
            let name = rng.pick(&names);
            match rng.below(8) {
                0 => drop(members.remove(name)),
                1 => drop(members.insert("nope".into(), json!(1))),
                _ => change(&mut members[name.as_str()], rng),
            }
        }
        Value::Array(items) if !items.is_empty() && rng.chance(85.0) => {
            let place = rng.below(items.len());
            match rng.below(6) {
                0 => drop(items.remove(place)),
                1 => items.push(items[place].clone()),
                2 => *items = vec![items[place].clone(); 120],
                _ => change(&mut items[place], rng),
            }
        }
        other => *other = odd(rng),
    }
}

/// JSON that is not what is expected, or none at all.
pub fn broken_json(mut value: Value, rng: &mut Rng) -> Vec<u8> {
    if rng.chance(60.0) {
        change(&mut value, rng);
        return value.to_string().into_bytes();
    }
    let text = value.to_string();
    match rng.below(9) {
        0 => vec![],
        1 => text.into_bytes().split_last().map(|(_, rest)| rest.to_vec()).unwrap_or_default(),
        2 => text.chars().take(rng.below(text.len())).collect::<String>().into_bytes(),
        3 => text.replacen('{', "{\"project\": 1, \"project\": 2, \"by\": 1, \"by\": 2,", 1).into_bytes(),
        4 => format!("{text}{text}").into_bytes(),
        5 => "[".repeat(5000).into_bytes(),
        6 => [text.as_bytes(), b"\xff\xfe"].concat(),
        7 => b"\xff{".to_vec(),
        _ => (*rng.pick(&["null", "1", "\"x\"", "[]", "{}", " ", "NaN", "{\"a\": 1e999}"])).as_bytes().to_vec(),
    }
}

/// A text that is cut, or has something in it that no manifest has.
pub fn broken_text(text: &str, rng: &mut Rng) -> Vec<u8> {
    let half: String = text.chars().take(rng.below(text.len())).collect();
    match rng.below(8) {
        0 => vec![],
        1 => half.into_bytes(),
        2 => [text.as_bytes(), b"\xff"].concat(),
        3 => format!("{text}\u{0}").into_bytes(),
        4 => format!("{half}{}{text}", rng.pick(&ODD_TEXTS)).into_bytes(),
        5 => text.replacen(": ", ": &a [*a, ", 1).into_bytes(),
        6 => format!("{{\"a\": {text}").into_bytes(),
        _ => text.replacen("name: ", "nope: ", 1).into_bytes(),
    }
}
