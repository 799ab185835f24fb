//! `evaluation migrate`: an analysis of Argo Rollouts as files of evaluations.

use super::files;
use super::shipyard::draw_all;
use crate::args::MigrateAnalysis;
use crate::error::CliError;
use crate::output::say;
use keelway_wire::manifest::{self, Files};
use std::path::Path;

/// Prints the files, or writes them into a directory; the block of a strategy is printed in both cases.
///
/// # Errors
/// Exit code 2 when the file cannot be read or there is one to be written over, else 1 when it is refused.
pub fn analysis(what: &MigrateAnalysis) -> Result<(), CliError> {
    let file = files::read(&what.file)?;
    let converted = manifest::from_analysis(&file.text, &file.name);
    draw_all(&converted.findings, &file.text);
    let Some(files) = converted.files else { return Err(CliError::Said(1)) };
    let Files { slo, sli, analysis } = &files;
    match &what.to {
        None => {
            say(&format!("# slo.yaml\n{slo}---\n# sli.yaml\n{sli}---\n# In the strategy of a deployment.\n{}", analysis.trim_end()))
        }
        Some(folder) => {
            write(folder, [("slo.yaml", slo), ("sli.yaml", sli)])?;
            say(analysis.trim_end())
        }
    }
}

/// Writes all of the files or, if one of them is there, none.
fn write(folder: &Path, files: [(&str, &String); 2]) -> Result<(), CliError> {
    let paths = files.map(|(name, text)| (folder.join(name), text));
    if let Some((path, _)) = paths.iter().find(|(path, _)| path.exists()) {
        return Err(CliError::Usage(format!("{} is there already: name another directory", path.display())));
    }
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| CliError::Usage(format!("cannot write {path}: {error}"))
    };
    std::fs::create_dir_all(folder).map_err(failed(folder))?;
    for (path, text) in &paths {
        std::fs::write(path, text).map_err(failed(path))?;
        eprintln!("wrote {}", path.display());
    }
    Ok(())
}
