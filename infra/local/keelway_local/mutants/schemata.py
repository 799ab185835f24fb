"""Rewrites a Rust file so that it holds all its mutants, each behind `crate::mutant::on(N)`.

The mutants are those of cargo-mutants (https://mutants.rs/mutants.html), except those that delete a field of a struct expression.
No text appears twice in the result, but the operands of compound assignments, and functions with a plant: the file stays about as
large as it was.
"""

import re
from dataclasses import dataclass, field

import tree_sitter_rust
from tree_sitter import Language, Parser

from .values import replacements

OPERATORS = {
    "==": ["!="], "!=": ["=="], "&&": ["||"], "||": ["&&"],
    "<": ["==", ">", "<="], ">": ["==", "<", ">="], "<=": [">"], ">=": ["<"],
    "+": ["-", "*"], "-": ["+", "/"], "*": ["+", "/"], "/": ["%", "*"], "%": ["/", "+"], "<<": [">>"], ">>": ["<<"],
    "&": ["|", "^"], "|": ["&", "^"], "^": ["|", "&"],
    "+=": ["-=", "*="], "-=": ["+=", "/="], "*=": ["+=", "/="], "/=": ["%=", "*="], "%=": ["/=", "+="],
    "<<=": [">>="], ">>=": ["<<="], "&=": ["|="], "|=": ["&="], "^=": ["|=", "&="],
}
COMPARISONS = {"<": "less", ">": "greater", "<=": "at_most", ">=": "at_least"}
# Nodes that are evaluated at compile time, or are not expressions.
LEFT_ALONE = {"const_item", "static_item", "attribute_item", "inner_attribute_item", "macro_invocation", "macro_definition",
              "const_block", "array_type", "type_arguments", "enum_variant_list", "struct_item", "type_item", "use_declaration",
              "line_comment", "block_comment"}
ON = "crate::mutant::on"
PARSER = Parser(Language(tree_sitter_rust.language()))


@dataclass
class Mutant:
    """One change of one place."""
    file: str
    function: str
    text: str
    replacement: str
    index: int = 0
    number: int = 0

    @property
    def key(self):
        return (self.file, self.function, self.text, self.replacement, self.index)

    def __str__(self):
        again = f" [{self.index}]" if self.index else ""
        return f"{self.file}: {self.function}: {self.text}{again} -> {self.replacement}"


@dataclass
class Plant:
    """A planted mistake in one function."""
    engine: str
    name: str
    file: str
    change: tuple
    wrong: str
    rule: str
    number: int = 0

    def __str__(self):
        return f"plant {self.engine} {self.name}: {self.wrong}"


class Span:
    """Text of mutants: if it does not compile, they do not."""

    def __init__(self, numbers, parts):
        self.numbers, self.parts = numbers, parts


@dataclass
class File:
    """A file with its mutants."""
    name: str
    source: bytes
    # Keys of mutants that do not compile.
    without: set
    plants: list = field(default_factory=list)
    first: int = 1
    # In other files, only plants are written.
    mutated: bool = True
    on: str = ON
    mutants: list = field(default_factory=list)
    _seen: dict = field(default_factory=dict)
    _names: list = field(default_factory=list)
    _functions: list = field(default_factory=list)

    def rewrite(self):
        """The text of the file, and [(begin, end, numbers)] of the texts of mutants."""
        tree = PARSER.parse(self.source)
        flat, spans = [], []
        self._flatten(self._node(tree.root_node), flat, spans, 0)
        return b"".join(flat), spans

    def _flatten(self, parts, flat, spans, at):
        for part in parts:
            if isinstance(part, Span):
                end = self._flatten(part.parts, flat, spans, at)
                spans.append((at, end, part.numbers))
                at = end
            else:
                data = part if isinstance(part, bytes) else part.encode()
                flat.append(data)
                at += len(data)
        return at

    def _text(self, node):
        return self.source[node.start_byte:node.end_byte]

    def _new(self, text, replacement):
        """The number of a mutant; None if it does not compile."""
        if not self.mutated:
            return None
        function, text = "::".join(self._names) or "(file)", " ".join(text.split())
        same = (function, text, replacement)
        index = self._seen.get(same, 0)
        self._seen[same] = index + 1
        mutant = Mutant(self.name, function, text, replacement, index, self.first + len(self.mutants))
        self.mutants.append(mutant)
        return None if mutant.key in self.without else mutant.number

    def _children(self, node, begin=None, end=None):
        """The text from `begin` to `end`, with its nodes rewritten."""
        parts = []
        at, end = node.start_byte if begin is None else begin, node.end_byte if end is None else end
        tests = False
        for child in node.children:
            if child.start_byte < at or child.end_byte > end:
                continue
            parts.append(self.source[at:child.start_byte])
            if child.type == "attribute_item":
                tests = tests or bool(re.match(rb"#\[(cfg\(test\)|test\b)", self._text(child)))
                parts.append(self._text(child))
            elif tests and "comment" not in child.type:
                tests = False
                parts.append(self._text(child))
            else:
                parts += self._node(child)
            at = child.end_byte
        return [*parts, self.source[at:end]]

    def _node(self, node):
        if node.type in LEFT_ALONE or not node.child_count:
            return [self._text(node)]
        handler = getattr(self, f"_{node.type}", None)
        return handler(node) if handler else self._children(node)

    def _named(self, node, name):
        self._names.append(name)
        parts = self._children(node)
        self._names.pop()
        return parts

    def _impl_item(self, node):
        name = self._text(node.child_by_field_name("type")).decode().split("<")[0]
        trait = node.child_by_field_name("trait")
        return self._named(node, f"<{name} as {self._text(trait).decode()}>" if trait else name)

    def _trait_item(self, node):
        return self._named(node, self._text(node.child_by_field_name("name")).decode())

    def _array_expression(self, node):
        length = node.child_by_field_name("length")
        if not length:
            return self._children(node)
        return [*self._children(node, end=length.start_byte), self.source[length.start_byte:node.end_byte]]

    def _function_item(self, node):
        body, returns = node.child_by_field_name("body"), node.child_by_field_name("return_type")
        if any(child.type == "function_modifiers" and b"const" in self._text(child).split() for child in node.children):
            return [self._text(node)]
        self._names.append(self._text(node.child_by_field_name("name")).decode())
        ty = self._text(returns).decode() if returns else ""
        inner = self.source[body.start_byte + 1:body.end_byte - 1]
        parts = [self.source[node.start_byte:body.start_byte + 1]]
        for plant in self.plants:
            if node.start_byte <= plant.place < node.end_byte and not self._has_nested(body, plant.place):
                planted = [f" if {self.on}({plant.number}) {{ return {{", self._planted(plant, body), "}; } "]
                parts.append(Span([plant.number], planted))
        text = " ".join(inner.decode().split())
        default = self._names[-1] == "default" and len(self._names) > 1 and "as Default" in self._names[-2]
        for value in replacements(ty) if text and not default else []:
            if text.rstrip(";") in (value, re.sub(r"^Default::", "Self::", value)):
                continue
            number = self._new(f"fn -> {ty}" if ty else "fn", value)
            if number:
                parts.append(Span([number], [f" if {ON}({number}) {{ return {value}; }}"]))
        rest = self._children(body, body.start_byte + 1, body.end_byte - 1)
        if "impl Iterator" in ty and text and not re.search(r"\?|\breturn\b", text):
            number = self._new(f"fn -> {ty}", "empty()")
            if number:
                rest = [Span([number], [" ({", *rest, f"}}).filter(|_| !{ON}({number}))"])]
        self._names.pop()
        return [*parts, *rest, "}"]

    @staticmethod
    def _has_nested(body, place):
        """Whether a function inside of this one has the place."""
        stack = list(body.children)
        while stack:
            node = stack.pop()
            if node.start_byte <= place < node.end_byte:
                if node.type == "function_item":
                    return True
                stack += node.children
        return False

    def _planted(self, plant, body):
        text = self._text(body)[1:-1].decode()
        find, replace = plant.change
        if find not in text:
            raise ValueError(f"{plant.engine} {plant.name}: `find` must be in the body of a function of {plant.file}")
        return text.replace(find, replace)

    def _binary_expression(self, node):
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = self._text(node.child_by_field_name("operator")).decode()
        if b"let " in self._text(node) and self._lets(node):
            return self._children(node)
        text = self._text(node).decode()
        numbers = [self._new(text, other) for other in OPERATORS.get(operator, [])]
        a, b = ["(", *self._node(left), ")"], ["(", *self._node(right), ")"]
        if not any(numbers):
            return self._children(node) if not numbers else [*a, f" {operator} ", *b]
        first = next(filter(None, numbers))
        if operator in ("==", "!="):
            parts = ["((", *a, f" {operator} ", *b, f") ^ {ON}({first}))"]
        elif operator in ("&&", "||"):
            stop = "!=" if operator == "&&" else "=="
            parts = ["{ let __l: bool = ", *a, f"; if __l {stop} {ON}({first}) {{ ", *b, " } else { __l } }"]
            parts = ["(", *parts, ")"]
        elif operator in COMPARISONS:
            parts = [f"crate::mutant::{COMPARISONS[operator]}({first}, &", *a, ", &", *b, ")"]
        else:
            parts = ["(match (", *a, ", ", *b, ") { (__l, __r) => "]
            for number, other in zip(numbers, OPERATORS[operator]):
                if number:
                    parts.append(Span([number], [f"if {ON}({number}) {{ __l {other} __r }} else "]))
            parts.append(f"{{ __l {operator} __r }} }})")
        return [Span([number for number in numbers if number], parts)]

    @staticmethod
    def _lets(node):
        return any(child.type in ("let_condition", "let_chain") for child in node.children)

    def _compound_assignment_expr(self, node):
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = self._text(node.child_by_field_name("operator")).decode()
        text = self._text(node).decode()
        numbers = [self._new(text, other) for other in OPERATORS.get(operator, [])]
        a, b = self._node(left), self._node(right)
        parts = ["{ "]
        for number, other in zip(numbers, OPERATORS.get(operator, [])):
            if number:
                # The operands are copied without mutants, so that no mutant is in two places.
                changed = [self._text(left), f" {other} ", self._text(right)]
                parts.append(Span([number], [f"if {ON}({number}) {{ ", *changed, "; } else "]))
        return [*parts, "{ ", *a, f" {operator} ", *b, "; } }"]

    def _unary_expression(self, node):
        operator, operand = self._text(node.children[0]).decode(), node.children[-1]
        if operator not in "!-":
            return self._children(node)
        number = self._new(self._text(node).decode(), f"without {operator}")
        inner = self._node(operand)
        if not number:
            return [operator, *inner]
        if operator == "!":
            return [Span([number], ["((!", *inner, f") ^ {ON}({number}))"])]
        return [Span([number], ["(match (", *inner, f") {{ __v => if {ON}({number}) {{ __v }} else {{ -__v }} }})"])]

    def _match_block(self, node):
        arms = [child for child in node.children if child.type == "match_arm"]
        wild = any(self._text(arm.child_by_field_name("pattern")) == b"_" for arm in arms)
        parts, at = [], node.start_byte
        for child in node.children:
            parts.append(self.source[at:child.start_byte])
            parts += self._arm(child, wild) if child.type == "match_arm" else [self._text(child)]
            at = child.end_byte
        return parts

    def _arm(self, arm, wild):
        pattern = arm.child_by_field_name("pattern")
        guard = pattern.child_by_field_name("condition")
        text = self._text(pattern).decode()
        mutants, guarded = [], None
        if guard and guard.type not in ("let_condition", "let_chain") and not self._lets(guard):
            condition = self._text(guard).decode()
            yes, no = self._new(f"if {condition}", "true"), self._new(f"if {condition}", "false")
            guarded = ["(", *self._node(guard), ")"]
            if yes:
                guarded = [Span([yes], [f"({ON}({yes}) || ", *guarded, ")"])]
            if no:
                guarded = [Span([no], [f"(!{ON}({no}) && ", *guarded, ")"])]
        elif guard:
            mutants = self._children(pattern, guard.start_byte, pattern.end_byte)
        if wild and text != "_":
            number = self._new(f"match arm {text}", "no arm")
            if number and guarded:
                guarded = [Span([number], [f"!{ON}({number}) && ", *guarded])]
            elif number and not guard:
                mutants = [Span([number], [f" if !{ON}({number})"])]
        end = guard.start_byte if guard else pattern.end_byte
        head = [self.source[arm.start_byte:end], *(guarded or []), *mutants]
        return [*head, *self._children(arm, pattern.end_byte, arm.end_byte)]


def place(plants, source):
    """Finds the place of each plant in a file. Every `find` must occur once."""
    for plant in plants:
        find = plant.change[0].encode()
        if source.count(find) != 1:
            raise ValueError(f"{plant.engine} {plant.name}: `{plant.change[0]}` is {source.count(find)} times in {plant.file}")
        plant.place = source.index(find)
