# SPDX-License-Identifier: Apache-2.0
r"""Tables as CSV (RFC 4180); null is empty.

Text from a capture must neither control a terminal nor become a formula in a spreadsheet. Control characters and
bidirectional controls are escaped as in Python (\n, \x1b, \u202e), and a backslash is doubled. If the text then begins
with = + - @ or an apostrophe, it gets an apostrophe before it, which a reader must remove first. Numbers are unchanged.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import IO, TYPE_CHECKING

from wiretale.analyzer.printable import valid_text

if TYPE_CHECKING:
    from wiretale.analyzer.table import Table

ROWS_AT_ONCE = 4096  # bounds memory, because a row of Python objects is large
FORMULA = ("=", "+", "-", "@", "'", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # the last four are full-width
SHORT = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
CONTROLS = (*range(0x20), *range(0x7F, 0xA0), 0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
ESCAPES = {chr(code): f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in CONTROLS} | SHORT
TO_ESCAPE = re.compile(f"[{re.escape(''.join(ESCAPES))}]")


def csv_cell(value: object) -> object:
    """Returns a value as it is written; text is escaped."""
    if not isinstance(value, str):
        return value
    text = TO_ESCAPE.sub(lambda matched: ESCAPES[matched[0]], valid_text(value))
    return f"'{text}" if text.startswith(FORMULA) else text


def text_columns(table: Table) -> list[str]:
    """Returns the columns with text from a capture or from the user."""
    return [name for name, kind, *_ in table.columns() if kind in ("text", "path")]


def sql_text(text: str) -> str:
    """Returns a literal."""
    return "'" + text.replace("'", "''") + "'"


def csv_sql(column: str) -> str:
    """Returns csv_cell() of a text column as an SQL expression of DuckDB."""
    escaped = column
    # The backslash first, because the others insert some.
    for character in sorted(ESCAPES, key=lambda character_of_set: character_of_set != "\\"):
        if character != "\0":  # text has no NUL
            escaped = f"replace({escaped}, chr({ord(character)}), {sql_text(ESCAPES[character])})"
    pattern = sql_text("[" + "".join(f"\\x{{{ord(character_of_set):x}}}" for character_of_set in ESCAPES) + "]")
    text = f"(CASE WHEN regexp_matches({column}, {pattern}) THEN {escaped} ELSE {column} END)"
    beginnings = ", ".join(map(sql_text, FORMULA))
    return f"CASE WHEN left({column}, 1) IN ({beginnings}) THEN {sql_text(chr(39))} || {text} ELSE {text} END"


def write_csv(parts: Iterable[Table], out: IO[str], columns: Sequence[str] = ()) -> None:
    """Writes the column names of a table, which may come in parts, then a line for each row; all columns, or these."""
    writer = csv.writer(out)
    for number, table in enumerate(parts):
        names = list(columns) or [name for name, *_ in table.columns()]
        if not number:
            writer.writerow(names)
        write_rows(table, names, writer.writerows)


def write_rows(table: Table, names: Sequence[str], write: Callable[[Iterable[Iterable[object]]], object]) -> None:
    """Gives the cells of all rows to a function."""
    texts = [name for name in text_columns(table) if name in names]
    cells = itemgetter(*names) if len(names) > 1 else lambda row: (row[names[0]],)
    for start in range(0, len(table), ROWS_AT_ONCE):
        rows = table.rows(start, start + ROWS_AT_ONCE)
        for row in rows if texts else []:
            row.update((name, csv_cell(row[name])) for name in texts)
        write(map(cells, rows))
