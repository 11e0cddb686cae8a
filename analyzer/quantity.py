# SPDX-License-Identifier: Apache-2.0
"""Rates, sizes, times and counts as people write them: `10M`, `1.5 Gbit/s`, `64KiB`, `200ms`, `10k`.

All programs accept the same spellings: tests/analyzer/unit_spellings.toml is the list, and explains the grammar.
"""

from __future__ import annotations

import re
from decimal import Decimal

NUMBER = re.compile(r"[ \t]*([0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]{1,3}))?[ \t]*([A-Za-z\u00b5\u03bc/]*)[ \t]*")
LENGTH_MOST = 40
PREFIXES = {
    **{"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4},
    **{"ki": 1024, "mi": 1024**2, "gi": 1024**3, "ti": 1024**4},
}
RATE_UNITS = ("", "bit", "bits", "bit/s", "bits/s", "bps", "b", "b/s")
SIZE_UNITS = ("", "b", "byte", "bytes")
BYTES = re.compile(r"B(?![iI][tT])")  # a B that is not the beginning of "bit"
NS = 1_000_000_000
TIME_NS = {
    **{"": NS, "ns": 1, "us": 1000, "\u00b5s": 1000, "\u03bcs": 1000, "ms": 1_000_000, "s": NS, "sec": NS},
    **{"m": 60 * NS, "min": 60 * NS, "h": 3600 * NS, "d": 86_400 * NS},
}


def split_number(text: str) -> tuple[Decimal, str] | None:
    """Number and unit; None without a number."""
    found = NUMBER.fullmatch(text) if len(text) <= LENGTH_MOST else None
    if not found:
        return None
    return Decimal(found[1]).scaleb(int(found[2] or 0)), found[3]


def scaled(text: str, units: tuple[str, ...]) -> Decimal | None:
    """The number times the prefix of its unit; None if it is not a number with one of the units."""
    split = split_number(text)
    if split is None:
        return None
    number, unit = split
    for prefix, factor in PREFIXES.items():
        if unit.lower().startswith(prefix) and unit.lower()[len(prefix) :] in units:
            return number * factor
    return None


def whole(value: Decimal | None) -> int | None:
    """The value if it has no fraction; None otherwise, and for one that no program can use."""
    return int(value) if value is not None and value < 2**63 and value == int(value) else None


def parse_bit_rate(text: str) -> Decimal | None:
    """bit/s; None for anything else, also for bytes (`10MB`)."""
    return None if BYTES.search(text) else scaled(text, RATE_UNITS)


def parse_bytes(text: str) -> int | None:
    """Bytes; None for anything else."""
    return whole(scaled(text, SIZE_UNITS))


def parse_count(text: str) -> int | None:
    """A whole number; None for anything else."""
    return whole(scaled(text, ("",)))


def parse_duration(text: str) -> int | None:
    """Nanoseconds; None for anything else."""
    split = split_number(text)
    factor = TIME_NS.get(split[1].lower()) if split else None
    return round(split[0] * factor) if split and factor and split[0] * factor < 2**63 else None
