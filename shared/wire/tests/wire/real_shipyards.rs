//! Shipyards other people wrote: none may make the parser panic, and every refusal has a place and a remedy.

use keelway_wire::manifest::{self, Severity};

/// A folder of manifests to try; nothing is run without it.
const FOLDER: &str = "KEELWAY_REAL_SHIPYARDS";

#[test]
fn every_file_of_the_folder_given_by_the_environment() {
    let Ok(folder) = std::env::var(FOLDER) else {
        eprintln!("not run: shipyards of other projects ({FOLDER} names no folder)");
        return;
    };
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let (mut fine, mut warned, mut refused, mut migrated) = (0, 0, 0, 0);
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = String::from_utf8_lossy(&bytes);
        let parsed = manifest::parse(&text, &name);
        for finding in &parsed.findings {
            println!("{finding}");
            assert!(finding.line >= 1 && finding.column >= 1 && !finding.message.is_empty(), "{name}");
        }
        if parsed.findings.iter().any(|finding| finding.message.contains("keelway shipyard migrate FILE")) {
            let newer = manifest::migrate(&text, &name);
            for finding in &newer.findings {
                println!("migrate: {finding}");
            }
            match newer.text {
                // In the form of 0.2 under a version of 0.1: only the version changes.
                Some(newer) if text.contains("sequences") => drop(newer),
                Some(newer) => {
                    assert_eq!(manifest::parse(&newer, &name).findings, [], "{newer}");
                    migrated += 1;
                }
                None => assert!(newer.findings.iter().any(|finding| finding.severity == Severity::Error), "{name}"),
            }
        }
        match (parsed.refused(), parsed.findings.is_empty()) {
            (true, _) => refused += 1,
            (false, false) => warned += 1,
            (false, true) => fine += 1,
        }
        assert_eq!(parsed.refused(), parsed.findings.iter().any(|f| f.severity == Severity::Error), "{name}");
        assert!(parsed.refused() || !parsed.documents.is_empty(), "{name}: neither a document nor a reason");
    }
    println!(
        "{folder}: {fine} accepted without a finding, {warned} with warnings, {refused} refused, {migrated} of these migrated"
    );
}
