# SPDX-License-Identifier: Apache-2.0
"""Writes the option tables of the C programs from their declarations: python .ci/option_tables.py [--check].

Each header is included by the C file that has the functions and words that its rows name.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from wiretale.cli.programs.declaration import Option, Program
from wiretale.cli.programs.program_help import help_template, program_of

ROOT = Path(__file__).parents[1]
DECLARED = ("capture", "find", "status", "send", "receive", "ttcp", "path", "link", "traffic")


def quoted(text: str) -> str:
    """Returns a string of C; an empty one stays empty."""
    return text and json.dumps(text, ensure_ascii=False)


def row(option: Option, struct: str) -> str:
    """Returns an option as a row of common/options.h."""
    words = option.names.split()
    long_names = [name.removeprefix("--") for name in words if name.startswith("--")]
    letters = [name.removeprefix("-") for name in words if not name.startswith("--")]
    if option.kind == "HINT":
        return f"{{.kind = OPTION_HINT, .name = {quoted(option.names)}, .hint = {quoted(option.help)}}}"
    expected = option.value if option.kind in ("WORD", "CUSTOM") else ""
    fields: dict[str, str | int] = {
        "kind": f"OPTION_{option.kind}",
        "name": quoted("|".join(long_names)),
        "letter": "".join(f"'{letter}'" for letter in letters),
        "offset": option.member and f"offsetof({struct}, {option.member})",
        "argument": quoted(expected),
        "min": option.least,
        "max": option.most,
        "unit": quoted(option.unit),
        {"WORD": "words", "CUSTOM": "take"}.get(option.kind, ""): option.of,
    }
    return "{" + ", ".join(f".{name} = {content}" for name, content in fields.items() if content) + "}"


def header_lines(program: Program) -> Iterator[str]:
    """Yields the lines of a header."""
    source = f"src/wiretale/cli/programs/{program.name}.py"
    yield "/* SPDX-License-" + "Identifier: Apache-2.0 */"  # in two parts: it is not the license of this file
    yield f"/* Made by .ci/option_tables.py from {source}. */"
    yield "/* clang-format off */"
    yield "static const struct option_row rows[] = {"
    yield from (f"    {row(option, program.struct)}," for option in program.rows())
    yield "};"
    yield ""
    yield "static const struct command_line command = {"
    yield "    .rows = rows,"
    yield "    .count = sizeof rows / sizeof *rows,"
    *lines, last = help_template(program).splitlines(keepends=True)
    yield "    .help ="
    yield from (f"        {quoted(line)}" for line in lines)
    yield f"        {quoted(last)},"
    yield "};"


def main() -> int:
    """Writes the headers, or with --check returns 1 if one is not up to date."""
    stale = []
    for program in map(program_of, DECLARED):
        path, text = ROOT / program.header, "\n".join(header_lines(program)) + "\n"
        if not path.is_file() or path.read_text() != text:
            stale.append(program.header)
            if "--check" not in sys.argv:
                path.write_text(text)
    if stale and "--check" in sys.argv:
        print(f"{', '.join(stale)}: run .venv/bin/python .ci/option_tables.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
