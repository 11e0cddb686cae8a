# SPDX-License-Identifier: Apache-2.0
"""Checks the scripts of the pages: python .ci/checks/scripts.py.

- The scripts of a page share one scope, so no two of them declare a name at the top level.
- Each top-level name is used, and each script belongs to a page.

Statements at the top level begin in column 0 and end with a semicolon or a brace, as in all scripts of reports/html/page.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from wiretale.reports.html import analyze, diff, offline_page

ROOT = Path(__file__).parents[2]
FOLDER = Path("reports/html/page")
PAGES: dict[str, Sequence[str]] = {
    "analyze": analyze.SCRIPTS,
    "diff": diff.SCRIPTS,
    "figures": offline_page.FIGURE_SCRIPTS,
}
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
STRING = re.compile(r"'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"")
REGEX = re.compile(r"/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\[\n])+/[a-z]*")
BEFORE_REGEX = re.compile(r"(?:^|[(,=:\[!&|?{};+~<>%*-]|\b(?:return|of|in|case|typeof))\s*$")
NAME = r"[A-Za-z_$][\w$]*"
USED = re.compile(rf"(?:(?<![\w$.])|(?<=\.\.\.)){NAME}")  # no properties
FUNCTION = re.compile(rf"^(?:async )?(?:function\*? ?|class )({NAME})", re.MULTILINE)
VARIABLES = re.compile(r"^(?:const|let|var) ", re.MULTILINE)
OPENING, CLOSING = "([{", ")]}"


def code_of(text: str, place: int = 0, end: str = "") -> tuple[str, int]:
    """Returns a script without comments, strings and regular expressions, up to the brace that closes `end`, and its place.

    Expressions in templates remain. Line ends and columns of statements at the top level remain, too.
    """
    out, depth = "", 0
    while place < len(text):
        letter = text[place]
        match = COMMENT.match(text, place) or STRING.match(text, place)
        if not match and letter == "/" and BEFORE_REGEX.search(out[-40:]):
            match = REGEX.match(text, place)
        if match:
            out += "\n" * match[0].count("\n") + (
                " 0" if match[0][0] in "'\"/" and not COMMENT.fullmatch(match[0]) else ""
            )
            place = match.end()
        elif letter == "`":
            inside, place = template_code(text, place + 1)
            out += f" 0({inside})"
        else:
            depth += (letter == "{") - (letter == "}")
            if end and depth < 0:
                return out, place
            out += letter
            place += 1
    return out, place


def template_code(text: str, place: int) -> tuple[str, int]:
    """Returns the expressions of a template, separated by commas, and the place behind it."""
    parts = []
    while place < len(text) and text[place] != "`":
        if text.startswith("${", place):
            part, place = code_of(text, place + 2, "}")
            parts.append(part)
        place += 2 if text[place] == "\\" else 1
    return ", ".join(parts).replace("\n", " "), place + 1


def declarators(code: str, place: int) -> Iterator[str]:
    """Yields what each variable of a statement assigns to: a name or a pattern."""
    depth, start, target = 0, place, ""
    for at in range(place, len(code)):
        letter = code[at]
        depth += (letter in OPENING) - (letter in CLOSING)
        if depth == 0 and not target and (letter in ",;" or (letter == "=" and code[at + 1] != ">")):
            target = code[start:at].strip()
        if depth == 0 and letter in ",;":
            yield target
            start, target = at + 1, ""
            if letter == ";":
                return


def names_in(pattern: str) -> list[str]:
    """Returns the names that a pattern declares: `{ a, b: c = 1 }` declares a and c."""
    if pattern[:1] not in ("{", "["):
        return [pattern]
    parts = (part.partition("=")[0].rpartition(":")[2].strip(" .{}[]") for part in pattern.split(","))
    return [part for part in parts if part]


def declared(code: str) -> list[str]:
    """Returns the names that a script declares at the top level."""
    names = FUNCTION.findall(code)
    for match in VARIABLES.finditer(code):
        names += [name for pattern in declarators(code, match.end()) for name in names_in(pattern)]
    return names


def find_breaches() -> list[str]:
    """Returns all breaches, a line each."""
    files = sorted(path.relative_to(ROOT / FOLDER).as_posix() for path in (ROOT / FOLDER).rglob("*.js"))
    codes = {name: code_of((ROOT / FOLDER / name).read_text("utf-8"))[0] for name in files}
    names = {name: declared(code) for name, code in codes.items()}
    used = Counter(word for code in codes.values() for word in USED.findall(code))
    pages = {page: [*offline_page.FIRST_SCRIPTS, *scripts] for page, scripts in PAGES.items()}
    breaches = {f"no page {name}" for name in files if not any(name in scripts for scripts in pages.values())}
    homes = Counter(name for declarations in names.values() for name in declarations)
    for page, scripts in pages.items():
        count = Counter(name for script in scripts for name in names.get(script, []))
        breaches |= {f"twice in {page} {name}" for name, number in count.items() if number > 1}
    for script, declarations in names.items():
        breaches |= {f"unused {script} {name}" for name in declarations if used[name] <= homes[name]}
    return sorted(breaches)


if __name__ == "__main__":
    sys.exit("\n".join(find_breaches()) or None)
