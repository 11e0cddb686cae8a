# SPDX-License-Identifier: Apache-2.0
"""Quantities as text: parsed from options (`10M`, `1.5 Gbit/s`, `64KiB`, `200ms`) and shown (`1.23 MB`, `94.1 Mbit/s`).

Every program must accept the spellings of tests/analyzer/unit_spellings.toml, which explains the grammar. Shown prefixes are SI:
1 kB is 1000 bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal

from wiretale.analyzer.errors import UsageError

NUMBER = re.compile(r"[ \t]*([0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]{1,3}))?[ \t]*([A-Za-z\u00b5\u03bc/]*)[ \t]*")
LENGTH_MOST = 40
SCALES = {
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
RATE_MOST, SIZE_MOST = 10**14, 2**30
UNKNOWN = "–"
DURATIONS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1000, "µs"), (1, "ns"))
PREFIXES = ("", "k", "M", "G", "T", "P", "E")


def split_number(text: str) -> tuple[Decimal, str] | None:
    """Returns number and unit; None without a number."""
    found = NUMBER.fullmatch(text) if len(text) <= LENGTH_MOST else None
    if not found:
        return None
    return Decimal(found[1]).scaleb(int(found[2] or 0)), found[3]


def scaled(text: str, units: tuple[str, ...]) -> Decimal | None:
    """Returns the number times its prefix; None if it is not a number with one of the units."""
    split = split_number(text)
    if split is None:
        return None
    number, unit = split
    for prefix, factor in SCALES.items():
        if unit.lower().startswith(prefix) and unit.lower()[len(prefix) :] in units:
            return number * factor
    return None


def whole(value: Decimal | None) -> int | None:
    """Returns the value if it is an integer below 2^63; else None."""
    return int(value) if value is not None and value < 2**63 and value == int(value) else None


def parse_bit_rate(text: str) -> Decimal | None:
    """Returns bit/s; None if the text is not a rate, also for bytes (`10MB`)."""
    return None if BYTES.search(text) else scaled(text, RATE_UNITS)


def parse_bytes(text: str) -> int | None:
    """Returns bytes; None if the text is not a size."""
    return whole(scaled(text, SIZE_UNITS))


def parse_count(text: str) -> int | None:
    """Returns an integer; None if the text is not one."""
    return whole(scaled(text, ("",)))


def parse_duration(text: str) -> int | None:
    """Returns nanoseconds; None if the text is not a duration."""
    split = split_number(text)
    factor = TIME_NS.get(split[1].lower()) if split else None
    return round(split[0] * factor) if split and factor and split[0] * factor < 2**63 else None


def parse_rate(text: str) -> int:
    """Returns the bit/s of an option, which must be a rate: `1G`, `1.5Gbit`, `100Mbit/s`. Raises UsageError otherwise."""
    rate = whole(parse_bit_rate(text))
    if rate is None or not 0 < rate <= RATE_MOST:
        raise UsageError(
            f"invalid rate {text!r}: expected 100M, 1G or 2.5Gbit, up to 100T (bit/s; bytes are not taken)"
        )
    return rate


def parse_size(text: str) -> int:
    """Returns the bytes of an option: `8192`, `9k` (9000), `64KiB` (65536). Raises UsageError if it is not a size."""
    size = parse_bytes(text)
    if size is None or not 0 < size <= SIZE_MOST:
        raise UsageError(f"invalid size {text!r}: expected 8192, 9k or 64KiB, up to 1GiB (bytes)")
    return size


def one_of(words: Iterable[str]) -> str:
    """`a, b or c`."""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def three_digits(value: float) -> str:
    """Returns three significant digits: 1.23, 12.3, 123; 9.999 is 10."""
    if value < 100:
        value = float(f"{value:.3g}")
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def prefixed(value: float | None, unit: str) -> str:
    """`1.23 MB` of 1_234_567 and "B"; a dash for None."""
    if value is None:
        return UNKNOWN
    power = 0
    while abs(value) >= 999.5 and power < len(PREFIXES) - 1:
        value /= 1000
        power += 1
    sign = "-" if value < 0 else ""
    return f"{sign}{three_digits(abs(value))} {PREFIXES[power]}{unit}"


def show_bytes(value: float | None) -> str:
    """`1.23 MB`."""
    return prefixed(value, "B")


def show_rate(value: float | None) -> str:
    """`94.1 Mbit/s` of bit/s."""
    return prefixed(value, "bit/s")


def show_duration(ns: float | None) -> str:
    """`1.23 ms` of ns; hours and minutes from 1000 s."""
    if ns is None:
        return UNKNOWN
    if ns >= 999.5 * 1_000_000_000:
        minutes, seconds = divmod(round(ns / 1_000_000_000), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s"
    for size, unit in DURATIONS:
        if ns >= 0.9995 * size:
            return f"{three_digits(ns / size)} {unit}"
    return f"{three_digits(ns)} ns"


def show_count(value: int | None) -> str:
    """`1,234,567`."""
    return UNKNOWN if value is None else f"{value:,}"


def show_share(part: float, whole: float) -> str:
    """`1.23%`; only 0 is shown as 0%, and only the whole as 100%."""
    if not whole:
        return UNKNOWN
    percent = 100 * part / whole
    if 0 < percent < 0.01:
        return "under 0.01%"
    if 99.95 <= percent < 100:
        return "over 99.9%"
    return f"{three_digits(percent)}%"


def plural(count: int, noun: str, several: str | None = None) -> str:
    """`1 packet`, `2 packets`."""
    return f"{count:,} {noun if count == 1 else several or noun + 's'}"


def agreeing(count: int, one: str, several: str) -> str:
    """Returns the words that agree with a number: `it was` for 1, else `they were`."""
    return one if count == 1 else several
