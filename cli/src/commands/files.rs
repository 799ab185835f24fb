//! Files, directories and standard input as a user names them.

use crate::error::CliError;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A text and where it is from.
pub struct Text {
    /// The path as given, or `-`.
    pub name: String,
    /// All of it.
    pub text: String,
}

/// The files behind a name: itself, or a directory's manifests by name.
///
/// # Errors
/// A directory that cannot be read, or has none.
pub fn expand(path: &Path) -> Result<Vec<PathBuf>, CliError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let unreadable = |error: std::io::Error| CliError::Usage(format!("cannot read directory {}: {error}", path.display()));
    let mut files = vec![];
    for entry in std::fs::read_dir(path).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        let extension = file.extension().and_then(|extension| extension.to_str());
        if matches!(extension, Some("yaml" | "yml" | "json")) && file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() {
        let text = format!("directory {} has no *.yaml, *.yml or *.json: name the files, or another directory", path.display());
        return Err(CliError::Usage(text));
    }
    Ok(files)
}

/// Reads a file, or standard input for `-`.
///
/// # Errors
/// What is wrong with it.
pub fn read(path: &Path) -> Result<Text, CliError> {
    let name = path.display().to_string();
    let usage = |why: String| CliError::Usage(format!("cannot read {name}: {why}"));
    let mut bytes = vec![];
    let done = if name == "-" {
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| ())
    } else {
        std::fs::read(path).map(|read| bytes = read)
    };
    done.map_err(|error| usage(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| usage("it is not UTF-8 text: save it as UTF-8".into()))?;
    Ok(Text { name, text })
}
