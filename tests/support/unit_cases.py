# SPDX-License-Identifier: Apache-2.0
"""The cases of tests/analyzer/units.tsv in exact decimal arithmetic: `python tests/support/unit_cases.py` writes the file.

A row is a quantity (duration, bytes, rate, count, share), a value in ns, bytes, bit/s or a number (`part/total` of a share),
and its text. Of each unit, the values just below, at and above each step of the rounding are drawn: 9.995, 99.95 and 999.5, at
which it has one decimal less or the next unit. Halves are rounded up; a negative value is a minus sign (U+2212) and the text of
its magnitude.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import ROUND_HALF_UP, Decimal, getcontext
from pathlib import Path

getcontext().prec = 60
FILE = Path(__file__).parents[1] / "analyzer" / "units.tsv"
NS = 10**9
STEPS = (Decimal("9.995"), Decimal("99.95"), Decimal("999.5"))
PREFIXES = ("", "k", "M", "G", "T", "P", "E")
#: the part of a step by which a value is below or above it; doubles have 16 digits
BESIDE = Decimal("0.000001")
DURATIONS = {"ns": 1, "µs": 1000, "ms": 1_000_000, "s": NS}
HEADER = "quantity\tvalue\ttext"


def rounded(value: Decimal, places: int = 0) -> Decimal:
    return value.quantize(Decimal(10) ** -places, ROUND_HALF_UP)


def three_digits(value: Decimal) -> str:
    places = next((places for places in (2, 1) if rounded(value, places) < Decimal(1000) / 10**places), 0)
    text = f"{rounded(value, places):,}"
    return text.removesuffix(f".{'0' * places}") if places else text


def in_unit(value: Decimal, units: dict[str, int]) -> str:
    name = next((name for name, unit in units.items() if rounded(value / unit) < 1000), list(units)[-1])
    return f"{three_digits(value / units[name])} {name}"


def duration(ns: Decimal) -> str:
    seconds, minutes = int(rounded(ns / NS)), int(rounded(ns / (60 * NS)))
    if seconds < 1000:
        return in_unit(ns, DURATIONS)
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02} s"
    return f"{minutes // 60:,} h {minutes % 60:02} min"


def prefixed(unit: str) -> Callable[[Decimal], str]:
    units = {prefix + unit: 1000**power for power, prefix in enumerate(PREFIXES)}
    return lambda value: in_unit(value, units)


def share(part: Decimal, total: Decimal) -> str:
    if not total:
        return "–"
    percent = 100 * part / total
    if 0 < percent < Decimal("0.01"):
        return "under 0.01%"
    return "over 99.9%" if Decimal("99.95") <= percent < 100 else f"{three_digits(percent)}%"


SHOWN: dict[str, Callable[[Decimal], str]] = {
    "duration": duration,
    "bytes": prefixed("B"),
    "rate": prefixed("bit/s"),
    "count": lambda value: f"{value:,}",
}


def around(step: Decimal) -> Iterator[Decimal]:
    """A step, and values beside it; 9.995 and 99.95 themselves are no doubles."""
    yield from (step * (1 - BESIDE), step * (1 + BESIDE))
    if Decimal(float(step)) == step:
        yield step


def magnitudes(quantity: str) -> Iterator[Decimal]:
    yield from map(Decimal, ("0", "1", "2", "1.5", "999", "1000", "1234567", "9223372036854775807"))
    units = DURATIONS.values() if quantity == "duration" else [1000**power for power in range(len(PREFIXES))]
    for unit in units:
        for step in STEPS:
            yield from around(step * unit)
        yield from (unit * Decimal(text) for text in ("1", "1.125", "1.5", "12.25", "123.5"))
    if quantity != "duration":
        yield Decimal("1e30")
        return
    for seconds in (
        "999.4",
        "1000",
        "1000.5",
        "3599.4",
        "3599.5",
        "3600",
        "3629",
        "3630",
        "86400",
        "360000",
        "1000000",
    ):
        yield NS * Decimal(seconds)


def counts() -> Iterator[Decimal]:
    yield from map(Decimal, (0, 1, 999, 1000, 999_999, 1_000_000, 1_234_567, 2**53))


def shares() -> Iterator[tuple[int, int]]:
    """Parts of a total."""
    yield from ((0, 0), (0, 7), (1, 3), (2, 210), (7, 7), (11, 10), (200, 7), (1, 10**9), (10**9 - 1, 10**9))
    for percent in (Decimal("0.005"), Decimal("0.01"), *STEPS[:2], Decimal(100), STEPS[2]):
        yield from ((int(value * 10**9), 10**11) for value in around(percent))


def plain(value: Decimal) -> str:
    """A number without exponent and superfluous zeros."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def rows() -> Iterator[tuple[str, str, str]]:
    for quantity, show in SHOWN.items():
        for value in dict.fromkeys(counts() if quantity == "count" else magnitudes(quantity)):
            text = show(value)
            yield quantity, plain(value), text
            sign = "" if text.startswith("0 ") or text == "0" else "−"
            yield quantity, plain(-value) if value else "-0", f"{sign}{text}"
        yield from ((quantity, value, "–") for value in ("null", "nan", "inf", "-inf"))
    yield from (("share", f"{part}/{total}", share(Decimal(part), Decimal(total))) for part, total in shares())


def table() -> str:
    return "".join("\t".join(row) + "\n" for row in [(HEADER,), *dict.fromkeys(rows())])


if __name__ == "__main__":
    FILE.write_text(table(), "utf-8")
