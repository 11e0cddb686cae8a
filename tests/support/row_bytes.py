# SPDX-License-Identifier: Apache-2.0
"""The rows of a shard (analyzer/core/shard/row_file.h), taken apart and put together, so that a test can change single values."""

from __future__ import annotations

import struct
from typing import NamedTuple

from wiretale.analyzer import _core
from wiretale.analyzer.table import AFTER_PASS, KEPT_TABLES

POSITION_SIZE, HEAD_SIZE, TEXTS = 24, 24, ("text", "address", "path")
TABLES = [table for table in KEPT_TABLES if table not in AFTER_PASS]
COLUMNS = {table: [(name, kind) for name, kind, *_ in columns] for table, _, columns in _core.schemas()}
Value = int | bytes | None


class Part(NamedTuple):
    """A table: its positions as they are, and its rows."""

    positions: bytes
    rows: list[list[Value]]


def take_varint(content: bytes, at: int) -> tuple[int, int]:
    bits = shift = 0
    while True:
        byte = content[at]
        bits |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return (bits >> 1) ^ -(bits & 1), at


def varint(value: int) -> bytes:
    bits = (value << 1 ^ value >> 63) & (1 << 64) - 1
    out = bytearray()
    while bits >= 0x80:
        out.append(bits & 0x7F | 0x80)
        bits >>= 7
    return bytes(out) + bytes([bits])


def take_row(content: bytes, at: int, columns: list[tuple[str, str]]) -> tuple[list[Value], int]:
    size = (len(columns) + 7) // 8
    known_bits = int.from_bytes(content[at : at + size], "little")
    at += size
    row: list[Value] = []
    for number, (_, kind) in enumerate(columns):
        value: Value = None
        if known_bits >> number & 1 and kind in TEXTS:
            (length,) = struct.unpack_from("<H", content, at)
            value, at = content[at + 2 : at + 2 + length], at + 2 + length
        elif known_bits >> number & 1:
            value, at = take_varint(content, at)
        row.append(value)
    return row, at


def row_bytes(row: list[Value]) -> bytes:
    known_bits = sum(1 << number for number, value in enumerate(row) if value is not None)
    values = [
        struct.pack("<H", len(cell)) + cell if isinstance(cell, bytes) else varint(cell)
        for cell in row
        if cell is not None
    ]
    return known_bits.to_bytes((len(row) + 7) // 8, "little") + b"".join(values)


def table_ends(content: bytes, at: int) -> list[int] | None:
    """The places of all tables and the end, if the tables begin here."""
    ends = [at]
    for _ in TABLES:
        if at + HEAD_SIZE > len(content):
            return None
        _, positions, size = struct.unpack_from("<QQQ", content, at)
        at += HEAD_SIZE + POSITION_SIZE * positions + size
        ends.append(at)
    return ends if at == len(content) else None


def take_part(content: bytes, at: int, table: str) -> Part:
    """The table that begins here."""
    count, positions, _ = struct.unpack_from("<QQQ", content, at)
    begin = at + HEAD_SIZE
    at = begin + POSITION_SIZE * positions
    place, rows = content[begin:at], []
    for _ in range(count):
        row, at = take_row(content, at, COLUMNS[table])
        rows.append(row)
    return Part(place, rows)


def part_bytes(part: Part) -> bytes:
    """The opposite of take_part()."""
    rows = b"".join(map(row_bytes, part.rows))
    head = struct.pack("<QQQ", len(part.rows), len(part.positions) // POSITION_SIZE, len(rows))
    return head + part.positions + rows


def parts_of(content: bytes) -> tuple[bytes, dict[str, Part]]:
    """What is before the tables, and the tables."""
    places = next(ends for at in range(16, len(content)) if (ends := table_ends(content, at)))
    return content[: places[0]], {
        table: take_part(content, at, table) for table, at in zip(TABLES, places, strict=False)
    }


def content_of(head: bytes, parts: dict[str, Part]) -> bytes:
    """The opposite of parts_of()."""
    return head + b"".join(map(part_bytes, parts.values()))
