# SPDX-License-Identifier: Apache-2.0
"""How the options of a C program are declared: once, in a file for each command.

Its help, man page and completions are made from the declaration, and the table from which the program reads its command line:
`.ci/option_tables.py` writes that into a header beside the C file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Bound = int | str  # a str is an expression of C


@dataclass(frozen=True)
class Option:
    """An option, or a line of the help about one that is declared elsewhere."""

    #: a row of common/options.h: FLAG, SET, SIZE, COUNT, PORT, TIME, TEXT, WORD, CUSTOM, HELP, VERSION or HINT; "" for a line
    kind: str
    #: `-i --interface`: a letter and a name. Further names are read, but not shown
    names: str
    #: what stands for its value in the help
    value: str = ""
    #: of the help; empty: not shown
    help: str = ""
    #: of the struct that the program reads its options into
    member: str = ""
    least: Bound = 0
    #: 0 is no bound; of SET the value that is stored
    most: Bound = 0
    #: of a size without a unit; empty: bytes
    unit: str = ""
    #: the array of words of C, or the function that takes the value
    of: str = ""

    @property
    def left_column(self) -> str:
        """Returns its names and value as the help has them."""
        if not self.kind:
            return self.names
        letters = [name for name in self.names.split() if not name.startswith("--")][:1]
        long_names = [name for name in self.names.split() if name.startswith("--")][:1]
        return " ".join(filter(None, (", ".join(letters + long_names), self.value)))


def flag(names: str, member: str, text: str = "") -> Option:
    """An option that stores true in a bool."""
    return Option("FLAG", names, "", text, member)


def stores(names: str, member: str, constant: Bound, text: str = "") -> Option:
    """An option that stores a constant in a uint64_t."""
    return Option("SET", names, "", text, member, most=constant)


def size(
    names: str, value: str, member: str, text: str = "", least: Bound = 0, most: Bound = 0, unit: str = ""
) -> Option:
    """A number of bytes in a uint64_t; without a unit, it is in `unit`."""
    return Option("SIZE", names, value, text, member, least, most, unit)


def count(names: str, value: str, member: str, text: str = "", least: Bound = 0, most: Bound = 0) -> Option:
    """A whole number in a uint64_t."""
    return Option("COUNT", names, value, text, member, least, most)


def port(names: str, member: str, text: str = "") -> Option:
    """A port in a uint64_t."""
    return Option("PORT", names, "PORT", text, member, 1, 65535)


def time(names: str, value: str, member: str, text: str = "", least: Bound = 0, most: Bound = "INT64_MAX") -> Option:
    """A duration, in a uint64_t of ns."""
    return Option("TIME", names, value, text, member, least, most)


def text(names: str, value: str, member: str, text: str = "") -> Option:
    """The argument itself."""
    return Option("TEXT", names, value, text, member)


def word(names: str, value: str, member: str, words: str, text: str = "") -> Option:
    """The index of a word, in a uint64_t; `words` is an array of C."""
    return Option("WORD", names, value, text, member, of=words)


def read_by(names: str, value: str, function: str, text: str = "", member: str = "") -> Option:
    """What a function of C reads into the member, or without one into the struct."""
    return Option("CUSTOM", names, value, text, member, of=function)


def note(left: str, text: str) -> Option:
    """A line of the help about a form of an option."""
    return Option("", left, "", text)


def hint(letters: str, text: str) -> Option:
    """Letters that other programs have, refused with this text."""
    return Option("HINT", letters, "", text)


COMMON = (
    Option("HELP", "-h --help", "", "print this help"),
    Option("VERSION", "-V --version", "", "print the version"),
)


@dataclass(frozen=True)
class Program:
    """A command that a C program runs."""

    #: as the user types it, and for the help of `wiretale-traffic` alone
    name: str
    #: the file that is written, from the top of the repository; the C file that includes it has what `of` and bounds name
    header: str
    #: of C, into which options are read; empty if there are only --help and --version
    struct: str
    description: str
    #: lines; "@" stands for the name of the program, which can be called by several
    usage: str
    #: options by heading; --help and --version are added to the last
    groups: Mapping[str, Sequence[Option]]
    exit_codes: Mapping[int, str]
    #: commands, below comments
    examples: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    #: further names with their texts by heading, as signals
    sections: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    notes: str = ""
    #: options that the help does not show
    hidden: Sequence[Option] = ()

    def shown_groups(self) -> dict[str, list[Option]]:
        """Returns the groups with --help and --version."""
        groups = {heading: list(options) for heading, options in self.groups.items()}
        groups[list(groups)[-1]] += COMMON
        return groups

    def rows(self) -> list[Option]:
        """Returns all options that the program reads."""
        in_groups = [option for options in self.shown_groups().values() for option in options]
        return [option for option in (*in_groups, *self.hidden) if option.kind]
