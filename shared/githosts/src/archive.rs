//! A repository's archive, which replaces one request for each file by one for all. It shows which files may contain the marker. An
//! archive may differ from the repository in line ends and substituted text (`export-subst`, `eol` in `.gitattributes`). So the
//! content is read from the host, or the host compares what is replaced ([`Client::compares`](crate::client::Client::compares)).
//! Files with `export-ignore` are missing.

use crate::error::{HostError, Kind};
use crate::marker;
use flate2::read::GzDecoder;
use std::io::Read;
use tar::EntryType;

/// The largest archive that is downloaded, in bytes.
pub(crate) const DOWNLOAD: usize = 64 << 20;
/// The most bytes that are unpacked.
const UNPACKED: u64 = 1 << 30;
/// The most entries that are read.
const ENTRIES: usize = 200_000;
/// The largest entry about another entry (a long name, for example), in bytes. It is read as a whole.
const ABOUT: u64 = 64 << 10;
/// The largest file that is considered, in bytes.
pub(crate) const FILE: u64 = 1 << 20;

/// The most bytes of content that are kept. The content of the other files is read from the host.
const KEPT: usize = 4 << 20;

/// A file that may contain the marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) path: String,
    pub(crate) executable: bool,
    /// The content in the archive, if it was kept.
    pub(crate) content: Option<Vec<u8>>,
}

/// The result of reading an archive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Candidates {
    pub(crate) files: Vec<Candidate>,
    /// The files that were skipped, with the reasons.
    pub(crate) notes: Vec<String>,
    /// The files with the marker that cannot be edited, with the reasons.
    pub(crate) unusable: Vec<String>,
}

/// The YAML files in a `.tar.gz` that contain the marker's text. `folder`: everything is in one folder, which is not a part of the
/// paths.
pub(crate) fn candidates(host: &str, archive: &[u8], folder: bool, marker: &str) -> Result<Candidates, HostError> {
    let broken = |error: std::io::Error| {
        HostError::new(Kind::Nonsense, format!("{host} answered with an archive that cannot be read ({error})"))
    };
    let too_large = || {
        let message = format!(
            "the repository's archive at {host} has more than {ENTRIES} entries or {} MiB: promote in a smaller repository",
            UNPACKED >> 20
        );
        HostError::new(Kind::TooLarge, message)
    };
    let mut found = Candidates::default();
    let (mut unpacked, mut kept) = (0, 0);
    let mut tar = tar::Archive::new(GzDecoder::new(archive).take(2 * UNPACKED));
    // The name of the next entry, if an entry before it gives it.
    let mut named: Option<Vec<u8>> = None;
    // Raw, so that the size of an entry about another one is checked before it is read.
    for (n, entry) in tar.entries().map_err(broken)?.raw(true).enumerate() {
        let mut entry = entry.map_err(broken)?;
        unpacked += entry.size();
        if n >= ENTRIES || unpacked > UNPACKED {
            return Err(too_large());
        }
        let kind = entry.header().entry_type();
        if is_about(kind) {
            if entry.size() > ABOUT {
                return Err(too_large());
            }
            named = name_of_next(&mut entry, kind).map_err(broken)?.or(named);
            continue;
        }
        let path = match String::from_utf8(named.take().unwrap_or_else(|| entry.path_bytes().into_owned())) {
            Ok(path) => path,
            // A file with such a name cannot be requested.
            Err(_) => continue,
        };
        let path = if folder { path.split_once('/').map(|(_, path)| path.to_owned()).unwrap_or_default() } else { path };
        if !(path.ends_with(".yaml") || path.ends_with(".yml")) {
            continue;
        }
        match kind {
            EntryType::Regular | EntryType::Continuous => {}
            EntryType::Symlink | EntryType::Link => {
                found.notes.push(format!("{path} is a link"));
                continue;
            }
            _ => continue,
        }
        let marked = format!("\"{marker}\"");
        if entry.size() > FILE {
            let marked = has_both(&mut entry, [marker::SIGN, &marked]).map_err(broken)?;
            let notes = if marked { &mut found.unusable } else { &mut found.notes };
            notes.push(format!("{path} is larger than {} MiB", FILE >> 20));
            continue;
        }
        let mut content = vec![];
        entry.read_to_end(&mut content).map_err(broken)?;
        let contains = |text: &str| has(&content, text);
        if !contains(marker::SIGN) {
            continue;
        }
        let notes = if contains(&marked) { &mut found.unusable } else { &mut found.notes };
        if !is_inside(&path) {
            notes.push(format!("{path:?} leads out of the repository"));
        } else if std::str::from_utf8(&content).is_err() {
            notes.push(format!("{path} is not UTF-8"));
        } else if contains(marker) {
            let executable = entry.header().mode().is_ok_and(|mode| mode & 0o100 != 0);
            kept += content.len();
            found.files.push(Candidate { path, executable, content: Some(content).filter(|_| kept <= KEPT) });
        }
    }
    Ok(found)
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Whether a file that is too large to be kept contains both texts.
fn has_both(file: &mut impl Read, texts: [&str; 2]) -> std::io::Result<bool> {
    let longest = texts.iter().map(|text| text.len()).max().unwrap_or_default();
    let (mut window, mut chunk) = (Vec::new(), vec![0; 64 << 10]);
    let mut seen = [false; 2];
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 || seen == [true; 2] {
            return Ok(seen == [true; 2]);
        }
        window.extend_from_slice(&chunk[..read]);
        for (seen, text) in seen.iter_mut().zip(texts) {
            *seen = *seen || has(&window, text);
        }
        // A text may span two chunks.
        window.drain(..window.len().saturating_sub(longest));
    }
}

/// Whether an entry is not a file, but describes others.
fn is_about(kind: EntryType) -> bool {
    kind.is_gnu_longname() || kind.is_gnu_longlink() || kind.is_pax_local_extensions() || kind.is_pax_global_extensions()
}

/// The name that such an entry gives to the next one, if any.
fn name_of_next(entry: &mut tar::Entry<'_, impl Read>, kind: EntryType) -> std::io::Result<Option<Vec<u8>>> {
    if kind.is_gnu_longname() {
        let mut name = vec![];
        entry.read_to_end(&mut name)?;
        while name.pop_if(|last| *last == 0).is_some() {}
        return Ok(Some(name));
    }
    if !kind.is_pax_local_extensions() {
        return Ok(None);
    }
    let mut name = None;
    for extension in entry.pax_extensions()?.into_iter().flatten() {
        let extension = extension?;
        if extension.key_bytes() == b"path" {
            name = Some(extension.value_bytes().to_vec());
        }
    }
    Ok(name)
}

/// Whether a path consists of plain segments only, as git itself requires.
fn is_inside(path: &str) -> bool {
    let odd = |segment: &str| matches!(segment, "" | "." | "..") || segment.eq_ignore_ascii_case(".git");
    !path.contains(['\\', '\0']) && !path.split('/').any(odd)
}

#[cfg(test)]
pub(crate) mod tests;
