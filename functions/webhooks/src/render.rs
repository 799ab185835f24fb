//! Jinja templates. Values are escaped for their context; a missing variable is an error.

use keelway_engine::secrets::SecretText;
use minijinja::value::{Serde, Value as Shown};
use minijinja::{Environment, Error, ErrorKind, Output, State, UndefinedBehavior};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The most steps of the template engine: more than any message needs, and done in milliseconds.
const FUEL: u64 = 100_000;
/// The largest result, in bytes.
const MOST: usize = 256 * 1024;
/// The characters that need no encoding in a part of a URL.
pub const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// How values are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escape {
    /// Strings are escaped for a JSON string (without its quotes), everything else becomes JSON.
    Json,
    /// Values are percent-encoded, except secrets, which may be whole URLs.
    Url,
    /// Values are percent-encoded, including secrets: for forms.
    Form,
    /// Values are not escaped.
    No,
}

impl Escape {
    /// The escaping for a body of this type.
    pub fn of(content_type: &str) -> Self {
        let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match kind.as_str() {
            "application/json" => Self::Json,
            "application/x-www-form-urlencoded" => Self::Form,
            kind if kind.ends_with("+json") => Self::Json,
            _ => Self::No,
        }
    }
}

/// Renders a template with the members of the event (`data`, `type`, `id`, …) and `secrets`.
///
/// # Errors
/// What is wrong with the template, and where. The text may contain secrets.
pub fn render(template: &str, event: &Value, secrets: &BTreeMap<String, SecretText>, escape: Escape) -> Result<String, String> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    environment.set_formatter(move |out, _: &mut State, value| show(out, value, escape));
    let as_they_are = matches!(escape, Escape::Url | Escape::No);
    let secret = |text: &SecretText| {
        let text = text.expose().trim().to_owned();
        if as_they_are { Shown::from_safe_string(text) } else { Shown::from(text) }
    };
    let mut context: BTreeMap<String, Shown> =
        event.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), Shown::from(Serde(value)))).collect();
    let named: BTreeMap<String, Shown> = secrets.iter().map(|(name, text)| (name.clone(), secret(text))).collect();
    context.insert("secrets".into(), Shown::from(named));
    let mut result = Bounded(vec![]);
    let compiled = environment.template_from_named_str("template", template).map_err(|error| told(&error))?;
    compiled.render_captured_to(Shown::from(context), &mut result).map_err(|error| told(&error))?;
    String::from_utf8(result.0).map_err(|error| error.to_string())
}

fn told(error: &Error) -> String {
    let at = error.line().map(|line| format!(" (line {line})")).unwrap_or_default();
    let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
    format!("{}{detail}{at}", error.kind())
}

fn show(out: &mut Output<'_>, value: &Shown, escape: Escape) -> Result<(), Error> {
    if value.is_undefined() {
        return Ok(());
    }
    if value.is_safe() {
        return Ok(out.write_str(value.as_str().unwrap_or_default())?);
    }
    let json = || serde_json::to_string(value).unwrap_or_default();
    match (escape, value.as_str()) {
        (Escape::Json, Some(_)) => {
            let quoted = json();
            out.write_str(quoted.get(1..quoted.len() - 1).unwrap_or_default())?;
        }
        (Escape::Url | Escape::Form, text) => {
            let plain = text.map_or_else(json, str::to_owned);
            // These segments lead to another path, however they are encoded.
            if escape == Escape::Url && [".", ".."].contains(&plain.as_str()) {
                return Err(Error::new(ErrorKind::InvalidOperation, format!("{plain:?} cannot be a part of a URL")));
            }
            write!(out, "{}", utf8_percent_encode(&plain, UNRESERVED))?;
        }
        (Escape::No, Some(text)) => out.write_str(text)?,
        (Escape::Json | Escape::No, None) => out.write_str(&json())?,
    }
    Ok(())
}

/// A buffer with a largest size.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MOST {
            return Err(io::Error::other(format!("the result is larger than {MOST} bytes")));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event() -> Value {
        json!({
            "type": "sh.keptn.event.dev.delivery.finished",
            "data": {"project": "shop", "message": "said \"no\"\n& left", "labels": {"a": "1"}, "tries": 3, "none": null, "ok": true},
        })
    }

    fn rendered(template: &str, escape: Escape) -> Result<String, String> {
        let secrets = BTreeMap::from([
            ("token".to_owned(), SecretText::new("s3cret/\"x\"\n")),
            ("url".to_owned(), SecretText::new("https://h/a?b=c")),
        ]);
        render(template, &event(), &secrets, escape)
    }

    #[test]
    fn texts_are_escaped_for_the_inside_of_json_strings_and_the_rest_is_json() {
        let template = r#"{"text": "{{ data.project }}: {{ data.message }}", "n": {{ data.tries }}, "l": {{ data.labels }}, "x": [{{ data.none }}, {{ data.ok }}], "t": "{{ secrets.token }}"}"#;
        let body: Value = serde_json::from_str(&rendered(template, Escape::Json).unwrap()).unwrap();
        let expected = json!({
            "text": "shop: said \"no\"\n& left", "n": 3, "l": {"a": "1"}, "x": [null, true], "t": "s3cret/\"x\"",
        });
        assert_eq!(body, expected);
        let quoted = rendered("{{ data.message | tojson }}", Escape::Json).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&quoted).unwrap(), event()["data"]["message"]);
    }

    #[test]
    fn values_in_urls_are_percent_encoded_but_a_secret_may_be_the_url() {
        assert_eq!(
            rendered("https://h/{{ data.message }}?p={{ data.tries }}", Escape::Url).unwrap(),
            "https://h/said%20%22no%22%0A%26%20left?p=3"
        );
        for part in [".", ".."] {
            let error = rendered(&format!("https://h/{{{{ '{part}' }}}}/admin"), Escape::Url).unwrap_err();
            assert!(error.contains("cannot be a part of a URL"), "{error}");
        }
        assert_eq!(rendered("https://h/{{ 'a..b' }}", Escape::Url).unwrap(), "https://h/a..b");
        assert_eq!(rendered("{{ secrets.url }}", Escape::Url).unwrap(), "https://h/a?b=c");
        assert_eq!(rendered("t={{ secrets.token }}", Escape::Form).unwrap(), "t=s3cret%2F%22x%22");
    }

    #[test]
    fn a_variable_that_is_missing_is_an_error() {
        for template in
            ["{{ data.other }}", "{{ other }}", "{{ secrets.other }}", "{{ data.other.more }}", "{% if data.other %}x{% endif %}"]
        {
            let error = rendered(template, Escape::Json).unwrap_err();
            assert!(error.contains("undefined"), "{template}: {error}");
        }
        assert_eq!(rendered("{{ data.other | default('-') }}", Escape::Json).unwrap(), "-");
        assert_eq!(rendered("{% if data.other is defined %}x{% else %}y{% endif %}", Escape::Json).unwrap(), "y");
    }

    #[test]
    fn conditions_and_loops() {
        let template =
            "{% if data.ok %}fine{% endif %} {% for name in data.labels %}{{ name }}={{ data.labels[name] }}{% endfor %}";
        assert_eq!(rendered(template, Escape::No).unwrap(), "fine a=1");
    }

    #[test]
    fn a_template_that_would_run_or_grow_for_ever_is_stopped() {
        let many =
            "{% for a in range(10000) %}{% for b in range(10000) %}{% for c in range(10000) %}{% endfor %}{% endfor %}{% endfor %}";
        assert!(rendered(many, Escape::No).is_err());
        let large = format!("{{% for a in range(9999) %}}{}{{% endfor %}}", "x".repeat(1000));
        assert!(rendered(&large, Escape::No).is_err());
        // These grow in memory, before anything is written.
        let doubled =
            "{% set ns = namespace(x='xxxx') %}{% for a in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x|length }}";
        assert!(rendered(doubled, Escape::No).unwrap_err().contains("fuel"));
        assert!(rendered("{{ ('x' * 90000000)|length }}", Escape::No).unwrap_err().contains("fuel"));
        assert_eq!(rendered("{{ 'x' * 250000 }}", Escape::No).unwrap().len(), 250_000);
    }

    #[test]
    fn the_type_of_a_body_says_how_it_is_escaped() {
        assert_eq!(Escape::of("application/json; charset=utf-8"), Escape::Json);
        assert_eq!(Escape::of("application/vnd.api+json"), Escape::Json);
        assert_eq!(Escape::of("application/x-www-form-urlencoded"), Escape::Form);
        assert_eq!(Escape::of("text/plain"), Escape::No);
    }
}
