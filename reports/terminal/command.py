# SPDX-License-Identifier: Apache-2.0
"""A command in as many lines as it needs, which a shell takes as they stand."""

from __future__ import annotations

import re

TYPE_CHECKING = False  # the first help needs neither typing nor Rich
if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

WORD = r"(?:\| )?(?:-[\w-]+ (?!\||-\S))?(?:[^\s'\"]|'[^']*'|\"[^\"]*\")+"  # an option must stay with its value
CONTINUED = " \\"


def command_lines(command: str, width: int, hanging: int = 4) -> list[str]:
    """Returns lines that end in a backslash but for the last; no line ends within quotes. Those after the first are indented."""
    pieces = re.findall(WORD, command)
    lines = pieces[:1]
    for piece in pieces[1:]:
        longer = f"{lines[-1]} {piece}"
        if len(longer) + len(CONTINUED) <= width:
            lines[-1] = longer
        else:
            lines.append(" " * hanging + piece)
    return [line + CONTINUED for line in lines[:-1]] + lines[-1:]


class Command:
    """A command as a part of a screen."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __bool__(self) -> bool:
        return bool(self.command)

    def lines(self, width: int) -> list[str]:
        """Returns its lines; one is wider if a word alone is."""
        from wiretale.analyzer.printable import printable

        command = printable(self.command)
        return [command] if len(command) <= width else command_lines(command, width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        yield Text("\n".join(self.lines(options.max_width)), overflow="fold")
