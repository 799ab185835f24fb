//! That there is no other way out: a new client cannot be made without anybody thinking of the guard.

use std::fs;
use std::path::{Path, PathBuf};

/// Crates that make requests over HTTP. Those of AWS talk to AWS only.
const CLIENTS: [&str; 11] =
    ["reqwest", "hyper", "hyper-util", "hyper-rustls", "hyper-tls", "ureq", "isahc", "curl", "attohttpc", "octocrab", "awc"];
/// What a connection is made with by hand.
const BY_HAND: [&str; 4] = ["TcpStream", "UdpSocket", "TcpSocket", "reqwest::"];
/// The crate that may.
const OUTGOING: &str = "shared/outgoing";

/// The crates of the functions and what they share, as paths in the repository.
fn crates() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let of = |folder: &'static str| {
        let all = fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        all.map(move |path| (format!("{folder}/{}", path.file_name().unwrap().to_str().unwrap()), path))
    };
    let found: Vec<_> = of("functions").chain(of("shared")).filter(|(_, path)| path.join("Cargo.toml").exists()).collect();
    assert!(found.len() > 10 && found.iter().any(|(name, _)| name == OUTGOING), "{found:?}");
    found
}

/// The HTTP clients among what a crate needs to run.
fn clients(manifest: &str) -> Vec<String> {
    let mut needed = false;
    let mut found = vec![];
    for line in manifest.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            let name = section.trim_end_matches(']');
            needed = name.contains("dependencies") && !name.contains("dev-dependencies");
            // `[dependencies.reqwest]`
            found.extend(CLIENTS.iter().filter(|client| needed && name.ends_with(&format!(".{client}"))).map(ToString::to_string));
            continue;
        }
        let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
        let renamed = |client: &&&str| line.contains(&format!("package = \"{client}\""));
        found.extend(CLIENTS.iter().filter(|client| needed && (name == **client || renamed(client))).map(ToString::to_string));
    }
    found
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        match path.is_dir() {
            true => sources(&path, found),
            false => found.extend(path.extension().is_some_and(|ending| ending == "rs").then(|| path.clone())),
        }
    }
}

#[test]
fn no_other_crate_makes_clients() {
    for (name, path) in crates().into_iter().filter(|(name, _)| name != OUTGOING) {
        let found = clients(&fs::read_to_string(path.join("Cargo.toml")).unwrap());
        assert!(found.is_empty(), "{name} needs {found:?}: send requests through keelway_outgoing::Wire, whose guard checks them");
        let mut all = vec![];
        sources(&path.join("src"), &mut all);
        for source in all {
            let text = fs::read_to_string(&source).unwrap();
            let by_hand = BY_HAND.iter().find(|word| text.contains(*word));
            assert_eq!(by_hand, None, "{}: send requests through keelway_outgoing::Wire", source.display());
        }
    }
}

#[test]
fn clients_are_found_however_they_are_written() {
    for manifest in [
        "[dependencies]\nreqwest.workspace = true",
        "[dependencies]\nureq = \"3\"",
        "[dependencies]\nhttp = { package = \"reqwest\", version = \"0.13\" }",
        "[dependencies.hyper]\nversion = \"1\"",
        "[target.'cfg(unix)'.dependencies]\ncurl = \"1\"",
    ] {
        assert_eq!(clients(manifest).len(), 1, "{manifest}");
    }
    assert!(clients("[dependencies]\nserde = \"1\"\n[dev-dependencies]\nreqwest = \"1\"").is_empty());
}
