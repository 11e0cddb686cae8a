# SPDX-License-Identifier: Apache-2.0
"""Help as wide as the terminal: examples stay lines of their own, sentences are filled."""

from __future__ import annotations

import argparse
import os
import sys

EXAMPLE = r"^(  \S.*?)(?:\s{2,}(\S.*))?$"
WORD = r"(?:[^\s']|'[^']*')+"
HANGING = 6  # columns of what a line has no room for
COLUMNS = 80  # of what is no terminal


def terminal_columns() -> int:
    """As shutil says it, which imports every library that compresses: and a formatter is made for each option."""
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
    except (ValueError, OSError):  # closed, or no terminal
        return COLUMNS


class HelpText(argparse.RawDescriptionHelpFormatter):
    """For descriptions that begin with examples."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=terminal_columns() - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        parts = [fill_paragraph(part, width) for part in text.strip("\n").split("\n\n")]
        return "\n\n".join(parts)


def fill_paragraph(text: str, width: int) -> str:
    """A paragraph: lines that are indented stay lines, what follows each other is filled."""
    import textwrap

    shown: list[str] = []
    sentences: list[str] = []
    for line in [*text.split("\n"), ""]:
        if line and not line.startswith(" "):
            sentences.append(line)
            continue
        if sentences:
            shown += textwrap.wrap(" ".join(sentences), width, break_long_words=False, break_on_hyphens=False)
            sentences = []
        if line:
            shown += fit_example(line, width)
    return "\n".join(shown)


def fit_example(line: str, width: int) -> list[str]:
    """A line of an example; what it does goes below it where there is no room beside it."""
    import re
    import textwrap

    found = re.match(EXAMPLE, line)
    if len(line) <= width or not found:
        return [line]
    command, about = found.groups()
    hanging = " " * HANGING
    told = textwrap.wrap(about or "", width, initial_indent=hanging, subsequent_indent=hanging, break_long_words=False)
    return [*fit_command(command.strip(), width - 2), *told]


def fit_command(command: str, width: int) -> list[str]:
    """A command over as many lines as it needs, as a shell takes it: none ends within quotes."""
    import re

    lines = [""]
    for word in re.findall(WORD, command):
        if len(lines[-1]) + 1 + len(word) > width - HANGING and lines[-1]:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    first, *rest = lines
    shown = [f"  {first}", *(" " * HANGING + line for line in rest)]
    return [f"{line} \\" for line in shown[:-1]] + shown[-1:]
