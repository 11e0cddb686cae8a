# SPDX-License-Identifier: Apache-2.0
"""The parser of every command: one layout for help, one form for errors, no abbreviated options."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from wiretale.cli.commands import ACTIONS, GROUPS, path_of
from wiretale.cli.help_text import help_of

TYPE_CHECKING = False  # importing typing would take 2 ms
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, NoReturn

    from _typeshed import SupportsWrite

    Commands = argparse._SubParsersAction["Parser"]

EXIT_TEXTS = {
    0: "done",
    1: "a --fail-if condition holds, or its value is unknown",
    2: "wrong usage",
    3: "done, but a file is damaged, truncated or skipped",
    4: "input unreadable or output not writable",
    5: "a tool, a library or a permission is missing",
    130: "interrupted (Ctrl-C)",
    143: "terminated (SIGTERM, SIGHUP)",
}
# Modules of commands that are not in one of their name.
MODULES = {"explain": "wiretale.cli.analyze", "mcp": "wiretale.agents.command"}  # the others are wiretale.cli.COMMAND
READING_CODES = (0, 2, 3, 4, 130, 143)


def add_command(commands: Commands, name: str) -> Parser:
    """Adds the command of a module, which has add_options() and run(); its docstring and other texts are the help."""
    if name in GROUPS:
        return add_group(commands, name)
    module = import_module(MODULES.get(name, f"wiretale.cli.{name}"))
    parser = commands.add_parser(name, usage=module.USAGE, description=module.__doc__)
    parser.prog = f"wiretale {path_of(name)}"
    words = vars(module)
    codes, meanings = words.get("EXIT_CODES", READING_CODES), words.get("EXIT_TEXTS")
    parser.describe(module.EXAMPLES, codes, words.get("NOTES", ""), meanings)
    parser.set_defaults(command=module.run)
    module.add_options(parser)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            list_actions(action, name)
    return parser


def list_actions(commands: Commands, group: str) -> None:
    """Lists the commands of a group that have parsers of their own."""
    for name, text in ACTIONS.get(group, {}).items():
        commands.add_parser(name, help=text)


def add_group(commands: Commands, name: str) -> Parser:
    """Adds a group that has no module."""
    description, examples = GROUPS[name]
    parser = commands.add_parser(name, usage=f"wiretale {name} COMMAND [options]", description=description)
    parser.describe(examples, (0, 2))
    list_actions(
        parser.add_subparsers(title="commands", metavar="COMMAND", required=True, prog=f"wiretale {name}"), name
    )
    return parser


class QuickFormatter(argparse.HelpFormatter):
    """argparse makes one for each option that is added; with a width, it does not import shutil."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=80)


class Parser(argparse.ArgumentParser):
    """Reports an error in one line on stderr and exits with code 2."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "allow_abbrev": False, "add_help": False, "formatter_class": QuickFormatter})
        self.examples = self.notes = ""
        self.exit_codes: Mapping[int, str] = {}
        self.words: list[str] = []
        self.sections: Mapping[str, Mapping[str, str]] = {}  # of further commands, by heading
        self.add_argument("-h", "--help", action="help", help="print this help")

    def describe(
        self,
        examples: str,
        codes: Sequence[int] = READING_CODES,
        notes: str = "",
        meanings: Mapping[int, str] | None = None,
    ) -> Parser:
        """Sets the last parts of the help; `meanings` replaces the usual texts of exit codes."""
        self.examples, self.notes = examples, notes
        self.exit_codes = {code: (meanings or {}).get(code) or EXIT_TEXTS[code] for code in codes}
        return self

    def format_help(self) -> str:
        """Overrides argparse's layout."""
        return help_of(self)

    def format_usage(self) -> str:
        """Returns the usage in one line."""
        return f"usage: {self.usage or self.prog}\n"

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        """Raises OSError if the device is full, which argparse ignores since Python 3.12."""
        if message and file is sys.stdout:
            file.write(message)
        else:
            super()._print_message(message, file)

    def parse_known_args(  # type: ignore[override]  # no caller passes a namespace of its own class
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Rejects unknown arguments itself, because it can suggest the option that was meant."""
        self.words = list(sys.argv[1:] if args is None else args)
        parsed, extras = super().parse_known_args(self.words, namespace)
        if extras not in ([], ["--"]):  # argparse returns the end of options if no argument follows
            self.refuse(extras)
        return parsed, []

    def refuse(self, extras: Sequence[str]) -> NoReturn:
        """Fails with the first unknown option, or else with the first surplus argument."""
        from wiretale.cli.usage_hint import unknown_option

        end = extras.index("--") if "--" in extras else len(extras)
        options = [word for word in extras[:end] if word.startswith("-") and word != "-"]
        arguments = [word for word in extras if word != "--"]
        self.fail(unknown_option(self, options[0]) if options else f"unexpected argument {arguments[0]!r}")

    def error(self, message: str) -> NoReturn:
        """Fails with argparse's message, reworded."""
        from wiretale.cli.usage_hint import reworded, unknown_in

        missing = message.startswith(("the following", "argument COMMAND", "argument ACTION"))
        self.fail((missing and unknown_in(self)) or reworded(self, message))

    def fail(self, message: str) -> NoReturn:
        """Exits with the code for wrong usage."""
        from wiretale.analyzer.printable import printable

        self.exit(2, f"wiretale: {printable(message)}; see `{self.prog} --help`\n")
