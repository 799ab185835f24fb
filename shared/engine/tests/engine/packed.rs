//! Text in fewer bytes.

use keelway_domain::ids::sha256_hex;
use keelway_engine::protocol::packed::*;

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
