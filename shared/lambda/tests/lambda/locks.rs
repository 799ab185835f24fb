//! The Python environments hold what their lock files name, file by file: what an index serves later under the same version does
//! not get in.

use std::path::{Path, PathBuf};

fn local() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../infra/local")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Lines that are neither blank nor comments, with their continuations.
fn requirements(text: &str) -> Vec<String> {
    let whole = text.replace("\\\n", " ");
    whole.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}

#[test]
fn every_package_is_locked_with_hashes() {
    let files = std::fs::read_dir(local()).unwrap().map(|entry| entry.unwrap().path());
    let locks: Vec<PathBuf> = files
        .filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("requirements")))
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    assert!(locks.len() >= 6, "{locks:?}");
    for lock in locks {
        let locked = requirements(&read(&lock));
        for one in &locked {
            assert!(one.contains("==") && one.contains("--hash=sha256:"), "{}: {one}", lock.display());
        }
        // What is asked for is what is locked: after a change, `make lock`.
        for asked in requirements(&read(&lock.with_extension("in"))) {
            let found = locked.iter().any(|one| one.split_whitespace().next() == Some(&asked));
            assert!(found, "{} does not have {asked}", lock.display());
        }
    }
}

#[test]
fn nothing_is_installed_without_its_hash() {
    let environment = read(&local().join("keelway_local/environment.py"));
    assert!(environment.contains("\"--require-hashes\""), "pip checks hashes only if it is told to");
}
