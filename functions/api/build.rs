//! Packs the files of the page into the executable: as they are but for comments and indentation, and the same compressed, because
//! a function URL compresses nothing. Their address contains a hash of all of them, so browsers may keep them for ever.

use brotli::CompressorWriter;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Error, Write as _};
use std::path::{Path, PathBuf};
use std::{env, fs};

/// What is served of a file, by its ending. Other files are not.
const KINDS: [(&str, &str); 3] =
    [("js", "text/javascript; charset=utf-8"), ("css", "text/css; charset=utf-8"), ("svg", "image/svg+xml")];
/// The best that brotli can do.
const QUALITY: u32 = 11;
/// The logarithm of the window's size: larger than every file.
const WINDOW: u32 = 20;
/// Modules that each screen needs: browsers load them at once, not one after the other's import.
const FIRST: [&str; 2] = ["lib/", "vendor/"];

fn main() -> Result<(), Error> {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web");
    println!("cargo::rerun-if-changed={}", web.display());
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or_else(|| Error::other("cargo sets OUT_DIR"))?);
    let mut files = vec![];
    collect(&web, "", &mut files)?;
    files.sort();
    let mut hasher = DefaultHasher::new();
    files.hash(&mut hasher);
    let version = format!("{:016x}", hasher.finish());

    let mut code =
        format!("/// The hash of all files, which is a part of their addresses.\npub const VERSION: &str = {version:?};\n");
    code += "/// Every file beside `index.html`, by name.\npub const FILES: &[File] = &[\n";
    let mut preload = String::new();
    for (name, content) in &files {
        let Some((_, kind)) = KINDS.iter().find(|(ending, _)| name.ends_with(&format!(".{ending}"))) else { continue };
        let plain = out.join(name.replace('/', "."));
        let packed = out.join(format!("{}.br", name.replace('/', ".")));
        // What is vendored stays what was published: a test compares its hash.
        let content = if name.starts_with("vendor/") { content.clone() } else { lean(content) };
        fs::write(&plain, &content)?;
        CompressorWriter::new(fs::File::create(&packed)?, 4096, QUALITY, WINDOW).write_all(&content)?;
        let line = format!(
            "File {{ name: {name:?}, kind: {kind:?}, plain: include_bytes!({plain:?}), packed: include_bytes!({packed:?}) }},"
        );
        writeln!(code, "    {line}").map_err(Error::other)?;
        if FIRST.iter().any(|folder| name.starts_with(folder)) && name.ends_with(".js") {
            writeln!(preload, "<link rel=\"modulepreload\" href=\"{version}/{name}\">").map_err(Error::other)?;
        }
    }
    code += "];\n";
    let index = fs::read_to_string(web.join("index.html"))?.replace("{{assets}}", &version).replace("{{preload}}\n", &preload);
    fs::write(out.join("index.html"), index)?;
    fs::write(out.join("files.rs"), code)
}

/// Without lines that are comments, and without indentation: one fifth of what would have to be sent.
fn lean(content: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(content);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let code = lines.filter(|line| !["//", "/**", "/*", "* ", "*/"].iter().any(|begin| line.starts_with(begin)));
    code.flat_map(|line| [line, "\n"]).collect::<String>().into_bytes()
}

/// Every file below a folder, with its name relative to `web/`.
fn collect(folder: &Path, name: &str, files: &mut Vec<(String, Vec<u8>)>) -> Result<(), Error> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let own = format!("{name}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{own}/"), files)?;
        } else {
            files.push((own, fs::read(entry.path())?));
        }
    }
    Ok(())
}
