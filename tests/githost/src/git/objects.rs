//! Objects that are files of their own, as git writes almost all of them here. To read or write such a file takes a hundredth of
//! the time of a git process; packed objects are read by git.

use super::{Git, GitError, failed, is_sha};
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

/// The content of an object.
#[derive(Debug)]
pub(super) struct Object {
    /// `blob`, `tree`, `commit` or `tag`.
    pub kind: String,
    pub bytes: Vec<u8>,
}

impl Git {
    /// An object, if it exists.
    pub(super) fn object(&self, sha: &str) -> Result<Option<Arc<Object>>, GitError> {
        if let Some(object) = self.loose_object(sha) {
            return Ok(Some(object));
        }
        let Some(kind) = self.found(&["cat-file", "-t", sha])? else { return Ok(None) };
        let kind = String::from_utf8_lossy(&kind).trim().to_owned();
        let bytes = self.read(&["cat-file", &kind, sha])?;
        Ok(Some(self.remember(sha, Object { kind, bytes })))
    }

    /// The bytes of an object that must exist and be of this kind.
    pub(super) fn content(&self, kind: &str, sha: &str) -> Result<Arc<Object>, GitError> {
        let object = self.object(sha)?.filter(|object| object.kind == kind);
        object.ok_or_else(|| failed(&["cat-file", kind, sha], format!("{sha} is not the id of a {kind}")))
    }

    /// An object that was read or written before, or is a file of its own.
    pub(super) fn loose_object(&self, sha: &str) -> Option<Arc<Object>> {
        if let Some(object) = self.objects.lock().unwrap_or_else(PoisonError::into_inner).get(sha) {
            return Some(object.clone());
        }
        let mut raw = vec![];
        let file = is_sha(sha).then(|| self.object_file(sha))?;
        ZlibDecoder::new(fs::File::open(file).ok()?).read_to_end(&mut raw).ok()?;
        let end = raw.iter().position(|byte| *byte == 0)?;
        let (kind, _) = std::str::from_utf8(&raw[..end]).ok()?.split_once(' ')?;
        Some(self.remember(sha, Object { kind: kind.to_owned(), bytes: raw[end + 1..].to_vec() }))
    }

    /// Stores an object, and returns its id.
    pub(super) fn write_object(&self, kind: &str, bytes: &[u8]) -> Result<String, GitError> {
        static DRAFTS: AtomicU64 = AtomicU64::new(0);
        let raw = [format!("{kind} {}\0", bytes.len()).as_bytes(), bytes].concat();
        let mut hash = sha1_smol::Sha1::new();
        hash.update(&raw);
        let sha = hash.digest().to_string();
        let error = |error: std::io::Error| failed(&["hash-object", "-w", "-t", kind], error.to_string());
        let file = self.object_file(&sha);
        if !file.exists() {
            let folder = file.with_file_name("");
            fs::create_dir_all(&folder).map_err(error)?;
            // Named as git names its drafts, which `git gc` removes if their writer was killed.
            let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
            let draft = folder.join(format!("tmp_obj_{}_{number}", std::process::id()));
            let mut packed = ZlibEncoder::new(vec![], Compression::fast());
            packed.write_all(&raw).map_err(error)?;
            fs::write(&draft, packed.finish().map_err(error)?).map_err(error)?;
            fs::rename(&draft, &file).map_err(error)?;
        }
        self.remember(&sha, Object { kind: kind.to_owned(), bytes: bytes.to_vec() });
        Ok(sha)
    }

    /// The file of an object that is not packed. `sha` is a full id.
    fn object_file(&self, sha: &str) -> PathBuf {
        self.directory.join("objects").join(&sha[..2]).join(&sha[2..])
    }

    fn remember(&self, sha: &str, object: Object) -> Arc<Object> {
        let object = Arc::new(object);
        self.objects.lock().unwrap_or_else(PoisonError::into_inner).insert(sha.to_owned(), object.clone());
        object
    }
}
