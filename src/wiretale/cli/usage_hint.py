# SPDX-License-Identifier: Apache-2.0
"""Messages for wrong usage: the option or command that was probably meant, also for options of tshark and tcpdump."""

from __future__ import annotations

import argparse
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from wiretale.analyzer.units import one_of

if TYPE_CHECKING:
    from wiretale.cli.parser import Parser

READING = ("analyze", "explain", "compare", "diff", "verify", "cut", "info")  # commands that read captures
# Options of tshark and tcpdump, and their equivalents.
HINTS = {
    "-r": "just pass the file, as in wiretale {command} FILE",
    "-Y": "display filters aren't supported; -f takes a capture filter: wiretale analyze FILE -f 'tcp port 443'",
    "-R": "display filters aren't supported; -f takes a capture filter: wiretale analyze FILE -f 'tcp port 443'",
    "-z": "statistics need no option: wiretale analyze FILE lists conversations, wiretale analyze FILE --all has expert "
    "information, --report FILE draws graphs",
    "-w": "wiretale capture -i IF -w FILE records packets; -o DIR and --report FILE of wiretale analyze write results",
    "-i": "wiretale {command} reads files: wiretale capture -i IF -w FILE records, and "
    "tcpdump -i IF -w - | wiretale analyze - reads live traffic",
    "-n": "names are never resolved, so you don't need it",
    "-v": "wiretale analyze FILE --all has more detail; wiretale -V prints the version",
    "-V": "packet details: tshark -V; wiretale -V prints the version",
    "-T": "wiretale analyze FILE has --json, --csv and -o DIR (Parquet), each with all columns",
    "-e": "wiretale analyze FILE --csv --tables packets prints every column (docs/tables.md)",
    "-c": "files are read whole; -f, --start and --end of wiretale analyze choose packets",
    "-x": "packet bytes: tshark -x -r FILE -Y 'frame.number == N'",
    "-X": "packet bytes: tshark -x -r FILE -Y 'frame.number == N'",
    "-A": "packet bytes: tshark -x -r FILE -Y 'frame.number == N'",
    "-t": "times are in UTC with nanoseconds; tables have them as integers since the epoch",
    "-l": "output comes at the end, so you don't need it",
    "-D": "`ip link` lists interfaces",
    "-s": "packets are read as long as they were captured; wiretale capture -s N truncates",
}
NUMBER = re.compile(r"-\.?\d")


def option_names(parser: Parser) -> list[str]:
    """Returns every spelling of every option."""
    return [name for action in parser._actions for name in action.option_strings]


def unknown_option(parser: Parser, word: str) -> str:
    """Returns the message for an unknown option."""
    name = word.partition("=")[0]
    command = parser.prog.removeprefix("wiretale").strip()
    hint = HINTS.get(word[:2]) if command in ("", *READING) and not word.startswith("--") else None
    if hint:
        return f"there is no option {word[:2]}: {hint.format(command=command or 'analyze')}"
    place = option_elsewhere(parser, command, name)
    if place:
        return f"{name} is an option of {place}"
    near = near_options(name, option_names(parser))
    return f"there is no option {name}" + (f" (did you mean {' or '.join(near)}?)" if near else "")


def near_options(name: str, names: list[str]) -> list[str]:
    """Returns the long options that were probably meant, compared without their dashes."""
    words = [option[2:] for option in names if option.startswith("--")]
    stem = name.lstrip("-")
    near = [option for option in words if option.startswith(stem)] if name.startswith("--") and len(stem) > 1 else []
    return [f"--{option}" for option in near or get_close_matches(stem, words, 1)]


def option_elsewhere(parser: Parser, command: str, name: str) -> str:
    """Returns the place of an option that was given before a command, or of `--version` after one; else an empty text."""
    if command:
        return "wiretale itself: wiretale --version" if name == "--version" else ""
    from wiretale.cli.parser import add_command

    commands = type(parser)(prog="wiretale").add_subparsers()
    for action in add_command(commands, "analyze")._actions:
        if name in action.option_strings:
            value = f" {action.metavar}" if action.nargs != 0 else ""
            return f"analyze: wiretale analyze FILE {name}{value}"
    return ""


def unknown_in(parser: Parser) -> str | None:
    """Returns the message for the first unknown option if a required argument is missing, too.

    Options that follow the name of a command belong to that command, even if the name is misspelt.
    """
    options = option_names(parser)
    has_commands = any(isinstance(action, argparse._SubParsersAction) for action in parser._actions)
    for word in parser.words:
        if word == "--" or (has_commands and not word.startswith("-")):
            break
        takes = word[:2] in options and not word.startswith("--")
        if (
            word.startswith("-")
            and word != "-"
            and word.partition("=")[0] not in options
            and not (takes or NUMBER.match(word))
        ):
            return unknown_option(parser, word)
    return None


def action_named(parser: Parser, name: str) -> argparse.Action | None:
    """Returns the argument that a message of argparse names."""
    for action in parser._actions:
        if name in ("/".join(action.option_strings), action.metavar, action.dest):
            return action
    return None


def wrong_choice(name: str, value: str, choices: list[str]) -> str:
    """Returns the message for a value that is not one of the choices."""
    if name not in ("COMMAND", "ACTION"):
        return f"{name} {value!r}: expected {one_of(choices)}"
    if value == "cluster":
        return "there is no command 'cluster': analyze files on several machines with wiretale analyze FILES --cluster"
    near = get_close_matches(value, choices, 1)
    return f"there is no command {value!r} " + (
        f"(did you mean {near[0]}?)" if near else f"(expected {one_of(choices)})"
    )


def reworded(parser: Parser, message: str) -> str:
    """Rewords a message of argparse: the problem, then the expectation."""
    missing = re.fullmatch(r"the following arguments are required: (.*)", message, re.DOTALL)
    if missing:
        return f"expected {missing[1]}"
    matched = re.fullmatch(r"argument (\S+): (.*)", message, re.DOTALL)
    if not matched:
        return message
    name, problem = matched.groups()
    choice = re.fullmatch(r"invalid choice: (.*) \(choose from (.*)\)", problem, re.DOTALL)
    if choice:
        return wrong_choice(
            name, choice[1].strip("'"), [choice_text.strip("' ") for choice_text in choice[2].split(",")]
        )
    action = action_named(parser, name)
    if problem.startswith("expected ") and action and isinstance(action.metavar, str):
        return f"{name}: expected {action.metavar}"
    if problem.startswith("invalid int value: "):
        return f"{name} {problem.removeprefix('invalid int value: ')}: expected a whole number"
    if problem.startswith("ignored explicit argument "):
        return f"{name}: expected no value, found {problem.removeprefix('ignored explicit argument ')}"
    return f"{name} {problem}" if problem.startswith(("'", '"')) else f"{name}: {problem}"
