"""Values that stand in for what a function returns: cargo-mutants' list, by the text of the return type."""

import re

SIGNED = {"i8", "i16", "i32", "i64", "i128", "isize"}
UNSIGNED = {"u8", "u16", "u32", "u64", "u128", "usize"}
MAPS = {"BTreeMap", "HashMap", "Map"}
COLLECTIONS = {"BTreeSet", "HashSet", "VecDeque", "BinaryHeap", "LinkedList"}
BOXES = {"Box", "Rc", "Arc", "Cell", "RefCell", "Mutex"}


def split(text):
    """Splits a text at the commas outside of brackets."""
    parts, depth, begin = [], 0, 0
    for place, character in enumerate(text):
        depth += (character in "<([{") - (character in ")]}" or character == ">" and text[place - 1:place] != "-")
        if character == "," and not depth:
            parts.append(text[begin:place].strip())
            begin = place + 1
    return [part for part in (*parts, text[begin:].strip()) if part]


def arguments(ty):
    """The name of a type without its path, and its type arguments without lifetimes."""
    head, bracket, rest = ty.partition("<")
    given = split(rest[:rest.rindex(">")]) if bracket else []
    return head.strip().split("::")[-1], [part for part in given if not part.startswith("'")]


def replacements(ty):
    """The replacements for the body of a function that returns this type."""
    ty = " ".join(ty.split())
    if ty in ("", "()"):
        return ["()"]
    if ty == "!" or ty.startswith(("impl ", "dyn ")):
        return []
    if ty.startswith("&"):
        return _references(re.sub(r"^&\s*('\w+\s*)?", "", ty))
    if ty.startswith("("):
        return _all([replacements(part) for part in split(ty[1:-1])])
    if ty.startswith("["):
        inner, semicolon, length = ty[1:-1].rpartition(";")
        return [f"[{value}; {length.strip()}]" for value in replacements(inner)] if semicolon else []
    name, given = arguments(ty)
    if name == "bool":
        return ["true", "false"]
    if name in SIGNED:
        return ["0", "1", "-1"]
    if name in UNSIGNED:
        return ["0", "1"]
    if name in ("f32", "f64"):
        return ["0.0", "1.0", "-1.0"]
    if name == "String":
        return ["String::new()", '"xyzzy".into()']
    if name == "Option" and given:
        return ["None", *(f"Some({value})" for value in replacements(given[0]))]
    if name == "Result" and given:
        return [f"Ok({value})" for value in replacements(given[0])]
    if name == "Vec" and given:
        return ["vec![]", *(f"vec![{value}]" for value in replacements(given[0]))]
    if name in COLLECTIONS and given:
        path = f"std::collections::{name}"
        return [f"{path}::new()", *(f"{path}::from_iter([{value}])" for value in replacements(given[0]))]
    if name in MAPS and len(given) == 2:
        both = _all([replacements(part) for part in given])
        return ["Default::default()", *(f"[{value}].into_iter().collect()" for value in both)]
    if name in BOXES and len(given) == 1:
        return [f"{name}::new({value})" for value in replacements(given[0])]
    if name == "Cow" and given:
        kind = "Borrowed" if given[0] in ("str",) else "Owned"
        values = ['""', '"xyzzy"'] if given[0] == "str" else ["Default::default()"]
        return [f"std::borrow::Cow::{kind}({value})" for value in values]
    return ["Default::default()"]


def _references(ty):
    mutable = ty.startswith("mut ")
    inner = ty.removeprefix("mut ").strip()
    if inner == "str":
        return ['""', '"xyzzy"'] if not mutable else []
    if inner.startswith("[") and ";" not in inner:
        return ["Vec::leak(Vec::new())", *(f"Vec::leak(vec![{value}])" for value in replacements(inner[1:-1]))]
    if inner.startswith(("dyn ", "impl ")):
        return []
    return [f"Box::leak(Box::new({value}))" for value in replacements(inner)]


def _all(parts):
    """Every combination, as tuples."""
    combined = [[]]
    for values in parts:
        combined = [[*before, value] for before in combined for value in values]
    return [f"({', '.join(values)}{',' if len(values) == 1 else ''})" for values in combined if values]
