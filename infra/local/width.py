#!/usr/bin/env python3
"""`make lint`: the lines of pages and comments are at most 132 characters wide, as rustfmt has it for code.

    python3 infra/local/width.py          name every wider line of prose: Markdown, comments of Rust, comments and docstrings of Python
    python3 infra/local/width.py --wrap   wrap them

Tables, blocks of code and headings may be wider, and so may a line that nothing can break: links and code between backticks stay
whole. Wrapping begins at the first line that is too wide and ends with its paragraph; no other line changes. """

import argparse
import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 132

# What a line must not be broken in: code between backticks, links, and words.
PART = r"`+[^`]+`+|!?\[(?:`[^`]*`|[^\[\]`])*\](?:\([^()\s]*\)|\[[^\]]*\])?|[^\s`]|`"
WORD = re.compile(f"(?:{PART})+")
# At the beginning of a line, Markdown takes these for a list, a heading, a quotation, a table or an underline.
SPECIAL = re.compile(r"(?:[-+*>|]|\d+[.)]|#+|=+)$|\|")
ITEM = re.compile(r"(?P<indent>\s*)(?P<mark>[-+*]|\d+[.)])\s+(?=\S)")
FENCE = re.compile(r"\s*(?:```|~~~)")
# A table, a heading, HTML, a quotation, a definition of a link, the end of a docstring: each stays as it is. An anchor may begin a
# paragraph.
LITERAL = re.compile(r'\s*(?:\||#+ |<(?!a id=)|>|\[[^\]]+\]: |"""$)')
COMMENT = re.compile(r"\s*//[/!]?(?![/!])")


def filled(paragraph, room):
    """The lines of a paragraph, broken again from the first one that is too wide."""
    first = next((number for number, line in enumerate(paragraph) if len(line) > room), None)
    if first is None:
        return paragraph
    mark = ITEM.match(paragraph[first]) if first == 0 else None
    lead = mark[0] if mark else re.match(r"\s*", paragraph[first])[0]
    indent = re.match(r"\s*", paragraph[1])[0] if len(paragraph) > 1 else " " * len(lead)
    words = []
    for word in WORD.findall(" ".join([paragraph[first][len(lead):], *(line.strip() for line in paragraph[first + 1:])])):
        words[-1:] = [f"{words[-1]} {word}"] if words and SPECIAL.match(word) else [*words[-1:], word]
    lines = [lead + words[0]]
    for word in words[1:]:
        if len(lines[-1]) + 1 + len(word) <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(indent + word)
    return paragraph[:first] + lines


def paragraphs(lines):
    """The paragraphs and items of lists as (begin, end); the rest of the lines is no prose."""
    begin, fenced, text_at = None, False, 0
    for number, line in enumerate([*lines, ""]):
        indent = len(line) - len(line.lstrip())
        item = ITEM.match(line)
        ends = not line.strip() or FENCE.match(line) or LITERAL.match(line) or item
        if begin is not None and ends:
            yield begin, number
            begin = None
        if FENCE.match(line):
            fenced = not fenced
        elif line.strip() and not fenced and not LITERAL.match(line) and begin is None and indent < text_at + 4:
            begin = number
            text_at = item.end() if item else min(text_at, indent)
        if fenced:
            begin = None


def of_rust(text):
    """The comments as (number of the first line, prefix of its lines, lines without the prefix)."""
    block = None
    for number, line in enumerate([*text.split("\n"), ""]):
        prefix = COMMENT.match(line)
        if block and (not prefix or prefix[0] != block[1]):
            yield block
            block = None
        if prefix:
            block = block or (number, prefix[0], [])
            block[2].append(line[prefix.end():])


def of_python(text):
    previous, block, lines = tokenize.NEWLINE, None, text.split("\n")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        number, column = token.start
        own = not lines[number - 1][:column].strip()
        if token.type == tokenize.COMMENT and own:
            prefix = token.line[:column] + "#"
            if not block or block[1] != prefix or block[0] + len(block[2]) != number - 1:
                if block:
                    yield block
                block = (number - 1, prefix, [])
            block[2].append(token.string[1:])
        elif token.type == tokenize.STRING and own and previous in (tokenize.NEWLINE, tokenize.INDENT) and '"""' in token.string:
            yield number - 1, token.line[:column], [line[column:] for line in lines[number - 1:token.end[0]]]
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            previous = tokenize.NEWLINE if token.type in (tokenize.DEDENT, tokenize.ENCODING) else token.type
    if block:
        yield block


def of_markdown(text):
    yield 0, "", text.split("\n")


KINDS = {".md": of_markdown, ".rs": of_rust, ".py": of_python}


def wrapped(path, text):
    """(the text with its prose wrapped, the numbers of the lines that were too wide)"""
    lines, wide = text.split("\n"), []
    for start, prefix, block in reversed(list(KINDS[path.suffix](text))):
        room = WIDTH - len(prefix)
        for begin, end in reversed(list(paragraphs(block))):
            new = filled(block[begin:end], room)
            if new != block[begin:end]:
                wide += [start + begin + offset + 1 for offset, line in enumerate(block[begin:end]) if len(line) > room]
                lines[start + begin:start + end] = [prefix + line for line in new]
    return "\n".join(lines), sorted(wide)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--wrap", action="store_true", help="wrap what is too wide")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files and folders (all)")
    arguments = parser.parse_args()
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *arguments.paths]
    found = 0
    for name in subprocess.run(listed, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.split("\0"):
        path = ROOT / name
        if path.suffix not in KINDS or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8")
        new, wide = wrapped(path, text)
        if arguments.wrap and new != text:
            path.write_text(new, encoding="utf-8")
        elif not arguments.wrap:
            found += len(wide)
            for number in wide:
                print(f"{name}:{number}: wider than {WIDTH}")
    if found:
        sys.exit(f"error: wrap {found} lines: python3 infra/local/width.py --wrap")


if __name__ == "__main__":
    main()
