# SPDX-License-Identifier: Apache-2.0
"""Numbers with their units, as people read them. SI prefixes: 1 kB is 1000 bytes, as in rates."""

from __future__ import annotations

from collections.abc import Iterable

UNKNOWN = "–"
DURATIONS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1000, "µs"), (1, "ns"))
PREFIXES = ("", "k", "M", "G", "T", "P", "E")


def one_of(words: Iterable[str]) -> str:
    """`a, b or c`."""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def three_digits(value: float) -> str:
    """Three significant digits: 1.23, 12.3, 123; 9.999 is 10."""
    if value < 100:
        value = float(f"{value:.3g}")
    if value >= 100 or value == int(value):
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def prefixed(value: float | None, unit: str) -> str:
    """`1.23 MB` of 1_234_567 and "B"; a dash for what is not known."""
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
    """`1.23 ms` of ns; seconds beyond 1000 as hours and minutes."""
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
    """`1.23%`; a share that is not 0 never shows as 0, and one that is not the whole never as 100%."""
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
    """The words that agree with a number: `it was` of 1, `they were` of the others."""
    return one if count == 1 else several
