# SPDX-License-Identifier: Apache-2.0
"""The help of every command in one layout: description, usage, arguments, options, examples, exit codes."""

from __future__ import annotations

import argparse
import os
import sys

TYPE_CHECKING = False  # importing typing would take 2 ms
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from wiretale.cli.parser import Parser

HANGING = 6  # indentation of continued lines
TEXT_COLUMN = 24  # first column of the text of an option
COLUMNS = 80  # if there is no terminal
COLUMNS_MOST = 100  # longer lines are hard to read
COLUMNS_BESIDE = 60  # on narrower terminals, the text of an option is below it


def terminal_columns() -> int:
    """Returns the width as shutil does, which must not be imported, because it loads every compression library."""
    try:
        columns = int(os.environ["COLUMNS"])
    except (KeyError, ValueError):
        columns = 0
    if columns > 0:
        return columns
    if sys.__stdout__ is None:
        return COLUMNS
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or COLUMNS
    except (ValueError, OSError):  # closed, or not a terminal
        return COLUMNS


def help_of(parser: Parser) -> str:
    """Returns the help of a command for this terminal."""
    width = min(terminal_columns(), COLUMNS_MOST)
    parts = [fill_paragraphs(parser.description or "", width), usage_lines(parser.usage or parser.prog, width)]
    parts += group_parts(parser, width)
    parts += [fill_paragraphs(parser.notes, width), example_lines(parser.examples, width)]
    parts.append(exit_code_lines(parser.exit_codes, width))
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def wrap(text: str, width: int, first: str = "", following: str = "") -> list[str]:
    """Returns the text in lines; words are not broken."""
    import textwrap

    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=following, break_long_words=False, break_on_hyphens=False
    )


def text_lines(head: str, text: str) -> list[str]:
    """Returns a text beside its head, in lines that fit this terminal."""
    return wrap(text, max(min(terminal_columns(), COLUMNS_MOST), 2 * len(head)), head, " " * len(head))


def fill_paragraphs(text: str, width: int) -> list[str]:
    """Returns the lines of filled paragraphs."""
    lines: list[str] = []
    for paragraph in text.strip().split("\n\n"):
        lines += [""] * bool(lines) + wrap(paragraph, width)
    return lines


def usage_lines(usage: str, width: int) -> list[str]:
    """Returns a line for each form of a command."""
    prefix = "usage: "
    indent = " " * len(prefix)
    lines: list[str] = []
    for line in usage.split("\n"):
        lines += wrap(line.strip(), width, indent if lines else prefix, indent + "  ")
    return lines


def group_parts(parser: Parser, width: int) -> list[list[str]]:
    """Returns a part for each group of arguments: positional ones, named groups, other options."""
    positional, optional, *named = parser._action_groups
    parts = []
    for group, heading in (
        (positional, "arguments"),
        *((group_of_options, group_of_options.title) for group_of_options in named),
        (optional, "options"),
    ):
        lines = [line for action in group._group_actions for line in action_lines(action, width)]
        if lines:
            parts.append([f"{heading}:", *lines])
    for heading, names in parser.sections.items():
        lines = [line for name, text in names.items() for line in entry_lines(name, text, width)]
        parts.insert(1, [f"{heading}:", *lines])
    return parts


def action_lines(action: argparse.Action, width: int) -> Iterator[str]:
    """Yields the lines of an option, or of each command in a list of commands."""
    if isinstance(action, argparse._SubParsersAction):
        for command in action._choices_actions:
            yield from entry_lines(str(command.dest), command.help or "", width)
        return
    values = action.metavar if isinstance(action.metavar, str) else action.dest
    if action.choices and action.metavar is None:
        values = "|".join(map(str, action.choices))
    if not action.option_strings:
        yield from entry_lines(values, action.help or "", width)
        return
    names = ", ".join(action.option_strings)
    yield from entry_lines(names if action.nargs == 0 else f"{names} {values}", action.help or "", width)


def entry_lines(name: str, text: str, width: int) -> list[str]:
    """Returns a name with its text beside it, or below it if the name is too long."""
    beside = width >= COLUMNS_BESIDE
    indent = " " * (TEXT_COLUMN if beside else HANGING)
    first = f"  {name}"
    if not text:
        return [first]
    if beside and len(first) <= TEXT_COLUMN - 2:
        return wrap(text, width, first.ljust(TEXT_COLUMN), indent)
    return [first, *wrap(text, width, indent, indent)]


def example_lines(examples: str, width: int) -> list[str]:
    """Returns commands; each comment is on its own lines above its command."""
    lines: list[str] = []
    for line in examples.strip().splitlines():
        lines += wrap(line[2:], width, "  # ", "  # ") if line.startswith("# ") else fit_command(line, width - 2)
    return ["examples:", *lines] if lines else []


def fit_command(command: str, width: int) -> list[str]:
    """Returns an indented command in as many lines as it needs."""
    from wiretale.reports.terminal.command import command_lines

    first, *further = command_lines(command, width, HANGING - 2)
    return [f"  {line}" for line in (first, *further)]


def exit_code_lines(codes: Mapping[int, str], width: int) -> list[str]:
    """Returns a line for each exit code."""
    digits = max((len(str(code)) for code in codes), default=0)
    indent = " " * (digits + 4)
    lines = [
        line for code, text in sorted(codes.items()) for line in wrap(text, width, f"  {code:<{digits}}  ", indent)
    ]
    return ["exit codes:", *lines] if lines else []
