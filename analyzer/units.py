# SPDX-License-Identifier: Apache-2.0
"""Quantities as text: parsed from options (`10M`, `1.5 Gbit/s`, `64KiB`, `200ms`) and shown (`1.23 MB`, `94.1 Mbit/s`).

Every program must accept the spellings of tests/analyzer/unit_spellings.toml, which explains the grammar. Shown prefixes are SI:
1 kB is 1000 bytes. Every program shows a quantity as tests/analyzer/units.tsv has it: a value is rounded before its unit is
chosen, so 999.6 ns is 1 µs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from math import floor, isfinite

from wiretale.analyzer.errors import UsageError

TYPE_CHECKING = False  # importing typing would take 2 ms
if TYPE_CHECKING:
    from typing import TypeGuard

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
UNKNOWN, MINUS = "–", "−"
DURATIONS = ((1, "ns"), (1000, "µs"), (1_000_000, "ms"), (NS, "s"))
PREFIXES = ("", "k", "M", "G", "T", "P", "E")


def split_number(text: str) -> tuple[Decimal, str] | None:
    """Returns number and unit; None without a number."""
    match = NUMBER.fullmatch(text) if len(text) <= LENGTH_MOST else None
    if not match:
        return None
    return Decimal(match[1]).scaleb(int(match[2] or 0)), match[3]


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


def exact_integer(value: Decimal | None) -> int | None:
    """Returns the value if it is an integer below 2^63; else None."""
    return int(value) if value is not None and value < 2**63 and value == int(value) else None


def parse_bit_rate(text: str) -> Decimal | None:
    """Returns bit/s; None if the text is not a rate, also for bytes (`10MB`)."""
    return None if BYTES.search(text) else scaled(text, RATE_UNITS)


def parse_bytes(text: str) -> int | None:
    """Returns bytes; None if the text is not a size."""
    return exact_integer(scaled(text, SIZE_UNITS))


def parse_count(text: str) -> int | None:
    """Returns an integer; None if the text is not one."""
    return exact_integer(scaled(text, ("",)))


def parse_duration(text: str) -> int | None:
    """Returns nanoseconds; None if the text is not a duration."""
    split = split_number(text)
    factor = TIME_NS.get(split[1].lower()) if split else None
    return round(split[0] * factor) if split and factor and split[0] * factor < 2**63 else None


def parse_rate(text: str) -> int:
    """Returns the bit/s of an option, which must be a rate: `1G`, `1.5Gbit`, `100Mbit/s`. Raises UsageError otherwise."""
    rate = exact_integer(parse_bit_rate(text))
    if rate is None or not 0 < rate <= RATE_MOST:
        raise UsageError(f"invalid rate {text!r}: expected 100M, 1G or 2.5Gbit, up to 100T (in bit/s, not bytes)")
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


def rounded(size: float, unit: float, places: int) -> int:
    """Returns size / unit, rounded to decimal places, without the point; halves are rounded up."""
    return floor(size * 10.0**places / unit + 0.5)


def is_number(value: float | None) -> TypeGuard[float]:
    """Returns whether there is a value that can be shown."""
    return value is not None and isfinite(value)


def three_digits(value: float, unit: float = 1) -> str:
    """Returns value / unit with three significant digits: 1.23, 12.3, 123, 1,234; 9.999 is 10, and 1.50 stays 1.50."""
    for places in (2, 1, 0):
        number = rounded(abs(value), unit, places)
        if number < 1000:
            break
    integer, fraction = divmod(number, 10**places)
    decimals = f".{fraction:0{places}}" if fraction else ""
    return f"{MINUS if value < 0 and number else ''}{integer:,}{decimals}"


def show_quantity(value: float, units: Sequence[tuple[int, str]]) -> str:
    """Returns a value in the first unit in which its rounded number is below 1000, else in the last one."""
    unit, name = next((step for step in units if rounded(abs(value), step[0], 0) < 1000), units[-1])
    return f"{three_digits(value, unit)} {name}"


def prefixed(value: float | None, unit: str) -> str:
    """`1.23 MB` of 1_234_567 and "B"; a dash for None."""
    if not is_number(value):
        return UNKNOWN
    return show_quantity(value, [(1000**power, prefix + unit) for power, prefix in enumerate(PREFIXES)])


def show_bytes(value: float | None) -> str:
    """`1.23 MB`."""
    return prefixed(value, "B")


def show_rate(value: float | None) -> str:
    """`94.1 Mbit/s` of bit/s."""
    return prefixed(value, "bit/s")


def show_duration(ns: float | None) -> str:
    """`1.23 ms` of ns; minutes and hours from 1000 s."""
    if not is_number(ns):
        return UNKNOWN
    seconds, minutes = rounded(abs(ns), NS, 0), rounded(abs(ns), 60 * NS, 0)
    if seconds < 1000:
        return show_quantity(ns, DURATIONS)
    sign = MINUS if ns < 0 else ""
    if seconds < 3600:
        return f"{sign}{seconds // 60} min {seconds % 60:02} s"
    return f"{sign}{minutes // 60:,} h {minutes % 60:02} min"


def show_count(value: float | None) -> str:
    """`1,234,567`; a mean that is no integer has three digits."""
    if not is_number(value):
        return UNKNOWN
    return three_digits(value) if value != int(value) else f"{int(value):,}".replace("-", MINUS)


def show_share(part: float, total: float) -> str:
    """`1.23%`; only 0 is shown as 0%, and only the whole as 100%."""
    if not total:
        return UNKNOWN
    text = three_digits(100 * part, total)
    if 0 < 100 * part / total < 0.01:
        return "under 0.01%"
    return "over 99.9%" if part < total and text == "100" else f"{text}%"


def show_change(percent: float) -> str:
    """`−58%`, `+140%`; a change that is too small for three digits is about 0%, an infinite one from 0."""
    if not isfinite(percent):
        return "from 0"
    text = three_digits(percent)
    return "about 0%" if percent and text == "0" else f"{'+' if percent > 0 else ''}{text}%"


def with_sign(show: Callable[[float], str], value: float) -> str:
    """Returns a difference, with + if it is positive."""
    return f"{'+' if value > 0 else ''}{show(value)}"


def plural(count: int, noun: str, several: str | None = None) -> str:
    """`1 packet`, `2 packets`."""
    return f"{show_count(count)} {noun if count == 1 else several or noun + 's'}"


def agreeing(count: int, singular: str, several: str) -> str:
    """Returns the words that agree with a number: `it was` for 1, else `they were`."""
    return singular if count == 1 else several
