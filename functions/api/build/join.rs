//! Joins ES modules into one: each becomes a function that returns what it exports, in the order in which they need each other.
//! What a module exports is a name of the whole, so whoever imports it says nothing; only screens, which are opened by their
//! modules, are objects. Two modules cannot export the same name.
//!
//! The modules run in a browser as they are, too. They are joined because each file is a request, each request an invocation of the
//! function, and because one file compresses to three quarters of what many come to. Only what the page's modules do is understood:
//! imports by name, at the beginning; exports of declarations, by a list, or from another module; and imports of a screen when it
//! is opened, whose module is there at once.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The modules by name, `lib/api.js`.
pub type Modules = BTreeMap<String, String>;

/// `first` and everything that it needs, as one module.
///
/// # Errors
/// A module does what is not understood, is missing, or needs itself.
pub fn join(modules: &Modules, first: &str) -> Result<String, String> {
    let mut joined = Joined { modules, done: vec![], names: BTreeMap::new(), out: String::new() };
    joined.add(first, Use::First, &mut vec![])?;
    Ok(joined.out)
}

struct Joined<'a> {
    modules: &'a Modules,
    /// Their place is the name of their object in the result, if they have one.
    done: Vec<(String, Use)>,
    /// The exported names, and whose they are.
    names: BTreeMap<String, String>,
    out: String,
}

/// What a module is needed for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// It begins everything.
    First,
    /// Its names are imported.
    Names,
    /// It is imported when it is needed.
    Opened,
}

/// What a module is made of.
#[derive(Default)]
struct Parts {
    code: String,
    exports: Vec<Export>,
}

/// What a module exports.
struct Export {
    /// For others.
    name: String,
    /// In the module.
    local: String,
}

impl Export {
    /// As a member of an object.
    fn member(&self) -> String {
        if self.name == self.local { self.name.clone() } else { format!("{}:{}", self.name, self.local) }
    }
}

impl Joined<'_> {
    /// Adds a module behind those that it needs, and returns the variable that it is, if it is one.
    fn add(&mut self, name: &str, needed: Use, within: &mut Vec<String>) -> Result<String, String> {
        if let Some(place) = self.done.iter().position(|(done, _)| done == name) {
            let known = self.done[place].1 == needed;
            return if known { Ok(format!("m{place}")) } else { Err(format!("{name} is both imported and opened")) };
        }
        if within.iter().any(|outer| outer == name) {
            return Err(format!("{} need each other in a circle", within.join(", ")));
        }
        let text = self.modules.get(name).ok_or_else(|| format!("there is no module {name}"))?;
        within.push(name.to_owned());
        let Parts { code, exports } = self.parts(name, text, needed, within)?;
        within.pop();
        let place = self.done.len();
        self.done.push((name.to_owned(), needed));
        let body = format!("(()=>{{{code}\nreturn{{{}}}}})();", exports.iter().map(Export::member).collect::<Vec<_>>().join(","));
        let put = match needed {
            // A block of its own, because a name in it may be exported by a module that it does not import.
            Use::First => writeln!(self.out, "{{{code}}}"),
            Use::Opened => writeln!(self.out, "const m{place}={body}"),
            Use::Names => {
                for Export { name: exported, .. } in &exports {
                    if let Some(other) = self.names.insert(exported.clone(), name.to_owned()) {
                        return Err(format!("{name} and {other} export {exported}"));
                    }
                }
                let names: Vec<&str> = exports.iter().map(|export| export.name.as_str()).collect();
                writeln!(self.out, "const{{{}}}={body}", names.join(","))
            }
        };
        put.map_err(|error| error.to_string())?;
        Ok(format!("m{place}"))
    }

    fn parts(&mut self, name: &str, text: &str, needed: Use, within: &mut Vec<String>) -> Result<Parts, String> {
        let wrong = |what: &str| format!("{name}: {what} is not understood: see functions/api/build/join.rs");
        let mut parts = Parts::default();
        let mut rest = text.trim_start();
        while rest.starts_with("import{") || rest.starts_with("import {") {
            let (names, from, after) = list(rest).ok_or_else(|| wrong("an import"))?;
            self.add(&resolved(name, from.ok_or_else(|| wrong("an import"))?), Use::Names, within)?;
            for (outer, inner) in names.iter().filter(|(outer, inner)| outer != inner) {
                writeln!(parts.code, "const {inner}={outer};").map_err(|error| error.to_string())?;
            }
            rest = after.trim_start();
        }
        // A list of exports is on a line of its own, or at the end.
        let found = |text: &str| match text.starts_with("export {") {
            true => Some(0),
            false => text.find("\nexport {").map(|at| at + 1).or_else(|| text.find("export{")),
        };
        while let Some(at) = found(rest) {
            let (names, from, after) = list(&rest[at..]).ok_or_else(|| wrong("an export"))?;
            if let Some(from) = from {
                self.add(&resolved(name, from), Use::Names, within)?;
            }
            // What is passed on under its own name is a name of the whole already.
            let exports = names.iter().filter(|(local, outer)| from.is_none() || needed == Use::Opened || local != outer);
            parts.exports.extend(exports.map(|(local, outer)| Export { name: (*outer).to_owned(), local: (*local).to_owned() }));
            parts.code += &rest[..at];
            rest = after.trim_start_matches('\n');
        }
        parts.code += rest;
        parts.code = self.opened(name, &parts.code, within)?;
        let mut code = String::new();
        for line in parts.code.lines() {
            let declared = line.strip_prefix("export ");
            if let Some(declared) = declared {
                let words = declared.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$');
                let mut words = words.skip_while(|word| ["const", "function", "class", "async", ""].contains(word));
                let name = words.next().filter(|_| !declared.starts_with("default")).ok_or_else(|| wrong(line))?;
                parts.exports.push(Export { name: name.to_owned(), local: name.to_owned() });
            }
            code += declared.unwrap_or(line);
            code.push('\n');
        }
        Ok(Parts { code, ..parts })
    }

    /// Modules that are imported when they are needed are there already.
    fn opened(&mut self, name: &str, code: &str, within: &mut Vec<String>) -> Result<String, String> {
        let mut pieces = code.split("import(\"");
        let mut out = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let (from, after) = piece.split_once("\")").ok_or_else(|| format!("{name}: an import that does not end"))?;
            let from = self.add(&resolved(name, from), Use::Opened, within)?;
            out += &format!("Promise.resolve({from}){after}");
        }
        Ok(out)
    }
}

/// A name in the module that has it, and in the one that uses it.
type Pairs<'a> = Vec<(&'a str, &'a str)>;

/// The pairs of `… { a, b as c } from "x";`, the place they are from, and what follows.
fn list(text: &str) -> Option<(Pairs<'_>, Option<&str>, &str)> {
    let (head, after) = text.split_once(';')?;
    let (_, inner) = head.split_once('{')?;
    let (names, tail) = inner.split_once('}')?;
    let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    let names = names.map(|name| name.split_once(" as ").unwrap_or((name, name))).collect();
    let from = tail.trim().strip_prefix("from").map(|from| from.trim().trim_matches('"'));
    Some((names, from, after))
}

/// The name of a module that another one calls `./api.js`.
fn resolved(of: &str, name: &str) -> String {
    let mut parts: Vec<&str> = of.split('/').collect();
    parts.pop();
    for part in name.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}
