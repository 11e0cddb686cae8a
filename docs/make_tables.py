# SPDX-License-Identifier: Apache-2.0
"""Makes docs/tables.md from the schemas in the code: python docs/make_tables.py [--check]."""

from __future__ import annotations

import sys
from pathlib import Path

import made_page

from wiretale.analyzer import _core

PAGE = Path(__file__).with_name("tables.md")

HEAD = """\
# The tables

Made from the code by `python docs/make_tables.py`; `make lint` checks that it is up to date. In Python they speak the
Arrow PyCapsule protocol (`wiretale.analyze(...).flows`), `-o DIR` writes them as Parquet, `--json` as arrays of objects.

Times are int64 nanoseconds since the epoch, sizes bytes, rates bit/s. **A value that the capture cannot tell is null,
never 0.** A frame number is that of Wireshark, counted in the file that the `captures` row names.

Types: `int` int64, `real` float64, `bool`, `word` a word of a fixed list, `text`, `address` an IP address as text,
`path` the name of a file.

In JSON, C1 controls and bidirectional controls are escaped (`\\u202e`), and a byte of a `path` that is not UTF-8 is a lone
surrogate: in Python, `os.fsencode()` of what `json.loads()` returns has the name's bytes. In Arrow, Parquet and CSV it is U+FFFD.

In CSV, text from a capture cannot steer a terminal or become a formula in a spreadsheet: control characters and
bidirectional controls are escaped (`\\n`, `\\x1b`, `\\u202e`), a backslash is doubled, and a text that then begins with
`=`, `+`, `-`, `@` or `'` gets an apostrophe before it. To read it back, remove that apostrophe first. Numbers are as they are.

The `packets` table has one row for each packet, so it is made only on request: `--tables packets` (also with `-o DIR`),
`trace.packets()`, a query that names it, or `analyze(..., keep_packets=True)`. A file is read a second time for it
if its rows were not kept. Standard input cannot be read twice: without `keep_packets=True` the table is an error, never
0 rows. It holds 2 million rows; `totals.packets_rows_dropped` counts the packets beyond them.

## The JSON object

`wiretale analyze --json` prints one object. A new member or column keeps its `schema`; a removed or renamed one, or one
whose meaning changes, raises the number at its end.

| member | meaning |
| --- | --- |
| `schema` | `wiretale.analyze/1` |
| `wiretale` | version of the program |
| `inputs` | files that were read, in order; `-` is standard input |
| `interrupted` | whether Ctrl-C ended the reading early |
| `totals` | `packets` and `flows` analyzed; `evicted_flows` (`--max-flows`), `evicted_datagrams`; `filter_refused`: packets of \
link types that the filter cannot judge; `packets_rows_dropped`, `events_dropped`, `blocks_dropped`: rows beyond a table's bound |
| `blocks_summary` | the directions with numbered packets or blocks: `application` and their columns of `directions` |
| `captures`, `flows`, `directions`, `datagrams`, `findings` | the tables below as arrays of row objects; `--tables A,B` chooses |
"""

Column = tuple[str, str, str, str]


def describe_column(column: Column) -> str:
    """A row of the page's table."""
    name, kind, unit, meaning = (cell.replace("|", "\\|") for cell in column)
    return f"| `{name}` | {kind} | {unit} | {meaning} |"


def describe_table(name: str, row: str, columns: list[Column]) -> str:
    """A table's heading and columns."""
    lines = [
        f"## {name}",
        "",
        f"A row is {row}.",
        "",
        "| column | type | unit | meaning |",
        "| --- | --- | --- | --- |",
    ]
    return "\n".join([*lines, *map(describe_column, columns), ""])


def make_page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(describe_table(*schema) for schema in _core.schemas())])


if __name__ == "__main__":
    sys.exit(made_page.main(PAGE, make_page()))
