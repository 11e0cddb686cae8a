# SPDX-License-Identifier: Apache-2.0
"""Help of every program: one layout, any width; examples are commands that a shell takes."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest

from wiretale.analyzer.diff.measures import MEASURES
from wiretale.cli.commands import KNOWN, PROGRAM_COMMANDS, path_of
from wiretale.cli.help_text import fit_command

PYTHON = [
    "",
    *(path_of(name) for name in KNOWN if name not in (*PROGRAM_COMMANDS, "explain")),
    *(f"experiment {action}" for action in ("run", "report", "list")),
    *(f"lab {action}" for action in ("up", "run", "shell", "down", "list", "check")),
]
PROGRAMS = [*PYTHON, *map(path_of, PROGRAM_COMMANDS)]
HEADING = re.compile(r"[a-z][^:]*:(?: |$)")


def help_lines(wiretale_run: Any, words: str, width: int = 80) -> list[str]:
    done = wiretale_run(*words.split(), "--help", env={"COLUMNS": str(width)})
    assert done.returncode == 0 and not done.stderr
    lines: list[str] = done.stdout.split("\n")
    assert lines.pop() == ""
    return lines


def help_parts(lines: list[str]) -> list[list[str]]:
    """Parts between blank lines; every part has a line."""
    parts = [part.split("\n") for part in "\n".join(lines).split("\n\n")]
    assert all(part[0] for part in parts)
    return parts


def joined_commands(part: list[str]) -> list[str]:
    """The commands of the examples, without the comments above them."""
    text = "\n".join(line[2:] for line in part[1:] if not line.startswith("  # "))
    return text.replace("\\\n", "").split("\n")


@pytest.mark.parametrize("words", PROGRAMS)
def test_help_has_one_layout(wiretale_run: Any, words: str) -> None:
    lines = help_lines(wiretale_run, words)
    assert [line for line in lines if len(line) > 80 or line != line.rstrip()] == []
    description, usage, *parts = help_parts(lines)
    assert description[0][0].isupper() and not description[0].startswith(" ") and description[-1].endswith(".")
    assert usage[0].startswith(f"usage: wiretale {words}".rstrip())
    assert all(line.startswith(" " * 7) for line in usage[1:])
    headings = [match[0].rstrip(": ") for part in parts if (match := HEADING.match(part[0]))]
    assert headings[-2:] == ["examples", "exit codes"] and len(headings) > 2
    assert "arguments" not in headings[1:], headings


@pytest.mark.parametrize("words", PROGRAMS)
def test_the_text_of_an_entry_begins_at_one_column(wiretale_run: Any, words: str) -> None:
    parts = help_parts(help_lines(wiretale_run, words))[2:-2]
    entries = [line for part in parts if HEADING.match(part[0]) for line in part[1:]]
    assert entries
    for line in entries:
        assert re.fullmatch(r" {24}\S.*|  \S.*", line), line
        beside = re.fullmatch(r"  (\S+(?: \S+)*?) {2,}(\S.*)", line)
        assert not beside or line.index(beside[2], len(beside[1])) == 24, line


@pytest.mark.parametrize("words", PROGRAMS)
def test_examples_are_commands_with_comments_above_them(wiretale_run: Any, words: str) -> None:
    examples = help_parts(help_lines(wiretale_run, words))[-2]
    assert examples[0] == "examples:"
    for line in examples[1:]:
        assert re.match(r"  # \S|  \S| {6}\S", line) and "  " not in line.strip(), line
    for command in joined_commands(examples):
        assert re.search(r"(^|\| )wiretale( |$)", command) and shlex.split(command), command
        assert "#" not in command
        assert words.partition(" ")[0] in command or (words.startswith("cluster") and "analyze" in command)


@pytest.mark.parametrize("words", PROGRAMS)
def test_exit_codes_are_listed_one_a_line(wiretale_run: Any, words: str) -> None:
    codes = help_parts(help_lines(wiretale_run, words))[-1]
    assert codes[0] == "exit codes:" and re.fullmatch(r"  0 +done.*", codes[1])
    codes_listed = [int(match[1]) for line in codes[1:] if (match := re.match(r"  (\d+) ", line))]
    assert codes_listed == sorted(set(codes_listed)) and {0, 2} <= set(codes_listed)


@pytest.mark.parametrize("width", [40, 60, 120, 200])
@pytest.mark.parametrize("words", PYTHON)
def test_help_fits_other_widths(wiretale_run: Any, words: str, width: int) -> None:
    lines = help_lines(wiretale_run, words, width)
    too_long = [line for line in lines if len(line) > width]
    assert [
        line for line in too_long if len(re.sub(r"'[^']*'|\"[^\"]*\"", "q", line).split()) > 2
    ] == []  # nor option and value parted
    parts = help_parts(lines)
    assert joined_commands(parts[-2])
    wide = help_parts(help_lines(wiretale_run, words))[-2]
    assert [shlex.split(command) for command in joined_commands(parts[-2])] == [
        shlex.split(command) for command in joined_commands(wide)
    ]


def test_a_command_is_the_same_over_several_lines() -> None:
    command = "wiretale verify transfer.pcapng --json | jq '.differences[] | select(.rule == null)' --with more words"
    for width in range(20, 120, 7):
        lines = fit_command(command, width)
        assert shlex.split("\n".join(lines).replace("\\\n", "")) == shlex.split(command)
        assert all(len(line) <= width + 2 for line in lines) or width < 50


def test_every_measure_is_in_the_help_of_diff(wiretale_run: Any) -> None:
    text = " ".join(help_lines(wiretale_run, "diff"))
    named = re.search(r"Measures: ([\w, ]+)  examples", text)
    assert named and named[1].split(", ") == list(MEASURES)
