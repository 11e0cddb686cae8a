# SPDX-License-Identifier: Apache-2.0
"""A command in as many lines as it needs, which a shell takes as they stand."""

from __future__ import annotations

import re

TYPE_CHECKING = False  # the first help needs neither typing nor Rich
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, ConsoleOptions

WORD = r"(?:-[\w-]+ (?![-|]))?(?:[^\s'\"]|'[^']*'|\"[^\"]*\")+"  # an option must stay with its value
CONTINUED = " \\"


def command_lines(command: str, width: int, hanging: int = 4) -> list[str]:
    """Returns lines that end in a backslash but for the last; no line ends within quotes. Those after the first are indented."""
    lines = [""]
    for word in re.findall(WORD, command):
        longer = f"{lines[-1]} {word}" if lines[-1].strip() else lines[-1] + word
        if lines[-1].strip() and len(longer) + len(CONTINUED) > width:
            longer = " " * hanging + word
            lines.append("")
        lines[-1] = longer
    return [line + CONTINUED for line in lines[:-1]] + lines[-1:]


class Command:
    """A command as a part of a screen."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __bool__(self) -> bool:
        return bool(self.command)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[object]:
        from rich.text import Text

        from wiretale.analyzer.printable import printable

        width, shown = options.max_width, printable(self.command)
        lines = [shown] if len(shown) <= width else command_lines(shown, width)
        yield Text("\n".join(lines), overflow="fold")
