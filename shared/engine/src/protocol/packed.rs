//! Text in fewer bytes: deflate, with words in front that most records have, so that short texts gain as well.
//!
//! The words are compressed first, and their part of the output is left out. To read it, they are put in front again as a block
//! that is not compressed. So nothing is needed but plain deflate.

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use std::io::{Read, Write};

/// What stored texts were packed with: this must never change. Other words get another number.
pub const WORDS: &[u8] = include_bytes!("words.txt");
/// The number of these words, the first byte of what is packed.
pub const NUMBER: u8 = 1;
/// The largest text, in bytes: no item has more, packed or not.
const MAX_BYTES: u64 = 4 << 20;

/// Packs a text. `None`: that failed, so it has to stay as it is.
pub fn pack(text: &str) -> Option<Vec<u8>> {
    let mut deflate = DeflateEncoder::new(Vec::with_capacity(WORDS.len() + text.len()), Compression::default());
    deflate.write_all(WORDS).ok()?;
    // Ends at a whole byte.
    deflate.flush().ok()?;
    let words = deflate.get_ref().len();
    deflate.write_all(text.as_bytes()).ok()?;
    let bytes = deflate.finish().ok()?;
    Some(std::iter::once(NUMBER).chain(bytes.into_iter().skip(words)).collect())
}

/// The text that was packed.
pub fn unpack(bytes: &[u8]) -> Option<String> {
    let (NUMBER, bytes) = bytes.split_first().map(|(number, bytes)| (*number, bytes))? else { return None };
    let length = u16::try_from(WORDS.len()).ok()?;
    // The head of a block that is not compressed, and not the last one.
    let [a, b] = length.to_le_bytes();
    let head = [0, a, b, !a, !b];
    let mut text = Vec::with_capacity(WORDS.len() + bytes.len() * 4);
    DeflateDecoder::new(head.chain(WORDS).chain(bytes)).take(MAX_BYTES).read_to_end(&mut text).ok()?;
    String::from_utf8(text.split_off(WORDS.len().min(text.len()))).ok()
}
