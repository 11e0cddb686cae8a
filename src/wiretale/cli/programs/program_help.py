# SPDX-License-Identifier: Apache-2.0
"""The help of a C program, by its declaration, in the layout that commands of Python have."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from wiretale.cli.help_text import entry_lines, example_lines, exit_code_lines, fill_paragraphs, usage_lines
from wiretale.cli.programs.declaration import Program
from wiretale.traffic.program import PROGRAM_OF_COMMAND

WIDTH = 80
CALLED = {"traffic": "wiretale-traffic"}  # and the others as PROGRAM_OF_COMMAND has them
NAME = "@"  # the program's own name, which it puts there itself: wiretale-capture is called wiretale capture, too
UNBROKEN = "\ue000"


def program_of(name: str) -> Program:
    """Returns the declaration of a command."""
    program: Program = import_module(f"wiretale.cli.programs.{name}").PROGRAM
    return program


def called(name: str) -> str:
    """Returns the name that takes the place of "@" when a user calls wiretale."""
    return CALLED.get(name) or PROGRAM_OF_COMMAND[name][1]


def longest_name(name: str) -> int:
    """Returns the length of that name, or of the file's if it is longer, by which scripts call it."""
    return max(map(len, (called(name), *PROGRAM_OF_COMMAND.get(name, ("",))[:1])))


def parts_of(program: Program, width: int) -> Iterator[list[str]]:
    """Yields the parts of the help, each as lines."""
    yield fill_paragraphs(program.description, width)
    yield usage_lines(program.usage, width)
    groups = {
        heading: {option.left_column: option.help for option in options if option.help}
        for heading, options in program.shown_groups().items()
    }
    for heading, names in {"arguments": program.arguments, **groups, **program.sections}.items():
        lines = [line for name, text in names.items() for line in entry_lines(name, text, width)]
        yield [f"{heading}:", *lines] if lines else []
    yield fill_paragraphs(program.notes, width)
    yield example_lines(program.examples, width)
    yield exit_code_lines(program.exit_codes, width)


def help_template(program: Program) -> str:
    """Returns the help with "@" for the program's name. Lines have room for it."""
    room = UNBROKEN * longest_name(program.name)

    def roomy(text: str) -> str:
        return text.replace(NAME, room)

    spread = Program(
        **{
            **vars(program),
            "description": roomy(program.description),
            "usage": roomy(program.usage),
            "examples": roomy(program.examples),
        }
    )
    text = "\n\n".join("\n".join(lines) for lines in parts_of(spread, WIDTH) if lines)
    return text.replace(room, NAME) + "\n"


def help_of_program(name: str) -> str:
    """Returns the help as `wiretale NAME --help` prints it."""
    return help_template(program_of(name)).replace(NAME, called(name))
