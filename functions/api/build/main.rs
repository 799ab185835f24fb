//! Packs the page into the executable: its modules joined into one, without comments and indentation, and the same compressed,
//! because a function URL compresses nothing. The files' addresses contain a hash of them all, so browsers may keep them for ever.

mod join;

use brotli::CompressorWriter;
use join::{Modules, join};
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Error, Write as _};
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The module that needs all others.
const FIRST: &str = "app.js";
/// What is served beside it.
const OTHERS: [(&str, &str); 2] = [("app.css", "text/css; charset=utf-8"), ("icon.svg", "image/svg+xml")];
/// The best that brotli can do.
const QUALITY: u32 = 11;
/// The logarithm of the window's size: larger than every file.
const WINDOW: u32 = 20;

fn main() -> Result<(), Error> {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web");
    println!("cargo::rerun-if-changed={}", web.display());
    println!("cargo::rerun-if-changed=build");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or_else(|| Error::other("cargo sets OUT_DIR"))?);
    let mut modules = Modules::new();
    collect(&web, "", &mut modules)?;
    let mut files = vec![(FIRST, "text/javascript; charset=utf-8", join(&modules, FIRST).map_err(Error::other)?)];
    for (name, kind) in OTHERS {
        let text = lean(&fs::read_to_string(web.join(name))?);
        files.push((name, kind, if name.ends_with(".css") { tight(&text) } else { text }));
    }
    let mut hasher = DefaultHasher::new();
    files.hash(&mut hasher);
    let version = format!("{:016x}", hasher.finish());

    let mut code =
        format!("/// The hash of all files, which is a part of their addresses.\npub const VERSION: &str = {version:?};\n");
    code += "/// Every file beside `index.html`, by name.\npub const FILES: &[File] = &[\n";
    for (name, kind, content) in &files {
        let (plain, packed) = (out.join(name), out.join(format!("{name}.br")));
        fs::write(&plain, content)?;
        CompressorWriter::new(fs::File::create(&packed)?, 4096, QUALITY, WINDOW).write_all(content.as_bytes())?;
        let bytes = format!("plain: include_bytes!({plain:?}), packed: include_bytes!({packed:?})");
        writeln!(code, "    File {{ name: {name:?}, kind: {kind:?}, {bytes} }},").map_err(Error::other)?;
    }
    code += "];\n";
    fs::write(out.join("index.html"), fs::read_to_string(web.join("index.html"))?.replace("{{assets}}", &version))?;
    fs::write(out.join("files.rs"), code)
}

/// Every module below a folder, with its name relative to `web/`.
fn collect(folder: &Path, name: &str, modules: &mut Modules) -> Result<(), Error> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let own = format!("{name}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{own}/"), modules)?;
        } else if own.ends_with(".js") {
            let text = fs::read_to_string(entry.path())?;
            // What is vendored says in a comment whose it is.
            modules.insert(own.clone(), if own.starts_with("vendor/") { text } else { lean(&text) });
        }
    }
    Ok(())
}

/// Without lines that are comments, and without indentation: one fifth of what would have to be sent.
fn lean(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let code = lines.filter(|line| !["//", "/**", "/*", "* ", "*/"].iter().any(|begin| line.starts_with(begin)));
    code.flat_map(|line| [line, "\n"]).collect()
}

/// A style sheet without the blanks that only people need.
fn tight(text: &str) -> String {
    let pairs = [("; ", ";"), (": ", ":"), (", ", ","), (" {", "{"), ("{ ", "{"), (";}", "}"), (" }", "}")];
    pairs.iter().fold(text.to_owned(), |text, (long, short)| text.replace(long, short))
}
