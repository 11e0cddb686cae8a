# SPDX-License-Identifier: Apache-2.0
"""The manual, made when the package is built: a man page for each command, and completions for shells.

`python -m wiretale.cli.manual DIR` writes them into DIR/share; `DIR capture` only completions of wiretale-capture, whose Debian
package has a man page of its own. The help of a command is its page: parsers of Python and declarations of C programs
(programs/) give it in one layout, so each option is declared in one place, and no program has to run.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from wiretale.cli.commands import COMMANDS, MORE, PATHS, PROGRAM_COMMANDS, path_of
from wiretale.cli.parser import Parser, add_command
from wiretale.cli.programs.program_help import help_of_program
from wiretale.traffic.program import PROGRAM_OF_COMMAND
from wiretale.version import __version__

ENTRY = re.compile(r"  (\S.*?)(?: {2,}(\S.*))?$")
HEADING = re.compile(r"([a-z][^\n]*):$")
LITERAL = ("examples",)
NOTES = "notes"  # text of a help without a heading


class Entry(NamedTuple):
    """An option, an argument, a command or an exit code, with its text."""

    names: str
    text: str


class Section(NamedTuple):
    """A part of a help: a heading with entries, or with lines of commands; or text without a heading."""

    heading: str
    entries: list[Entry]
    lines: list[str]


class Page(NamedTuple):
    """The help of a command by its parts."""

    #: `store add`; empty for the program
    path: str
    description: str
    usage: list[str]
    sections: list[Section]


def entries_of(lines: list[str]) -> Iterator[Entry]:
    """Yields the entries of a section: a name with two blanks before it, its text beside it or below."""
    names, words = "", list[str]()
    for line in lines:
        matched = None if line.startswith("   ") else ENTRY.match(line)
        if matched:
            if names:
                yield Entry(names, " ".join(words))
            names, words = matched[1], [matched[2]] if matched[2] else []
        else:
            words.append(line.strip())
    if names or words:
        yield Entry(names, " ".join(words))


def page_of(path: str, help_text: str) -> Page:
    """Returns the parts of a help."""
    head, _, tail = help_text.partition("usage: ")
    usage, *parts = tail.rstrip("\n").split("\n\n")
    sections: list[Section] = []
    for part in parts:
        first, *lines = part.split("\n")
        matched = HEADING.match(first)
        if not matched:
            is_first = not sections or sections[-1].heading not in (NOTES, "")
            sections.append(Section(NOTES if is_first else "", [], part.split("\n")))
        elif matched[1] in LITERAL:
            sections.append(Section(matched[1], [], [line[2:] for line in lines]))
        else:
            sections.append(Section(matched[1], list(entries_of(lines)), []))
    return Page(path, " ".join(head.split()), [line.strip() for line in usage.split("\n")], sections)


def parsers_of(parser: Parser, path: str) -> Iterator[tuple[str, Parser]]:
    """Yields a parser and those of its actions, each with its path."""
    yield path, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                if name not in PROGRAM_COMMANDS and inner.description:
                    yield from parsers_of(inner, f"{path} {name}".strip())


def help_texts() -> Iterator[tuple[str, str]]:
    """Yields the path and the help of each command, for 80 columns."""
    from wiretale.cli import make_parser

    os.environ["COLUMNS"] = "80"
    yield "", make_parser().format_help()
    for name in (*COMMANDS, *MORE, *PATHS):
        if name in PROGRAM_COMMANDS:
            yield path_of(name), help_of_program(name)
        else:
            parser = add_command(Parser(prog="wiretale").add_subparsers(), name)
            yield from ((path, inner.format_help()) for path, inner in parsers_of(parser, path_of(name)))


def pages() -> list[Page]:
    """Returns the page of each command."""
    return [page_of(path, text) for path, text in help_texts()]


def escaped(text: str) -> str:
    """Returns a text for troff: a hyphen can be copied, and no line is a request."""
    text = (
        text.replace("\\", "\\e").replace("-", "\\-").replace("~", "\\(ti").replace("^", "\\(ha").replace("`", "\\(ga")
    )
    return f"\\&{text}" if text.startswith((".", "'")) else text


def section_lines(section: Section) -> Iterator[str]:
    """Yields a section in troff."""
    if section.heading:
        yield f'.SH "{escaped(section.heading.upper())}"'
    if section.entries:
        for entry in section.entries:
            yield from (".TP", f"\\fB{escaped(entry.names)}\\fR", escaped(entry.text) or "\\&")
    elif section.heading in LITERAL:
        yield from (".nf", *(escaped(line) if line else "\\&" for line in section.lines), ".fi")
    else:
        yield from (".PP", escaped(" ".join(line.strip() for line in section.lines)))


def troff(page: Page) -> str:
    """Returns a page for man(1)."""
    name = "-".join(["wiretale", *page.path.split()])
    brief = page.description.partition(". ")[0].removesuffix(".")
    lines = [
        f'.TH "{escaped(name.upper())}" 1 "" "wiretale {escaped(__version__)}" "User Commands"',
        *(".nh", ".ad l"),  # options are not hyphenated
        ".SH NAME",
        f"{escaped(name)} \\- {escaped(brief[:1].lower() + brief[1:])}",
        ".SH SYNOPSIS",
        ".nf",
        *(f"\\fB{escaped(line)}\\fR" for line in page.usage),
        ".fi",
        ".SH DESCRIPTION",
        escaped(page.description),
        *(line for section in page.sections for line in section_lines(section)),
    ]
    if page.path:
        lines += [".SH SEE ALSO", "\\fBwiretale\\fR(1)"]
    return "\n".join(lines) + "\n"


def write(place: Path) -> list[Path]:
    """Writes man pages and completions below share/ in a folder; returns their files."""
    from wiretale.cli.completion import scripts

    texts = {f"man/man1/{'-'.join(['wiretale', *page.path.split()])}.1": troff(page) for page in pages()}
    return write_texts(texts | scripts(pages()), place)


def write_program(name: str, place: Path) -> list[Path]:
    """Writes the completions of a C program, named by its command, likewise."""
    from wiretale.cli.completion import program_scripts

    return write_texts(program_scripts(page_of(name, help_of_program(name)), PROGRAM_OF_COMMAND[name][0]), place)


def write_texts(texts: dict[str, str], place: Path) -> list[Path]:
    """Writes files by their names below share/."""
    written = []
    for name, text in texts.items():
        file = place / "share" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        written.append(file)
    return written


if __name__ == "__main__":
    folder, *programs = sys.argv[1:]
    for written_file in write_program(programs[0], Path(folder)) if programs else write(Path(folder)):
        print(written_file)
