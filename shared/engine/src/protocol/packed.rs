//! Text in fewer bytes: deflate, with words in front that most records have, so that short texts gain as well.
//!
//! The words are compressed first, and their part of the output is left out. To read it, they are put in front again as a block
//! that is not compressed. So nothing is needed but plain deflate.

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use std::io::{Read, Write};

/// What stored texts were packed with: this must never change. Other words get another number.
const WORDS: &[u8] = include_bytes!("words.txt");
/// The number of these words, the first byte of what is packed.
const NUMBER: u8 = 1;
/// The largest text, in bytes: no item has more, packed or not.
const MAX_BYTES: u64 = 4 << 20;

/// Packs a text. `None`: that failed, so it has to stay as it is.
pub(super) fn pack(text: &str) -> Option<Vec<u8>> {
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
pub(super) fn unpack(bytes: &[u8]) -> Option<String> {
    let (NUMBER, bytes) = bytes.split_first().map(|(number, bytes)| (*number, bytes))? else { return None };
    let length = u16::try_from(WORDS.len()).ok()?;
    // The head of a block that is not compressed, and not the last one.
    let [a, b] = length.to_le_bytes();
    let head = [0, a, b, !a, !b];
    let mut text = Vec::with_capacity(WORDS.len() + bytes.len() * 4);
    DeflateDecoder::new(head.chain(WORDS).chain(bytes)).take(MAX_BYTES).read_to_end(&mut text).ok()?;
    String::from_utf8(text.split_off(WORDS.len().min(text.len()))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use keelway_domain::ids::sha256_hex;

    #[test]
    fn what_was_packed_is_read_again() {
        let long = "the same again, ".repeat(20_000);
        let one = |n: u32| char::from(b' ' + (n.wrapping_mul(2_654_435_761) >> 25) as u8 % 90);
        let various: String = (0..100_000).map(one).collect();
        for text in ["", "{}", "\"sh.keptn.event.deployment.triggered\"", "ä\u{10348}", &long, &various] {
            assert_eq!(unpack(&pack(text).unwrap()).as_deref(), Some(text));
        }
        assert!(pack(&long).unwrap().len() < 2000);
    }

    #[test]
    fn the_words_are_those_of_what_is_stored() {
        assert_eq!(sha256_hex(WORDS), "ffdd31b38d950b28f3a3cce7924a846daf3fb8452cd78ae2aec4e039e595e0d5");
    }

    #[test]
    fn what_another_program_has_packed_is_read() {
        let text = concat!(
            r#"{"a":[7],"b":{"project":"shop","result":"pass","stage":"dev"},"e":[{"s":"shipyard-controller","t":1795000000000,"#,
            r#""u":true,"y":"sh.keptn.event.test.triggered"}],"m":1,"t":1795000000000}"#
        );
        // With zlib, and the words as its dictionary.
        let packed = "0183e83387e9434a7019f905d8dd0d4f87b5b0d4422835981ac00052ba201c6708bfa21b530b00";
        let bytes: Vec<u8> = (0..packed.len() / 2).map(|n| u8::from_str_radix(&packed[2 * n..2 * n + 2], 16).unwrap()).collect();
        assert_eq!(unpack(&bytes).as_deref(), Some(text));
    }

    #[test]
    fn what_nobody_packed_is_refused() {
        for bytes in [&[][..], &[NUMBER], &[0, 3, 0], &[NUMBER, 255, 255], &[2, 3, 0]] {
            assert_eq!(unpack(bytes), None, "{bytes:?}");
        }
    }
}
