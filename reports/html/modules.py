# SPDX-License-Identifier: Apache-2.0
"""The script of a page, joined from the ES modules of page/: they stay separate for tsc and node, and the page stays one file.

A module comes after those that it imports. All share one scope, so a top-level name is declared once on a page, and an import
does not rename: `import { whole } from "./units.js";`, on one line at the top. `export` stands before a declaration.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple

PAGE = files("wiretale.reports.html").joinpath("page")
IMPORT = re.compile(r'^import \{ ([\w$, ]+) \} from "(\.\.?/[\w./-]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:const|let|class|function|async function)\b)", re.MULTILINE)
LEFT = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)
ROUTINE = re.compile(r"^(export )?(?:async )?(?:function\*? ?|class )([\w$]+)", re.MULTILINE)
VARIABLES = re.compile(r"^(export )?(?:const|let) (.*)", re.MULTILINE)
TYPES = re.compile(r"^[ \t]*/\*\*(?:[^*]|\*(?!/))*\*/\n|^// @ts-check\n", re.MULTILINE)  # for tsc alone
OPENING, CLOSING = "([{", ")]}"


class ModuleError(ValueError):
    """Modules that cannot be joined."""


class Module(NamedTuple):
    """The code of a module without imports, exports and types."""

    name: str
    code: str
    imports: dict[str, list[str]]  # names by module
    declared: list[str]
    exported: set[str]


def variables(text: str) -> Iterator[str]:
    """Yields the names that the first line of a statement declares: a and b of `a = f(1, 2), b = {`."""
    depth, start = 0, 0
    for place, letter in enumerate(f"{text},"):
        depth += (letter in OPENING) - (letter in CLOSING)
        if (letter == "," and depth == 0) or place == len(text):
            if name := re.match(r"\s*([\w$]+)\s*[=;]", text[start:place]):
                yield name[1]
            start = place + 1


def parse(name: str, text: str) -> Module:
    """Returns a module. ModuleError for an import or an export of another form."""
    imports = {
        posixpath.normpath(posixpath.join(posixpath.dirname(name), match[2])): match[1].split(", ")
        for match in IMPORT.finditer(text)
    }
    declared, exported = [], set()
    for match in ROUTINE.finditer(text):
        declared.append(match[2])
        exported |= {match[2]} if match[1] else set()
    for match in VARIABLES.finditer(text):
        names = list(variables(match[2]))
        declared += names
        exported |= set(names) if match[1] else set()
    code = TYPES.sub("", EXPORT.sub("", IMPORT.sub("", text)))
    if left := LEFT.search(code):
        raise ModuleError(f"{name}: not one of the forms of modules.py: {left[0]}")
    return Module(name, code, imports, declared, exported)


def ordered(entry: str, read: Callable[[str], str]) -> list[Module]:
    """Returns a module and all that it needs, each after those that it imports. ModuleError for a circle."""
    done: dict[str, Module] = {}

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            raise ModuleError("modules import each other in a circle: " + ", ".join((*path[path.index(name) :], name)))
        if name in done:
            return
        module = parse(name, read(name))
        for other, names in module.imports.items():
            visit(other, (*path, name))
            if missing := set(names) - done[other].exported:
                raise ModuleError(f"{name} imports {', '.join(sorted(missing))}, which {other} does not export")
        done[name] = module

    visit(entry, ())
    return list(done.values())


def join(entry: str, read: Callable[[str], str]) -> str:
    """Returns the script of a page; `read` returns the text of a module by its path. ModuleError if two declare a name."""
    modules, homes = ordered(entry, read), dict[str, str]()
    for module in modules:
        for name in module.declared:
            if name in homes:
                raise ModuleError(f"{homes[name]} and {module.name} declare {name}")
            homes[name] = module.name
    return '"use strict";\n' + "\n".join(module.code for module in modules)


@cache
def script(entry: str) -> str:
    """Returns the script of the page whose entry module this is."""
    return join(entry, lambda name: PAGE.joinpath(name).read_text("utf-8"))
