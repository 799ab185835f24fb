"""Checks of values by AWS's service models, as botocore has them: one function for each shape, made once."""

import base64
import binascii
import re

# Character classes that Python lacks. \w also matches digits and _.
CLASSES = {r"\p{L}": r"\w", r"\p{M}": r"\u0300-\u036f", r"\p{N}": r"\d", r"\p{Z}": r"\s", r"\p{Graph}": "!-~", r"\p{Alnum}": "A-Za-z0-9"}


def _pattern(text):
    """The compiled pattern of a model. None: Python does not support it."""
    for theirs, ours in CLASSES.items():
        text = text.replace(theirs, ours)
    try:
        return re.compile(text, re.DOTALL)
    except re.error:
        return None


def _length(metadata, size, path, tell, what):
    if size < metadata.get("min", 0):
        tell(path, f"{what} less than {metadata['min']}")
    if size > metadata.get("max", size):
        tell(path, f"{what} more than {metadata['max']}")


def _string(shape):
    metadata, known = shape.metadata, frozenset(shape.metadata.get("enum", ()))
    pattern = _pattern(metadata["pattern"]) if "pattern" in metadata else None
    unread = "pattern" in metadata and pattern is None
    bounded = "min" in metadata or "max" in metadata

    def check(value, path, tell):
        if not isinstance(value, str):
            return tell(path, f"a {type(value).__name__} and not a string")
        if bounded:
            _length(metadata, len(value), path, tell, "characters")
        if known and value not in known:
            tell(path, f"{value!r} is none of its values")
        if unread:
            tell(path, f"nobody can check the pattern {metadata['pattern']}")
        # The services match the whole text, even where the pattern has no anchors.
        elif pattern and not pattern.fullmatch(value):
            tell(path, f"{value!r} is not as {metadata['pattern']}")

    return check


def _number(shape, kinds):
    metadata, bounded = shape.metadata, "min" in shape.metadata or "max" in shape.metadata

    def check(value, path, tell):
        if isinstance(value, bool) or not isinstance(value, kinds):
            return tell(path, f"a {type(value).__name__} and not a number of type {shape.type_name}")
        if bounded:
            _length(metadata, value, path, tell, "a number")

    return check


def _boolean(_):
    return lambda value, path, tell: None if isinstance(value, bool) else tell(path, f"a {type(value).__name__} and not a boolean")


def _blob(shape):
    def check(value, path, tell):
        try:
            _length(shape.metadata, len(base64.b64decode(value, validate=True)), path, tell, "bytes")
        except (TypeError, ValueError, binascii.Error):
            tell(path, "not Base64")

    return check


def _timestamp(shape):
    if shape.serialization.get("timestampFormat") in ("iso8601", "rfc822"):
        return _string(shape)
    return _number(shape, (int, float))


def wire_name(name, shape):
    """The name of a member on the wire."""
    return shape.serialization.get("name", name)


class Shapes:
    """The checks of one service's shapes: `check(value, path, tell)` calls `tell(path, what)` for each violation of the model."""

    def __init__(self, of_answers=False):
        self._made, self._of_answers = {}, of_answers

    def check(self, shape):
        """The check of a shape. The traits of a member are part of its shape, so a name may stand for several shapes."""
        key = (shape.name, repr(shape.metadata), repr(shape.serialization))
        if key not in self._made:
            # A shape may contain itself: an inner reference gets this function, which finds the real check when it is called.
            self._made[key] = lambda *words: self._made[key](*words)
            self._made[key] = self._make(shape)
        return self._made[key]

    def _make(self, shape):
        if shape.metadata.get("document"):
            return lambda value, path, tell: None
        kind = shape.type_name
        if kind in ("structure", "list", "map"):
            return getattr(self, f"_{kind}")(shape)
        simple = {"string": _string, "char": _string, "boolean": _boolean, "blob": _blob, "timestamp": _timestamp}
        if kind in simple:
            return simple[kind](shape)
        return _number(shape, int if kind in ("integer", "long", "bigint") else (int, float))

    def members(self, shape, only=None):
        """{name on the wire: check} of the members, and the required names; with `only` of these members."""
        chosen = {name: member for name, member in shape.members.items() if only is None or name in only}
        required = [wire_name(name, member) for name, member in chosen.items() if name in shape.required_members]
        return {wire_name(name, member): self.check(member) for name, member in chosen.items()}, required

    def _structure(self, shape, only=None):
        checks, required = self.members(shape, only)
        # The model of DynamoDB does not require that a value has exactly one type, but the service does.
        one = shape.is_tagged_union or shape.name == "AttributeValue"

        def check(value, path, tell):
            if not isinstance(value, dict):
                return tell(path, f"a {type(value).__name__} and not a structure")
            for name, part in value.items():
                inner = checks.get(name)
                if inner is None:
                    tell(f"{path}.{name}", "the model has no such member")
                elif part is None:
                    tell(f"{path}.{name}", "null")
                else:
                    inner(part, f"{path}.{name}", tell)
            for name in required:
                if name not in value:
                    tell(f"{path}.{name}", "missing")
            if one and len(value) != 1:
                tell(path, f"{len(value)} members where one is to be")

        return check

    def structure(self, shape, only):
        """A check of a structure that has only these members."""
        return self._structure(shape, only)

    def _bounds(self, shape):
        """A check of the number of elements. AWS itself returns empty lists and maps against its models:
        `"UnprocessedKeys": {}`."""
        return {name: bound for name, bound in shape.metadata.items() if name == "max" or name == "min" and not self._of_answers}

    def _list(self, shape):
        inner, metadata = self.check(shape.member), self._bounds(shape)

        def check(value, path, tell):
            if not isinstance(value, list):
                return tell(path, f"a {type(value).__name__} and not a list")
            _length(metadata, len(value), path, tell, "elements")
            for part in value:
                inner(part, f"{path}[]", tell)

        return check

    def _map(self, shape):
        keys, values, metadata = self.check(shape.key), self.check(shape.value), self._bounds(shape)

        def check(value, path, tell):
            if not isinstance(value, dict):
                return tell(path, f"a {type(value).__name__} and not a map")
            _length(metadata, len(value), path, tell, "entries")
            for key, part in value.items():
                keys(key, f"{path}{{key}}", tell)
                values(part, f"{path}{{}}", tell)

        return check
