use super::*;
use proptest::prelude::*;

const MARKER: &str = "shop:carts:staging";

/// Replaces `@` by the marker of this environment, and `%` by that of another one.
fn file(text: &str) -> String {
    let comment = |environment: &str| format!("# {{\"$promotion\": \"shop:carts:{environment}\"}}");
    text.replace('@', &comment("staging")).replace('%', &comment("production"))
}

fn edited(text: &str) -> Edit {
    edit(&file(text), MARKER, "v2")
}

#[test]
fn the_marked_scalar_changes_and_nothing_else() {
    let cases = [
        ("tag: v1 @\n", "tag: v2 @\n"),
        ("tag: v1 @", "tag: v2 @"),
        ("tag: v1\t@\n", "tag: v2\t@\n"),
        ("tag: v1 @   \r\nother: 1\r\n", "tag: v2 @   \r\nother: 1\r\n"),
        ("a:   'v1'   @ \n", "a:   'v2'   @ \n"),
        ("a: \"v1\" @\n", "a: \"v2\" @\n"),
        ("image: nginx:1.22.0 @\n", "image: v2 @\n"),
        ("a: &x v1 @\nb: *x\n", "a: &x v2 @\nb: *x\n"),
        ("a: !!str v1 @\n", "a: !!str v2 @\n"),
        ("a: &x !!str 'v1' @\n", "a: &x !!str 'v2' @\n"),
        ("a: v1 @\n---\na: v1 %\n---\nb:\n- v1 @\n...\n", "a: v2 @\n---\na: v1 %\n---\nb:\n- v2 @\n...\n"),
        ("l:\n  - v1 @\n  - v1\n", "l:\n  - v2 @\n  - v1\n"),
        ("l:\n- name: x\n  tag: v1 @\n", "l:\n- name: x\n  tag: v2 @\n"),
        ("l:\n- tag: v1 @\n  name: x\n", "l:\n- tag: v2 @\n  name: x\n"),
        ("- - v1 @\n", "- - v2 @\n"),
        ("? k\n: v1 @\n", "? k\n: v2 @\n"),
        ("\u{feff}tag: v1 @\n", "\u{feff}tag: v2 @\n"),
        ("ключ: 'é' @\n", "ключ: 'v2' @\n"),
        ("a: {b: 1,\n  c: v1 @\n  }\n", "a: {b: 1,\n  c: v2 @\n  }\n"),
        ("a: [x,\n  v1, @\n  y]\n", "a: [x,\n  v2, @\n  y]\n"),
        ("# x\n\n\n  a: v1 @\n\n  # y\n", "# x\n\n\n  a: v2 @\n\n  # y\n"),
        ("a:\n  v1 @\n", "a:\n  v2 @\n"),
        ("a: 'v#1' @\n", "a: 'v2' @\n"),
        ("a: 1.9 @\n", "a: v2 @\n"),
    ];
    for (old, new) in cases {
        let edit = edited(old);
        assert_eq!(edit.text.as_deref(), Some(file(new).as_str()), "{old:?}: {:?}", edit.notes);
        assert_eq!(edit.notes, Vec::<String>::new());
    }
}

#[test]
fn a_marker_directly_above_marks_the_key_or_item_below() {
    let cases = [
        ("@\ntag: v1\n", "@\ntag: v2\n"),
        ("@\r\ntag: v1\r\n", "@\r\ntag: v2\r\n"),
        ("a:\n  @\n  tag: 'v1' # x\n", "a:\n  @\n  tag: 'v2' # x\n"),
        ("l:\n  @\n  - v1\n  - v1\n", "l:\n  @\n  - v2\n  - v1\n"),
        ("%\n@\ntag: v1\n", "%\n@\ntag: v2\n"),
        ("---\n@\ntag: v1\n", "---\n@\ntag: v2\n"),
    ];
    for (old, new) in cases {
        assert_eq!(edited(old).text.as_deref(), Some(file(new).as_str()), "{old:?}: {:?}", edited(old).notes);
    }
    let untouched = [
        "@\n\ntag: v1\n",
        "a:\n  b: v1\n  @\nc: v1\n",
        "@\na:\n  b: v1\n",
        "@\na: |\n  v1\n",
        "@\n- tag: v1\n",
        "a: v1\n@\n",
        "@\ntag: v1 %\n",
        "@\na:\n  v1\n",
    ];
    for text in untouched {
        let edit = edited(text);
        assert_eq!((edit.text, edit.marked, edit.notes.len()), (None, 0, 1), "{text:?}: {:?}", edit.notes);
    }
}

#[test]
fn values_over_several_lines_are_replaced_whole() {
    let cases = [
        ("a: one\n  two @\nb: 1\n", "a: v2 @\nb: 1\n"),
        ("a: 'one\n\n  two' @\nb: 1\n", "a: 'v2' @\nb: 1\n"),
        ("a: \"one \\\n  two\" @\n", "a: \"v2\" @\n"),
    ];
    for (old, new) in cases {
        assert_eq!(edited(old).text.as_deref(), Some(file(new).as_str()), "{old:?}: {:?}", edited(old).notes);
    }
}

#[test]
fn what_only_looks_like_a_marker_stays() {
    let untouched = [
        "a: v1 %\n",
        "a: |\n  tag: v1 @\n",
        "a: >-\n  tag: v1 @\n",
        "a: 'tag: v1 @'\n",
        "a: 'x\n  tag: v1 @'\n",
        "a: \"tag: v1 # {\\\"$promotion\\\": \\\"shop:carts:staging\\\"} \"\nb: \"$promotion\"\n",
        "a: v1 # {\"$promotion\": \"shop:carts:staging\"\n",
        "a: v1 # {\"$promotion\" \"shop:carts:staging\"}\n",
        "a: v1 # \"$promotion\": \"shop:carts:staging\"\n",
        "a: v1 # see {\"$promotion\": \"shop:carts:staging\"}\n",
        "a: v1 # {\"$promotion\": \"shop:carts:staging2\"}\n",
        "a: v1 # {\"$promotion\": \"xshop:carts:staging\"}\n",
        "a: v1 # {\"$promotion\": \"shop:carts:staging \"}\n",
        "a: v1 # {\"$promotion\": [\"shop:carts:staging\"]}\n",
        "a: v1 # {\"$imagepolicy\": \"shop:carts:staging\"}\n",
        "a: v1\n",
    ];
    for text in untouched {
        assert_eq!(edited(text), Edit::default(), "{text:?}");
    }
    // A plain scalar may contain the beginning of a comment, if no space precedes it.
    let text = "a: v1#{\"$promotion\": \"shop:carts:staging\"}\n";
    assert_eq!(edited(text).text, None);
}

#[test]
fn markers_that_mark_nothing_are_reported() {
    let reported = [
        ("a: | @\n  v1\n", "line 1"),
        ("x: 1\na: @\n  b: v1\n", "line 2"),
        ("a: @\n", "line 1"),
        ("a: {b: v1} @\n", "line 1"),
        ("a: [v1] @\n", "line 1"),
        ("a: &x 1\nb: *x @\n", "line 2"),
        ("{{- if .Values.x }}\na: v1 @\n{{- end }}\n", "not valid YAML"),
        ("a: v1 @\n---\nb: [\n", "not valid YAML"),
    ];
    for (text, expected) in reported {
        let edit = edited(text);
        assert_eq!((edit.text.as_ref(), edit.marked), (None, 0), "{text:?}");
        assert!(edit.notes.iter().any(|note| note.contains(expected)), "{text:?}: {:?}", edit.notes);
    }
}

#[test]
fn a_value_that_is_the_version_already_stays_as_it_is_written() {
    for text in ["a: v2 @\n", "a: 'v2' @\nb: \"v2\" @\n"] {
        let edit = edited(text);
        assert_eq!((edit.text, edit.notes), (None, vec![]));
        assert!(edit.marked > 0);
    }
    let edit = edited("a: v2 @\nb: v1 @\nc: v1 %\n");
    assert_eq!((edit.text, edit.marked), (Some(file("a: v2 @\nb: v2 @\nc: v1 %\n")), 2));
}

#[test]
fn any_version_is_read_back_as_it_is() {
    let long = format!("release/{}:x@y+z", "v".repeat(200));
    for version in
        ["1.10", "true", "a: b", "it's \"it\"", "a #b", "main@sha1:abc", "x/y:z+1", "[a]", "a, b", "", " ", "é\u{2028}\n\t", &long]
    {
        for text in ["a: v1 @\n", "a: 'v1' @\n", "a: \"v1\" @\n", "a: [x,\n v1, @\n]\n", "- v1 @\n"] {
            let new = edit(&file(text), MARKER, version).text.unwrap();
            let read = read(&new).unwrap();
            assert!(read.scalars.iter().any(|scalar| scalar.value == version), "{version:?} in {new:?}");
        }
    }
}

/// Random lines of YAML with and without markers.
fn lines() -> impl Strategy<Value = (String, usize)> {
    let line = prop_oneof![
        Just(("KEY: v1 @", 1)),
        Just(("KEY: 'v1' @", 1)),
        Just(("KEY: \"v1\"   @", 1)),
        Just(("KEY: v1 %", 0)),
        Just(("KEY: v1 # comment", 0)),
        Just(("KEY: |\n  text @\n  v1", 0)),
        Just(("KEY: {a: v1, b: [v1]} # x", 0)),
        Just(("KEY:\n  - v1 @\n  - v1", 1)),
        Just(("KEY:\n- a: v1 @\n  b: v1 %", 1)),
        Just(("@\nKEY: v1", 1)),
        Just(("# @ not a marker", 0)),
        Just(("", 0)),
        Just(("---", 0)),
        Just(("KEY: &aKEY v1 @", 1)),
        Just(("KEY: ключ é", 0)),
    ];
    let end = prop_oneof![Just("\n"), Just("\r\n")];
    (proptest::collection::vec(line, 0..12), end, any::<bool>()).prop_map(|(lines, end, last)| {
        let count = lines.iter().map(|(_, count)| count).sum();
        let text: Vec<String> = lines.iter().enumerate().map(|(n, (line, _))| line.replace("KEY", &format!("key{n}"))).collect();
        let text = file(&text.join("\n")).replace('\n', end);
        (if last { text + end } else { text }, count)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn only_marked_values_differ_whatever_the_file((text, count) in lines(), version in "[ -~é\n]{0,20}") {
        let edit = edit(&text, MARKER, &version);
        prop_assert_eq!(edit.marked, count, "{:?}", edit.notes);
        let Some(new) = edit.text else {
            prop_assert!(count == 0 || version == "v1");
            return Ok(());
        };
        // Everything except marked scalars is unchanged, byte by byte.
        let old = read(&text).unwrap();
        let again = read(&new).unwrap();
        prop_assert_eq!(again.shape, old.shape);
        let differ = old.values.iter().zip(&again.values).filter(|((_, old), (_, new))| old != new).count();
        prop_assert_eq!(differ, count);
        let lines = |text: &str| text.split('\n').map(str::to_owned).collect::<Vec<_>>();
        if !version.contains('\n') {
            let changed = lines(&text).iter().zip(lines(&new)).filter(|(old, new)| *old != new).count();
            prop_assert_eq!(changed, count);
        }
        // A second edit finds nothing to do.
        prop_assert_eq!(super::edit(&new, MARKER, &version).text, None);
    }

    #[test]
    fn no_text_makes_it_panic(text in "(a|:| |\n|\r|-|#|'|\"|\\{|\\}|\\[|\\]|,|\\||>|&|\\*|!|%|@|\t|é|\u{feff}|\\\\){0,40}") {
        let edit = edit(&file(&text), MARKER, "v2");
        if let Some(new) = edit.text {
            prop_assert!(new.len() + 2 * text.len() >= text.len());
        }
    }
}

#[test]
fn large_files_are_edited_in_time_that_grows_with_their_size() {
    // Everything on one line before the marker, and as many markers as possible. Quadratic algorithms would take minutes.
    let one_line = format!("a: [{}]\nb: v1 @\n", "x, ".repeat(300_000));
    assert_eq!(edited(&one_line).marked, 1);
    let many: String = (0..18_000).map(|n| format!("k{n}: v1 @\n")).collect();
    assert_eq!(edited(&many).marked, 18_000);
}
