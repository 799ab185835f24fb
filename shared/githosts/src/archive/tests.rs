use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, Header};

const MARKER: &str = "shop:carts:staging";
const MARKED: &str = "tag: v1 # {\"$promotion\": \"shop:carts:staging\"}\n";

/// An archive with these files.
pub(crate) fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut tar = Builder::new(GzEncoder::new(vec![], Compression::fast()));
    for (path, content) in files {
        append(&mut tar, path, EntryType::Regular, content.as_bytes());
    }
    finish(tar)
}

fn append(tar: &mut Builder<GzEncoder<Vec<u8>>>, path: &str, kind: EntryType, content: &[u8]) {
    let mut header = Header::new_gnu();
    // Written directly, because the builder refuses names that lead out of the archive.
    header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(if path.ends_with("run.yaml") { 0o775 } else { 0o664 });
    header.set_size(content.len() as u64);
    if kind == EntryType::Symlink {
        header.set_link_name("../../etc/passwd").unwrap();
    }
    header.set_cksum();
    tar.append(&header, content).unwrap();
}

fn finish(tar: Builder<GzEncoder<Vec<u8>>>) -> Vec<u8> {
    tar.into_inner().unwrap().finish().unwrap()
}

fn paths(found: &Candidates) -> Vec<&str> {
    found.files.iter().map(|file| file.path.as_str()).collect()
}

#[test]
fn only_yaml_files_with_the_marker_are_candidates() {
    let others = MARKED.replace("staging", "production");
    let packed = archive(&[
        ("shop-1/apps/staging/values.yaml", MARKED),
        ("shop-1/b.yml", MARKED),
        ("shop-1/run.yaml", MARKED),
        ("shop-1/values.json", MARKED),
        ("shop-1/README.md", MARKED),
        ("shop-1/production.yaml", &others),
        ("shop-1/none.yaml", "tag: v1\n"),
    ]);
    let found = candidates("git.test", &packed, true, MARKER).unwrap();
    assert_eq!(paths(&found), ["apps/staging/values.yaml", "b.yml", "run.yaml"]);
    assert_eq!(found.files.iter().map(|file| file.executable).collect::<Vec<_>>(), [false, false, true]);
    assert_eq!(found.notes, Vec::<String>::new());
    // Bitbucket's archives have no common folder.
    let found = candidates("git.test", &archive(&[("apps/values.yaml", MARKED), ("b.yaml", MARKED)]), false, MARKER).unwrap();
    assert_eq!(paths(&found), ["apps/values.yaml", "b.yaml"]);
}

#[test]
fn links_large_files_binaries_and_path_tricks_are_passed_over_and_named() {
    let mut tar = Builder::new(GzEncoder::new(vec![], Compression::fast()));
    append(&mut tar, "r/link.yaml", EntryType::Symlink, b"");
    append(&mut tar, "r/large.yaml", EntryType::Regular, format!("{MARKED}{}", " ".repeat(1 << 20)).as_bytes());
    append(&mut tar, "r/binary.yaml", EntryType::Regular, &[MARKED.as_bytes(), &[0xff, 0xfe]].concat());
    for path in ["r/../../up.yaml", "r//up.yaml", "r/./up.yaml", "r/.git/up.yaml", "r/a\\b.yaml"] {
        append(&mut tar, path, EntryType::Regular, MARKED.as_bytes());
    }
    let found = candidates("git.test", &finish(tar), true, MARKER).unwrap();
    assert_eq!(found.files, vec![]);
    assert_eq!(found.notes, ["link.yaml is a link"]);
    // These files contain the marker, so the caller must learn that they cannot be edited.
    for expected in ["large.yaml is larger than 1 MiB", "binary.yaml is not UTF-8"] {
        assert!(found.unusable.iter().any(|note| note == expected), "{expected}: {:?}", found.unusable);
    }
    assert_eq!(found.unusable.iter().filter(|note| note.contains("leads out")).count(), 5, "{:?}", found.unusable);
}

#[test]
fn what_is_no_archive_or_a_bomb_is_named() {
    let kind = |bytes: &[u8]| candidates("git.test", bytes, true, MARKER).unwrap_err().kind;
    assert_eq!(kind(b"<html>"), Kind::Nonsense);
    let whole = archive(&[("r/a.yaml", MARKED)]);
    assert_eq!(kind(&whole[..whole.len() / 2]), Kind::Nonsense);
    // The header announces more bytes than are ever unpacked, so nothing of the file is read.
    let mut tar = Builder::new(GzEncoder::new(vec![], Compression::fast()));
    let mut header = Header::new_gnu();
    header.set_path("r/huge.bin").unwrap();
    header.set_size(UNPACKED + 1);
    header.set_cksum();
    tar.append(&header, std::io::empty()).unwrap();
    assert_eq!(kind(&finish(tar)), Kind::TooLarge);
}

/// An entry about the next one, followed by a file whose own header has another name.
fn about(kind: EntryType, content: &[u8]) -> Vec<u8> {
    let mut tar = Builder::new(GzEncoder::new(vec![], Compression::fast()));
    append(&mut tar, "about", kind, content);
    append(&mut tar, "r/short.yaml", EntryType::Regular, MARKED.as_bytes());
    append(&mut tar, "r/next.yaml", EntryType::Regular, MARKED.as_bytes());
    finish(tar)
}

#[test]
fn long_names_are_read_from_the_entries_before() {
    let long = format!("r/{}/values.yaml", "folder".repeat(40));
    // The length counts its own digits.
    let record = |text: &str| {
        let length = |digits: usize| digits + 1 + text.len() + 1;
        let digits = (1..9).find(|digits| length(*digits).to_string().len() == *digits).unwrap();
        format!("{} {text}\n", length(digits))
    };
    let pax = format!("{}{}", record("comment=c"), record(&format!("path={long}")));
    let name = long.trim_start_matches("r/");
    for (kind, content, first) in [
        (EntryType::GNULongName, format!("{long}\0"), name),
        (EntryType::XHeader, pax.clone(), name),
        (EntryType::XGlobalHeader, pax, "short.yaml"),
        (EntryType::GNULongLink, format!("{long}\0"), "short.yaml"),
    ] {
        let found = candidates("git.test", &about(kind, content.as_bytes()), true, MARKER).unwrap();
        assert_eq!(paths(&found), [first, "next.yaml"], "{kind:?}");
    }
}

#[test]
fn a_large_entry_about_another_one_is_refused_before_it_is_read() {
    let kinds = [EntryType::GNULongName, EntryType::GNULongLink, EntryType::XHeader, EntryType::XGlobalHeader];
    for kind in kinds {
        let whole = about(kind, &vec![b'a'; usize::try_from(ABOUT).unwrap() + 1]);
        assert_eq!(candidates("git.test", &whole, true, MARKER).unwrap_err().kind, Kind::TooLarge, "{kind:?}");
        // The content is missing: reading it would fail with a broken archive.
        let mut tar = Builder::new(GzEncoder::new(vec![], Compression::fast()));
        let mut header = Header::new_gnu();
        header.set_path("about").unwrap();
        header.set_entry_type(kind);
        header.set_size(400 << 20);
        header.set_cksum();
        tar.append(&header, std::io::empty()).unwrap();
        assert_eq!(candidates("git.test", &finish(tar), true, MARKER).unwrap_err().kind, Kind::TooLarge, "{kind:?}");
    }
}
